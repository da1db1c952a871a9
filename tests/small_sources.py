"""Small sources that contradict each other, at random or made up, and the files of
them.
"""

import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from tests import builds
from tests.indexes import edge, hash_of, index, node, record
from tests.pagetexts import page, spec, write

MIRRORS = (("develop", "e4s"), ("develop", "ml"), ("v1.9", "e4s"))
"""In the order in which they count."""
NAMES = ("aa", "aa", "bb", "gcc", "llvm", "mpich")


@dataclass(frozen=True)
class Sources:
    """What is built: records by mirror, and pages of `develop`."""

    mirrors: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]]
    pages: dict[str, bytes]


def _parameters(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cflags": draw(st.sampled_from([[], [], ["-g"], ["-O2", "-g"]]))
    }
    found |= draw(st.sampled_from([{}, {"x": True}, {"x": False}]))
    found |= draw(
        st.sampled_from(
            [{}, {}, {"patches": ["ab" * 32]}, {"patches": ["abababa" * 9]}]
        )
    )
    return found


@st.composite
def nodes(draw: st.DrawFn, count: int, version: str) -> list[dict[str, Any]]:
    """Draw the nodes of an index; what comes later is needed by what comes before."""
    found = []
    types = st.lists(
        st.sampled_from(["build", "link", "run", "test"]), max_size=2, unique=True
    )
    virtuals = st.sampled_from([(), (), ("c",), ("mpi",), ("c", "cxx")])
    # What one index calls so, another may call otherwise.
    names = [draw(st.sampled_from([NAMES[at % 6]] * 4 + ["bb"])) for at in range(count)]
    for number in range(count):
        # What it needs.
        later = list(range(number + 1, count))
        needed = []
        if later:
            needed = draw(st.lists(st.sampled_from(later), max_size=3, unique=True))
        edges = []
        for to in needed:
            needed_edge = edge(f"s{to}", *draw(types), virtuals=draw(virtuals))
            edges.append({**needed_edge, "name": names[to]})

        # What it is: one of four is an external.
        external = draw(
            st.sampled_from([{}, {}, {}, {"external": {"path": "/", "module": None}}])
        )
        is_old = draw(st.booleans()) if version == "8" else True
        compiler = draw(st.sampled_from(["gcc@=12.1.0", "clang@=15.0.7"]))
        annotations: dict[str, Any] = {"original_specfile_version": 5}
        if is_old:
            annotations = {"original_specfile_version": 4, "compiler": compiler}
        drawn = node(
            f"s{number}",
            *edges,
            namespace=draw(st.sampled_from(["builtin", "builtin", "own"])),
            parameters=_parameters(draw),
            annotations=annotations,
            **external,
        )
        drawn["name"] = names[number]
        drawn["version"] = draw(st.sampled_from(["1.0", "2.0"]))

        # Older formats name the compiler and the types of edges elsewhere.
        if version != "8":
            del drawn["annotations"]
            compiler_name, _, digits = compiler.partition("@=")
            drawn["compiler"] = {"name": compiler_name, "version": digits}
        if version == "6":
            for dependency in drawn["dependencies"]:
                dependency["type"] = dependency.pop("parameters")["deptypes"]

        is_binary = not external and draw(st.sampled_from([True] * 3 + [False]))
        found.append(record(drawn, is_binary=is_binary))
    return found


@st.composite
def sources(draw: st.DrawFn) -> Sources:
    """Draw mirrors that tell of the same specs, each in its own way, and pages of a
    few.
    """
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
    return Sources(
        mirrors, {name: page(name, "develop", each) for name, each in shown.items()}
    )


def _mostly(usual: str, *others: str) -> st.SearchStrategy[str]:
    return st.sampled_from([usual] * 2 * len(others) + list(others))


_HASHES = (f"/{hash_of('s2')[:1]}", f"/{hash_of('s3')}")
_NODES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(
        ["aa", "bb", "gcc", "llvm", "clang", "mpich", "own.aa", "*", "*", "nothing"]
    ),
    _mostly("", "@1", "@2:", "@3"),
    _mostly(
        "", "+x", "~x", "++x", " cflags=-g", " namespace=own", " patches=ababababa"
    ),
    _mostly("", *_HASHES),
)
_DIRECT = st.builds(
    " {}{}".format,
    _mostly("%", "%[virtuals=c]", "%[virtuals=c,mpi] ", "%[deptypes=build] ", "%% ")
    | st.sampled_from(["%[deptypes=link,build] ", "%[when='+x'] ", "%[when='^bb'] "]),
    _NODES
    | st.sampled_from(
        ["gcc", "gcc@12", "clang", "@12", "gcc@=12.1.0", "gcc@:11", "c=gcc"]
    ),
)
_NEEDED = st.builds(
    " {}{}{}".format,
    _mostly(
        "^", "^[virtuals=mpi] ", "^[virtuals=mpi,c] ", "^[deptypes=run] ", "^[when=~x] "
    ),
    _NODES | st.sampled_from(["mpi=mpich", "c,cxx=gcc", "c=gcc@1"]),
    _mostly("", " %gcc", " %bb", " %c=clang") | _DIRECT,
)
_VIRTUAL = st.sampled_from(
    [
        " ^mpi",
        " ^c",
        " %mpi",
        " %c",
        f" ^mpi/{hash_of('s3')[:1]}",
        " ^c %gcc",
        " ^mpi@3",
    ]
)
_PARTS = _DIRECT | _NEEDED | _VIRTUAL
_ROOTS = st.sampled_from(
    ["*", "*", "*", "aa", "bb", "+x", "++x", "~x", "aa@1", "own.aa", "~~x"]
)
_MORE = st.sampled_from(
    [" cflags=-g", " patches=" + "ab" * 5, " patches:=" + "ab" * 32]
)
QUERIES = st.builds(
    "{}{}".format, _ROOTS, _PARTS | _PARTS | _MORE | st.just("")
) | st.builds("{}{}{}".format, _ROOTS, _PARTS, _PARTS)


def write_sources(folder: Path, drawn: Sources) -> Path:
    """Write the sources into a folder and return it."""
    write(folder / "pages", **drawn.pages)
    for (release, stack), (version, records) in drawn.mirrors.items():
        (folder / release / stack).mkdir(parents=True)
        (folder / release / stack / "index.json").write_bytes(
            index(*records, version=version)
        )
    return folder


def built(drawn: Sources, folder: Path) -> Path:
    """Build the sources in a folder and return the file."""
    output = folder / "spack-cache.db"
    build([str(write_sources(folder / "in", drawn))], output)
    return output


def database_of(drawn: Sources) -> AbstractContextManager[sqlite3.Connection]:
    """Build the sources and connect to the database as the site does."""
    return builds.database_of(lambda folder: write_sources(folder, drawn))


def hashes(conn: sqlite3.Connection, text: str, **options: Any) -> set[str]:
    """Return the hashes that satisfy a spec."""
    return {
        dag_hash
        for found in find(conn, text, with_hashes=True, **options)
        for dag_hash in found.hashes or ()
    }


def _alike(name: str, *edges: dict[str, Any]) -> dict[str, Any]:
    """Return the node of a spec whose configuration is that of others."""
    return {**node(name, *edges), "name": "app"}


_WITH_MPICH = record(_alike("one", edge("mpich", "link", virtuals=("mpi",))))
_WITH_OPENMPI = record(_alike("two", edge("openmpi", "link", virtuals=("mpi",))))
_MPICH = record(node("mpich"))
_OPENMPI = record(node("openmpi", edge("hwloc", "link")))
_HWLOC = record(node("hwloc"), is_binary=False)
_ALIKE = {
    ("develop", "e4s"): [_WITH_MPICH, _WITH_OPENMPI, _MPICH, _OPENMPI, _HWLOC],
    ("v1.9", "ml"): [_WITH_OPENMPI, _OPENMPI, _HWLOC],
}

_SHOWN_HWLOC = spec(
    6, compiler="none", os="debian12", variants=["build_system=generic"]
)
_SHOWN_APP = spec(9, stacks=["hep"])
_SHOWN_TOOLS = [spec(8), spec(7, compiler="llvm@17.0.6")]
_SHOWN = {
    "hwloc": page("hwloc", "develop", [_SHOWN_HWLOC]),
    "app": page("app", "develop", [_SHOWN_APP]),
    "tool": page("tool", "develop", _SHOWN_TOOLS),
}
LOOK_ALIKES = Sources(
    {place: ("8", records) for place, records in _ALIKE.items()}, _SHOWN
)
"""Indexes in which two specs have one configuration and other dependencies; and
pages.
"""
