"""A built database is a source: nothing that a build reads is lost in its database."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import differences
from spack_cache_db.errors import HistoryError, InputError
from spack_cache_db.schema import identity
from spack_cache_db.sources import stored_rows
from tests import contradictions, small_sources
from tests.commands import run
from tests.every_kind import MODULES, write_every_kind
from tests.examples import examples
from tests.indexes import node, write_blob, write_layout3
from tests.package_data import described, listed, published
from tests.pagetexts import SAMPLE_PAGES, page, spec, write
from tests.trees import installed, write_tree

SOME = settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def package_files(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw files of the packages site and lists, which may contradict each other."""
    names = ["aa", "bb", "cc"]
    versions = st.lists(st.sampled_from(["1.0", "1.1", "2.0", "develop"]), unique=True)
    found = {}
    for name in draw(st.lists(st.sampled_from(names), unique=True)):
        needs = described(
            *draw(st.lists(st.sampled_from([*names, "mpi"]), unique=True))
        )
        site = published(
            name, *draw(versions), dependencies=needs, odd=draw(st.integers(0, 1))
        )
        found[f"packages/{name}.json"] = json.dumps(site).encode()
    members: list[Any] = [
        listed(name, *draw(versions), dependencies={"link": ["mpi"]})
        for name in draw(st.lists(st.sampled_from(names), unique=True))
    ]
    if members:
        found["packages/list.json"] = json.dumps([*members, "dd"]).encode()
    return found


@st.composite
def files(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw sources of all kinds, as files by their paths."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "in")
        folder.mkdir()
        if draw(st.booleans()):
            contradictions.write_sources(folder, draw(contradictions.listings()))
        else:
            small_sources.write_sources(folder, draw(small_sources.sources()))
        for path in sorted(folder.glob("*/*/index.json")):
            if b'"version": "8"' in path.read_bytes() and draw(st.booleans()):
                as_mirror(path, draw)
        if draw(st.booleans()):
            explicit = draw(st.booleans())
            write_tree(folder / "opt", [installed(node("tool"), explicit=explicit)])
        found = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return found | draw(package_files())


def as_mirror(path: Path, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Make a mirror of layout 3 of a plain index, which knows the size of some
    binaries.
    """
    data = path.read_bytes()
    mirror = path.parent
    path.unlink()
    write_layout3(mirror, {None: data})
    if draw(st.booleans()):
        left_out = draw(st.sampled_from([{}, {"exclude_binary": ["aa"]}]))
        said = {"url": f"https://{mirror.name}", **left_out}
        (mirror / "mirror.json").write_text(json.dumps(said))
    for dag_hash in json.loads(data)["database"]["installs"]:
        if size := draw(st.sampled_from([0, 0, 5, 7])):
            blob = write_blob(
                mirror, b"x" * size, "application/vnd.spack.install.v2.tar+gzip"
            )
            manifest = mirror / "v3" / "manifests" / "spec" / "x" / f"x-1-{dag_hash}"
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.with_name(f"{manifest.name}.spec.manifest.json").write_text(
                json.dumps({"version": 3, "data": [blob]})
            )


def write_files(folder: Path, some: dict[str, bytes]) -> Path:
    """Write files by their paths."""
    for path, data in some.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def same(one: Path, other: Path) -> bool:
    """Return whether two databases have the same bytes; name what differs if they do
    not.
    """
    if one.read_bytes() == other.read_bytes():
        return True
    for difference in differences(one, other):
        print(difference)
    return False


def built(output: Path, *paths: Path, **options: Any) -> Path | None:
    """Build a database and return it; None if its sources exclude each other."""
    try:
        build(paths, output, **options)
    except InputError:
        return None
    return output


@pytest.mark.slow
@SOME
@given(some=files())
def test_a_database_gives_itself(some: dict[str, bytes]) -> None:
    """`build x.db` gives `x.db`, byte for byte."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder / "in", some)
        build(folder / "in", folder / "x.db", keep_going=True)
        build(folder / "x.db", folder / "y.db")
        assert same(folder / "x.db", folder / "y.db")


@pytest.mark.slow
@SOME
@given(some=files(), data=st.data())
def test_databases_of_the_parts_give_the_whole(
    some: dict[str, bytes], data: st.DataObject
) -> None:
    """`build A B` is `build a.db b.db`, `build a.db B` and `build A b.db`, byte for
    byte.
    """
    units = sorted(set(map(unit_of, some)))
    sides = {unit: data.draw(st.sampled_from(["a", "b", "ab"])) for unit in units}

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in "ab":
            write_files(
                folder / side,
                {path: some[path] for path in some if side in sides[unit_of(path)]},
            )
        a, b = (folder / side for side in "ab")
        assume(a.exists() and b.exists())
        a_db, b_db = (folder / f"{place.name}.db" for place in (a, b))
        faults = [
            *build(a, a_db, keep_going=True).faults,
            *build(b, b_db, keep_going=True).faults,
        ]
        for keep_going in (True,) if faults else (True, False):
            whole = built(folder / "whole.db", a, b, keep_going=keep_going)
            for number, paths in enumerate([(a_db, b_db), (b_db, a), (b, a_db, b_db)]):
                found = built(folder / f"{number}.db", *paths, keep_going=keep_going)
                assert (found is None) == (whole is None)
                assert found is None or whole is None or same(whole, found)


def unit_of(path: str) -> str:
    """Return the document to which a file belongs: a mirror or an installation is a
    folder.
    """
    parts = path.split("/")
    return path if len(parts) < 3 else "/".join(parts[:2])


def test_a_database_of_every_kind_of_source_gives_itself(tmp_path: Path) -> None:
    """So do the options with which it was built, and the documents that it left out."""
    sources = write_every_kind(tmp_path / "in")
    recipes = {"own": "https://example.org/{package}"}
    named = {"first": "v0.22", "recipes": recipes}
    every: list[dict[str, Any]] = [{}, named, {"without_paths": True}]

    for number, options in enumerate(every):
        file = tmp_path / f"{number}.db"
        again = tmp_path / f"{number}-again.db"
        build(sources, file, keep_going=True, modules=[sources / MODULES], **options)
        build(file, again)
        assert same(file, again)


def test_listings_are_read_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of any number of listings is read whole."""
    build(SAMPLE_PAGES, tmp_path / "x.db")
    monkeypatch.setattr(stored_rows, "LISTINGS_AT_ONCE", 2)
    build(tmp_path / "x.db", tmp_path / "y.db")
    assert same(tmp_path / "x.db", tmp_path / "y.db")


def test_databases_in_folders_are_left_out(tmp_path: Path) -> None:
    """A folder may have the output of an older build; only a database that is named is
    read.
    """
    folder = write(tmp_path / "in", a=page("zlib", "develop", [spec(1)]))
    build(folder, folder / "x.db")
    (folder / "a.md").unlink()
    write(folder, b=page("zstd", "develop", [spec(2)]))

    assert build(folder, folder / "x.db").pages == 1
    assert build([folder, folder / "x.db"], tmp_path / "y.db").pages == 1


def test_options_that_differ_have_to_be_given(tmp_path: Path) -> None:
    """Two databases that name different releases first are an error that names both."""
    pages = {"a": page("zlib", "v1.0", [spec(1)]), "b": page("zlib", "v2.0", [spec(2)])}
    sources = write(tmp_path / "in", **pages)
    one = tmp_path / "1.db"
    two = tmp_path / "2.db"
    build(sources, one, first="v1.0")
    build(sources, two, first="v2.0")

    with pytest.raises(
        InputError, match=r"2.db: was built with another --first .*1.db"
    ):
        build([one, two], tmp_path / "x.db")

    build([one, two], tmp_path / "x.db", first="v2.0")
    assert same(two, tmp_path / "x.db")


def with_another_page(file: Path) -> None:
    """Damage a page in the middle of a database."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2 // identity.PAGE_SIZE * identity.PAGE_SIZE
    data[middle : middle + 100] = b"\xff" * 100
    file.write_bytes(bytes(data))


ODD = "is damaged: it has values that no build writes"
ENDLESS = (
    "DROP TABLE origin; CREATE VIEW origin AS WITH RECURSIVE n(name, value) AS "
    "(SELECT 1, 1 UNION ALL SELECT name + 1, 1 FROM n) SELECT * FROM n"
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("PRAGMA user_version = 14", "has schema version 14"),
        (
            lambda file: os.truncate(file, file.stat().st_size - 100),
            "is damaged: it has ",
        ),
        (with_another_page, "is damaged: "),
        (ENDLESS, "its tables, indexes or views are not those of schema version "),
        ("DELETE FROM pages WHERE id = 1", ODD),
        ("UPDATE releases SET name = name || char(10)", ODD),
        (
            "UPDATE listings SET stack_set_id = -5",
            "is damaged: a value of listings.stack_set_id",
        ),
        # The lower half of this number is the id of a row.
        (
            "UPDATE listings SET stack_set_id = stack_set_id + 4294967296",
            "is damaged: a value of listings.stack_set_id has no row in stack_sets: ",
        ),
        (
            "UPDATE listings SET stack_set_id = stack_set_id + 0.5",
            "is damaged: a value of listings.stack_set_id is not 'integer': ",
        ),
        (
            "UPDATE listings SET release_id = 99 WHERE spec_id = 1",
            "is damaged: a value of listings.release_id has no row in releases: ",
        ),
        ("UPDATE stack_sets SET stacks = '7' WHERE id = 1", ODD),
    ],
)
def test_a_damaged_database_is_refused(
    change: str | Callable[[Path], None], said: str, samples_file: Path, tmp_path: Path
) -> None:
    """In one sentence, also with `--keep-going`: it may be the only copy of a
    history.
    """
    file = tmp_path / "x.db"
    shutil.copy(samples_file, file)
    if isinstance(change, str):
        with closing(sqlite3.connect(file)) as conn:
            conn.executescript(change)
    else:
        change(file)
    result = run("build", file, "-o", tmp_path / "y.db")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}: {said}")
    assert len(result.stderr.splitlines()) == 2

    other = write(tmp_path / "in", a=page())
    with pytest.raises(HistoryError):
        build([file, other], tmp_path / "y.db", keep_going=True)
    assert not (tmp_path / "y.db").exists()
