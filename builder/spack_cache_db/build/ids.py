"""Assigns final ids, which depend only on the content of the input.

Versions of a package are in Spack's order of preference, the preferred one last; compilers in
Spack's order, releases from branch to oldest snapshot, other names by text. Specs are sorted by
configuration, first release and hash, so that rows of one query are close together in the file, and
current ones come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.build.frames import Frame, Members, Numbers, members, packed, places
from spack_cache_db.build.merge import Merged
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration, Problem
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.sources.facts import Document, ModuleFacts
from spack_cache_db.sources.writer import Texts
from spack_cache_db.spack.normal_forms import split_compiler
from spack_cache_db.spack.versions import preference, version_key

Ids = dict[str, dict[Any, int]]
"""The ids of values in ascending order, by table or dictionary."""

_DICTIONARIES = ("configurations", "stack_sets", "tarballs", "nodes", "uses")
"""The dictionaries of `Texts` whose values are rows; only values in use get an id."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Merged columns with final ids.

    Attributes:
        ids: the ids of all names and of `_DICTIONARIES`.
        texts: sizes and other texts, which keep their numbers.
        documents: all documents; the pages come first, by id.
        pages: the release and package of each page.
        hashes: the hashes of specs, by id.
        specs: the specs, by id.
        listings: sorted by release and spec, with the `configuration` of the spec.
        document_listings: sorted by document and spec.
        records: sorted by spec and document.
        edges: distinct and sorted by spec, dependency and use.
        configurations: the ids in the columns of configurations, by id.
        stack_members: the stacks of each stack set, by id.
    """

    ids: Ids
    texts: Texts
    documents: list[Document]
    pages: Frame
    hashes: list[str]
    specs: Frame
    listings: Frame
    document_listings: Frame
    records: Frame
    edges: Frame
    configurations: Frame
    stack_members: Members


def number(merged: Merged) -> Numbered:
    """Return the columns with final ids, without values of refused documents only."""
    texts = merged.texts
    ids = _ids(merged)
    # The id of each value by its number, 0 for values that are not in use.
    new: dict[str, Numbers] = {}
    for name in _DICTIONARIES:
        values = (ids[name].get(value, 0) for value in getattr(texts, name).things)
        new[name] = np.array([0, *values], dtype=np.uint32)
    specs = merged.specs.renumbered(new)
    hashes = texts.hashes.things
    by_hash = np.array(hashes, dtype="S32")[specs["spec"] - 1]
    specs = specs.where(np.lexsort((by_hash, specs["release"], specs["configuration"])))
    new["hashes"] = places(specs["spec"], len(texts.hashes))
    listings = merged.listings.renumbered(new)
    listings = listings.having(configuration=specs["configuration"][listings["spec"] - 1])
    in_documents = merged.document_listings.renumbered(new)
    records = merged.records.renumbered(new)
    pages = [document.page for document in merged.documents if document.page]
    rows = [(0,) * len(CONFIGURATION), *_configuration_rows(ids, ids["configurations"])]
    stacks = ids["stacks"]
    return Numbered(
        ids=ids,
        texts=texts,
        documents=merged.documents,
        pages=Frame(
            release=merged.document_release[1 : len(pages) + 1],
            package=np.array([ids["packages"][page.package] for page in pages], int),
        ),
        hashes=[hashes[number - 1] for number in specs["spec"].tolist()],
        specs=specs,
        listings=listings.where(np.argsort(packed(listings["release"], listings["spec"]))),
        document_listings=in_documents.where(
            np.lexsort((in_documents["spec"], in_documents["document"]))
        ),
        records=records.where(np.argsort(packed(records["spec"], records["document"]))),
        edges=_distinct(merged.edges.renumbered(new)),
        configurations=Frame(
            **dict(zip(CONFIGURATION, np.array(rows, dtype=np.int64).T, strict=True))
        ),
        stack_members=members(
            [(), *([stacks[name] for name in names] for names in ids["stack_sets"])]
        ),
    )


def _ids(merged: Merged) -> Ids:
    """Return the ids of all names, and of the values of `_DICTIONARIES` that are in use."""
    texts, specs, documents = merged.texts, merged.specs, merged.documents
    listings, in_documents = merged.listings, merged.document_listings
    configurations = _in_use(texts.configurations.things, specs["configuration"])
    stack_columns = listings["stacks"], specs["stacks"], in_documents["stacks"]
    stack_sets = _in_use(texts.stack_sets.things, *stack_columns)
    tarballs = _in_use(texts.tarballs.things, listings["tarball"], in_documents["tarball"])
    ids: Ids = {
        table: _sorted(_names(column, configurations), _ORDERS.get(column))
        for column, table in CONFIGURATION.items()
    }
    packages = {document.page.package for document in documents if document.page}
    ids["packages"] = _sorted([*ids["packages"], *packages])
    stacks = {document.index_facts.stack for document in documents if document.index_facts}
    rows = zip(_configuration_rows(ids, configurations), configurations, strict=True)
    return {
        **ids,
        "variants": _sorted(text for texts in ids["variant_sets"] for text in texts),
        "configurations": {document: at for at, (_, document) in enumerate(sorted(rows), start=1)},
        "releases": {name: at for at, name in enumerate(merged.releases, start=1)},
        "stacks": _sorted(stacks.union(*stack_sets)),
        "stack_sets": _sorted(stack_sets),
        "tarballs": _sorted(tarballs),
        "nodes": _sorted(_in_use(texts.nodes.things, merged.records["node"])),
        "uses": _sorted(_in_use(texts.uses.things, merged.edges["use"])),
    }


def _configuration_rows(
    ids: Ids, configurations: Collection[Configuration]
) -> list[tuple[int, ...]]:
    """Return the ids in the columns of configurations, as rows."""
    columns = (
        map(ids[table].__getitem__, _names(column, configurations))
        for column, table in CONFIGURATION.items()
    )
    return [*zip(*columns, strict=True)]


def _names(column: str, configurations: Iterable[Configuration]) -> Iterator[Any]:
    """Yield the names in a column; those of versions include the package."""
    names = ("package", "version") if column == "version" else (column,)
    return map(attrgetter(*names), configurations)


def _compiler_order(name: str) -> Any:
    compiler, version = split_compiler(name)
    return compiler, version_key(version or ""), name


_ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "version": lambda name: (name[0], preference(name[1])),
    "compiler": _compiler_order,
}
"""The sort keys of columns whose names are not sorted by text."""


def none_first(value: Any) -> Any:
    """Return a key that sorts by text, part by part, and None first."""
    if isinstance(value, tuple):
        return [(part is not None, part) for part in value]
    return value is not None, value


def _sorted(values: Iterable[Any], order: Callable[[Any], Any] | None = None) -> dict[Any, int]:
    ordered = sorted(set(values), key=order or none_first)
    return {value: number for number, value in enumerate(ordered, start=1)}


def _in_use(values: list[Any], *columns: Numbers) -> list[Any]:
    """Return the values whose numbers are in one of the columns."""
    counts = np.bincount(np.concatenate(columns), minlength=1)
    return [values[number - 1] for number in np.flatnonzero(counts).tolist() if number]


def _distinct(edges: Frame) -> Frame:
    """Return the distinct edges in the order of (spec, dependency, use)."""
    keys = packed(edges["spec"], edges["dependency"])
    order = np.lexsort((edges["use"], keys))
    keys, edges = keys[order], edges.where(order)
    repeats = (np.diff(keys) == 0) & (np.diff(edges["use"]) == 0)
    return edges.where(np.append(True, ~repeats)[: len(keys)])


class Modules(NamedTuple):
    """All environment modules in the order of their ids.

    `loading` has the id of the module that loads a spec, by the spec and its index's number;
    `problems` has the modules that may load one of several specs, with the paths of their files.
    """

    modules: list[ModuleFacts]
    loading: dict[tuple[int, int], int]
    problems: list[tuple[str, Problem]]
    note: str


def matched(numbered: Numbered, modules: Collection[ModuleFacts]) -> Modules:
    """Return which modules load which installed specs.

    A module of Lmod belongs to the specs of its package and version. What Spack writes after the
    version decides between them: a hash (`zstd/1.5.5-lvnw667`), or a compiler
    (`cmake/3.26.3-gcc-7.5.0`); else the compiler in the name of the module's folder does. Several
    specs that remain are not guessed. A module with the hash of its spec is preferred to others,
    then one that is not hidden, then the shortest.
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
    return Modules(ordered, {key: rank[-1] for key, rank in best.items()}, problems, note)


_Key = tuple[int, int]
"""A spec, and the document of its installation."""

SHORTEST_HASH = 4
"""Characters of a hash at the end of a module's name; Spack's default has 7 (`hash_length`)."""


class _InstalledSpec(NamedTuple):
    """An installed spec; `version` and `compiler` as modules spell them, such as `gcc-12.2.0`."""

    key: _Key
    hash: str
    version: str
    compiler: str


class _Installed:
    """The installed specs by what the names of modules have of them."""

    def __init__(self, numbered: Numbered) -> None:
        self._of_hash: dict[tuple[str, str], set[_Key]] = defaultdict(set)
        self._of_package: dict[tuple[str, str], list[_InstalledSpec]] = defaultdict(list)
        self._of_start: dict[tuple[str, str], list[tuple[str, _InstalledSpec]]] = defaultdict(list)
        configurations = [*numbered.ids["configurations"]]
        records = numbered.records.where(numbered.records["install"] > 0)
        for spec, document in records.rows("spec", "document"):
            release = numbered.documents[document - 1].release
            configuration = configurations[numbered.specs["configuration"][spec - 1] - 1]
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
        """Return the specs that a module may load, and whether their hash is in its name."""
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
        """Return the specs whose package and version a text begins with, and whose hash ends it."""
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
        in_name = [entry for entry in entries if f"{entry.version}-{entry.compiler}" == version]
        if not same_version:
            return {entry.key for entry in in_name}
        folder = (compiler or "").replace("@", "-").lower()
        of_folder = {entry.key for entry in same_version if entry.compiler == folder}
        return of_folder or {entry.key for entry in same_version}


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
