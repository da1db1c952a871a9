"""query.totals: a number has one name, and is the same wherever the name stands."""

import gc
import json
import weakref
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.info import info
from spack_cache_db.query.open.lookups import MOST_RECENT, opened
from spack_cache_db.query.stored.totals import count_by, read_totals
from tests.assembly.test_history import night
from tests.commands import run
from tests.every_kind import write_every_kind
from tests.indexes import edge, index, node, record
from tests.trees import installed, write_tree


def write_cache(folder: Path) -> Path:
    """Write an index with an external and with a spec that was not built."""
    (folder / "in").mkdir()
    records = [
        record(node("a", edge("b", "link"), edge("c", "link"))),
        record(node("b", external={"path": "/usr", "module": None}), is_binary=False),
        record(node("c"), is_binary=False),
    ]
    (folder / "in" / "index.json").write_bytes(index(*records))
    return folder / "in"


def build_kind(kind: str, folder: Path) -> Path:
    """Build a database of a kind, and return its path."""
    file = folder / "x.db"
    if kind == "cache":
        build(write_cache(folder), file, release="develop")
    elif kind == "installation":
        records = [
            installed(node("a", edge("b", "link"))),
            installed(node("b", external={"path": "/usr", "module": None})),
        ]
        build([], file, installations=[("casper", write_tree(folder / "opt", records))])
    elif kind == "history":
        # The second night has lost a binary.
        for day, names in (("2026-11-24", "ab"), ("2026-11-25", "b")):
            build([file, night(folder / "mirrors", *names)], file, snapshot=day)
    else:
        build(write_every_kind(folder / "in"), file, keep_going=True)
    return file


@pytest.mark.parametrize("kind", ["cache", "installation", "history", "all"])
def test_a_count_is_the_same_wherever_it_is_shown(kind: str, tmp_path: Path) -> None:
    """In `info`, on the first page, in the list of releases, in `stacks` and in
    `builds`.
    """
    file = build_kind(kind, tmp_path)
    counts = info(file)
    with opened(file) as lookups:
        totals = read_totals(lookups.conn)._asdict()
        (builds,) = lookups.conn.execute(
            "SELECT count(*) FROM builds WHERE NOT is_gone"
        ).fetchone()

    assert {name: counts[name] for name in totals} == totals
    assert counts["specs"] == builds

    releases = json.loads(run("releases", file, "--json").stdout)
    assert len(releases) == counts["releases"]
    if len(releases) == 1 or kind == "history":
        first = releases[0]
        assert first["spec_count"] == counts["specs"]
        assert first["package_count"] == counts["packages"]

    stacks = run("stacks", file, "--json").stdout
    assert len(json.loads(stacks)) == counts["stacks"]


def test_cached_counts_end_with_their_database(samples_file: Path) -> None:
    """Counts are read once, few are kept, and none keep a closed database in memory."""
    with opened(samples_file) as lookups:
        first = count_by(lookups, None, None, "package")
        assert count_by(lookups, None, None, "package") is first
        for release in range(MOST_RECENT):
            count_by(lookups, release, None, "target")
        again = count_by(lookups, None, None, "package")
        assert again == first
        assert again is not first
        reference = weakref.ref(lookups)

    del lookups
    gc.collect()
    assert reference() is None
