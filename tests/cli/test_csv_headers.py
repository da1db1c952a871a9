"""The columns of `--csv` depend on the command and its options, never on the answer."""

from pathlib import Path

import click
import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.main import cli
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record
from tests.package_data import published, write_packages

CASES: dict[str, list[tuple[str, ...]]] = {
    "releases": [("releases", "full.db"), ("releases", "data.db")],
    "stacks": [("stacks", "full.db"), ("stacks", "data.db")],
    "deps": [("deps", hash_of("top"), "full.db"), ("deps", hash_of("low"), "full.db")],
    "dependents": [
        ("dependents", hash_of("low"), "full.db"),
        ("dependents", hash_of("top"), "full.db"),
    ],
    "dependents of a spec": [
        ("dependents", "low", "full.db"),
        ("dependents", "top", "full.db"),
        ("dependents", "low@9", "full.db"),
    ],
    "behind": [("behind", "full.db"), ("behind", "data.db")],
    "find": [
        ("find", "top", "full.db"),
        ("find", "top@9", "full.db"),
        ("find", "*", "data.db"),
        ("find", "other", "full.db"),
    ],
    "find --hashes": [
        ("find", "top", "full.db", "--hashes"),
        ("find", "top@9", "full.db", "--hashes"),
    ],
    "history": [("history", "top", "full.db"), ("history", "top@9", "data.db")],
    "diff": [("diff", "a", "b", "two.db"), ("diff", "a", "a", "two.db")],
    "diff --databases": [
        ("diff", "--databases", "index.db", "two.db"),
        ("diff", "--databases", "two.db", "two.db"),
        ("diff", "--databases", "full.db", "two.db"),
    ],
    "diff of hashes": [
        ("diff", f"/{hash_of('top')}", f"/{hash_of('low')}", "full.db"),
        ("diff", f"/{hash_of('top')}", f"/{hash_of('top')}", "full.db"),
    ],
    "cover": [
        ("cover", "some.yaml", "full.db"),
        ("cover", "none.yaml", "full.db"),
        ("cover", "some.yaml", "full.db", "--only", "unanswerable"),
        ("cover", "list.txt", "data.db"),
    ],
    "cover of a folder": [
        ("cover", "folder", "full.db"),
        ("cover", "folder", "full.db", "--only", "lost"),
        ("cover", "empty", "full.db"),
    ],
    "retention": [
        ("retention", "full.db", "--newest", "1"),
        ("retention", "full.db", "--keep-stack", "s"),
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases with and without answers, and environments with and without specs."""
    folder = tmp_path_factory.mktemp("headers")
    for name in ("a", "b"):
        (folder / name).mkdir()
    low = record(node("low"))
    (folder / "a" / "index.json").write_bytes(
        index(record(node("top", edge("low", "link"))), low)
    )
    (folder / "b" / "index.json").write_bytes(index(low))
    data = write_packages(
        folder / "data", published("top", "9.0"), published("other", "1.0")
    )
    build([folder / "a", data], folder / "full.db", stack="s")
    build([folder / "a"], folder / "index.db", release="a")
    build([data], folder / "data.db")
    build([folder / "b"], folder / "second.db", release="b")
    build([folder / "index.db", folder / "second.db"], folder / "two.db")

    (folder / "some.yaml").write_text("spack:\n  specs: [top, other, low]\n")
    (folder / "none.yaml").write_text("spack:\n  specs: []\n")
    (folder / "list.txt").write_text("top\n")
    for name, source in (("folder", "some.yaml"), ("empty", "none.yaml")):
        (folder / name).mkdir()
        text = (folder / source).read_text()
        (folder / name / "spack.yaml").write_text(text)
    return folder


def header(folder: Path, arguments: tuple[str, ...]) -> str:
    """Return the first line of CSV that a command prints."""
    words = [
        str(folder / word) if (folder / word).exists() else word for word in arguments
    ]
    # The releases of `diff` have the names of folders.
    if arguments[0] == "diff" and arguments[1] != "--databases":
        words[1:3] = arguments[1:3]
    result = run(*words, "--csv")
    assert result.exit_code != 2, result.output
    return result.stdout.split("\n")[0]


@pytest.mark.parametrize("answers", CASES.values(), ids=CASES)
def test_the_header_is_the_same_for_every_answer(
    answers: list[tuple[str, ...]], folder: Path
) -> None:
    """Answers with rows, without rows, and of other databases have one header."""
    headers = {header(folder, arguments) for arguments in answers}
    assert len(headers) == 1
    assert "," in headers.pop()


def test_every_command_with_csv_is_tried() -> None:
    """A new command with `--csv` needs a line in the table."""
    commands = set()

    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if any("--csv" in option.opts for option in command.params):
            commands.add(name)
    assert commands == {name.split()[0] for name in CASES}
