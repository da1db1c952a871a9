"""What installing a binary takes: its dependencies, and the mirrors that list them."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import Lookups, opened
from spack_cache_db.query.stored.closure import (
    Closure,
    SpecFacts,
    choose_mirrors,
    closures,
    mirror_sets,
)
from spack_cache_db.query.stored.graph import Edge, Needs
from spack_cache_db.query.stored.mirrors import Mirror
from spack_cache_db.query.stored.reach import Reach
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, spec_hash

LINK = ("link",)
MIRRORS = [
    Mirror(f"r{number}", None, f"https://r{number}", order=(number, 0))
    for number in range(5)
]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, list[Edge]], dict[int, list[Mirror]]]:
    """Return a graph in which specs need later ones, and the mirrors that list each
    spec.
    """
    count = draw(st.integers(1, 8))
    edges: dict[int, list[Edge]] = {}
    for number in range(count):
        later = st.integers(number + 1, count)
        ends = draw(st.sets(later, max_size=3))
        edges[number] = [Edge(end, LINK, ()) for end in sorted(ends) if end < count]
    listed = {}
    for number in range(count):
        listed[number] = draw(
            st.lists(st.sampled_from(MIRRORS), unique=True, max_size=3)
        )
    return edges, listed


def closure_by_hand(edges: dict[int, list[Edge]], root: int) -> set[int]:
    """Return a spec and all that it reaches."""
    found = {root}
    for needed in edges[root]:
        found |= closure_by_hand(edges, needed.dependency)
    return found


@given(graphs())
def test_the_mirrors_list_the_whole_closure(
    drawn: tuple[dict[int, list[Edge]], dict[int, list[Mirror]]],
) -> None:
    """The fewest mirrors list all dependencies, or exactly the others are missing."""
    edges, listed = drawn
    reach = Reach(Needs(edges, frozenset()))
    sets = mirror_sets(listed)
    for root in edges:
        needed = [root, *sorted(set(reach.members(reach.run_time(root))) - {root})]
        assert set(needed) == closure_by_hand(edges, root)
        choice = choose_mirrors([facts(number) for number in needed], sets)

        missing = {number for number in needed if not listed[number]}
        releases = dict(zip(needed, choice.releases, strict=True))
        assert {number for number in needed if releases[number] is None} == missing
        found = [number for number in needed if number not in missing]
        assert all_are_listed(listed, found, choice.mirrors)
        for smaller in combinations(MIRRORS, max(len(choice.mirrors) - 1, 0)):
            assert not found or not all_are_listed(listed, found, smaller)
        if root not in missing:
            assert choice.mirrors[0] in listed[root]


def facts(number: int, *, binary: int | None = None) -> SpecFacts:
    """Return the facts about a spec that is no external."""
    built_as = number if binary is None else binary
    return SpecFacts(number, str(number), "foo", "1", None, True, None, built_as)


def all_are_listed(
    listed: dict[int, list[Mirror]], specs: list[int], mirrors: tuple[Mirror, ...]
) -> bool:
    """Return whether one of the mirrors lists each spec."""
    return all(not set(mirrors).isdisjoint(listed[number]) for number in specs)


def test_indexes_with_one_address_are_one_mirror() -> None:
    """Two indexes of one URL need one `spack mirror add`."""
    one = Mirror("a", "e4s", "https://x", order=(0, 0))
    other = Mirror("b", "hep", "https://x", order=(1, 1))
    sets = mirror_sets({1: [one], 2: [other]})

    assert choose_mirrors([facts(1), facts(2)], sets).mirrors == (one,)
    assert mirror_sets({1: [one], 2: [other]}, release="b").mirrors == (other,)


def test_a_mirror_without_an_address_is_the_last_resort() -> None:
    """A mirror to which no address is known is used only for what no other mirror
    lists.
    """
    unknown = Mirror("a", None, None, order=(0, 0))
    known = [Mirror(name, None, f"https://{name}", order=(1, 0)) for name in ("b", "c")]

    sets = mirror_sets({1: [unknown, known[0]], 2: [unknown, known[1]]})
    assert choose_mirrors([facts(1), facts(2)], sets).mirrors == tuple(known)
    sets = mirror_sets({1: [unknown, known[0]], 2: [unknown]})
    assert choose_mirrors([facts(1), facts(2)], sets).mirrors == (known[0], unknown)


def test_a_spliced_spec_is_installed_from_the_binary_of_its_build_spec() -> None:
    """The hash of the spliced spec is looked up, and the binary of the build spec
    downloaded.
    """
    both = Mirror("both", None, "https://both", order=(1, 0))
    record_only = Mirror("record", None, "https://record", order=(0, 0))
    spliced = facts(1, binary=2)

    assert choose_mirrors([spliced], mirror_sets({1: [record_only]})).releases == (
        None,
    )
    assert choose_mirrors([spliced], mirror_sets({2: [both]})).releases == (None,)
    sets = mirror_sets({1: [record_only, both], 2: [both]})
    assert choose_mirrors([spliced], sets).mirrors == (both,)
    # A spliced dependency comes with the record of the binary that needs it.
    sets = mirror_sets({3: [record_only], 2: [both]})
    assert choose_mirrors([facts(3), spliced], sets).releases == ("record", "both")


Built = Callable[..., Lookups]


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    """Build a database from indexes, by `release` or `release/stack`, and pages."""
    with ExitStack() as stack:

        def make(indexes: dict[str, list[dict[str, Any]]], **pages: bytes) -> Lookups:
            for place, records in indexes.items():
                folder = tmp_path / "input" / place
                folder.mkdir(parents=True)
                (folder / "index.json").write_bytes(index(*records))
                address = {"url": f"https://{place.replace('/', '.')}"}
                (folder / "mirror.json").write_text(json.dumps(address))
            for name, text in pages.items():
                (tmp_path / "input").mkdir(exist_ok=True)
                (tmp_path / "input" / f"{name}.md").write_bytes(text)
            build([tmp_path / "input"], tmp_path / "built.db")
            return stack.enter_context(opened(tmp_path / "built.db"))

        yield make


def closure_of(lookups: Lookups, name: str, release: str | None = None) -> Closure:
    """Return the closure of the spec that has the hash of a name, or this hash."""
    rows = lookups.conn.execute("SELECT id, hash FROM specs")
    ids = {dag_hash: key for key, dag_hash in rows}
    key = ids.get(hash_of(name)) or ids[name]
    named = lookups.release(release)
    release_id = named.id if named else None
    return closures(lookups, [key], release_id)[key]


def packages(members: tuple[Any, ...]) -> list[str]:
    """Return the names of packages, in order."""
    return [member.package for member in members]


OPENMPI = {"path": "/opt/site/openmpi", "module": ["gcc/13", "openmpi/5"]}
NODES = [
    node("hdf5", edge("zlib", "link"), edge("cmake", "build"), edge("openmpi", "link")),
    node("zlib", edge("runtime", "link", "build")),
    node("cmake", edge("ncurses", "run")),
    node("runtime", edge("glibc", "link")),
    node("ncurses"),
    node("glibc", external={"path": "/usr", "module": None}),
    node("openmpi", external=OPENMPI),
]


def listing(*names: str) -> list[dict[str, Any]]:
    """Return the records of an index that lists some of the binaries."""
    return [
        record(spec_node, is_binary=spec_node["name"] in names) for spec_node in NODES
    ]


def test_link_and_run_dependencies_need_a_binary(built: Built) -> None:
    """Dependencies at any depth are members; build dependencies and what they need are
    not.
    """
    closure = closure_of(built({"r": listing("hdf5", "zlib", "runtime")}), "hdf5")

    assert packages(closure.members) == ["hdf5", "glibc", "openmpi", "runtime", "zlib"]
    assert closure.is_complete is True
    assert [mirror.release for mirror in closure.mirrors] == ["r"]
    assert {member.release for member in closure.binaries} == {"r"}


def test_externals_need_no_binary_but_the_system(built: Built) -> None:
    """Externals are named with prefix and modules, apart from the C library."""
    (external,) = closure_of(built({"r": listing("hdf5")}), "hdf5").externals

    assert (external.package, external.version) == ("openmpi", "1.0")
    assert external.external == ("/opt/site/openmpi", ("gcc/13", "openmpi/5"))


def test_a_dependency_that_no_mirror_lists_is_missing(built: Built) -> None:
    """A binary is not complete if a dependency has a record but no binary."""
    closure = closure_of(built({"r": listing("hdf5", "zlib", "ncurses")}), "hdf5")

    assert closure.is_complete is False
    assert packages(closure.missing) == ["runtime"]
    assert closure.is_listed is True
    assert closure.is_known is True
    assert closure.size is None


def test_a_dependency_without_a_record_is_missing(built: Built) -> None:
    """A binary is not complete if an index only names a dependency."""
    records = [
        record(spec_node) for spec_node in NODES if spec_node["name"] != "runtime"
    ]
    closure = closure_of(built({"r": records}), "hdf5")

    assert closure.is_complete is False
    assert packages(closure.missing) == ["runtime"]


def test_a_closure_can_take_several_mirrors(built: Built) -> None:
    """Two mirrors are chosen if each lists a part; a release alone may list less."""
    lookups = built({"a": listing("hdf5", "runtime"), "b": listing("zlib"), "c": []})
    closure = closure_of(lookups, "hdf5")

    assert [mirror.url for mirror in closure.mirrors] == ["https://a", "https://b"]
    assert {member.package: member.release for member in closure.binaries} == {
        "hdf5": "a", "runtime": "a", "zlib": "b",
    }  # fmt: skip
    assert closure.is_complete is True
    assert packages(closure_of(lookups, "hdf5", "a").missing) == ["zlib"]
    assert not closure_of(lookups, "hdf5", "b").is_listed


def test_one_mirror_with_all_is_preferred_to_two(built: Built) -> None:
    """A later release that lists everything is chosen before two that share it."""
    lookups = built({
        "a": listing("hdf5", "runtime"),
        "b": listing("zlib"),
        "z/e4s": listing("hdf5", "zlib", "runtime"),
    })  # fmt: skip

    (mirror,) = closure_of(lookups, "hdf5").mirrors
    assert (mirror.release, mirror.stack) == ("z", "e4s")


def test_dependencies_of_binaries_on_pages_are_not_known(built: Built) -> None:
    """A binary that only pages list has a mirror, and nothing is said of its
    completeness.
    """
    lookups = built({"r": listing("zlib")}, foo=page("foo", "develop", [spec(1)]))
    closure = closure_of(lookups, spec_hash(1))

    assert closure.is_complete is None
    assert closure.is_known is False
    assert closure.is_listed is True
    assert [mirror.url for mirror in closure.mirrors] == [
        "https://binaries.spack.io/develop"
    ]


def test_many_closures_are_those_of_each(built: Built) -> None:
    """Closures that are read together are those that are read one by one."""
    lookups = built({"a": listing("hdf5", "zlib"), "b": listing("runtime", "cmake")})
    ids = [key for (key,) in lookups.conn.execute("SELECT id FROM specs")]

    together = closures(lookups, ids)

    assert list(together) == ids
    assert together == {key: closures(lookups, [key])[key] for key in ids}


def test_a_closure_has_the_same_mirrors_alone_and_among_others(tmp_path: Path) -> None:
    """Snapshots of a branch share its URL: a binary that only a release and an old
    snapshot list is installed from the release, whatever else is asked for.
    """
    tarball = (
        "https://mirror/develop/build_cache/linux-ubuntu24.04-x86_64_v3/gcc-13.2.0/hdf5-1.0/"
        f"linux-ubuntu24.04-x86_64_v3-gcc-13.2.0-hdf5-1.0-{spec_hash(2)}.spack"
    )
    specs = {
        "develop": spec(1, tarball=tarball.replace(spec_hash(2), spec_hash(1))),
        "v0.22": spec(2),
        "develop-2024-03-24": spec(2, tarball=tarball),
    }
    for name, listed in specs.items():
        path = tmp_path / "pages" / name / "hdf5.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(page("hdf5", name, [listed]))
    build(tmp_path / "pages", tmp_path / "x.db")

    with opened(tmp_path / "x.db") as lookups:
        ids = [key for (key,) in lookups.conn.execute("SELECT id FROM specs")]
        together = closures(lookups, ids)
        for key in ids:
            assert closures(lookups, [key])[key].mirrors == together[key].mirrors
        releases = [closure.mirrors[0].release for closure in together.values()]
        assert sorted(releases) == ["develop", "v0.22"]
