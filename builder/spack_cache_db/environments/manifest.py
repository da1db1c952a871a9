"""A `spack.yaml` → the specs that it asks for, each with what is required of it.

Read are `specs`, with the groups of Spack 1.2, `definitions` and `packages`, the latter two from
what the environment includes as well. Of a `packages.yaml`, the specs are what it requires, and its
externals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import yaml

from spack_cache_db.bounded_yaml import (
    compose,
    entries_of,
    fault_at,
    is_nothing,
    items_of,
    text_of,
)
from spack_cache_db.environments import (
    NOWHERE,
    TOP_KEYS,
    Environment,
    Faults,
    Limits,
    LockedSpec,
    SpecLine,
    Surroundings,
    UserSpec,
    legacy_notes,
)
from spack_cache_db.environments.includes import (
    IncludedLockfile,
    SpackConfiguration,
    condition_holds,
    merged,
    merged_configuration,
    place_of,
    sections_of,
)
from spack_cache_db.environments.lockfile import read_lock_file
from spack_cache_db.environments.requirements import (
    PackagesSection,
    Toolchains,
    expanded,
    parser_with,
    read_packages,
    read_toolchains,
)
from spack_cache_db.environments.spec_lists import SpecLists
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.parser import legacy_reading

MOST_PACKAGES = 100_000
"""Entries of `packages:` in all groups, each of which has those of the environment as well."""

_GROUP_KEYS = {"group", "specs", "matrix", "exclude", "needs", "explicit", "override"}


def read_manifest(
    text: str, path: str, limits: Limits, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return what a `spack.yaml` asks for.

    Args:
        text: the file.
        path: its path, which messages name and from which includes are found.
        limits: how much it may ask for.
        surroundings: what it may refer to beside itself.

    Raises:
        UnreadableEnvironment: with all that is wrong with it.
    """
    faults = Faults(path)
    found = Environment()
    with faults.collected():
        top = compose(text, path=path)
        section = _section(top)
        reader = _SpackYaml(section, path, limits, surroundings, faults)
        found = reader.packages() if section is top else reader.specs()
    faults.raise_any()
    return found


def _section(node: yaml.Node | None) -> yaml.Node:
    """Return the section `spack`; of a `packages.yaml`, all of it."""
    top = {} if node is None else entries_of(node, "an environment")
    section = next((top[key] for key in TOP_KEYS if key in top), None)
    if node is not None and section is None and "packages" in top and "specs" not in top:
        return node
    if section is None:
        raise LineFault(1, "has no key spack:, expected a spack.yaml, or one spec on each line")
    return section


@dataclass(frozen=True, slots=True)
class _SpecGroup:
    """Specs that stand together: the list, its group's name, and the group's own packages."""

    node: yaml.Node
    name: str = ""
    packages: yaml.Node | None = None


class _SpackYaml:
    """One `spack.yaml` while it is read."""

    def __init__(
        self, node: yaml.Node, path: str, limits: Limits, surroundings: Surroundings, faults: Faults
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

    def specs(self) -> Environment:
        """Return all specs, and notes on what was left aside."""
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
        packages = self._packages(None)
        specs: list[UserSpec] = []
        with self._faults.collected():
            # Spack puts a sign on a matrix wherever it is used, so every list is read first.
            groups = [(group, lists.items(group.node)) for group in self._groups()]
            for group, items in groups:
                own = packages if group.packages is None else self._packages(group.packages)
                for each in lists.specs(items):
                    specs.append(replace(self._user_spec(each, own), group=group.name))
                    if len(specs) > self._limits.specs:
                        said = f"stands for more than {self._limits.specs:,} specs"
                        raise fault_at(group.node, said)
        locked: list[LockedSpec] = []
        with self._faults.collected():
            locked += self._locked()
        notes = tuple(self._notes(packages, specs))
        return Environment(tuple(specs), notes, tuple(locked))

    def packages(self) -> Environment:
        """Return what `packages:` requires and which externals it has, each as a spec."""
        packages = self._packages(None)
        specs: list[UserSpec] = []
        with self._faults.collected():
            for each in packages.as_specs():
                specs.append(each)
                if len(specs) > self._limits.specs:
                    raise LineFault(0, f"stands for more than {self._limits.specs:,} specs")
        notes = _include_notes(self._configuration, self._surroundings, self._faults)
        return Environment(tuple(specs), (*notes, *packages.notes))

    def _locked(self) -> Iterator[LockedSpec]:
        """Yield the nodes of the lockfiles that the environment includes, each once."""
        hashes: set[str] = set()
        for written, place, node, is_optional in self._lockfiles():
            found = self._surroundings.open(place)
            if not isinstance(found, bytes):
                self._configuration.missing += [] if is_optional else [written]
                continue
            for spec in read_lock_file(found, place, self._limits.nodes).locked:
                if spec.hash not in hashes:
                    hashes.add(spec.hash)
                    yield spec
                if len(hashes) > self._limits.nodes:
                    raise fault_at(node, f"includes more than {self._limits.nodes:,} locked specs")

    def _lockfiles(self) -> Iterator[IncludedLockfile]:
        """Yield the lockfiles in `include_concrete`, then those in `include` (Spack 1.2)."""
        node = self._section.get("include_concrete")
        for each in items_of(node, "paths") if node is not None else ():
            written = text_of(each, "a path")
            folder = place_of(written, self._path, self._surroundings)
            yield IncludedLockfile(written, f"{folder}/spack.lock", each)
        yield from self._configuration.lockfiles

    def _groups(self) -> Iterator[_SpecGroup]:
        """Yield the groups of specs, in order; what stands in none is one of its own each time."""
        if "specs" not in self._section:
            return
        node = self._section["specs"]
        alone: list[yaml.Node] = []
        for each in items_of(node, "specs"):
            entries = entries_of(each, "a spec") if isinstance(each, yaml.MappingNode) else {}
            if not entries.keys() & {"group", "specs", "override"}:
                alone.append(each)
                continue
            yield _SpecGroup(_list(alone, node))
            alone = []
            if unknown := entries.keys() - _GROUP_KEYS:
                raise fault_at(each, f"{min(unknown)}: is not known here, expected specs:")
            yield self._group(entries, each)
        yield _SpecGroup(_list(alone, node))

    def _group(self, entries: dict[str, yaml.Node], node: yaml.Node) -> _SpecGroup:
        name = text_of(entries["group"], "a name") if "group" in entries else ""
        override = entries_of(entries["override"], "packages") if "override" in entries else {}
        if "specs" in entries:
            return _SpecGroup(entries["specs"], name, override.get("packages"))
        if "matrix" not in entries:
            raise fault_at(node, "this is no group, expected specs:")
        kept = [pair for pair in node.value if pair[0].value in ("matrix", "exclude")]
        matrix = yaml.MappingNode(node.tag, kept, node.start_mark, node.end_mark)
        return _SpecGroup(_list([matrix], node), name, override.get("packages"))

    def _packages(self, override: yaml.Node | None) -> PackagesSection:
        """Return what `packages:` requires; a group's own stands above the environment's."""
        node = self._configuration.sections.get("packages")
        if override is not None:
            node = override if node is None else merged(node, override)
        if node is not None:
            with self._faults.collected():
                self._package_count += len(node.value)
                if self._package_count > MOST_PACKAGES:
                    said = f"its groups repeat more than {MOST_PACKAGES:,} packages: write fewer"
                    raise fault_at(node, said)
                return read_packages(node, self._parse)
        return PackagesSection()

    def _definitions(self) -> dict[str, list[yaml.Node]]:
        """Return all lists of each name, in the order in which the names first stand."""
        found: dict[str, list[yaml.Node]] = {}
        node = self._configuration.sections.get("definitions")
        with self._faults.collected():
            for entry in items_of(node, "lists") if node is not None else ():
                with self._faults.collected():
                    named = entries_of(entry, "the name of a list, and its specs,")
                    when = named.pop("when", None)
                    if len(named) != 1:
                        said = f"has {len(named)} names, expected one for each list"
                        raise fault_at(entry, said)
                    ((name, value),) = named.items()
                    parts = found.setdefault(name, [])
                    if when is None or self._applies(name, when):
                        parts.append(value)
        return found

    def _applies(self, name: str, when: yaml.Node) -> bool:
        return condition_holds(when, self._surroundings, name, self._undecided)

    def _user_spec(self, found: SpecLine, packages: PackagesSection) -> UserSpec:
        if found.query is None:
            return UserSpec(found.text, found.line, error=found.error)
        external, is_buildable = packages.external_of(found.query)
        return UserSpec(
            found.text,
            found.line,
            found.query,
            legacy_reading(found.query),
            packages.rules,
            external=external,
            is_buildable=is_buildable,
        )

    def _notes(self, packages: PackagesSection, specs: list[UserSpec]) -> Iterator[str]:
        yield from _include_notes(self._configuration, self._surroundings, self._faults)
        if self._undecided:
            named = ", ".join(dict.fromkeys(self._undecided))
            note = f"definitions: left out, because their when: is not known: {named}"
            yield from _noted(note, self._surroundings, self._faults)
        for name, toolchain in self._toolchains.items():
            if isinstance(toolchain, LineFault):
                yield f"toolchains: {name} is left out, line {toolchain.line}: {toolchain}"
        yield from legacy_notes(specs)
        yield from packages.notes
        if "develop" in self._section and not _is_empty(self._section["develop"]):
            yield "develop: packages built from your own sources are looked for as any other"


def _include_notes(
    configuration: SpackConfiguration, surroundings: Surroundings, faults: Faults
) -> Iterator[str]:
    """Yield what includes are not read; each is a fault if `surroundings` are strict."""
    for said, paths in (
        ("not here", configuration.missing),
        ("left out, because their when: is not known", configuration.undecided),
        ("a lockfile that another file includes, which Spack ignores", configuration.unused),
    ):
        if not paths:
            continue
        count = "one include is" if len(paths) == 1 else f"{len(paths):,} includes are"
        note = f"{count} {said}; what they require is not known: {', '.join(paths)}"
        yield from _noted(note, surroundings, faults)


def _noted(note: str, surroundings: Surroundings, faults: Faults) -> Iterator[str]:
    """Yield a note on what is left out; it is a fault if `surroundings` are strict."""
    if surroundings.is_strict:
        with faults.collected():
            raise LineFault(0, note)
    yield note


def _list(nodes: list[yaml.Node], node: yaml.Node) -> yaml.SequenceNode:
    """Return a list of nodes that stands where another node does."""
    return yaml.SequenceNode("tag:yaml.org,2002:seq", nodes, node.start_mark, node.end_mark)


def _is_empty(node: yaml.Node) -> bool:
    return is_nothing(node) or (isinstance(node, yaml.CollectionNode) and not node.value)
