"""Reads the specs of a `spack.yaml`, each with the requirements on its package.

    spack:
      specs: [zlib, hdf5]
      packages: {hdf5: {require: +mpi}}

has two specs. Each has all of `packages` as its rules, also `zlib`, because they apply
to dependencies too. The sections are `specs`, with the groups of Spack 1.2, and, from
the files that it includes as well, `definitions`, `packages`, `toolchains`,
`concretizer` and `mirrors`. The specs of a `packages.yaml` are its requirements and
externals.
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
    items_at,
    items_of,
    text_of,
)
from spack_cache_db.environments.includes import (
    SECTIONS,
    TOP_KEYS,
    IncludedLockfile,
    SpackConfiguration,
    merged,
    merged_configuration,
    resolved_path,
    sections_of,
    spack_section,
    when_applies,
)
from spack_cache_db.environments.key_check import (
    MOST_CHARACTERS,
    nearest_key,
)
from spack_cache_db.environments.known_keys import (
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
from spack_cache_db.environments.packages import (
    PREFERENCES,
    PackagesSection,
    read_packages,
)
from spack_cache_db.environments.reuse import ReuseReader
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.environments.spec_groups import SpecGroup, spec_groups
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
"""Maximum of entries in `packages:`, of all times together that the section is read:
once for the environment, and again for each group with sections of its own.
"""


def read_manifest(
    text: str, path: str, limits: Limits, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return the content of a `spack.yaml`, or of a `packages.yaml`.

    Args:
        text: the file.
        path: its path, to which the paths of includes are relative.
        limits: the limits of its size.
        surroundings: the files and values that it may refer to.

    Raises:
        UnreadableEnvironment: it cannot be read; the error has all faults.
    """
    faults = Faults(path)
    environment = Environment()
    with faults.collected():
        top = compose(text, path=path)
        entries = {} if top is None else entries_of(top, "an environment")
        section = spack_section(entries)
        if section is not None:
            notes = _notes_on_keys_beside(entries)
            reader = _ManifestReader(section, path, limits, surroundings, faults)
            environment = reader.specs()
            environment = replace(environment, notes=(*notes, *environment.notes))
        elif top is not None and "packages" in entries and "specs" not in entries:
            # A `packages.yaml` has its sections at the top.
            reader = _ManifestReader(top, path, limits, surroundings, faults)
            environment = reader.packages()
        else:
            raise LineFault(
                1, "has no key spack:, expected a spack.yaml, or one spec on each line"
            )
    faults.raise_any()
    return environment


def _notes_on_keys_beside(entries: Mapping[str, yaml.Node]) -> tuple[str, ...]:
    """Return a note on the other keys beside `spack:`, if there are any.

    They may have YAML anchors, or belong to other tools.

    Raises:
        LineFault: one is like a section of Spack's, whose requirements would be
            skipped.
    """
    # `TOP_KEYS` are `spack`, and its old name `env`.
    others = sorted(entries.keys() - set(TOP_KEYS))
    for key in others:
        section = nearest_key(key, SECTIONS_OF_SPACK)
        if section:
            message = f"{key}: is beside spack:, expected {section}: below spack:"
            raise fault_at(entries[key], message)
    if not others:
        return ()
    keys = ", ".join(others)[:MOST_CHARACTERS]
    return (f"keys beside spack: are ignored: {keys}",)


class _Settings(NamedTuple):
    """What applies to the specs of a group.

    Attributes:
        packages: the section `packages`.
        reuse: the sections `concretizer` and `mirrors`: which binaries Spack reuses.
    """

    packages: PackagesSection = PackagesSection()
    reuse: ReuseRules = REUSE_ALL


class _ManifestReader:
    """Reads one `spack.yaml`.

    Each section is read in a context `faults.collected()`, so that a fault in one does
    not hide those in others.
    """

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
        # The names of definitions whose `when:` is unknown.
        self._undecided: list[str] = []
        # The keys of preferences in `packages:`, which are ignored, also of groups.
        self._weak_keys: set[str] = set()
        # The notes on `concretizer:` and `mirrors:`, also of groups, each once.
        self._notes_on_reuse: dict[str, None] = {}
        # If an include has a fault, the environment is read without its includes.
        self._configuration = SpackConfiguration(sections_of(node))
        with faults.collected():
            self._configuration = merged_configuration(node, path, surroundings)
        # Names for compilers in specs, which the parser replaces.
        self._toolchains: Toolchains = {}
        if "toolchains" in self._configuration.sections:
            with faults.collected():
                section = self._configuration.sections["toolchains"]
                self._toolchains = read_toolchains(section, surroundings.parse)
        self._parse = parser_with(surroundings.parse, self._toolchains)
        self._reuse_reader = ReuseReader(path, surroundings, self._parse, limits.nodes)

    def specs(self) -> Environment:
        """Return all specs, and notes on ignored parts."""
        lists = self._lists()
        settings = self._settings()
        specs: list[UserSpec] = []
        with self._faults.collected():
            specs.extend(self._specs_of_groups(lists, settings))

        # The lockfiles that the environment includes.
        locked: list[LockedSpec] = []
        with self._faults.collected():
            locked.extend(self._locked_specs())

        # Unknown keys, except on lines for which a reader above has reported a fault.
        self._faults.add(self._configuration.faults)
        notes = tuple(self._notes(specs))
        return Environment(tuple(specs), notes, tuple(locked))

    def packages(self) -> Environment:
        """Return the requirements and externals of `packages:`, each as a spec."""
        settings = self._settings()
        limit = self._limits.specs
        # One too many is enough for the fault.
        specs = list(islice(settings.packages.as_specs(), limit + 1))
        with self._faults.collected():
            if len(specs) > limit:
                # Line 0: it is not a fault of one line.
                raise LineFault(0, f"stands for more than {limit:,} specs")
        self._faults.add(self._configuration.faults)
        specs = [replace(spec, reuse=settings.reuse) for spec in specs]
        notes = (*self._notes_on_includes(), *self._notes_on_settings())
        return Environment(tuple(specs), notes)

    def _lists(self) -> SpecLists:
        """Return the lists of `definitions:`."""
        # A missing file may define a list that the environment names: such a name is
        # not a fault, but a spec with an error.
        missing = self._configuration.missing + self._configuration.undecided
        # Specs are parsed without toolchains: these are expanded after matrices are, as
        # Spack 1.2 does.
        lists = SpecLists(
            self._limits,
            self._surroundings.parse,
            lambda query: expanded(query, self._toolchains),
            is_whole=not missing,
        )
        for name, parts in self._definitions().items():
            with self._faults.collected():
                lists.define(name, parts)
        return lists

    def _definitions(self) -> dict[str, list[yaml.Node]]:
        """Return the lists of each name, in the order of their first definitions."""
        definitions: dict[str, list[yaml.Node]] = {}
        if "definitions" not in self._configuration.sections:
            return definitions
        with self._faults.collected():
            node = self._configuration.sections["definitions"]
            for entry in items_of(node, "lists"):
                with self._faults.collected():
                    self._add_definition(entry, definitions)
        return definitions

    def _add_definition(
        self, entry: yaml.Node, definitions: dict[str, list[yaml.Node]]
    ) -> None:
        """Add the list of an entry such as `{compilers: [gcc], when: os == 'rhel9'}`.

        A list whose condition is false or unknown adds nothing, but its name is
        defined. Names with an unknown condition are added to `_undecided`.
        """
        lists = entries_of(entry, "the name of a list, and its specs,")
        when = lists.pop("when", None)
        if len(lists) != 1:
            message = f"has {len(lists)} names, expected one for each list"
            raise fault_at(entry, message)
        ((name, node),) = lists.items()
        parts = definitions.setdefault(name, [])
        applies = True
        if when is not None:
            applies = when_applies(when, self._surroundings, name, self._undecided)
        if applies:
            parts.append(node)

    def _settings(self, group: SpecGroup | None = None) -> _Settings:
        """Return the settings of a group, or of the environment without one.

        Sections of a group are merged with those of the environment.
        """
        sections = dict(self._configuration.sections)
        override = group.override if group is not None else {}
        for name in SECTIONS:
            if name not in override:
                continue
            if name in sections:
                sections[name] = merged(sections[name], override[name])
            else:
                sections[name] = override[name]

        packages = PackagesSection()
        if "packages" in sections:
            with self._faults.collected():
                packages = self._packages(sections["packages"])
        self._weak_keys |= packages.weak_keys
        reuse = REUSE_ALL
        with self._faults.collected():
            read = self._reuse_reader.rules(sections, packages.externals)
            reuse = read.rules
            self._notes_on_reuse |= dict.fromkeys(read.notes)
        return _Settings(packages, reuse)

    def _packages(self, node: yaml.Node) -> PackagesSection:
        # The pairs of a mapping; anything else is a fault for `read_packages`.
        self._package_count += len(node.value)
        if self._package_count > MOST_PACKAGES:
            message = (
                f"its groups repeat more than {MOST_PACKAGES:,} packages: write fewer"
            )
            raise fault_at(node, message)
        return read_packages(node, self._parse)

    def _specs_of_groups(
        self, lists: SpecLists, settings: _Settings
    ) -> Iterator[UserSpec]:
        """Yield the specs of all groups; `settings` are those of the environment."""
        if "specs" not in self._section:
            return
        # First pass: read the lists of all groups. A reference `$%name` in a later list
        # puts its sign before the specs of a matrix in earlier lists too.
        groups = []
        for group in spec_groups(self._section["specs"], self._configuration):
            groups.append((group, lists.items(group.node)))

        # Second pass: combine their matrices into specs.
        count = 0
        for group, items in groups:
            own_settings = self._settings(group) if group.override else settings
            for spec in lists.specs(items):
                count += 1
                if count > self._limits.specs:
                    message = f"stands for more than {self._limits.specs:,} specs"
                    raise fault_at(group.node, message)
                yield _completed(spec, own_settings, group.name)

    def _locked_specs(self) -> Iterator[LockedSpec]:
        """Yield the nodes of the lockfiles that the environment includes, each once."""
        hashes: set[str] = set()
        for lockfile in self._lockfiles():
            data = self._surroundings.open(lockfile.path)
            # It is missing (None), or a folder (a mapping), which is not a lockfile.
            if not isinstance(data, bytes):
                if not lockfile.is_optional:
                    self._configuration.missing.append(lockfile.written)
                continue
            lock = read_lock_file(data, lockfile.path, self._limits.nodes)
            for spec in lock.locked:
                if spec.hash not in hashes:
                    hashes.add(spec.hash)
                    yield spec
            if len(hashes) > self._limits.nodes:
                message = f"includes more than {self._limits.nodes:,} locked specs"
                raise fault_at(lockfile.node, message)

    def _lockfiles(self) -> Iterator[IncludedLockfile]:
        """Yield the lockfiles in `include_concrete`, then those in `include`.

        The first key has folders of environments, the second one files. Spack 1.2 reads
        them in this order.
        """
        for item in items_at(self._section, "include_concrete", "paths"):
            written = text_of(item, "a path")
            folder = resolved_path(written, self._path, self._surroundings)
            yield IncludedLockfile(written, f"{folder}/spack.lock", item)
        yield from self._configuration.lockfiles

    def _notes(self, specs: list[UserSpec]) -> Iterator[str]:
        """Yield the notes on ignored parts, and on specs that older Spack reads
        differently.
        """
        yield from self._notes_on_includes()
        if self._undecided:
            names = ", ".join(dict.fromkeys(self._undecided))
            yield self._note_or_fault(
                f"definitions: left out, because their when: is unknown: {names}"
            )
        for name, toolchain in self._toolchains.items():
            # A toolchain that cannot be read is kept as its fault.
            if isinstance(toolchain, LineFault):
                yield f"toolchains: {name} is left out, line {toolchain.line}: {toolchain}"
        yield from legacy_notes(specs)
        yield from self._notes_on_settings()
        if self._has_develop():
            yield "develop: packages built from your own sources are looked for like all others"

    def _has_develop(self) -> bool:
        """Return whether `develop:` has an entry; `{}` and null have none."""
        develop = self._section.get("develop")
        if develop is None or is_nothing(develop):
            return False
        if isinstance(develop, yaml.CollectionNode):
            return bool(develop.value)
        return True

    def _notes_on_includes(self) -> Iterator[str]:
        """Yield a note on unknown keys, and on each kind of includes that are not
        read.
        """
        configuration = self._configuration
        yield from configuration.notes
        unread = {
            "missing": configuration.missing,
            "left out, because their when: is unknown": configuration.undecided,
            "a lockfile that another file includes, which Spack ignores": (
                configuration.unused
            ),
        }
        for reason, paths in unread.items():
            if not paths:
                continue
            subject = "one include is"
            owner = "its"
            if len(paths) > 1:
                subject = f"{len(paths):,} includes are"
                owner = "their"
            effect = f"{owner} requirements are unknown: {', '.join(paths)}"
            yield self._note_or_fault(f"{subject} {reason}; {effect}")

    def _notes_on_settings(self) -> Iterator[str]:
        """Yield a note on weak preferences, and one on sources of reuse."""
        if self._weak_keys:
            keys = ", ".join(key for key in PREFERENCES if key in self._weak_keys)
            yield f"packages: {keys}: preferences exclude no binary and are ignored"
        yield from self._notes_on_reuse

    def _note_or_fault(self, note: str) -> str:
        """Return a note on an ignored part; it is a fault as well if the surroundings
        are strict.
        """
        if self._surroundings.is_strict:
            # `Faults.add` would leave out the second one at line 0.
            with self._faults.collected():
                raise LineFault(0, note)
        return note


def _completed(spec: UserSpec, settings: _Settings, group: str) -> UserSpec:
    """Return a spec with its group, and the settings that apply to it."""
    # A text that is not a spec has an error, and no settings.
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
