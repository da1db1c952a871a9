"""Reads the settings of a `spack.yaml` for reuse: `concretizer:`, and the filters of
`mirrors:`.

For example, in

    concretizer:
      reuse: {roots: true, exclude: [cuda], from: [{type: buildcache}]}
    mirrors:
      site: {url: https://example.org/cache, include_binary: [hdf5]}

Spack reuses externals, and the binaries of build caches except those of cuda; the
mirror `site` gives out only hdf5. The forms of `reuse:` are those of Spack 1.2
(`schema/concretizer.py`, `solver/reuse.py`): `true`, `false`, `dependencies`, or a
mapping.
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
    """Reads the settings of one environment, and those of its groups of specs.

    Attributes:
        path: the path of the environment, from which paths of other environments are
            resolved.
        surroundings: opens the lockfiles of other environments.
        parse: reads specs, with the environment's toolchains.
        max_nodes: maximum of nodes in a lockfile.
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
            sections: the sections of the environment, merged with those that it
                includes; `concretizer` and `mirrors` are read.
            externals: the externals of `packages:`.

        Raises:
            LineFault: a section cannot be read.
        """
        # Most environments have no settings; their specs share one record.
        if not externals and sections.keys().isdisjoint(("concretizer", "mirrors")):
            return ReadRules(REUSE_ALL)

        # The solver's sources of specs.
        notes: tuple[str, ...] = ()
        reuse = REUSE_ALL
        allowed_to_mix = None
        if "concretizer" in sections:
            node = sections["concretizer"]
            entries = entries_of(node, "the settings of the concretizer")
            if "reuse" in entries and not is_nothing(entries["reuse"]):
                reuse = self._reuse(entries["reuse"])
                notes = _notes_on(reuse.sources)
            if "compiler_mixing" in entries:
                allowed_to_mix = _packages_that_mix(entries["compiler_mixing"])

        # The filters of mirrors.
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
            return self._reuse_of_mapping(node)
        if not isinstance(node, yaml.ScalarNode):
            raise fault_at(node, f"expected {_REUSE_FORMS}")
        word = text_of(node, _REUSE_FORMS).lower()
        if word in TRUE:
            return REUSE_ALL
        if word in FALSE:
            # Externals are not built, so they are used in any case.
            return ReuseRules((ReuseSource("external"),), setting="reuse: false")
        if word == "dependencies":
            return ReuseRules(reuses_roots=False, setting="reuse: dependencies")
        raise fault_at(
            node, f"{word[:40]!r} is not a value of reuse:, expected {_REUSE_FORMS}"
        )

    def _reuse_of_mapping(self, node: yaml.Node) -> ReuseRules:
        """Return the sources of a mapping with `roots`, `include`, `exclude` and
        `from`.
        """
        entries = entries_of(node, _REUSE_FORMS)
        roots = text_at(entries, "roots", "true or false", default="true")
        reuses_roots = roots.lower() in TRUE

        # Without `from`, the filter is that of installed specs and build caches. With
        # it, the filter applies to the sources without one of their own.
        common = self._filter(entries, "include", "exclude", EVERY_SPEC)
        sources = [ReuseSource("local", common), ReuseSource("buildcache", common)]
        if "from" in entries:
            items = items_of(entries["from"], "sources")
            sources = [self._source(item, common) for item in items]

        # The setting as answers name it: `reuse: from: local, buildcache`.
        kinds = dict.fromkeys(source.kind for source in sources)
        setting = "reuse: roots: false"
        if reuses_roots:
            setting = f"reuse: from: {', '.join(kinds)}"

        # Without a source of externals, all externals count.
        if "external" not in kinds:
            sources.append(ReuseSource("external"))
        return ReuseRules(tuple(sources), reuses_roots, setting=setting)

    def _source(self, node: yaml.Node, common: SpecFilter) -> ReuseSource:
        """Return an item of `from:`, such as `{type: local, exclude: [cuda]}`."""
        entries = entries_of(node, "a source")
        type_node = required_node(entries, "type", node)
        name = text_of(type_node, "a type")
        kind = next((source for source in SOURCES if source == name), None)
        if kind is None:
            expected = f"expected one of {', '.join(SOURCES)}"
            raise fault_at(type_node, f"{name[:40]!r}: {expected}")
        source_filter = self._filter(entries, "include", "exclude", common)
        if kind != "environment":
            return ReuseSource(kind, source_filter)
        # Spack skips an environment without a path, so it has no hashes.
        hashes: frozenset[str] | None = frozenset()
        if "path" in entries:
            hashes = self._locked_hashes(text_of(entries["path"], "a path"))
        return ReuseSource(kind, source_filter, hashes)

    def _locked_hashes(self, written: str) -> frozenset[str] | None:
        """Return the hashes in the lockfile of an environment.

        None if the lockfile cannot be opened. `written` is the folder of the
        environment, as it is written.
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
        default: SpecFilter,
    ) -> SpecFilter:
        """Return the filter of two keys, such as `include` and `exclude`.

        Each key that is missing has the value of `default`.
        """
        included = default.include
        if include in entries:
            included = self._specs(entries[include])
        excluded = default.exclude
        if exclude in entries:
            excluded = self._specs(entries[exclude])
        return SpecFilter(included, excluded)

    def _specs(self, node: yaml.Node) -> tuple[SpecQuery, ...]:
        return tuple(spec_at(item, self.parse) for item in items_of(node, "specs"))

    def _mirrors(self, node: yaml.Node) -> Iterator[MirrorFilter]:
        """Yield the mirrors that have a filter."""
        for name, mirror_node in entries_of(node, "mirrors").items():
            # A text is a URL, without filters.
            if not isinstance(mirror_node, yaml.MappingNode):
                continue
            entries = entries_of(mirror_node, "a mirror")
            # A mirror may have other values for downloads, below `fetch`.
            fetch = entries.get("fetch")
            if isinstance(fetch, yaml.MappingNode):
                entries = entries | entries_of(fetch, "a mirror")
            elif fetch is not None:
                entries = entries | {"url": fetch}
            mirror_filter = self._filter(
                entries, "include_binary", "exclude_binary", EVERY_SPEC
            )
            url = text_at(entries, "url", "a URL")
            # An empty list is not a filter.
            if mirror_filter:
                yield MirrorFilter(name, url, mirror_filter)


def _notes_on(sources: Iterable[ReuseSource]) -> tuple[str, ...]:
    """Return one note if the lockfile of an environment cannot be read."""
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
    if word in TRUE or is_nothing(node):
        return None
    return frozenset()
