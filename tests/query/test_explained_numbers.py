"""The numbers of explanations about compiler flags, and about parts with the same
name.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.why_not import why_not
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.spack.parser import parse_query
from tests.examples import examples
from tests.indexes import FLAGS, edge, hash_of, index, node, record

# A package, a variant, a compiler and a target are called x, gcc or zen3.
DEPENDENCIES = ("x", "gcc", "zen3")
PARTS = [
    "@6", "@1.0", "+x", "~x", "+gcc", "~gcc", "+zen3", "~zen3", "target=zen3",
    "os=rhel9", "cflags=-O2", "fflags=-O2", "ldflags=-O3", 'cflags="-O2 -g"',
    "namespace=own", "%gcc", "%gcc@6", "%gcc@1.0", "%x", "%x@6", "%x@6+x", "^x",
    "^x@6~x", "^zen3@6", "%c=gcc@6", "^gcc@6 fflags=-O2", "%gcc@6 cflags=-O2",
    "^x cflags=-O3 ldflags=-O2", "^zen3~zen3",
]  # fmt: skip


def parameters(number: int) -> dict[str, Any]:
    """Return flags and variants that differ from those of neighbouring numbers."""
    flags: tuple[list[str], ...] = ([], ["-O2"], ["-O3"], ["-O2", "-g"])
    return FLAGS | {
        "build_system": "generic",
        "cflags": flags[number % 4],
        "fflags": flags[number % 3],
        "ldflags": flags[number % 5 % 4],
        "x": number % 2 == 0,
        "gcc": number % 3 == 0,
        "zen3": number % 5 < 3,
    }


def spec(name: str, number: int, *edges: dict[str, Any]) -> dict[str, Any]:
    """Return a node of its own version, system and target."""
    system = ("debian12", "rhel9")[number % 2]
    target = ("x86_64_v3", "zen3", "zen4")[number % 3]
    return node(
        name,
        *edges,
        version=("1.0", "2.0", "6.1")[number % 3],
        arch={"platform": "linux", "platform_os": system, "target": target},
        parameters=parameters(number),
        hash=hash_of(f"{name}{number}"),
    )


@pytest.fixture(scope="module")
def lookups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lookups]:
    """Yield a database of 30 apps, each with some of the dependencies."""
    folder: Path = tmp_path_factory.mktemp("flags")
    nodes = [spec(name, number) for name in DEPENDENCIES for number in range(4)]
    for number in range(30):
        edges = []
        for bit, name in enumerate(DEPENDENCIES):
            if number >> bit & 1:
                virtuals = ("c",) if name == "gcc" else ()
                types = ("build",) if number % 2 else ("build", "link")
                dependency_hash = hash_of(f"{name}{number % 4}")
                edges.append(
                    edge(name, *types, virtuals=virtuals) | {"hash": dependency_hash}
                )
        nodes.append(spec("app", number, *edges))
    source = folder / "index.json"
    source.write_bytes(index(*map(record, nodes)))
    build([source], folder / "flags.db")
    conn = sqlite3.connect(folder / "flags.db")
    yield read_lookups(conn)
    conn.close()


@settings(max_examples=examples(40), deadline=None)
@given(
    package=st.sampled_from(["app", "x", ""]),
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True),
)
def test_an_explained_number_is_that_of_find(
    lookups: Lookups, package: str, parts: list[str]
) -> None:
    """Each proposed spec has as many configurations as `find` has, and only drops what
    it says.
    """
    # Constraints behind a dependency belong to it, so that the dependencies come last.
    ordered = sorted(parts, key=lambda part: part[0] in "%^")
    try:
        query = parse_query(" ".join((package, *ordered)).strip())
        question = Question(lookups, query)
        question.check()
    except ValueError:
        # Two versions, or a query that needs a package's recipe.
        return
    if question.count():
        return
    why = why_not(question)
    if why.read_as:
        question = Question(lookups, parse_query(why.read_as))
    every = [condition.text for condition in question.conditions]

    for answer in why.without:
        instead = Question(lookups, parse_query(answer.spec))
        assert instead.count() == answer.configurations, answer.sentence
        proposed = instead.conditions
        if answer.target is None:
            left_out = {condition.text for condition in answer.left_out}
            remaining = [text for text in every if text not in left_out]
            assert sorted(condition.text for condition in proposed) == sorted(remaining)
