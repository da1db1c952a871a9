"""cli.output: what a page says is shown and never obeyed."""

import csv
import io
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from spack_cache_db.cli.main import cli
from tests.builds import built
from tests.commands import run
from tests.pagetexts import page, spec, write
from tests.processes import on_a_terminal

ODD = ["k=a\x1b[2Jb", "l=a\nb", "m=\x9b31m", "n=\u202etxt", "o=\x7f\r"]
SHOWN = [r"k=a\x1b[2Jb", r"l=a\nb", r"m=\x9b31m", r"n=\u202etxt", r"o=\x7f\r"]
TARBALL = "https://x.org/\x1b[2J\n/build_cache/y.spack"
PLAIN = {each: f"_{ord(each):x}_" for each in "\x1b\n\x9b\u202e\x7f\r\x07"}
"""What stands in pages for characters that no build takes in."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, its own name odd, with a configuration of which `database` makes an odd
    one.
    """
    odd = spec(1, variants=ODD, stacks=["\x1b]0;title\x07"], tarball=TARBALL)
    plain = page(specs=[odd, spec(2, os="\x1b[5m")]).decode()
    for character, word in PLAIN.items():
        plain = plain.replace(json.dumps(character)[1:-1], word)
    return write(tmp_path_factory.mktemp("odd") / "pages\x1b[2J", a=plain.encode())


def odd(text: str | None) -> str | None:
    """Return a text of a database, or its JSON, with odd characters in it."""
    if not text:
        return text
    is_json = text[0] in "[{"
    for character, word in PLAIN.items():
        if is_json:
            text = text.replace(word, json.dumps(character)[1:-1])
        else:
            text = text.replace(word, character)
    return text


@pytest.fixture(scope="module")
def database(pages: Path) -> Path:
    """A database as no build makes it: with texts of these pages that a terminal would
    obey.
    """
    path = pages.parent / "x\x1b[2J\n.db"
    built(path, pages)
    with closing(sqlite3.connect(path)) as changed:
        changed.create_function("odd", 1, odd)
        tables = changed.execute(
            "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'"
        )
        for (table,) in tables.fetchall():
            for _, column, kind, *_ in changed.execute(
                f"PRAGMA table_info([{table}])"
            ).fetchall():
                if kind == "TEXT":
                    changed.execute(
                        f"UPDATE [{table}] SET [{column}] = odd([{column}])"
                    )
        changed.commit()
    return path


def lines(*arguments: object, status: int = 0) -> list[str]:
    """Run a command; return all that it prints, after looking for what a terminal would
    obey.
    """
    # With colours Click hands on what it takes out where there is no terminal.
    result = CliRunner().invoke(cli, list(map(str, arguments)), color=True)
    assert result.exit_code == status, result.output
    said = result.output.split("\n")
    assert all(line.isprintable() for line in said), result.output
    return said


def test_the_table_shows_what_it_does_not_print(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line a row, and each character as Python writes it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    for options in ((), ("--hashes",)):
        said = lines("find", "zlib", database, *options)
        for text in (*SHOWN, r"\x1b]0;title\x07", r"\x1b[5m"):
            assert text in "\n".join(said)
        assert len(said) == 7

    *_, mirror, _, _, _ = lines("find", "zlib k=*", database, "--install")
    assert r"'https://x.org/\x1b[2J\n'" in mirror


def test_json_and_csv_have_no_control_characters(database: Path) -> None:
    """JSON escapes them, and CSV has them as text: a pipe may end in a terminal as
    well.
    """
    found = json.loads("\n".join(lines("find", "zlib", database, "--json")))
    assert any(set(ODD) <= set(each["variants"]) for each in found)

    text = run("find", "zlib", database, "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert any(r"k=a\x1b[2Jb" in row["variants"] for row in rows)
    assert all(char.isprintable() or char == "\n" for char in text)


def test_other_commands_show_it_too(
    pages: Path, database: Path, tmp_path: Path
) -> None:
    """Reports, faults, differences and refusals, and the names of files in them."""
    other = write(tmp_path / "other\x1b", a=page(specs=[spec(1, variants=["k=é[3J"])]))
    bad = write(tmp_path / "bad\x1b", b=b"---\ntitle: \x1b[2J\n")

    for options in ((), ("--json",)):
        lines("info", database, *options)
        lines("check", pages, *options)
        lines("check", bad, *options, status=1)
        lines("verify", database, pages, *options, status=1)
        said = "".join(lines("verify", database, other, *options, status=1))
        assert r"x1b[2Jb" in said.replace(r"\u001b", r"\x1b")
        lines("build", pages, bad, "-o", tmp_path / "\x1b.db", "--keep-going", *options)

    lines("build", bad, "-o", database, status=1)
    lines("build", pages, "-o", tmp_path / "\x1b\n" / ("x" * 300), status=2)
    for path in (pages, tmp_path / "no\x1b[2J\nfile"):
        lines("info", path, status=2)
        lines("serve", path, status=2)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["info", "x.db", "\x1b[2J\n.db"], 2),
        (["\x1b[2J\n"], 2),
        (["check", "PAGES", "--jobs", "\x1b[2J\n"], 2),
        (["check", "PAGES", "--\x1b[2J\n"], 2),
        (["fetch", "https://host", "-o", "x", "--map", "\x1b[2J\n"], 2),
        (["find", "*", "DATABASE", "--stack", "\x1b[2J\n"], 2),
        (["find", "zlib+\x1b[2J", "DATABASE"], 2),
        (["find", "* a='\x1b\n'", "DATABASE"], 1),
    ],
    ids=range(8),
)
def test_words_of_the_command_line_are_shown_too(
    arguments: list[str], status: int, database: Path, pages: Path
) -> None:
    """A shell puts the names of files into a command, and a query is repeated."""
    paths: dict[str, object] = {"DATABASE": database, "PAGES": pages}
    lines(*(paths.get(word, word) for word in arguments), status=status)


def test_names_in_advice_are_shown_too(database: Path, tmp_path: Path) -> None:
    """Names of the database that come close to the one asked for."""
    database = Path(shutil.copy(database, tmp_path))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE packages SET name = 'zlib\x1b\n'")
        connection.execute("UPDATE releases SET name = 'dev\x1b[2J\nelop'")
        connection.commit()

    assert r"zlib\x1b\n" in "".join(lines("find", "zlib", database, status=1))
    lines("find", "*", database, "--release", "dev", status=2)


@pytest.mark.slow
def test_csv_on_a_terminal_is_shown(database: Path) -> None:
    """On a terminal even that is for people."""
    command = [
        sys.executable,
        "-m",
        "spack_cache_db",
        "find",
        "zlib",
        database,
        "--csv",
    ]
    output = on_a_terminal(command, "stdout")

    assert b"\x1b" not in output
    assert rb"k=a\x1b[2Jb" in output
