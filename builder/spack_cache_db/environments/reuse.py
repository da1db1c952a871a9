"""Reads the settings of a `spack.yaml` for reuse: `concretizer:`, and the filters of
`mirrors:`.

The forms of `concretizer: reuse:` are those of Spack 1.2 (`schema/concretizer.py`,
`solver/reuse.py`): `true`, `false`, `dependencies`, or a mapping with `roots`,
`include`, `exclude` and `from`. A source of `from` that has `include` or `exclude` of
its own replaces the common ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    is_nothing,
    items_of,
    required_node,
    text_at,
    text_of,
)
from spack_cache_db.environments.externals import spec_at
from spack_cache_db.environments.includes import resolved_path
from spack_cache_db.environments.lockfile import read_lock_file
from spack_cache_db.environments.model import Surroundings
from spack_cache_db.environments.reuse_rules import (
    EVERY_SPEC,
    REUSE_ALL,
    DeclaredExternal,
    MirrorFilter,
    ReuseRules,
    ReuseSource,
    SourceKind,
    SpecFilter,
)
from spack_cache_db.spack.parser import Parser
from spack_cache_db.spack.queries import SpecQuery

TRUE = frozenset(("true", "yes", "on"))
FALSE = frozenset(("false", "no", "off"))
SOURCES: tuple[SourceKind, ...] = ("local", "buildcache", "environment", "external")
_REUSE_FORMS = (
    "true, false, dependencies, or a mapping with roots, include, exclude and from"
)


@dataclass(frozen=True, slots=True)
class ReadRules:
    """The rules of reuse, and notes on parts that were ignored."""

    rules: ReuseRules
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReuseReader:
    """Reads the settings of one environment.

    Attributes:
        path: the path of the environment, from which paths of other environments are
            resolved.
        parse: reads specs, with the environment's toolchains.
        max_nodes: the limit of nodes of a lockfile.
    """

    path: str
    surroundings: Surroundings
    parse: Parser
    max_nodes: int

    def rules(
        self,
        sections: Mapping[str, yaml.Node],
        externals: Mapping[str, tuple[DeclaredExternal, ...]],
    ) -> ReadRules:
        """Return the rules of a configuration.

        Args:
            sections: the merged sections; `concretizer` and `mirrors` are read.
            externals: the externals of `packages:`.

        Raises:
            LineFault: a section cannot be read.
        """
        if not externals and sections.keys().isdisjoint(("concretizer", "mirrors")):
            return ReadRules(REUSE_ALL)
        notes: tuple[str, ...] = ()
        reuse = REUSE_ALL
        allowed_to_mix = None
        # First what the solver takes from where.
        if "concretizer" in sections:
            node = sections["concretizer"]
            entries = entries_of(node, "the settings of the concretizer")
            if "reuse" in entries and not is_nothing(entries["reuse"]):
                reuse = self._reuse(entries["reuse"])
                notes += _notes_on(reuse.sources)
            if "compiler_mixing" in entries:
                allowed_to_mix = _packages_that_mix(entries["compiler_mixing"])
        # Then what the mirrors give out.
        mirrors: tuple[MirrorFilter, ...] = ()
        if "mirrors" in sections:
            mirrors = tuple(self._mirrors(sections["mirrors"]))
        rules = replace(
            reuse, allowed_to_mix=allowed_to_mix, mirrors=mirrors, externals=externals
        )
        return ReadRules(rules, notes)

    def _reuse(self, node: yaml.Node) -> ReuseRules:
        """Return the sources of `reuse:`, and whether roots are reused."""
        if isinstance(node, yaml.MappingNode):
            return self._selected(node)
        if not isinstance(node, yaml.ScalarNode):
            raise fault_at(node, f"expected {_REUSE_FORMS}")
        word = text_of(node, _REUSE_FORMS).lower()
        if word in TRUE:
            return REUSE_ALL
        if word in FALSE:
            return ReuseRules((ReuseSource("external"),), setting="reuse: false")
        if word == "dependencies":
            return ReuseRules(reuses_roots=False, setting="reuse: dependencies")
        raise fault_at(
            node, f"{word[:40]!r} is not a value of reuse:, expected {_REUSE_FORMS}"
        )

    def _selected(self, node: yaml.Node) -> ReuseRules:
        """Return the sources of a mapping `reuse:`."""
        entries = entries_of(node, _REUSE_FORMS)
        common = self._filter(entries, "include", "exclude", EVERY_SPEC)
        roots = text_at(entries, "roots", "true or false", default="true")
        reuses_roots = roots.lower() in TRUE
        # Without `from`, the common filter selects from installed specs and build
        # caches.
        sources = [ReuseSource("local", common), ReuseSource("buildcache", common)]
        if "from" in entries:
            items = items_of(entries["from"], "sources")
            sources = [self._source(item, common) for item in items]
        kinds = dict.fromkeys(source.kind for source in sources)
        setting = "reuse: roots: false"
        if reuses_roots:
            setting = f"reuse: from: {', '.join(kinds)}"
        # Without a source of externals, all of them count.
        if "external" not in kinds:
            sources.append(ReuseSource("external"))
        return ReuseRules(tuple(sources), reuses_roots, setting=setting)

    def _source(self, node: yaml.Node, common: SpecFilter) -> ReuseSource:
        """Return an item of `from:`; its filter replaces the common one."""
        entries = entries_of(node, "a source")
        type_node = required_node(entries, "type", node)
        name = text_of(type_node, "a type")
        kind = next((source for source in SOURCES if source == name), None)
        if kind is None:
            expected = f"expected one of {', '.join(SOURCES)}"
            raise fault_at(type_node, f"{name[:40]!r}: {expected}")
        selected = self._filter(entries, "include", "exclude", common)
        if kind != "environment":
            return ReuseSource(kind, selected)
        # Spack skips an environment without a path.
        hashes: frozenset[str] | None = frozenset()
        if "path" in entries:
            hashes = self._locked_hashes(text_of(entries["path"], "a path"))
        return ReuseSource(kind, selected, hashes)

    def _locked_hashes(self, written: str) -> frozenset[str] | None:
        """Return the hashes in the lockfile of an environment; None if it cannot be
        opened.
        """
        folder = resolved_path(written, self.path, self.surroundings)
        path = posixpath.join(folder, "spack.lock")
        data = self.surroundings.open(path)
        if not isinstance(data, bytes):
            return None
        locked = read_lock_file(data, path, self.max_nodes).locked
        return frozenset(spec.hash for spec in locked)

    def _filter(
        self,
        entries: Mapping[str, yaml.Node],
        include: str,
        exclude: str,
        common: SpecFilter,
    ) -> SpecFilter:
        """Return the filter of two keys; a missing key has the value of `common`."""
        included = common.include
        if include in entries:
            included = self._specs(entries[include])
        excluded = common.exclude
        if exclude in entries:
            excluded = self._specs(entries[exclude])
        return SpecFilter(included, excluded)

    def _specs(self, node: yaml.Node) -> tuple[SpecQuery, ...]:
        return tuple(spec_at(item, self.parse) for item in items_of(node, "specs"))

    def _mirrors(self, node: yaml.Node) -> Iterator[MirrorFilter]:
        """Yield the mirrors that give out only some of their binaries."""
        for name, mirror_node in entries_of(node, "mirrors").items():
            # A text is a URL, without filters.
            if not isinstance(mirror_node, yaml.MappingNode):
                continue
            entries = entries_of(mirror_node, "a mirror")
            # The values below `fetch` replace those of the mirror.
            fetch = entries.get("fetch")
            if isinstance(fetch, yaml.MappingNode):
                entries = entries | entries_of(fetch, "a mirror")
            elif fetch is not None:
                entries = entries | {"url": fetch}
            selected = self._filter(
                entries, "include_binary", "exclude_binary", EVERY_SPEC
            )
            url = text_at(entries, "url", "a URL")
            if selected:
                yield MirrorFilter(name, url, selected)


def _notes_on(sources: Iterable[ReuseSource]) -> tuple[str, ...]:
    """Return a note if the lockfile of an environment cannot be read."""
    for source in sources:
        if source.kind == "environment" and source.hashes is None:
            note = "the spack.lock of an environment cannot be opened"
            return (f"concretizer: reuse: from: {note}",)
    return ()


def _packages_that_mix(node: yaml.Node) -> frozenset[str] | None:
    """Return the packages that may use another compiler; None for all packages."""
    if isinstance(node, yaml.SequenceNode):
        items = items_of(node, "packages")
        return frozenset(text_of(item, "a package") for item in items)
    word = text_of(node, "true, false or a list of packages").lower()
    is_any_allowed = word in TRUE or is_nothing(node)
    return None if is_any_allowed else frozenset()
