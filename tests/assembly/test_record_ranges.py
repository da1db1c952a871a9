"""build.documents: a record that snapshots of a mirror repeat is stored once, and the
view `records` has it for each of them.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.record_ranges import mirror_order, record_ranges
from spack_cache_db.query.answers.find import find
from spack_cache_db.sources.databases import read_database
from spack_cache_db.sources.facts import Document, IndexFacts
from spack_cache_db.sources.files import File
from spack_cache_db.sources.frames import Frame
from tests.indexes import edge, hash_of, index, node, record, write_layout3

DAYS = ("2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04")
EVERY_RECORD = """
SELECT releases.name, stacks.name, specs.hash, nodes.namespace, records.is_listed
FROM records
JOIN mirrors ON mirrors.id = records.mirror_id
JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id
JOIN specs ON specs.id = records.spec_id
JOIN nodes ON nodes.id = records.node_id
"""
RELEASES = ("site", "other", "site-2026-11-03", "other-2026-11-02", "site-2026-11-01")
SPECS = 3

Content = Mapping[str, Sequence[tuple[str, str, bool]]]
"""The records of each stack: a name, a namespace, and whether there is a binary."""


def write_mirrors(folder: Path, content: Content) -> Path:
    """Write the mirrors of the release `site`, one for each stack."""
    for stack, records in content.items():
        texts = []
        for name, namespace, is_binary in records:
            spec = node(name, namespace=namespace)
            texts.append(record(spec, is_binary=is_binary))
        write_layout3(folder / "site" / stack, {None: index(*texts)})
    return folder


def build_days(folder: Path, days: Mapping[str, Content]) -> Path:
    """Build a history of some days, and return its database."""
    file = folder / "history.db"
    for day, content in days.items():
        sources = [write_mirrors(folder / day, content)]
        if file.exists():
            sources.append(file)
        build(sources, file, snapshot=day)
    return file


def changing_days() -> dict[str, Content]:
    """Return four days on which the records of one stack of two change."""
    a = ("a", "builtin", True)
    b = ("b", "builtin", True)
    c = ("c", "builtin", True)
    d = ("d", "builtin", True)
    e = ("e", "builtin", True)
    other_recipe = ("b", "ours", True)
    only_a_record = ("c", "builtin", False)
    return {
        DAYS[0]: {"root": [a, b, c], "e4s": [a, b]},
        DAYS[1]: {"root": [a, other_recipe, only_a_record, d], "e4s": [a, b]},
        # As on the first day, with one binary more.
        DAYS[2]: {"root": [a, b, c], "e4s": [a, b, e]},
        DAYS[3]: {"root": [a, b], "e4s": [a]},
    }


def test_each_snapshot_has_the_records_of_its_day(tmp_path: Path) -> None:
    """Also records that change and come back, and those without a binary."""
    days = changing_days()
    file = build_days(tmp_path, days)
    releases = {f"site-{day}": content for day, content in days.items()}
    releases["site"] = days[DAYS[-1]]
    expected = set()
    for release, content in releases.items():
        for stack, records in content.items():
            for name, namespace, is_binary in records:
                expected.add((release, stack, hash_of(name), namespace, int(is_binary)))

    with closing(sqlite3.connect(file)) as conn:
        rows = conn.execute(EVERY_RECORD).fetchall()
        assert len(rows) == len(set(rows))
        assert set(rows) == expected
        counts = conn.execute("SELECT id, record_count FROM mirrors").fetchall()
        for mirror, count in counts:
            sql = "SELECT count(*) FROM records WHERE mirror_id = ?"
            assert conn.execute(sql, [mirror]).fetchone() == (count,)


def test_a_night_stores_only_the_records_that_changed(tmp_path: Path) -> None:
    """A snapshot with one binary more adds one row, however many it has in common."""
    records = [(f"p{number}", "builtin", True) for number in range(50)]
    days = {
        DAYS[0]: {"root": records, "e4s": records},
        DAYS[1]: {"root": records, "e4s": [*records, ("new", "builtin", True)]},
    }
    file = build_days(tmp_path, days)
    with closing(sqlite3.connect(file)) as conn:
        (rows,) = conn.execute("SELECT count(*) FROM records").fetchone()
        (ranges,) = conn.execute("SELECT count(*) FROM record_ranges").fetchone()

    # Two days and the branch, two stacks.
    assert rows == 50 * 3 * 2 + 2
    assert ranges == 50 * 2 + 1


def test_dependencies_are_read_once(tmp_path: Path) -> None:
    """A build holds the dependencies of a spec once, not for each snapshot; records
    with other dependencies have their own.
    """
    needs = [edge("b", "link"), edge("c", "build")]
    texts = [record(node(name)) for name in ("b", "c")]
    file = tmp_path / "history.db"
    sources: list[Path] = []
    for number, day in enumerate(DAYS):
        folder = tmp_path / day
        for stack in ("root", "e4s"):
            # The last night, one index has other dependencies of a.
            is_other = day == DAYS[-1] and stack == "root"
            spec = node("a", *needs[: 1 if is_other else 2])
            new = record(node(f"new{number}"))
            write_layout3(
                folder / "site" / stack, {None: index(*texts, record(spec), new)}
            )
        build([folder, *sources], file, snapshot=day)
        sources = [file]

    columns = read_database(File(str(file), file.name, "database"))
    assert len(columns.tables["records"]["spec"]) == 4 * 2 * 5
    # Those of most nights once, and those of the last night in the branch and in its
    # snapshot.
    assert len(columns.tables["edges"]["use"]) == 2 + 2 * 1
    build(file, tmp_path / "again.db")
    assert (tmp_path / "again.db").read_bytes() == file.read_bytes()


def test_a_dropped_snapshot_leaves_no_trace(tmp_path: Path) -> None:
    """The ranges before and after it are joined, as if it had never been built."""
    days = changing_days()
    file = build_days(tmp_path / "all", days)
    build(file, tmp_path / "dropped.db", drop=[f"site-{DAYS[1]}"])
    del days[DAYS[1]]
    expected = build_days(tmp_path / "others", days)

    assert (tmp_path / "dropped.db").read_bytes() == expected.read_bytes()


def test_the_first_record_counts_in_each_order_of_stacks(tmp_path: Path) -> None:
    """Of two records of a spec, that of the first mirror counts, however long its range
    is.
    """
    days: dict[str, Content] = {
        DAYS[0]: {"b": [("x", "ours", True)], "a": [("y", "builtin", True)]},
        DAYS[1]: {"b": [("x", "ours", True)], "a": [("x", "builtin", True)]},
    }
    file = build_days(tmp_path, days)

    for namespace, count in (("builtin", 1), ("ours", 0)):
        answer = find(file, f"{namespace}.x")
        assert sum(found.spec_count for found in answer) == count


def _mirror(release: str, stack: str) -> Document:
    facts = IndexFacts(stack, "8", None, whole=stack, is_installed=False)
    return Document(release, release, "", release, (), index_facts=facts)


@given(
    st.lists(st.tuples(st.sampled_from(RELEASES), st.sampled_from("ab")), max_size=8),
    st.data(),
)
def test_ranges_are_all_records_in_the_fewest_rows(
    mirrors: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Any mirrors, several of a stack among them, and any records."""
    mirrors.sort(key=lambda mirror: RELEASES.index(mirror[0]))
    documents = [_mirror(release, stack) for release, stack in mirrors]
    order = mirror_order(documents, RELEASES)
    assert sorted(order.position.tolist()) == list(range(len(documents) + 1))

    # Each spec has no record in a mirror, or one of two nodes, listed or not.
    keys = list(product(range(1, SPECS + 1), range(1, len(documents) + 1)))
    contents = st.sampled_from([None, (1, 0), (1, 1), (2, 1)])
    drawn = data.draw(
        st.lists(contents, min_size=len(keys), max_size=len(keys)), label="records"
    )
    rows = []
    for (spec, mirror), content in zip(keys, drawn, strict=True):
        if content is not None:
            rows.append((spec, mirror, mirror, *content))
    columns = np.array(rows, np.uint32).reshape(len(rows), 5).T
    names = ("spec", "document", "mirror", "node", "is_listed")
    records = Frame(**dict(zip(names, columns, strict=True)))

    ranges = list(
        record_ranges(records, order).rows(
            "spec", "first_mirror", "last_mirror", "node", "is_listed"
        )
    )
    mirror_at = {position: at for at, position in enumerate(order.position.tolist())}
    found = []
    ends = set()
    for spec, first, last, node_id, is_listed in ranges:
        start = int(order.position[first])
        end = int(order.position[last])
        members = [mirror_at[place] for place in range(start, end + 1)]
        # The first mirror by id is the first of a range.
        assert members == sorted(members)
        assert len({int(order.series[member]) for member in members}) == 1
        found += [(spec, member, member, node_id, is_listed) for member in members]
        ends.add((spec, end, int(order.series[last]), node_id, is_listed))
    assert sorted(found) == rows
    assert ranges == sorted(ranges)
    for spec, first, _, node_id, is_listed in ranges:
        before = int(order.position[first]) - 1
        series = int(order.series[first])
        assert (spec, before, series, node_id, is_listed) not in ends
