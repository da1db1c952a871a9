"""Which module loads which installed spec: by its hash, or else by its name and version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from spack_cache_db.build.ids import Numbered
from spack_cache_db.errors import Fault, counted
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources.columns import ModuleFacts

Place = tuple[int, int]
"""The id of a spec, and the number of the index of its installation."""


@dataclass(frozen=True, slots=True)
class Modules:
    """All modules, and what they load.

    Attributes:
        modules: all modules, in the order of their ids.
        loading: the number of the module that loads the spec of each place.
        ambiguous: the modules that may load one of several specs, and how many.
        unmatched: how many load no installed spec.
    """

    modules: list[ModuleFacts]
    loading: dict[Place, int]
    ambiguous: dict[ModuleFacts, int]
    unmatched: int

    @property
    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Yield a problem, with the path of its file, for each ambiguous module."""
        for module, count in self.ambiguous.items():
            words = f"the module {module.name} of {module.release} may load any of {count:,} specs"
            yield module.path, Problem("ambiguous_module", words)

    @property
    def note(self) -> str:
        """The numbers of modules, as a sentence."""
        total, unclear = len(self.modules), len(self.ambiguous)
        loading = total - unclear - self.unmatched
        more = f", {unclear:,} may load one of several (see the table problems)" if unclear else ""
        of_none = f", {self.unmatched:,} load none" if self.unmatched else ""
        return f"{loading:,} of {counted(total, 'module')} load an installed spec{more}{of_none}"


def placed(modules: Iterable[ModuleFacts], trees: Collection[str]) -> list[ModuleFacts]:
    """Return the modules of installations that there are, each once; unnamed ones are of the only.

    Args:
        modules: the modules.
        trees: the names of all installations.
    """
    only = next(iter(trees)) if len(trees) == 1 else None
    named = {each._replace(release=each.release or only) for each in modules}
    return [each for each in named if each.release in trees]


def unplaced(lists: Iterable[tuple[str | None, str]], trees: Collection[str]) -> Iterator[Fault]:
    """Yield a fault for each list of modules that is not of an installation."""
    names = ", ".join(sorted(trees)) or "none"
    for release, path in lists:
        if release not in trees and (release or len(trees) != 1):
            whose = f"{release} is not an installation" if release else "of which installation"
            message = f"has modules, and {whose}: expected --modules NAME=PATH for one of: {names}"
            yield Fault(path, 0, message)


def matched(numbered: Numbered, modules: Iterable[ModuleFacts]) -> Modules:
    """Return which modules load which installed specs.

    A name and a version that several specs have are not guessed, unless the module's folder names
    the compiler of one of them alone. Of several modules of a spec, one that has its hash is taken,
    then one that is not hidden, then the shortest.
    """
    by_hash: dict[tuple[str, str], set[Place]] = defaultdict(set)
    by_name: dict[tuple[str, ...], dict[Place, Configuration]] = defaultdict(dict)
    configurations, configuration_of = (
        [*numbered.ids["configurations"]],
        numbered.specs["configuration"],
    )
    installed = numbered.records.where(numbered.records["install"] > 0)
    for spec, document in installed.rows("spec", "document") if modules else ():
        release = numbered.documents[document - 1].release
        words = configurations[configuration_of[spec - 1] - 1]
        by_hash[release, numbered.hashes[spec - 1]].add((spec, document))
        by_name[release, _folded(words.package), words.version.lower()][spec, document] = words
    ordered = sorted(modules, key=lambda each: [(part is not None, part) for part in each])
    best: dict[Place, tuple[tuple[object, ...], int]] = {}
    ambiguous, unmatched = dict[ModuleFacts, int](), 0
    for number, module in enumerate(ordered, start=1):
        release = module.release or ""
        if module.hash is not None:
            places = by_hash.get((release, module.hash), set())
        else:
            key = release, _folded(module.package.rpartition("/")[2]), module.version.lower()
            named = by_name.get(key, {})
            own = {place for place, words in named.items() if words.compiler == module.compiler}
            places = own or {*named}
        specs = {spec for spec, _ in places}
        unmatched += not specs
        if len(specs) > 1:
            ambiguous[module] = len(specs)
            continue
        rank = module.hash is None, module.is_hidden, len(module.name), number
        for place in places:
            best[place] = min(best.get(place, (rank, number)), (rank, number))
    loading = {place: number for place, (_, number) in best.items()}
    return Modules(ordered, loading, ambiguous, unmatched)


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
