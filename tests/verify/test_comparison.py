"""verify.comparison: a file is held against its whole input, and each difference is named."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db import sources
from spack_cache_db.build import build
from spack_cache_db.errors import ArgumentError, DatabaseError, InputError
from spack_cache_db.verify import Verification, verify
from spack_cache_db.verify.comparison import differences
from tests.pagetexts import MORE_SAMPLES, SAMPLES, page, spec, spec_hash, write


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> Path:
    """A database of some pages."""
    build(folder, tmp_path / "x.db")
    return tmp_path / "x.db"


def damaged(file: Path, *statements: str) -> Path:
    """Return a copy of a file that is changed by SQL."""
    changed = file.with_name("changed.db")
    shutil.copy(file, changed)
    connection = sqlite3.connect(changed)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return changed


def test_a_file_says_all_that_its_pages_say(file: Path, folder: Path) -> None:
    """Every page and every listing was looked at."""
    report = build(folder, file)
    assert verify(file, folder) == Verification(24, 0, report.listings, 0, 0, (), ())
    assert report.pages == 24


def test_a_file_may_hold_more_than_the_input(tmp_path: Path) -> None:
    """Then the rest is not looked at."""
    build([SAMPLES, MORE_SAMPLES], tmp_path / "x.db")
    assert verify(tmp_path / "x.db", SAMPLES).differences == ()
    assert verify(tmp_path / "x.db", [MORE_SAMPLES, *SAMPLES.iterdir()]).pages == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE listings SET size = '7'", 'size is "-", the file has "7"'),
        ("UPDATE variants SET text = text || 'x'", "variants is "),
        ("UPDATE stacks SET name = name || 'x'", "stacks is "),
        ("UPDATE versions SET name = name || 'x'", "versions is "),
        ("UPDATE targets SET name = name || 'x'", "target is "),
        ("UPDATE operating_systems SET name = 'x'", 'os is "ubuntu24.04", the file has "x"'),
        ("UPDATE platforms SET name = 'x'", 'platform is "linux", the file has "x"'),
        ("UPDATE compilers SET name = 'x'", 'compiler is "gcc@13.2.0", the file has "x"'),
        ("UPDATE tarball_prefixes SET url = 'x'", 'tarball is "http://m", the file has "x"'),
        ("UPDATE listings SET tarball = NULL", 'tarball is "http://m", the file has none'),
        ("UPDATE specs SET hash = 'x' || hash", "lists the spec "),
        ("DELETE FROM listings", "lists the spec "),
        ("DELETE FROM pages", "is a page of zlib in develop, the file has none"),
        ("DELETE FROM problems", 'meta.num_specs is 7, the file has 1'),
        ("UPDATE packages SET name = 'x'", "is a page of zlib in develop, the file has none"),
        ("UPDATE releases SET name = 'x'", "is a page of zlib in develop, the file has none"),
    ],
)  # fmt: skip
def test_whatever_is_lost_is_named(statement: str, said: str, tmp_path: Path) -> None:
    """A change of any part of the file shows, with the page that says otherwise."""
    data = page("zlib", "develop", [spec(1, tarball="http://m")], meta={"num_specs": 7})
    folder = write(tmp_path / "in", a=data)
    build(folder, tmp_path / "x.db")
    assert verify(tmp_path / "x.db", folder).differences == ()
    found = verify(damaged(tmp_path / "x.db", statement), folder).differences
    assert any(said in each.message for each in found), [*map(str, found)]
    assert {each.path for each in found} == {f"{folder}/a.md"}
    assert [*found] == sorted(found)


def test_a_spec_that_only_the_file_lists_is_named(file: Path, folder: Path) -> None:
    """The file has to say what the page says, no less and no more."""
    changed = folder / "develop" / "pkg-0" / "specs.md"
    changed.write_bytes(page("pkg-0", "develop", [spec(9999)]))
    found = [each.message for each in verify(file, changed).differences]
    assert f"lists the spec {spec_hash(9999)}, the file does not" in found
    assert sum(each.startswith("does not list the spec ") for each in found) > 1


def test_a_page_that_was_refused_is_named(tmp_path: Path) -> None:
    """`--keep-going` built the others; the page is known by its place."""
    folder = write(
        tmp_path / "in",
        a=page("zlib", "develop", [spec(1)]),
        b=page("zstd", "develop", [spec(1, target="zen3")]),
    )
    build(folder, tmp_path / "x.db", keep_going=True)
    assert [*map(str, verify(tmp_path / "x.db", folder).differences)] == [
        f"{folder}/b.md: is a page of zstd in develop, the file has none"
    ]


def test_faults_of_the_input_are_told_beside(file: Path, folder: Path) -> None:
    """As `check` tells them; good pages are still looked at."""
    write(folder / "bad", a=b"nothing", b=page("x", specs=[spec(1, versions=[])]))
    found = verify(file, folder)
    assert [str(each).replace(f"{folder}/bad/", "") for each in found.faults] == [
        "a.md:1: no front matter, expected --- on the first line",
        f"b.md:6: the spec {spec_hash(1)} has 0 versions, expected one",
    ]
    assert (found.pages, found.differences) == (24, ())


@pytest.mark.slow
def test_the_number_of_jobs_does_not_matter(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the division into units; progress is told unit by unit."""
    monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", 5)
    changed = damaged(file, "UPDATE listings SET size = '7'")
    calls: list[tuple[int, int]] = []
    alone = verify(changed, folder, progress=lambda *call: calls.append(call))
    assert calls == [(done, 5) for done in range(1, 6)]
    assert alone.differences
    assert verify(changed, folder, jobs=2) == alone


def test_the_file_may_change_between_two_calls(file: Path, folder: Path) -> None:
    """Nothing of the one before is remembered."""
    changed = damaged(file, "DELETE FROM pages")
    assert len(verify(changed, folder).differences) == 24
    shutil.copy(file, changed)
    assert verify(changed, folder).differences == ()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    """Before any page is read."""
    with pytest.raises(DatabaseError, match="no such file"):
        verify(tmp_path / "x.db", SAMPLES)
    (tmp_path / "x.db").write_bytes(b"x" * 5000)
    with pytest.raises(DatabaseError, match="is no spack-cache-db database"):
        verify(tmp_path / "x.db", SAMPLES)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_damaged_file_is_told(
    jobs: int, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a process that reads it."""
    monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", 5)
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)
    with pytest.raises(DatabaseError, match=r"is damaged: .*; build it anew"):
        verify(file, folder, jobs=jobs)


def test_an_input_without_any_file_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would prove nothing."""
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    monkeypatch.setattr(sources, "ENOUGH_FOLDERS", 1)
    with pytest.raises(InputError, match="in: holds no file, expected pages or indexes"):
        verify(file, tmp_path / "in")
    with pytest.raises(ArgumentError, match="file is None"):
        verify(None, SAMPLES)  # type: ignore[arg-type]


DETAIL = {"hash": "h", "size": "-", "stacks": ["e4s", "root"]}
META = {"num_specs": 1, "targets": ["zen3"], "num_specs_by_stack": {"e4s": 1, "root": 1}}
PAGE = {"meta": META, "spec_details": {"h": DETAIL}}


def values(meta: dict[str, Any] | None = None, **details: dict[str, Any]) -> dict[str, Any]:
    """Return the page with these changes."""
    return {"meta": META | (meta or {}), "spec_details": {"h": DETAIL} | details}


def test_what_is_the_same_is_not_told() -> None:
    """Nothing differs, nothing is said."""
    assert [*differences(PAGE, values())] == []


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (values({"num_specs": 2}), "meta.num_specs is 1, the file has 2"),
        (values({"targets": ["zen2", "zen3"]}), 'meta.targets is [], the file has ["zen2"]'),
        (values({"targets": ["zen3"] * 2}),
         'meta.targets is ["zen3"], the file has ["zen3", "zen3"]'),
        (
            values({"num_specs_by_stack": {"e4s": 2, "root": 1}}),
            'meta.num_specs_by_stack is {"e4s": 1}, the file has {"e4s": 2}',
        ),
        (values(h=DETAIL | {"size": "ä"}), 'the spec h: size is "-", the file has "ä"'),
        (values(h=DETAIL | {"stacks": ["e4s"]}), 'the spec h: stacks is ["root"], the file has []'),
        (values(h=DETAIL | {"license": "MIT"}),
         'the spec h: license is not there, the file has "MIT"'),
        (values(h={"hash": "h", "size": "-"}),
         'the spec h: stacks is ["e4s", "root"], the file has none'),
        (values(i=DETAIL), "does not list the spec i, the file does"),
        ({"meta": META, "spec_details": {}}, "lists the spec h, the file does not"),
    ],
)  # fmt: skip
def test_what_differs_is_told_in_one_line(stored: dict[str, Any], said: str) -> None:
    """First what the page says, then what the file says."""
    assert [*differences(PAGE, stored)] == [said]


def test_all_that_differs_is_told() -> None:
    """Part by part, in order."""
    stored = values({"num_specs": 2}, h=DETAIL | {"size": "7", "hash": "x"}, i=DETAIL)
    assert [each.split(",")[0] for each in differences(PAGE, stored)] == [
        "meta.num_specs is 1",
        'the spec h: hash is "h"',
        'the spec h: size is "-"',
        "does not list the spec i",
    ]
