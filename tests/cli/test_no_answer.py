"""No command is silent: an empty answer has a sentence on standard error and exit
status 1.
"""

import sqlite3
from pathlib import Path

import click
import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.main import cli
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, spec_hash, write

FORMS = {"--json", "--csv", "--markdown"}
HASHES = {"pages": spec_hash(1), "index": hash_of("top"), "both": hash_of("top")}
"""A binary of each database."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases of pages, of an index, of package data alone, of both, and some
    environments.
    """
    folder = tmp_path_factory.mktemp("databases")
    pages = write(
        folder / "pages-in", a=page("top", "develop", [spec(1, stacks=["root"])])
    )
    (folder / "index-in").mkdir()
    records = record(node("top", edge("low", "link"))), record(node("low"))
    (folder / "index-in" / "index.json").write_bytes(index(*records))
    data = write_packages(
        folder / "data", published("top", "1.0"), published("other", "1.0")
    )
    build(pages, folder / "pages.db")
    build(folder / "index-in", folder / "index.db")
    build(data, folder / "data.db")
    build([folder / "index-in", data], folder / "both.db")
    (folder / "specs.yaml").write_text("spack:\n  specs: [other]\n")
    (folder / "empty.yaml").write_text("spack:\n  specs: []\n")
    return folder


COMMANDS = [
    ("releases", "FILE"),
    ("stacks", "FILE"),
    ("behind", "FILE"),
    ("deps", "HASH", "FILE"),
    ("dependents", "HASH", "FILE"),
    ("dependents", "low@1", "FILE"),
    ("dependents", "top", "FILE"),
    ("dependents", "other@9", "FILE"),
    ("find", "top", "FILE"),
    ("find", "top", "os=none", "FILE"),
    ("find", "top", "FILE", "--hashes"),
    ("find", "other", "FILE"),
    ("find", "*", "FILE"),
    ("history", "other", "FILE"),
    ("history", "*", "FILE"),
    ("diff", "RELEASE", "RELEASE", "FILE"),
    ("diff", "RELEASE", "RELEASE", "FILE", "--package", "other"),
    ("diff", "RELEASE", "RELEASE", "FILE", "--host", "m1"),
    ("cover", "specs.yaml", "FILE"),
    ("cover", "empty.yaml", "FILE"),
    ("cover", "specs.yaml", "FILE", "--only", "unanswerable"),
    ("info", "FILE"),
]


@pytest.mark.parametrize("database", ["pages", "index", "data", "both"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_answer_is_silent(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    command: tuple[str, ...],
) -> None:
    """Where nothing is found, standard error says why; what a program reads stays what
    it is.
    """
    monkeypatch.chdir(folder)
    file = f"{database}.db"
    names = {
        "FILE": file,
        "HASH": HASHES.get(database, "a" * 32),
        "RELEASE": release(file),
    }
    words = [names.get(word, word) for word in command]
    described = cli.get_command(click.Context(cli), command[0])

    assert described is not None

    offered = {option for parameter in described.params for option in parameter.opts}
    people = run(*words)
    is_silent = not people.stdout and people.exit_code != 2

    assert not is_silent or people.stderr.startswith("Note: ")
    for form in FORMS & offered:
        answer = run(*words, form)
        assert answer.exit_code == people.exit_code
        if answer.exit_code == 2:
            assert (
                answer.stderr.startswith("Error: ")
                and answer.stdout == people.stdout == ""
            )
        elif is_silent:
            assert answer.stderr == people.stderr


@pytest.mark.parametrize(
    ("database", "command", "said"),
    [
        (
            "pages",
            ("deps", "HASH"),
            "are not known: the database has no dependency data",
        ),
        (
            "pages",
            ("dependents", "HASH"),
            "are not known: the database has no dependency data",
        ),
        ("index", ("deps", hash_of("low")), f"/{hash_of('low')} has no dependencies"),
        (
            "index",
            ("dependents", "HASH"),
            f"nothing in this database depends on /{hash_of('top')}",
        ),
        ("data", ("releases",), "the database has no release"),
        ("index", ("stacks",), "the database has no stack"),
        ("data", ("behind",), "no package has both a binary and package data"),
        (
            "pages",
            ("diff", "develop", "develop", "--host", "m1"),
            "so nothing is compared",
        ),
        ("pages", ("cover", "empty.yaml"), "the environment has no specs"),
        (
            "data",
            ("find", "other"),
            "other: Spack has this package, no binary of it is in this",
        ),
    ],
)
def test_the_reason_is_said(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    command: tuple[str, ...],
    said: str,
) -> None:
    """Unknown and empty are two things; the exit status of both is 1."""
    monkeypatch.chdir(folder)
    words = [HASHES[database] if word == "HASH" else word for word in command]
    options = [word for word in words if word.startswith("--")]
    at = words.index(options[0]) if options else len(words)
    answer = run(*words[:at], f"{database}.db", *words[at:])

    assert answer.exit_code == 1
    assert said in answer.stderr


def test_good_news_is_a_success(folder: Path) -> None:
    """No package is behind, and nothing differs: that is said, and the status is 0."""
    for words, said in (
        (
            ("behind", folder / "both.db", "--json"),
            "no package is behind: 1 package compared",
        ),
        (
            ("diff", "root", "root", folder / "index.db", "--csv"),
            "root has the same 2 binaries",
        ),
    ):
        answer = run(*words)
        assert answer.exit_code == 0
        assert said in answer.stderr


def release(file: str) -> str:
    """Return a release of a database, or a name that none has."""
    with sqlite3.connect(file) as connection:
        found = connection.execute("SELECT name FROM releases").fetchone()
    return str(found[0]) if found else "none"
