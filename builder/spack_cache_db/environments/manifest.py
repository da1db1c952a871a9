"""Reads the specs of a `spack.yaml`, each with the requirements on its package.

The sections are `specs`, with the groups of Spack 1.2, and, from the includes as well,
`definitions`, `packages`, `toolchains`, `concretizer` and `mirrors`. The specs of a
`packages.yaml` are its requirements and externals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import (
    compose,
    entries_of,
    fault_at,
    is_nothing,
    items_of,
    text_of,
)
from spack_cache_db.environments.decoding import TOP_KEYS
from spack_cache_db.environments.includes import (
    SECTIONS,
    IncludedLockfile,
    SpackConfiguration,
    merged,
    merged_configuration,
    resolved_path,
    sections_of,
    when_applies,
)
from spack_cache_db.environments.key_check import (
    MOST_CHARACTERS,
    nearest_key,
    refuse_unknown_keys,
    unknown_keys,
)
from spack_cache_db.environments.known_keys import (
    KEYS_OF_A_GROUP,
    KEYS_OF_A_MATRIX,
    SECTIONS_OF_SPACK,
)
from spack_cache_db.environments.lists import SpecLists
from spack_cache_db.environments.lockfile import read_lock_file
from spack_cache_db.environments.model import (
    NOWHERE,
    Environment,
    Faults,
    Limits,
    LockedSpec,
    Surroundings,
    UserSpec,
)
from spack_cache_db.environments.packages import PackagesSection, read_packages
from spack_cache_db.environments.reuse import ReuseReader
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.environments.toolchains import (
    Toolchains,
    expanded,
    parser_with,
    read_toolchains,
)
from spack_cache_db.environments.user_specs import legacy_notes
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.legacy import legacy_reading

MOST_PACKAGES = 100_000
"""Maximum of entries in `packages:` of all groups, each with those of the
environment.
"""

DEFAULT_GROUP = "default"
"""The name of the specs without a group, which a group may repeat."""

# The keys that a matrix has only as a group.
_OF_GROUPS_ALONE = KEYS_OF_A_GROUP - KEYS_OF_A_MATRIX


def read_manifest(
    text: str, path: str, limits: Limits, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return the content of a `spack.yaml`; raises `UnreadableEnvironment` with all
    faults.
    """
    faults = Faults(path)
    environment = Environment()
    with faults.collected():
        top = compose(text, path=path)
        entries = {} if top is None else entries_of(top, "an environment")
        section = next((entries[key] for key in TOP_KEYS if key in entries), None)
        if section is not None:
            beside = _keys_beside(entries)
            environment = _SpackYaml(
                section, path, limits, surroundings, faults
            ).specs()
            environment = replace(environment, notes=(*beside, *environment.notes))
        elif top is not None and "packages" in entries and "specs" not in entries:
            environment = _SpackYaml(top, path, limits, surroundings, faults).packages()
        else:
            raise LineFault(
                1, "has no key spack:, expected a spack.yaml, or one spec on each line"
            )
    faults.raise_any()
    return environment


def _keys_beside(entries: Mapping[str, yaml.Node]) -> tuple[str, ...]:
    """Return a note on other keys beside `spack:`, which have anchors, or are of other
    tools.

    Raises:
        LineFault: one is like a section of Spack's, whose requirements would be
            skipped.
    """
    others = sorted(entries.keys() - set(TOP_KEYS))
    for key in others:
        section = nearest_key(key, SECTIONS_OF_SPACK)
        if section:
            message = f"{key}: is beside spack:, expected {section}: below spack:"
            raise fault_at(entries[key], message)
    if not others:
        return ()
    return (f"keys beside spack: are ignored: {', '.join(others)[:MOST_CHARACTERS]}",)


class _SpecGroup(NamedTuple):
    """A group of specs: the list, its name, and its own sections, which have
    precedence.
    """

    node: yaml.Node
    name: str = ""
    override: dict[str, yaml.Node] | None = None


class _Settings(NamedTuple):
    """The sections that apply to the specs of a group."""

    packages: PackagesSection = PackagesSection()
    reuse: ReuseRules = REUSE_ALL
    notes: tuple[str, ...] = ()


class _SpackYaml:
    """Reads one `spack.yaml`."""

    def __init__(
        self,
        node: yaml.Node,
        path: str,
        limits: Limits,
        surroundings: Surroundings,
        faults: Faults,
    ) -> None:
        self._section = entries_of(node, "an environment")
        self._path = path
        self._limits = limits
        self._surroundings = surroundings
        self._faults = faults
        self._package_count = 0
        self._undecided: list[str] = []
        self._configuration = SpackConfiguration(sections_of(node))
        with faults.collected():
            self._configuration = merged_configuration(node, path, surroundings)
        self._toolchains: Toolchains = {}
        if "toolchains" in self._configuration.sections:
            with faults.collected():
                section = self._configuration.sections["toolchains"]
                self._toolchains = read_toolchains(section, surroundings.parse)
        # Lists of specs are expanded after matrices are, as Spack 1.2 does.
        self._parse = parser_with(surroundings.parse, self._toolchains)
        self._reuse_reader = ReuseReader(path, surroundings, self._parse, limits.nodes)

    def specs(self) -> Environment:
        """Return all specs, and notes on ignored parts."""
        missing = self._configuration.missing + self._configuration.undecided
        lists = SpecLists(
            self._limits,
            self._surroundings.parse,
            lambda query: expanded(query, self._toolchains),
            is_whole=not missing,
        )
        for name, parts in self._definitions().items():
            with self._faults.collected():
                lists.define(name, parts)
        settings = self._settings(None)
        specs: list[UserSpec] = []
        with self._faults.collected():
            # A sign before a reference changes every use of a matrix, so all lists are
            # read first.
            groups = [(group, lists.items(group.node)) for group in self._groups()]
            for group, items in groups:
                own = (
                    settings
                    if group.override is None
                    else self._settings(group.override)
                )
                for spec in lists.specs(items):
                    specs.append(self._completed(spec, own, group.name))
                    if len(specs) > self._limits.specs:
                        message = f"stands for more than {self._limits.specs:,} specs"
                        raise fault_at(group.node, message)
        locked: list[LockedSpec] = []
        with self._faults.collected():
            locked += self._locked()
        self._faults.add(self._configuration.faults)
        notes = tuple(self._notes(settings, specs))
        return Environment(tuple(specs), notes, tuple(locked))

    def packages(self) -> Environment:
        """Return the requirements and externals of `packages:`, each as a spec."""
        settings = self._settings(None)
        limit = self._limits.specs
        specs = (*islice(settings.packages.as_specs(), limit + 1),)
        with self._faults.collected():
            if len(specs) > limit:
                raise LineFault(0, f"stands for more than {limit:,} specs")
        self._faults.add(self._configuration.faults)
        specs = tuple(replace(spec, reuse=settings.reuse) for spec in specs)
        return Environment(specs, (*self._include_notes(), *settings.notes))

    def _locked(self) -> Iterator[LockedSpec]:
        """Yield the nodes of the lockfiles that the environment includes, each once.

        Those in `include_concrete` come before those in `include` (Spack 1.2).
        """
        hashes: set[str] = set()
        node = self._section.get("include_concrete")
        lockfiles: list[IncludedLockfile] = []
        for item in items_of(node, "paths") if node is not None else ():
            folder = resolved_path(
                text_of(item, "a path"), self._path, self._surroundings
            )
            lockfiles.append(
                IncludedLockfile(text_of(item, "a path"), f"{folder}/spack.lock", item)
            )
        for written, path, node, is_optional in (
            *lockfiles,
            *self._configuration.lockfiles,
        ):
            data = self._surroundings.open(path)
            if not isinstance(data, bytes):
                self._configuration.missing += [] if is_optional else [written]
                continue
            for spec in read_lock_file(data, path, self._limits.nodes).locked:
                if spec.hash not in hashes:
                    hashes.add(spec.hash)
                    yield spec
                if len(hashes) > self._limits.nodes:
                    raise fault_at(
                        node, f"includes more than {self._limits.nodes:,} locked specs"
                    )

    def _groups(self) -> Iterator[_SpecGroup]:
        """Yield the groups of specs in order; specs between two groups are a group."""
        if "specs" not in self._section:
            return
        node = self._section["specs"]
        alone: list[yaml.Node] = []
        names: set[str] = set()
        for item in items_of(node, "specs"):
            entries = (
                entries_of(item, "a spec") if isinstance(item, yaml.MappingNode) else {}
            )
            if not entries.keys() & _OF_GROUPS_ALONE:
                alone.append(item)
                continue
            yield _SpecGroup(_list(alone, node))
            alone = []
            refuse_unknown_keys(item, KEYS_OF_A_GROUP)
            group = self._group(entries, item)
            # Spack 1.2 `environment/environment.py` refuses a second group of one name.
            if group.name in names:
                raise fault_at(item, f"a second group {group.name}, expected one")
            names |= {group.name} - {"", DEFAULT_GROUP}
            yield group
        yield _SpecGroup(_list(alone, node))

    def _group(self, entries: dict[str, yaml.Node], node: yaml.Node) -> _SpecGroup:
        name = text_of(entries["group"], "a name") if "group" in entries else ""
        override = None
        if "override" in entries:
            override = entries_of(entries["override"], "packages")
            unknown = unknown_keys(entries["override"])
            self._configuration.faults += unknown.faults
            self._configuration.notes += unknown.notes
        if "specs" in entries and "matrix" in entries:
            raise fault_at(
                node, "this group has specs: and matrix:, expected one of them"
            )
        if "specs" in entries:
            return _SpecGroup(entries["specs"], name, override)
        if "matrix" not in entries:
            raise fault_at(node, "this is not a group, expected specs:")
        pairs = [pair for pair in node.value if pair[0].value in ("matrix", "exclude")]
        matrix = yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
        return _SpecGroup(_list([matrix], node), name, override)

    def _settings(self, override: dict[str, yaml.Node] | None) -> _Settings:
        """Return the sections `packages`, `concretizer` and `mirrors`; a group's own
        come first.
        """
        sections = dict(self._configuration.sections)
        for name in (override or {}).keys() & set(SECTIONS):
            own = (override or {})[name]
            sections[name] = merged(sections[name], own) if name in sections else own
        packages = PackagesSection()
        if "packages" in sections:
            with self._faults.collected():
                packages = self._packages(sections["packages"])
        notes = packages.notes
        reuse = REUSE_ALL
        with self._faults.collected():
            read = self._reuse_reader.rules(sections, packages.externals)
            reuse = read.rules
            notes += read.notes
        return _Settings(packages, reuse, notes)

    def _packages(self, node: yaml.Node) -> PackagesSection:
        self._package_count += len(node.value)
        if self._package_count > MOST_PACKAGES:
            message = (
                f"its groups repeat more than {MOST_PACKAGES:,} packages: write fewer"
            )
            raise fault_at(node, message)
        return read_packages(node, self._parse)

    def _definitions(self) -> dict[str, list[yaml.Node]]:
        """Return the lists of each name, in the order of their first definitions."""
        lists: dict[str, list[yaml.Node]] = {}
        node = self._configuration.sections.get("definitions")
        with self._faults.collected():
            for entry in items_of(node, "lists") if node is not None else ():
                with self._faults.collected():
                    names = entries_of(entry, "the name of a list, and its specs,")
                    when = names.pop("when", None)
                    if len(names) != 1:
                        message = f"has {len(names)} names, expected one for each list"
                        raise fault_at(entry, message)
                    ((name, value),) = names.items()
                    parts = lists.setdefault(name, [])
                    if when is None or when_applies(
                        when, self._surroundings, name, self._undecided
                    ):
                        parts.append(value)
        return lists

    def _completed(self, spec: UserSpec, settings: _Settings, group: str) -> UserSpec:
        """Return a spec with its group, and the settings that apply to it."""
        if spec.query is None:
            return replace(spec, group=group)
        packages = settings.packages
        external, is_buildable = packages.external_of(spec.query)
        return replace(
            spec,
            legacy=legacy_reading(spec.query),
            rules=packages.rules,
            reuse=settings.reuse,
            group=group,
            external=external,
            is_buildable=is_buildable,
        )

    def _notes(self, settings: _Settings, specs: list[UserSpec]) -> Iterator[str]:
        yield from self._include_notes()
        if self._undecided:
            names = ", ".join(dict.fromkeys(self._undecided))
            yield self._noted(
                f"definitions: left out, because their when: is unknown: {names}"
            )
        for name, toolchain in self._toolchains.items():
            if isinstance(toolchain, LineFault):
                yield f"toolchains: {name} is left out, line {toolchain.line}: {toolchain}"
        yield from legacy_notes(specs)
        yield from settings.notes
        develop = self._section.get("develop")
        is_empty = isinstance(develop, yaml.CollectionNode) and not develop.value
        if develop is not None and not is_nothing(develop) and not is_empty:
            yield "develop: packages built from your own sources are looked for like all others"

    def _include_notes(self) -> Iterator[str]:
        """Yield a note on unknown sections, and on each kind of unread include."""
        yield from self._configuration.notes
        for reason, paths in (
            ("missing", self._configuration.missing),
            ("left out, because their when: is unknown", self._configuration.undecided),
            (
                "a lockfile that another file includes, which Spack ignores",
                self._configuration.unused,
            ),
        ):
            if paths:
                count = (
                    "one include is"
                    if len(paths) == 1
                    else f"{len(paths):,} includes are"
                )
                unknown = f"their requirements are unknown: {', '.join(paths)}"
                yield self._noted(f"{count} {reason}; {unknown}")

    def _noted(self, note: str) -> str:
        """Return a note on an ignored part; it is a fault if the surroundings are
        strict.
        """
        if self._surroundings.is_strict:
            with self._faults.collected():
                raise LineFault(0, note)
        return note


def _list(nodes: list[yaml.Node], node: yaml.Node) -> yaml.SequenceNode:
    """Return a list of nodes at the position of another node."""
    return yaml.SequenceNode(
        "tag:yaml.org,2002:seq", nodes, node.start_mark, node.end_mark
    )
