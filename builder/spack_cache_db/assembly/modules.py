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
    """The environment modules of installations, and the specs that they load.

    Attributes:
        modules: all modules, in the order of their ids.
        loading: the id of the module that loads a spec, by the spec and the number of
            its index.
        problems: modules that may load one of several specs, with the paths of their
            files.
        note: the number of modules that load a spec, in words.
    """

    modules: list[ModuleFacts]
    loading: dict[tuple[int, int], int]
    problems: list[tuple[str, Problem]]
    note: str


class _Key(NamedTuple):
    """A spec, and the document of its installation."""

    spec: int
    document: int


class _Preference(NamedTuple):
    """Sorts the modules of one spec; the smallest one is the best."""

    has_no_hash: bool
    is_hidden: bool
    name_length: int
    module: int


def match_modules(numbered: Numbered, modules: Collection[ModuleFacts]) -> Modules:
    """Return which modules load which installed specs.

    A module of Lmod belongs to the specs of its package and version. What Spack writes
    after the version decides between them: a hash (`zstd/1.5.5-lvnw667`), or a compiler
    (`cmake/3.26.3-gcc-7.5.0`); else the compiler in the name of the module's folder
    does. Several specs that remain are not guessed. A module with the hash of its spec
    is preferred to others, then one that is not hidden, then the shortest.
    """
    ordered = sorted(modules, key=none_first)
    # Most databases have no modules, and reading all installed specs takes time.
    if not ordered:
        return Modules([], {}, [], _note(0, 0, 0))
    installed = _Installed(numbered)
    best: dict[_Key, _Preference] = {}
    problems: list[tuple[str, Problem]] = []
    unmatched = 0
    for number, module in enumerate(ordered, start=1):
        keys, has_hash = installed.loaded_by(module)
        specs = {key.spec for key in keys}
        if not specs:
            unmatched += 1
        if len(specs) > 1:
            message = f"the module {module.name} of {module.release} may load any of"
            message += f" {len(specs):,} specs"
            problems.append((module.path, Problem("ambiguous_module", message)))
            continue
        preference = _Preference(
            not has_hash, module.is_hidden, len(module.name), number
        )
        for key in keys:
            best[key] = min(best.get(key, preference), preference)
    loading = {}
    for key, preference in best.items():
        loading[key.spec, key.document] = preference.module
    note = _note(len(ordered), len(problems), unmatched)
    return Modules(ordered, loading, problems, note)


def _note(count: int, ambiguous: int, unmatched: int) -> str:
    """Return how many of all modules load a spec, in words."""
    matching = count - ambiguous - unmatched
    note = f"{matching:,} of {counted(count, 'module')} load an installed spec"
    if ambiguous:
        note += f", {ambiguous:,} may load one of several (see the table problems)"
    if unmatched:
        note += f", {unmatched:,} load none"
    return note


SHORTEST_HASH = 4
"""Characters of a hash at the end of a module's name; Spack's default has 7
(`hash_length`).
"""


class _InstalledSpec(NamedTuple):
    """An installed spec in the spelling of modules.

    Attributes:
        key: the spec and its document.
        hash: its whole hash.
        package: its package, such as `py-numpy`, in lower case and with dashes.
        version: its version, in lower case.
        compiler: its compiler, such as `gcc-12.2.0`.
    """

    key: _Key
    hash: str
    package: str
    version: str
    compiler: str


class _Installed:
    """The installed specs of each release by their hash, their package, and the first
    characters of their hash.
    """

    def __init__(self, numbered: Numbered) -> None:
        self._of_hash: dict[tuple[str, str], set[_Key]] = defaultdict(set)
        self._of_package: dict[tuple[str, str], list[_InstalledSpec]] = defaultdict(
            list
        )
        self._of_start: dict[tuple[str, str], list[_InstalledSpec]] = defaultdict(list)
        configurations = list(numbered.ids["configurations"])
        records = numbered.records.where(numbered.records["install"] > 0)
        for spec, document in records.rows("spec", "document"):
            release = numbered.documents[document - 1].release
            number = numbered.specs["configuration"][spec - 1]
            configuration = configurations[number - 1]
            entry = _InstalledSpec(
                key=_Key(spec, document),
                hash=numbered.hashes[spec - 1],
                package=_dashed(configuration.package),
                version=configuration.version.lower(),
                compiler=_compiler_in_names(configuration.compiler),
            )
            self._of_hash[release, entry.hash].add(entry.key)
            self._of_package[release, entry.package].append(entry)
            self._of_start[release, entry.hash[:SHORTEST_HASH]].append(entry)

    def loaded_by(self, module: ModuleFacts) -> tuple[set[_Key], bool]:
        """Return the specs that a module may load, and whether the module has their
        hash.
        """
        release = str(module.release)
        # Spack's own list has the hash.
        if module.hash is not None:
            return self._of_hash.get((release, module.hash), set()), True
        # Lmod has a package and a version: `mpi/openmpi` and `4.1.5-gcc-12.2.0`.
        package = _dashed(module.package.rpartition("/")[2])
        version = module.version.lower()
        # A name may have everything in one word: `boost-1.64.0-gcc-6.2.0-pftxg46`.
        text = _dashed(f"{package}-{version}") if version else package
        of_hash = self._with_hash(release, text)
        if of_hash:
            return of_hash, True
        return self._with_version(release, package, version, module.compiler), False

    def _with_hash(self, release: str, text: str) -> set[_Key]:
        """Return the specs whose package and version a text begins with, and whose hash
        ends it.
        """
        end = text.rpartition("-")[2]
        found = set()
        for entry in self._of_start.get((release, end[:SHORTEST_HASH]), ()):
            beginning = f"{entry.package}-{_dashed(entry.version)}-"
            if entry.hash.startswith(end) and text.startswith(beginning):
                found.add(entry.key)
        return found

    def _with_version(
        self, release: str, package: str, version: str, compiler: str | None
    ) -> set[_Key]:
        """Return the specs of a version, or of a version and a compiler after it.

        The compiler is that of the module's folder, if it has one.
        """
        same_version = []
        with_compiler = set()
        for entry in self._of_package.get((release, package), ()):
            if entry.version == version:
                same_version.append(entry)
            if f"{entry.version}-{entry.compiler}" == version:
                with_compiler.add(entry.key)
        if not same_version:
            return with_compiler
        folder = _compiler_in_names(compiler or "")
        of_folder = {entry.key for entry in same_version if entry.compiler == folder}
        return of_folder or {entry.key for entry in same_version}


def _compiler_in_names(compiler: str) -> str:
    """Return `gcc-12.2.0` for `gcc@12.2.0`."""
    return compiler.replace("@", "-").lower()


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")
