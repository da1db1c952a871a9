"""The benchmarks: invented indexes that build, and tables of measured numbers."""

from pathlib import Path

import pytest

from benchmarks import figures, growth, index_floor, indexes, inputs, instead, nights
from benchmarks.measure import run_command
from spack_cache_db import find
from spack_cache_db.assembly.builds import build
from spack_cache_db.exports.exporting import export


@pytest.mark.slow
def test_the_set_builds_and_the_floor_reads_all_of_it(tmp_path: Path) -> None:
    """A dozen stacks and one of all; records and edges are as many as the file has."""
    indexes.write(tmp_path / "set", 240)
    root = tmp_path / "set" / indexes.RELEASE / "root" / "index.json"
    whole = build(tmp_path / "set", tmp_path / "x.db")
    alone = build(root, tmp_path / "y.db")

    assert (whole.indexes, whole.problems, alone.problems) == (13, 0, 0)
    assert whole.specs == alone.specs < alone.records

    records, edges = index_floor.decode_all(root)
    assert records == alone.records
    assert edges > records


@pytest.mark.slow
def test_the_same_number_of_records_gives_the_same_bytes(tmp_path: Path) -> None:
    """On every machine, so that measurements can be compared."""
    for name in ("a", "b"):
        indexes.write(tmp_path / name, 240)

    for path in (tmp_path / "a").rglob("index.json"):
        assert (
            path.read_bytes()
            == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
        )


@pytest.mark.slow
def test_nights_are_measured_on_equal_databases(tmp_path: Path) -> None:
    """A night that adds a snapshot gives the bytes of a full build, or it is no
    measurement.
    """
    table = nights.report(tmp_path, 0.01, "usual", runs=1, jobs=1)
    for name in ("full build", "nothing new", "one snapshot more"):
        assert f"| {name} ÷ floor " in table


@pytest.mark.slow
def test_nights_over_indexes_are_measured(tmp_path: Path) -> None:
    """Each night adds a snapshot, and its time is compared with that of the first."""
    measures = growth.report(tmp_path, records=240, nights=2)

    values = {measure.name: measure.value for measure in measures}
    assert values["night 1: database"] > values["night 2 adds"] > 0
    assert values["night 2: processor time ÷ night 1"] == pytest.approx(
        values["night 2: processor time"] / values["night 1: processor time"]
    )


@pytest.mark.slow
def test_what_one_would_do_instead_gives_the_same_answers(tmp_path: Path) -> None:
    """From pages, exported tables and an index: a comparison of times compares programs
    that answer one question.
    """
    pages, _ = inputs.corpus(tmp_path, 0.01, "usual")
    history = tmp_path / "history.db"
    build(pages, history)
    subject = figures.subject_of(history)
    export(history, tmp_path / "tables")
    by_compiler = instead.sqlite_view(str(history))
    assert by_compiler > 10
    assert by_compiler == instead.duckdb_pages(str(pages))
    assert by_compiler == instead.duckdb_parquet(str(tmp_path / "tables"))

    (found,) = find(history, f"/{subject.hash}")
    releases = len(found.releases)
    listed = run_command(["grep", "-rlF", subject.hash, str(pages)]).output
    assert len(listed.splitlines()) == releases
