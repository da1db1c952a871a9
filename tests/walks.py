"""Random small graphs whose sources contradict each other, and what a walk over them finds."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from spack_cache_db.build.steps import build
from spack_cache_db.query.answerable import VIRTUALS, UnsupportedQuery, compiler_of_pages
from spack_cache_db.records import Configuration
from spack_cache_db.site import spec_functions
from spack_cache_db.spack.flags import flags_match
from spack_cache_db.spack.match import CompilerConstraint, compiler_matches, variant_matches
from spack_cache_db.spack.query import Dependency, SpecQuery, VariantConstraint, parse_query
from spack_cache_db.spack.variants import Variant, parse_variant
from tests.indexes import edge, hash_of, index, node, record
from tests.matching import matches
from tests.pagetexts import page, spec, spec_hash, write

MIRRORS = (("develop", "e4s"), ("develop", "ml"), ("v1.9", "e4s"))
"""In the order in which they count."""
NAMES = ("aa", "aa", "bb", "gcc", "llvm", "mpich")
OWN = """
SELECT hash, packages.name, versions.name, compilers.name, operating_systems.name, platforms.name,
  targets.name, variant_sets.text, specs.release_count > 0
FROM specs JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN platforms ON platforms.id = configurations.platform
JOIN targets ON targets.id = configurations.target
JOIN variant_sets ON variant_sets.id = configurations.variants
"""
SHOWN = """
SELECT hash, package, version, compiler, os, platform, target, variants
FROM build_listings WHERE release = ?
"""
Truth = bool | None
"""Whether a spec satisfies a query; None where the sources do not say."""


@dataclass(frozen=True)
class Sources:
    """What is built: records by mirror, and pages of `develop`."""

    mirrors: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]]
    pages: dict[str, bytes]


def _parameters(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"cflags": draw(st.sampled_from([[], [], ["-g"], ["-O2", "-g"]]))}
    found |= draw(st.sampled_from([{}, {"x": True}, {"x": False}]))
    found |= draw(st.sampled_from([{}, {}, {"patches": ["ab" * 32]}, {"patches": ["abababa" * 9]}]))
    return found


@st.composite
def nodes(draw: st.DrawFn, count: int, version: str) -> list[dict[str, Any]]:
    """Draw the nodes of an index; what comes later is needed by what comes before."""
    found = []
    types = st.lists(st.sampled_from(["build", "link", "run", "test"]), max_size=2, unique=True)
    virtuals = st.sampled_from([(), (), ("c",), ("mpi",), ("c", "cxx")])
    # What one index calls so, another may call otherwise.
    names = [draw(st.sampled_from([NAMES[at % 6]] * 4 + ["bb"])) for at in range(count)]
    for number in range(count):
        later = [*range(number + 1, count)]
        needed = draw(st.lists(st.sampled_from(later), max_size=3, unique=True)) if later else []
        edges = [
            {**edge(f"s{to}", *draw(types), virtuals=draw(virtuals)), "name": names[to]}
            for to in needed
        ]
        external = draw(st.sampled_from([{}, {}, {}, {"external": {"path": "/", "module": None}}]))
        old = draw(st.booleans()) if version == "8" else True
        compiler = draw(st.sampled_from(["gcc@=12.1.0", "clang@=15.0.7"]))
        name, _, digits = compiler.partition("@=")
        said: dict[str, Any] = {"original_specfile_version": 4 if old else 5}
        each = node(
            f"s{number}",
            *edges,
            namespace=draw(st.sampled_from(["builtin", "builtin", "own"])),
            parameters=_parameters(draw),
            annotations=said | ({"compiler": compiler} if old else {}),
            **external,
        )
        each |= {"name": names[number], "version": draw(st.sampled_from(["1.0", "2.0"]))}
        if version != "8":
            del each["annotations"]
            each["compiler"] = {"name": name, "version": digits}
        if version == "6":
            for one in each["dependencies"]:
                one["type"] = one.pop("parameters")["deptypes"]
        found.append(
            record(each, is_binary=not external and draw(st.sampled_from([True] * 3 + [False])))
        )
    return found


@st.composite
def sources(draw: st.DrawFn) -> Sources:
    """Draw mirrors that tell of the same specs, each in its own way, and pages of a few."""
    count = draw(st.integers(3, 7))
    mirrors = {}
    for place in draw(st.lists(st.sampled_from(MIRRORS), min_size=1, unique=True)):
        version = draw(st.sampled_from(["8", "8", "8", "7", "6"]))
        mirrors[place] = (version, draw(nodes(count, version)))
    shown: dict[str, list[dict[str, Any]]] = {}
    for number in draw(st.lists(st.integers(0, 9), max_size=4, unique=True)):
        compiler = draw(st.sampled_from(["gcc@12.1.0", "llvm@15.0.7", "none"]))
        variants = draw(st.sampled_from([[], ["+x"], ["~x", "patches=abababa"]]))
        one = spec(hash=hash_of(f"s{number}"), compiler=compiler, variants=variants)
        shown.setdefault(NAMES[number % 6], []).append(one)
    return Sources(mirrors, {name: page(name, "develop", each) for name, each in shown.items()})


def _mostly(usual: str, *others: str) -> st.SearchStrategy[str]:
    return st.sampled_from([usual] * 2 * len(others) + [*others])


_NODES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["aa", "bb", "gcc", "llvm", "clang", "mpich", "own.aa", "*", "*", "nothing"]),
    _mostly("", "@1", "@2:", "@3"),
    _mostly("", "+x", "~x", "++x", " cflags=-g", " namespace=own", " patches=ababababa"),
    _mostly("", f"/{hash_of('s2')[:1]}", f"/{hash_of('s3')}"),
)
_DIRECT = st.builds(
    " {}{}".format,
    _mostly("%", "%[virtuals=c]", "%[virtuals=c,mpi] ", "%[deptypes=build] ", "%% ")
    | st.sampled_from(["%[deptypes=link,build] ", "%[when='+x'] ", "%[when='^bb'] "]),
    _NODES | st.sampled_from(["gcc", "gcc@12", "clang", "@12", "gcc@=12.1.0", "gcc@:11", "c=gcc"]),
)
_NEEDED = st.builds(
    " {}{}{}".format,
    _mostly("^", "^[virtuals=mpi] ", "^[virtuals=mpi,c] ", "^[deptypes=run] ", "^[when=~x] "),
    _NODES | st.sampled_from(["mpi=mpich", "c,cxx=gcc", "c=gcc@1"]),
    _mostly("", " %gcc", " %bb", " %c=clang") | _DIRECT,
)
_VIRTUAL = st.sampled_from(
    [" ^mpi", " ^c", " %mpi", " %c", f" ^mpi/{hash_of('s3')[:1]}", " ^c %gcc"]
)
_PARTS = _DIRECT | _NEEDED | _VIRTUAL
_ROOTS = st.sampled_from(["*", "*", "*", "aa", "bb", "+x", "++x", "~x", "aa@1", "own.aa", "~~x"])
_MORE = st.sampled_from([" cflags=-g", " patches=" + "ab" * 5, " patches:=" + "ab" * 32])
QUERIES = st.builds("{}{}".format, _ROOTS, _PARTS | _PARTS | _MORE | st.just("")) | st.builds(
    "{}{}{}".format, _ROOTS, _PARTS, _PARTS
)


def built(drawn: Sources, folder: Path) -> Path:
    """Build the sources in a folder and return the file."""
    output, where = folder / "spack-cache.db", folder / "in"
    write(where / "pages", **drawn.pages)
    for (release, stack), (version, records) in drawn.mirrors.items():
        (where / release / stack).mkdir(parents=True)
        (where / release / stack / "index.json").write_bytes(index(*records, version=version))
    build([str(where)], output)
    return output


@contextmanager
def opened(drawn: Sources) -> Iterator[sqlite3.Connection]:
    """Build the sources and connect to the file as the site does."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(built(drawn, Path(folder)))
        spec_functions.register(connection)
        yield connection
        connection.close()


@dataclass
class Walk:
    """What a walk over the records finds; configurations are those of the file."""

    drawn: Sources
    own: dict[str, Configuration]
    binaries: set[str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    mute: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, drawn: Sources, conn: sqlite3.Connection) -> Walk:
        """Return a walk over what was drawn."""
        rows = [*conn.execute(OWN)]
        own = {row[0]: Configuration._make((*row[1:7], tuple(row[7].split()))) for row in rows}
        walk = cls(drawn, own, {row[0] for row in rows if row[-1]})
        for place in MIRRORS:
            version, records = drawn.mirrors.get(place, ("", []))
            for each in records:
                one = each["spec"]
                if one["hash"] not in walk.records and version == "6":
                    walk.mute.add(one["hash"])
                walk.records.setdefault(one["hash"], one)
                walk.edges.setdefault(one["hash"], [_plain(each) for each in one["dependencies"]])
        return walk

    def satisfies(
        self, dag_hash: str, query: SpecQuery, shown: Configuration | None = None
    ) -> Truth:
        """Return whether a spec satisfies a query, by its own configuration or the one shown."""
        plain = SpecQuery(
            query.name,
            None,
            query.versions,
            tuple(each for each in query.variants if not each.propagate),
            (),
            query.os,
            query.platform,
            query.target,
            query.hash,
        )
        if query.name in VIRTUALS or not matches(plain, shown or self.own[dag_hash], dag_hash):
            return False
        names = {edge.node.name for edge in query.dependencies if edge.direct}
        parts = [*self._facts(dag_hash, query)]
        parts += [self._edge(dag_hash, each, len(names) > 1) for each in query.dependencies]
        return False if False in parts else None if None in parts else True

    def _facts(self, dag_hash: str, query: SpecQuery) -> Iterator[Truth]:
        one = self.records.get(dag_hash)
        if query.namespace is not None:
            yield None if one is None else one["namespace"] == query.namespace
        if query.flags:
            yield None if one is None else flags_match(query.flags, one["parameters"])
        for variant in query.variants:
            if variant.propagate:
                needed = self._closure(dag_hash, {"build", "link", "run", "test"})
                agrees = all(self._agrees(each, variant) for each in {dag_hash, *needed})
                yield None if agrees and one is None else agrees
            elif variant.name == "patches" and one is not None:
                sums = tuple(one["parameters"].get("patches", ()))
                yield variant_matches(variant, Variant("patches", sums, "multi"))

    def _agrees(self, dag_hash: str, asked: VariantConstraint) -> bool:
        variants = map(parse_variant, self.own[dag_hash].variants)
        return all(each.name != asked.name or variant_matches(asked, each) for each in variants)

    def _closure(self, dag_hash: str, types: set[str]) -> set[str]:
        """Return what is reached over edges of these types; one without types is of any."""
        found: set[str] = set()
        waiting = [dag_hash]
        while waiting:
            for each in self.edges.get(waiting.pop(), ()):
                if (not each["types"] or each["types"] & types) and each["hash"] not in found:
                    found.add(each["hash"])
                    waiting.append(each["hash"])
        return found

    def _edge(self, dag_hash: str, edge: Dependency, has_others: bool) -> Truth:
        if edge.when is not None:
            met = self.satisfies(dag_hash, parse_query(edge.when))
            if met is False:
                return True
        found = (
            self._direct(dag_hash, edge, has_others) if edge.direct else self._any(dag_hash, edge)
        )
        return None if edge.when is not None and met is None and not found else found

    def _direct(self, dag_hash: str, edge: Dependency, has_others: bool) -> Truth:
        one, asked = self.records.get(dag_hash), edge.node
        if one is None:
            return self._shown(dag_hash, edge, has_others)
        specfile = one.get("annotations", {}).get("original_specfile_version", 0)
        if specfile < 5 or ("external" in one and not self.edges[dag_hash]):
            if asked.name in VIRTUALS:
                return None
            if asked.variants or asked.flags or asked.hash:
                return False
            constraint = CompilerConstraint(asked.name, asked.versions)
            return compiler_matches(constraint, self.own[dag_hash].compiler)
        is_virtual = asked.name in VIRTUALS
        virtuals = {*edge.virtuals} | ({str(asked.name)} if is_virtual else set())
        return any(
            (not virtuals or virtuals & each["virtuals"])
            and each["types"].issuperset(edge.deptypes)
            and self._leads_to(each["hash"], asked)
            for each in self.edges[dag_hash]
        )

    def _shown(self, dag_hash: str, edge: Dependency, has_others: bool) -> Truth:
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return None
        return None if has_others else compiler_matches(constraint, self.own[dag_hash].compiler)

    def _any(self, dag_hash: str, edge: Dependency) -> Truth:
        """Return whether a spec needs such a dependency, at run time or directly to be built."""
        if dag_hash not in self.records:
            return None
        at_run_time = [dag_hash, *self._closure(dag_hash, {"link", "run"})]
        edges = [
            each
            for at in at_run_time
            for each in self.edges[at]
            if not each["types"]
            or each["types"] & {"link", "run"}
            or (at == dag_hash and "build" in each["types"])
        ]
        name = edge.node.name
        if name in VIRTUALS:
            edges = [each for each in edges if name in each["virtuals"]]
        elif name is not None:
            edges = [each for each in edges if self.own[each["hash"]].package == name]
        found = all(any(v in each["virtuals"] for each in edges) for v in edge.virtuals) and any(
            self._leads_to(each["hash"], edge.node) for each in edges
        )
        asks_virtual = bool(edge.virtuals) or name in VIRTUALS
        return None if not found and asks_virtual and dag_hash in self.mute else found

    def _leads_to(self, dag_hash: str, asked: SpecQuery) -> bool:
        if asked.name in VIRTUALS:
            provider = SpecQuery(hash=asked.hash, dependencies=asked.dependencies)
            return self.satisfies(dag_hash, provider) is True
        return self.satisfies(dag_hash, asked) is True


def shown_in(conn: sqlite3.Connection, release: str) -> dict[str, Configuration]:
    """Return what a release shows of each spec that it lists."""
    return {
        dag_hash: Configuration._make((*words, tuple(variants.split())))
        for dag_hash, *words, variants in conn.execute(SHOWN, [release])
    }


def _plain(one: dict[str, Any]) -> dict[str, Any]:
    how = one.get("parameters", {"deptypes": one.get("type", ()), "virtuals": ()})
    types, virtuals = {*how["deptypes"]}, {*how["virtuals"]}
    return {"hash": one["hash"], "types": types, "virtuals": virtuals}


def _alike(name: str, *edges: dict[str, Any]) -> dict[str, Any]:
    """Return the node of a spec whose configuration is that of others."""
    return {**node(name, *edges), "name": "app"}


_ALIKE = {
    ("develop", "e4s"): [
        record(_alike("one", edge("mpich", "link", virtuals=("mpi",)))),
        record(_alike("two", edge("openmpi", "link", virtuals=("mpi",)))),
        record(node("mpich")),
        record(node("openmpi", edge("hwloc", "link"))),
        record(node("hwloc"), is_binary=False),
    ],
    ("v1.9", "ml"): [
        record(_alike("two", edge("openmpi", "link", virtuals=("mpi",)))),
        record(node("openmpi", edge("hwloc", "link"))),
        record(node("hwloc"), is_binary=False),
    ],
}
_SHOWN = {
    "hwloc": page(
        "hwloc",
        "develop",
        [spec(6, compiler="none", os="debian12", variants=["build_system=generic"])],
    ),
    "app": page("app", "develop", [spec(hash=spec_hash(9), stacks=["hep"])]),
    "tool": page("tool", "develop", [spec(8), spec(7, compiler="llvm@17.0.6")]),
}
LOOK_ALIKES = Sources({place: ("8", records) for place, records in _ALIKE.items()}, _SHOWN)
"""Indexes in which two specs have one configuration and other dependencies; and pages."""
