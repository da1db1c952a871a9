"""Write Spack indexes at the size of the site:
`python -m benchmarks.indexes OUT --records 150000`.

A dozen stacks of one release, each an index of database version 8 in
`<release>/<stack>/`, and an index of all in `<release>/root/`. The same number of
records always gives the same bytes.

Dependencies follow invented recipes: each package needs a few others, mostly popular
ones. A spec has 54 run-time dependencies on average, at most 661, over up to 23 steps.
In an index of 905 records that Spack published, it has 7, at most 76, over up to 14.
With `--dense`, a record depends on any of the last 4,000 and has thousands of
dependencies, far more than any real spec.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import archspec.cpu
import click

from tests.corpus.vocabulary import ENVIRONMENTS, Environment, package_names

RELEASE = "develop"
PACKAGES = 1_275
STACKS = 12
RUN_TIME_EDGES = 4.2
"""Run-time dependencies of a recipe on average, before duplicates are removed."""
BUILD_EDGES = 2.2
"""Build dependencies of a recipe on average, before duplicates are removed."""
SKEW = 3
"""The exponent by which recipes prefer popular packages."""
DENSE_EDGES = 12
"""Maximum number of dependencies of a record of the dense index."""
SHARED = 0.2
"""The fraction of a stack's records that another stack of the same environment also
has.
"""

_OPTIONS = (
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
_FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
_BUILD = ["build"]
_RUN_TIME = (["build", "link"], ["link"], ["build", "link", "run"], ["run"])
_VIRTUALS = {"openmpi": ["mpi"], "mpich": ["mpi"], "openblas": ["blas", "lapack"]}


@dataclass(frozen=True, slots=True)
class Stack:
    """The records of one stack by hash, in the order in which they were made."""

    name: str
    records: dict[str, str] = field(default_factory=dict)


def write(out: Path, records: int, is_dense: bool = False) -> int:
    """Write one index per stack and one of all; return the bytes of the latter."""
    everything: dict[str, str] = {}
    for stack in stacks(records, is_dense):
        _write(out / RELEASE / stack.name, stack.records)
        everything |= stack.records
    return _write(out / RELEASE / "root", everything)


def stacks(records: int, is_dense: bool = False) -> Iterator[Stack]:
    """Yield the stacks; together they have about `records` distinct records."""
    names = package_names(PACKAGES)
    size = records // STACKS
    stack_of: dict[Environment, Stack] = {}
    for name, environment in _names_of_stacks():
        stack = Stack(name)
        # A stack has some records of the one before it in the same environment.
        if environment in stack_of:
            shared = islice(stack_of[environment].records.items(), _shared(records))
            stack.records.update(shared)
        maker = _Maker(environment, names, Random(name), is_dense)
        while len(maker.made) <= size:
            maker.make(maker.chance.choice(names))
        stack.records.update(maker.made)
        stack_of[environment] = stack
        yield stack


def _names_of_stacks() -> list[tuple[str, Environment]]:
    """Return the names of a dozen stacks, at most two of each environment."""
    found = []
    for environment in ENVIRONMENTS:
        for name in environment.stacks[:2]:
            found.append((name, environment))
    return found[:STACKS]


def _shared(records: int) -> int:
    """Return how many records two stacks of an environment share."""
    return int(SHARED * records / STACKS)


def _write(folder: Path, records: dict[str, str]) -> int:
    """Write an index of some records; return its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"database":{"version":"8","installs":{')
        joint = ""
        for dag_hash, text in records.items():
            file.write(f'{joint}"{dag_hash}":{text}')
            joint = ","
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
            count = min(index, round(chance.expovariate(1 / mean)))
            for _ in range(count):
                # A package needs only packages before it, mostly the first ones.
                dependency = names[int(index * chance.random() ** SKEW)]
                edges.setdefault(dependency, chance.choice(types))
        found[name] = edges
    return found


class _Maker:
    """Makes records of one environment; each depends on some of those before it.

    Attributes:
        made: the JSON text of each record, by its hash.
        chance: decides what is random.
    """

    def __init__(
        self, environment: Environment, names: list[str], chance: Random, is_dense: bool
    ) -> None:
        self.made: dict[str, str] = {}
        self.chance = chance
        self._is_dense = is_dense
        self._hashes_of: dict[str, list[str]] = {}
        self._in_order: list[tuple[str, str]] = []
        self._recipes = {} if is_dense else recipes(names)
        self._parameters = {name: _parameters(name) for name in names}
        self._arch = json.dumps(_arch(environment), separators=(",", ":"))
        # The first record is the compiler, which is an external.
        compiler = environment.renamed or environment.compiler
        name, _, version = compiler.partition("@")
        self._add(name, version, [], in_buildcache=False)

    def make(self, name: str) -> None:
        """Make a record of a package, after missing records of its dependencies."""
        edges = self._recent_edges() if self._is_dense else self._recipe_edges(name)
        dependencies = list(edges)
        compiler, compiler_hash = self._in_order[0]
        dependencies.append(_edge(compiler, compiler_hash, _BUILD, ["c", "cxx"]))
        version = f"{len(name) % 5}.{self.chance.choice((9, 10, 11))}.0"
        self._add(name, version, dependencies, in_buildcache=True)

    def _recipe_edges(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield edges to recent specs of the packages that the recipe names."""
        for dependency, types in self._recipes[name].items():
            if dependency not in self._hashes_of:
                self.make(dependency)
            recent = self._hashes_of[dependency][-3:]
            dag_hash = self.chance.choice(recent)
            yield _edge(dependency, dag_hash, types, _VIRTUALS.get(dependency, []))

    def _recent_edges(self) -> Iterator[dict[str, Any]]:
        """Yield edges to random recent specs."""
        recent = self._in_order[-4000:]
        size = min(len(recent), self.chance.randrange(DENSE_EDGES))
        for name, dag_hash in self.chance.sample(recent, size):
            types = self.chance.choice((_BUILD, *_RUN_TIME))
            yield _edge(name, dag_hash, types, _VIRTUALS.get(name, []))

    def _add(
        self, name: str, version: str, dependencies: list[Any], *, in_buildcache: bool
    ) -> None:
        """Add a record to those that were made."""
        dag_hash = hash_of(f"{name} {self.chance.random()}")
        parameters = self._parameters.get(name) or _parameters(name)
        spec = {
            "name": name,
            "version": version,
            "arch": None,
            "namespace": "builtin",
            "parameters": parameters[self.chance.randrange(len(parameters))],
            "package_hash": hash_of(f"recipe {name}") + hash_of(name)[:20] + "====",
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
        # The same text stands in each record: it is made once.
        text = json.dumps(record, separators=(",", ":"))
        text = text.replace('"arch":null', f'"arch":{self._arch}')
        self._in_order.append((name, dag_hash))
        self._hashes_of.setdefault(name, []).append(dag_hash)
        self.made[dag_hash] = text


def _edge(
    name: str, dag_hash: str, types: list[str], virtuals: list[str]
) -> dict[str, Any]:
    parameters = {"deptypes": types, "virtuals": virtuals}
    return {"name": name, "hash": dag_hash, "parameters": parameters}


def _parameters(name: str) -> list[dict[str, Any]]:
    """Return the few configurations in which a package is built."""
    chance = Random(f"parameters {name}")
    options = chance.sample(_OPTIONS, chance.randrange(2, 9))
    configurations = []
    for _ in range(chance.randrange(1, 5)):
        parameters: dict[str, Any] = {}
        for option in options:
            parameters[option] = chance.random() < 0.5
        parameters["build_system"] = "cmake"
        parameters["build_type"] = "Release"
        if chance.random() < 0.2:
            count = chance.randrange(1, 4)
            parameters["patches"] = [_patch(name, number) for number in range(count)]
        for flag in _FLAGS:
            parameters[flag] = []
        configurations.append(parameters)
    return configurations


def _patch(name: str, number: int) -> str:
    """Return the checksum of an invented patch."""
    return blake2b(f"{name}{number}".encode(), digest_size=32).hexdigest()


def _arch(environment: Environment) -> dict[str, Any]:
    """Return the platform, the system and the target, as Spack writes them."""
    # Spack describes targets of vendors, and only names generic ones.
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


def hash_of(text: str) -> str:
    """Return a hash that looks as those of Spack, 32 letters and digits."""
    digest = blake2b(text.encode(), digest_size=20).digest()
    return b32encode(digest).decode().lower()


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
