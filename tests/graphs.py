"""The graph of the real index, read from its JSON: a second answer to questions about
it.
"""

import json
from functools import cache
from typing import Any

from tests.indexes import real

RUN = {"link", "run"}

Edges = dict[str, dict[str, set[str]]]
"""Of each hash, what it depends on, and how."""


@cache
def installs() -> dict[str, Any]:
    """Return the records of the real index by hash."""
    found: dict[str, Any] = json.loads(real())["database"]["installs"]
    return found


@cache
def edges() -> Edges:
    """Return the edges of the real index."""
    found: Edges = {}
    for dag_hash, each in installs().items():
        needed = found.setdefault(dag_hash, {})
        for dependency in each["spec"].get("dependencies", []):
            how = set(dependency["parameters"]["deptypes"])
            needed.setdefault(dependency["hash"], set()).update(how)
    return found


@cache
def run_time(dag_hash: str) -> frozenset[str]:
    """Return what a spec links to or runs, directly or not, and the spec itself."""
    found = {dag_hash}
    ahead = [dag_hash]
    while ahead:
        for dependency, how in edges()[ahead.pop()].items():
            if how & RUN and dependency not in found:
                found.add(dependency)
                ahead.append(dependency)
    return frozenset(found)


def dependencies(dag_hash: str) -> frozenset[str]:
    """Return what a spec links or runs, directly or not, and what it uses directly."""
    return (run_time(dag_hash) | edges()[dag_hash].keys()) - {dag_hash}


def used(dag_hash: str) -> frozenset[str]:
    """Return the spec, what it needs directly, and what these link to or run."""
    return frozenset().union(
        *(run_time(each) for each in (dag_hash, *edges()[dag_hash]))
    )


def kind(dag_hash: str) -> str:
    """Return what there is of a spec."""
    if installs()[dag_hash]["in_buildcache"]:
        return "binary"
    return (
        "external"
        if installs()[dag_hash]["spec"].get("external")
        else "known as a dependency"
    )
