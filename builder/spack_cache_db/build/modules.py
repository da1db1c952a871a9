"""Which module loads which installed spec: by its hash, or else by its name and version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from spack_cache_db.build.ids import Numbered
from spack_cache_db.errors import Fault, counted
from spack_cache_db.records import Problem
from spack_cache_db.sources.columns import ModuleFacts

Place = tuple[int, int]
"""The id of a spec, and the number of the index of its installation."""


class Modules(NamedTuple):
    """All modules in the order of their ids, and the id of the module that loads each place.

    `problems` name the modules that may load one of several specs, with the paths of their files;
    `note` counts the modules.
    """

    modules: list[ModuleFacts]
    loading: dict[Place, int]
    problems: list[tuple[str, Problem]]
    note: str


def placed(modules: Iterable[ModuleFacts], trees: Collection[str]) -> list[ModuleFacts]:
    """Return the modules of these installations, each once; unnamed ones are of the only one."""
    only = next(iter(trees)) if len(trees) == 1 else None
    named = {module._replace(release=module.release or only) for module in modules}
    return [module for module in named if module.release in trees]


def unplaced(lists: Iterable[tuple[str | None, str]], trees: Collection[str]) -> Iterator[Fault]:
    """Yield a fault for each list of modules that is not of an installation."""
    names = ", ".join(sorted(trees))
    for release, path in lists:
        if release in trees or (release is None and len(trees) == 1):
            continue
        message = f"has modules of {release}, which is not an installation"
        if release is None:
            message = f"has modules of one of {len(trees)} installations"
        if names:
            yield Fault(path, 0, f"{message}: use --modules NAME=PATH with one of {names}")
        else:
            yield Fault(path, 0, "has modules, but no installation is built: give one as well")


def matched(numbered: Numbered, modules: Collection[ModuleFacts]) -> Modules:
    """Return which modules load which installed specs.

    A name and a version that several specs have are not guessed, unless the module's folder names
    the compiler of one of them alone. Of several modules of a spec, one that has its hash is taken,
    then one that is not hidden, then the shortest.
    """
    by_hash: dict[tuple[str, str], set[Place]] = defaultdict(set)
    by_name: dict[tuple[str, ...], dict[Place, str]] = defaultdict(dict)
    configurations = [*numbered.ids["configurations"]]
    installed = numbered.records.where(numbered.records["install"] > 0)
    for spec, document in installed.rows("spec", "document") if modules else ():
        release = numbered.documents[document - 1].release
        configuration = configurations[numbered.specs["configuration"][spec - 1] - 1]
        by_hash[release, numbered.hashes[spec - 1]].add((spec, document))
        key = release, _folded(configuration.package), configuration.version.lower()
        by_name[key][spec, document] = configuration.compiler
    ordered = sorted(modules, key=lambda module: [(part is not None, part) for part in module])
    best: dict[Place, tuple[bool, bool, int, int]] = {}
    problems, unmatched = list[tuple[str, Problem]](), 0
    for number, module in enumerate(ordered, start=1):
        release, package = str(module.release), module.package.rpartition("/")[2]
        places = by_hash.get((release, str(module.hash)), set())
        if module.hash is None:
            named = by_name.get((release, _folded(package), module.version.lower()), {})
            own = {place for place, compiler in named.items() if compiler == module.compiler}
            places = own or {*named}
        specs = {spec for spec, _ in places}
        unmatched += not specs
        if len(specs) > 1:
            words = f"the module {module.name} of {release} may load any of {len(specs):,} specs"
            problems.append((module.path, Problem("ambiguous_module", words)))
            continue
        rank = module.hash is None, module.is_hidden, len(module.name), number
        best |= {place: min(best.get(place, rank), rank) for place in places}
    loaded = len(ordered) - len(problems) - unmatched
    note = f"{loaded:,} of {counted(len(ordered), 'module')} load an installed spec"
    note += f", {len(problems):,} may load one of several (see the table problems)" * bool(problems)
    note += f", {unmatched:,} load none" * bool(unmatched)
    return Modules(ordered, {place: rank[-1] for place, rank in best.items()}, problems, note)


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
