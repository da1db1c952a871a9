"""Finds the installed spec of each environment module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from spack_cache_db.assembly.ids import Numbered, none_first
from spack_cache_db.errors import counted
from spack_cache_db.model import Problem
from spack_cache_db.sources.facts import ModuleFacts


class Modules(NamedTuple):
    """All environment modules in the order of their ids.

    `loading` has the id of the module that loads a spec, by the spec and its index's
    number; `problems` has the modules that may load one of several specs, with the
    paths of their files.
    """

    modules: list[ModuleFacts]
    loading: dict[tuple[int, int], int]
    problems: list[tuple[str, Problem]]
    note: str


def matched(numbered: Numbered, modules: Collection[ModuleFacts]) -> Modules:
    """Return which modules load which installed specs.

    A module of Lmod belongs to the specs of its package and version. What Spack writes
    after the
    version decides between them: a hash (`zstd/1.5.5-lvnw667`), or a compiler
    (`cmake/3.26.3-gcc-7.5.0`); else the compiler in the name of the module's folder
    does. Several specs that remain are not guessed. A module with the hash of its spec
    is preferred to others, then one that is not hidden, then the shortest.
    """
    installed = _Installed(numbered) if modules else None
    ordered = sorted(modules, key=none_first)
    best: dict[tuple[int, int], tuple[bool, bool, int, int]] = {}
    problems, unmatched = list[tuple[str, Problem]](), 0
    for number, module in enumerate(ordered, start=1):
        assert installed is not None
        loaded, has_hash = installed.loaded_by(module)
        specs = {spec for spec, _ in loaded}
        unmatched += not specs
        if len(specs) > 1:
            words = f"the module {module.name} of {module.release} may load any of"
            words += f" {len(specs):,} specs"
            problems.append((module.path, Problem("ambiguous_module", words)))
            continue
        rank = not has_hash, module.is_hidden, len(module.name), number
        best |= {key: min(best.get(key, rank), rank) for key in loaded}
    matching = len(ordered) - len(problems) - unmatched
    note = f"{matching:,} of {counted(len(ordered), 'module')} load an installed spec"
    if problems:
        note += f", {len(problems):,} may load one of several (see the table problems)"
    if unmatched:
        note += f", {unmatched:,} load none"
    return Modules(
        ordered, {key: rank[-1] for key, rank in best.items()}, problems, note
    )


_Key = tuple[int, int]
"""A spec, and the document of its installation."""

SHORTEST_HASH = 4
"""Characters of a hash at the end of a module's name; Spack's default has 7
(`hash_length`).
"""


class _InstalledSpec(NamedTuple):
    """An installed spec; `version` and `compiler` as modules spell them, such as
    `gcc-12.2.0`.
    """

    key: _Key
    hash: str
    version: str
    compiler: str


class _Installed:
    """The installed specs by what the names of modules have of them."""

    def __init__(self, numbered: Numbered) -> None:
        self._of_hash: dict[tuple[str, str], set[_Key]] = defaultdict(set)
        self._of_package: dict[tuple[str, str], list[_InstalledSpec]] = defaultdict(
            list
        )
        self._of_start: dict[tuple[str, str], list[tuple[str, _InstalledSpec]]] = (
            defaultdict(list)
        )
        configurations = [*numbered.ids["configurations"]]
        records = numbered.records.where(numbered.records["install"] > 0)
        for spec, document in records.rows("spec", "document"):
            release = numbered.documents[document - 1].release
            configuration = configurations[
                numbered.specs["configuration"][spec - 1] - 1
            ]
            dag_hash = numbered.hashes[spec - 1]
            package = _folded(configuration.package)
            entry = _InstalledSpec(
                (spec, document),
                dag_hash,
                configuration.version.lower(),
                configuration.compiler.replace("@", "-").lower(),
            )
            self._of_hash[release, dag_hash].add(entry.key)
            self._of_package[release, package].append(entry)
            self._of_start[release, dag_hash[:SHORTEST_HASH]].append((package, entry))

    def loaded_by(self, module: ModuleFacts) -> tuple[set[_Key], bool]:
        """Return the specs that a module may load, and whether their hash is in its
        name.
        """
        release = str(module.release)
        if module.hash is not None:
            return self._of_hash.get((release, module.hash), set()), True
        package = _folded(module.package.rpartition("/")[2])
        version = module.version.lower()
        # A name may have everything in one word: `boost-1.64.0-gcc-6.2.0-pftxg46`.
        text = _folded(f"{package}-{version}") if version else package
        of_hash = self._with_hash(release, text)
        if of_hash:
            return of_hash, True
        return self._with_version(release, package, version, module.compiler), False

    def _with_hash(self, release: str, text: str) -> set[_Key]:
        """Return the specs whose package and version a text begins with, and whose hash
        ends it.
        """
        end = text.rpartition("-")[2]
        return {
            entry.key
            for package, entry in self._of_start.get((release, end[:SHORTEST_HASH]), ())
            if entry.hash.startswith(end)
            and text.startswith(f"{package}-{_folded(entry.version)}-")
        }

    def _with_version(
        self, release: str, package: str, version: str, compiler: str | None
    ) -> set[_Key]:
        """Return the specs of a version, or of a version and a compiler after it."""
        entries = self._of_package.get((release, package), ())
        same_version = [entry for entry in entries if entry.version == version]
        in_name = [
            entry for entry in entries if f"{entry.version}-{entry.compiler}" == version
        ]
        if not same_version:
            return {entry.key for entry in in_name}
        folder = (compiler or "").replace("@", "-").lower()
        of_folder = {entry.key for entry in same_version if entry.compiler == folder}
        return of_folder or {entry.key for entry in same_version}


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
