"""cli: faulty input is told line by line, nothing is overwritten, no traceback is
shown.
"""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.commands import refusal, run
from tests.pagetexts import SAMPLES, page, spec, write
from tests.paths import ROOT

BAD_PAGES = ROOT / "tests" / "bad_pages"
SPEC = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"

FAULTS = {
    "empty.md": " the file is empty, expected a page that starts with ---",
    "era_d.md": (
        "5: 2022 page: its meta has no stacks and no num_specs, its specs are in "
        "spec-N.json files; expected a page of 2023 or later"
    ),
    "era_d_spec.json": (
        " broken spec file: spec.arch is not an object, expected one of Spack's"
    ),
    "era_e.md": (
        "1: 2021 page: it lists spec files, no spec details; expected a page of 2023 or "
        "later, with meta and spec_details"
    ),
    "hash_twice.md": f"6: spec_details: the hash {SPEC} is listed twice, expected once",
    "missing_key_in_meta.md": "5: meta: Object missing required field `num_specs`",
    "missing_key_in_spec.md": "6: spec_details: Object missing required field `os` - at `$[0]`",
    "no_release.md": "4: no release in categories, expected [package, RELEASE]",
    "nul_in_json.md": (
        f"6: the spec {SPEC} has a variant with the character '\\x00', expected printable text"
    ),
    "other_layout.md": "3: layout is 'post', expected cache",
    "stack_twice.md": f"6: the spec {SPEC} lists the stack 'root' twice, expected once",
}


def test_all_faulty_pages_are_told_in_order(output: Path) -> None:
    """The first fault of every page, sorted by path, by `build` and by `check`."""
    expected = [f"{BAD_PAGES / name}:{FAULTS[name]}" for name in sorted(FAULTS)]
    assert refusal(output, BAD_PAGES) == expected
    result = run("check", BAD_PAGES)
    assert (result.exit_code, result.stderr.splitlines()) == (1, expected)


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (
            {"a": page(), "b": page(specs=[spec(2)])},
            "{0}/b.md: another page of zlib in develop than {0}/a.md, "
            "expected one page per package and release",
        ),
        (
            {"a": page("zlib"), "b": page("zstd")},
            f"{{0}}/b.md: lists the spec {SPEC}, which {{0}}/a.md lists in the same release; "
            "expected one package",
        ),
        ({}, "{0}: the folder has no file, expected pages or indexes"),
        (None, "{0}: no such file or folder, expected pages or indexes"),
    ],
)
def test_faults_of_folders(
    pages: dict[str, bytes] | None, message: str, tmp_path: Path, output: Path
) -> None:
    """Two pages that contradict each other are named; so is an input without a file."""
    folder = tmp_path / "pages"
    if pages is not None:
        write(folder, **pages)
    assert refusal(output, folder) == [message.format(folder)]


def test_a_url_is_for_fetch(output: Path) -> None:
    """`build` reads files, and the message names the command that downloads them."""
    result = run("build", "https://cache.example.org/v1.0", "-o", output)

    assert result.exit_code == 1
    assert "expected a download of this URL: spack-cache-db fetch" in result.stderr


def test_keep_going_builds_the_good_pages(tmp_path: Path) -> None:
    """The faults are told, and recorded in `problems`; a refused page leaves no other
    trace.
    """
    output = tmp_path / "x.db"
    result = run("build", BAD_PAGES, SAMPLES, "-o", output, "--keep-going")

    assert result.exit_code == 0, result.output

    told = result.stderr.splitlines()
    assert told == [f"{BAD_PAGES / name}:{FAULTS[name]}" for name in sorted(FAULTS)]

    connection = sqlite3.connect(output)
    rows = connection.execute(
        "SELECT page_id, code, source, message FROM problems"
    ).fetchall()
    assert [row[:3] for row in rows] == [
        (None, "refused", name) for name in sorted(FAULTS)
    ]
    for row, line in zip(rows, told, strict=True):
        assert row[3].partition(": ")[2] in line or row[3] in line
    assert connection.execute("SELECT count(*) FROM pages").fetchone() == (5,)
    assert connection.execute("SELECT count(*) FROM specs").fetchone() == (413,)
    connection.close()


def test_the_example_needs_no_input(tmp_path: Path) -> None:
    """`--example` builds the sample pages of this program; without it, a path is
    needed.
    """
    assert run("build", "--example", "-o", tmp_path / "example.db").exit_code == 0
    assert run("build", SAMPLES, "-o", tmp_path / "samples.db").exit_code == 0
    assert (tmp_path / "example.db").read_bytes() == (
        tmp_path / "samples.db"
    ).read_bytes()

    missing = run("build", "-o", tmp_path / "none.db")
    assert missing.exit_code == 2
    assert "PATH" in missing.stderr


def test_check_tells_problems_without_failing(tmp_path: Path) -> None:
    """Contradictions are no faults; `--json` has both lists."""
    good = run("check", SAMPLES)
    assert good.exit_code == 0
    assert good.stdout == "0 faults, 0 problems\n"
    assert good.stderr == ""

    folder = write(tmp_path / "pages", a=page(meta={"num_specs": 7}))
    problem = f"{folder}/a.md: meta declares num_specs 7, the page lists 1"
    result = run("check", folder)

    assert (result.exit_code, result.stdout) == (0, f"{problem}\n0 faults, 1 problem\n")

    write(folder, empty=b"")
    both = run("check", folder, "--json")
    assert both.exit_code == 1
    assert json.loads(both.stdout) == {
        "faults": [
            f"{folder}/empty.md: the file is empty, expected a page that starts with ---"
        ],
        "problems": [problem],
    }
