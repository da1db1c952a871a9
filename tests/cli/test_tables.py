"""cli: tables for people, and reports for continuous integration."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.tables import NOTHING, Heading, Table, hanging
from spack_cache_db.errors import printable

TABLE = Table(
    headings=["name", "binaries", "stacks", "variants"],
    rows=[
        ["hdf5", "1,200", "e4s", "+mpi ~shared"],
        ["zlib", "7", "-", "-"],
    ],
    optional=["stacks"],
    long=["variants"],
    right=["binaries"],
)


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            "80",
            [
                "name  binaries  stacks  variants",
                "hdf5     1,200  e4s     +mpi ~shared",
                "zlib         7  -       -",
            ],
        ),
        (
            "30",
            [
                "name  binaries  variants",
                "hdf5     1,200  +mpi ~shared",
                "zlib         7  -",
                "",
                "left out of this narrow table:",
                "    stacks",
            ],
        ),
        (
            "25",
            [
                "name  binaries",
                "hdf5     1,200",
                "    variants: +mpi",
                "        ~shared",
                "zlib         7",
                "",
                "left out of this narrow",
                "    table: stacks",
            ],
        ),
    ],
)
def test_a_table_fits_the_terminal(
    columns: str, lines: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optional columns go first, then long ones go below their rows; no value is lost
    silently.
    """
    monkeypatch.setenv("COLUMNS", columns)
    table_lines = list(TABLE.lines())
    assert table_lines == lines
    is_heading = [isinstance(line, Heading) for line in table_lines]
    assert is_heading == [True] + [False] * (len(lines) - 1)


def test_only_columns_with_a_value_or_numbers_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A right-aligned column stays, because its heading says what is not known."""
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = [["a", NOTHING, NOTHING]]
    table = Table(["name", "hash", "replaced"], rows, right=["replaced"])
    assert list(table.lines()) == ["name  replaced", "a            -"]


@given(st.text(), st.integers(1, 200))
def test_hanging_text_keeps_its_words(text: str, columns: int) -> None:
    """A narrow terminal breaks lines between words, and inside of words that are too
    long.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = list(hanging(("near", "zlib"), text))
    assert "".join(" ".join(lines).split()) == "nearzlib" + "".join(text.split())


@given(st.lists(st.tuples(*[st.text()] * 4), max_size=5))
def test_a_report_has_every_case(
    tmp_path_factory: object, cases: list[tuple[str, ...]]
) -> None:
    """Any text is read back from the XML, with escapes for control characters."""
    path = Path("report.xml")

    with pytest.MonkeyPatch.context() as monkeypatch:
        assert isinstance(tmp_path_factory, pytest.TempPathFactory)
        monkeypatch.chdir(tmp_path_factory.mktemp("junit"))
        write_junit(path, "cover", [Case(*case) for case in cases])
        suite = ET.parse(path).getroot()[0]
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == str(sum(bool(case[2]) for case in cases))
    for element, (group, name, failure, skipped) in zip(suite, cases, strict=True):
        assert element.get("classname") == printable(group)
        assert element.get("name") == printable(name)
        result = {child.tag: child.get("message") for child in element}
        if failure:
            assert result == {"failure": printable(failure)}
        elif skipped:
            assert result == {"skipped": printable(skipped)}
        else:
            assert result == {}
