"""Write Spack indexes at the size of the site:
`python -m benchmarks.indexes OUT --records 150000`.

A dozen stacks of one release, each an index of database version 8 in
`<release>/<stack>/`, and an index of all in `<release>/root/`. The same number of
records always gives the same bytes.

Dependencies follow invented recipes: each package needs a few others, mostly popular
ones. A spec
has 54 run-time dependencies on average, at most 661, over up to 23 steps. In an index
of 905 records that Spack published, it has 7, at most 76, over up to 14. With
`--dense`, a record depends on any of the last 4,000 and has thousands of dependencies,
far more than any real spec.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import archspec.cpu
import click

from tests.corpus.vocabulary import ENVIRONMENTS, Environment, package_names

RELEASE = "develop"
PACKAGES = 1_275
RUN_TIME_EDGES, BUILD_EDGES = 4.2, 2.2
"""Averages, before duplicates in a recipe are removed."""
SKEW = 3
"""The exponent by which recipes prefer popular packages."""
DENSE_EDGES = 12
"""Maximum number of dependencies of a record of the dense index."""
SHARED = 0.2
"""The fraction of a stack's records that another stack of the same environment also
has.
"""

_FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
_BUILD = ["build"]
_RUN_TIME = (["build", "link"], ["link"], ["build", "link", "run"], ["run"])
_VIRTUALS = {"openmpi": ["mpi"], "mpich": ["mpi"], "openblas": ["blas", "lapack"]}


@dataclass(frozen=True, slots=True)
class Stack:
    """The records of one stack by hash, in the order in which they were made."""

    name: str
    records: dict[str, str] = field(default_factory=dict)


def stacks(records: int, is_dense: bool = False) -> Iterator[Stack]:
    """Yield the stacks; together they have about `records` distinct records."""
    stack_names = [
        (name, environment)
        for environment in ENVIRONMENTS
        for name in environment.stacks[:2]
    ][:12]
    names = package_names(PACKAGES)
    before: dict[Environment, Stack] = {}
    for name, environment in stack_names:
        stack = Stack(name)
        if environment in before:
            shared = int(SHARED * records / len(stack_names))
            stack.records.update([*before[environment].records.items()][:shared])
        maker = _Maker(environment, names, Random(name), is_dense)
        while len(maker.made) <= records // len(stack_names):
            maker.make(maker.chance.choice(names))
        stack.records.update(maker.made)
        before[environment] = stack
        yield stack


def write(out: Path, records: int, is_dense: bool = False) -> int:
    """Write one index per stack and one of all; return the bytes of the latter."""
    everything: dict[str, str] = {}
    for stack in stacks(records, is_dense):
        _write(out / RELEASE / stack.name, stack.records)
        everything |= stack.records
    return _write(out / RELEASE / "root", everything)


def _write(folder: Path, records: dict[str, str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"database":{"version":"8","installs":{')
        for number, (dag_hash, text) in enumerate(records.items()):
            file.write(f'{"," if number else ""}"{dag_hash}":{text}')
        file.write("}}}")
    return path.stat().st_size


def recipes(names: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the dependencies of each package, without cycles, with the types of each
    edge.
    """
    chance = Random("recipes")
    found: dict[str, dict[str, list[str]]] = {}
    for index, name in enumerate(names):
        edges: dict[str, list[str]] = {}
        for types, mean in ((_RUN_TIME, RUN_TIME_EDGES), ((_BUILD,), BUILD_EDGES)):
            for _ in range(min(index, round(chance.expovariate(1 / mean)))):
                dependency = names[int(index * chance.random() ** SKEW)]
                edges.setdefault(dependency, chance.choice(types))
        found[name] = edges
    return found


class _Maker:
    """Makes records of one environment; each depends on some of those before it.

    Attributes:
        made: the JSON text of each record, by its hash.
    """

    def __init__(
        self, environment: Environment, names: list[str], chance: Random, is_dense: bool
    ) -> None:
        self.made: dict[str, str] = {}
        self.chance = chance
        self._of_package: dict[str, list[str]] = {}
        self._in_order: list[tuple[str, str]] = []
        self._recipes = None if is_dense else recipes(names)
        self._parameters = {name: _parameters(name) for name in names}
        self._arch = json.dumps(_arch(environment), separators=(",", ":"))
        compiler, _, version = (environment.renamed or environment.compiler).partition(
            "@"
        )
        self._add(compiler, version, [], in_buildcache=False)

    def make(self, name: str) -> None:
        """Make a record of a package, after missing records of its dependencies."""
        dependencies = [*(self._any() if self._recipes is None else self._recipe(name))]
        dependencies.append(_edge(*self._in_order[0], _BUILD, ["c", "cxx"]))
        version = f"{len(name) % 5}.{self.chance.choice((9, 10, 11))}.0"
        self._add(name, version, dependencies, in_buildcache=True)

    def _recipe(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield edges to recent specs of the packages that the recipe names."""
        for dependency, types in self._recipes[name].items() if self._recipes else ():
            if dependency not in self._of_package:
                self.make(dependency)
            chosen = self.chance.choice(self._of_package[dependency][-3:])
            yield _edge(dependency, chosen, types, _VIRTUALS.get(dependency, []))

    def _any(self) -> Iterator[dict[str, Any]]:
        """Yield edges to random recent specs."""
        recent = self._in_order[-4000:]
        size = min(len(recent), self.chance.randrange(DENSE_EDGES))
        for name, dag_hash in self.chance.sample(recent, size):
            types = self.chance.choice((_BUILD, *_RUN_TIME))
            yield _edge(name, dag_hash, types, _VIRTUALS.get(name, []))

    def _add(
        self, name: str, version: str, dependencies: list[Any], *, in_buildcache: bool
    ) -> None:
        dag_hash = _hash(f"{name} {self.chance.random()}")
        parameters = self._parameters.get(name) or _parameters(name)
        spec = {
            "name": name,
            "version": version,
            "arch": None,
            "namespace": "builtin",
            "parameters": parameters[self.chance.randrange(len(parameters))],
            "package_hash": _hash(f"recipe {name}") + _hash(name)[:20] + "====",
            "dependencies": dependencies,
            "annotations": {"original_specfile_version": 5},
            "hash": dag_hash,
        }
        if not in_buildcache:
            spec["external"] = {"path": "/usr", "module": None, "extra_attributes": {}}
        record = {
            "spec": spec,
            "ref_count": len(dependencies),
            "in_buildcache": in_buildcache,
        }
        text = json.dumps(record, separators=(",", ":"))
        self._in_order.append((name, dag_hash))
        self._of_package.setdefault(name, []).append(dag_hash)
        self.made[dag_hash] = text.replace('"arch":null', f'"arch":{self._arch}')


def _edge(
    name: str, dag_hash: str, types: list[str], virtuals: list[str]
) -> dict[str, Any]:
    parameters = {"deptypes": types, "virtuals": virtuals}
    return {"name": name, "hash": dag_hash, "parameters": parameters}


def _parameters(name: str) -> list[dict[str, Any]]:
    """Return the few configurations in which a package is built."""
    chance = Random(f"parameters {name}")
    words = (
        "shared",
        "pic",
        "mpi",
        "cuda",
        "openmp",
        "python",
        "tests",
        "docs",
        "ipo",
        "static",
    )
    options = chance.sample(words, chance.randrange(2, 9))
    found = []
    for _ in range(chance.randrange(1, 5)):
        made: dict[str, Any] = {option: chance.random() < 0.5 for option in options}
        made["build_system"] = "cmake"
        made["build_type"] = "Release"
        if chance.random() < 0.2:
            made["patches"] = [blake2b(f"{name}{n}".encode(), digest_size=32).hexdigest()
                               for n in range(chance.randrange(1, 4))]  # fmt: skip
        made |= {flag: [] for flag in _FLAGS}
        found.append(made)
    return found


def _arch(environment: Environment) -> dict[str, Any]:
    target = archspec.cpu.TARGETS.get(environment.target)
    described: Any = environment.target
    if target is not None and target.vendor != "generic":
        described = {
            "name": target.name,
            "vendor": target.vendor,
            "features": sorted(target.features),
            "generation": target.generation,
            "parents": [parent.name for parent in target.parents],
            "cpupart": "",
        }
    return {
        "platform": environment.platform,
        "platform_os": environment.os,
        "target": described,
    }


def _hash(text: str) -> str:
    return b32encode(blake2b(text.encode(), digest_size=20).digest()).decode().lower()


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--records", default=150_000, show_default=True, type=click.IntRange(100))
@click.option("--dense", is_flag=True, help="Give specs thousands of dependencies.")
def main(out: Path, records: int, dense: bool) -> None:
    """Write a set of indexes into the folder OUT."""
    size = write(out, records, dense)
    click.echo(
        f"{out}: {records:,} records in a dozen stacks, all in {size / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
