"""Reads the section `packages:` of a `spack.yaml`.

The entry of a package replaces that of `all` (Spack 1.2, `solver/requirements.py`).
`prefer` is strong: Spack builds a package rather than reuse a binary that violates it.
Weak preferences (`version`, `target`, `compiler`, `variants`, `providers`) exclude no
existing binary. `query.match.requirements` tests binaries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    is_nothing,
    items_of,
    line_of,
    quoting_advice,
    text_of,
)
from spack_cache_db.environments.externals import (
    external_meets,
    read_externals,
    spec_at,
)
from spack_cache_db.environments.model import UserSpec
from spack_cache_db.environments.reuse_rules import DeclaredExternal
from spack_cache_db.environments.rules import (
    ALL,
    NO_RULES,
    PackageRules,
    Requirement,
    combinations,
)
from spack_cache_db.spack.facts import PROVIDERS
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

PREFERENCES = ("version", "target", "compiler", "variants", "providers")
"""Weak preferences: Spack reuses binaries in spite of them."""
_NAME = re.compile(r"[\w-]+")
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class PackagesSection:
    """The section `packages:`; values by package, `providers` by virtual package."""

    rules: PackageRules = NO_RULES
    externals: Mapping[str, tuple[DeclaredExternal, ...]] = field(default_factory=dict)
    buildable: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    providers: Mapping[str, Set[str]] = field(default_factory=dict)

    def external_of(self, query: SpecQuery) -> tuple[str, bool]:
        """Return the external that satisfies a spec, or "", and whether Spack may build
        it.

        Parts that an external leaves open, such as variants, satisfy any constraint.
        """
        name = query.name or ""
        is_buildable = self._is_buildable(name)
        for external in self.externals.get(name, ()):
            if external_meets(external.query, query):
                return external.query.text, is_buildable
        return "", is_buildable

    def _is_buildable(self, package: str) -> bool:
        """Return whether Spack may build a package (Spack 1.1, `is_spec_buildable`).

        The package's own entry decides; else `all`, unless a virtual package that it
        provides differs.
        """
        if package in self.buildable:
            return self.buildable[package]
        of_all = self.buildable.get(ALL, True)
        for virtual, packages in self.providers.items():
            if package in packages and self.buildable.get(virtual, of_all) != of_all:
                return not of_all
        return of_all

    def as_specs(self) -> Iterator[UserSpec]:
        """Yield each combination of the requirements on a package, and each external,
        as a spec.

        Requirements of `all` are not specs: they apply to every package.
        """
        for package, requirements in self.rules.required.items():
            if package == ALL:
                continue
            line = requirements[0].line if requirements else 0
            required = UserSpec(package, line, group="require")
            queries = combinations(SpecQuery(name=package, text=package), self.rules)
            for query in queries:
                yield replace(
                    required, text=spec_text(query), query=query, rules=self.rules
                )
            if not queries:
                error = "its requirements in packages: contradict each other"
                yield replace(required, error=error)
        for externals in self.externals.values():
            for external in externals:
                query = external.query
                yield UserSpec(query.text, 0, query, group="externals")


def read_packages(node: yaml.Node, parse: Parser = parse_query) -> PackagesSection:
    """Return the section `packages`; `LineFault` if it cannot be read."""
    required: dict[str, tuple[Requirement, ...]] = {}
    conflicts: dict[str, tuple[Requirement, ...]] = {}
    preferred: dict[str, tuple[Requirement, ...]] = {}
    weak_keys: set[str] = set()
    external_nodes: dict[str, yaml.Node] = {}
    buildable: dict[str, bool] = {}
    providers: dict[str, Set[str]] = dict(PROVIDERS)

    for package, package_node in entries_of(node, "packages").items():
        entries = entries_of(package_node, "the entry of the package")
        # A key without a value sets nothing.
        entries = {
            key: value for key, value in entries.items() if not is_nothing(value)
        }
        weak_keys |= entries.keys() & set(PREFERENCES)
        if "externals" in entries:
            external_nodes[package] = entries["externals"]
        if "buildable" in entries:
            buildable[package] = _is_true(entries["buildable"])
        if "require" in entries:
            required[package] = tuple(_requirements(entries["require"], parse))
        if "conflict" in entries:
            conflicts[package] = tuple(_conflicts(entries["conflict"], parse))
        if "prefer" in entries:
            preferred[package] = tuple(_preferences(entries["prefer"], parse))
        if "providers" in entries:
            for virtual, names in _providers(entries["providers"]):
                providers[virtual] = providers.get(virtual, frozenset()) | names

    notes: tuple[str, ...] = ()
    if weak_keys:
        keys = ", ".join(key for key in PREFERENCES if key in weak_keys)
        notes = (f"packages: {keys}: preferences exclude no binary and are ignored",)
    return PackagesSection(
        rules=PackageRules(required, conflicts, preferred),
        externals=read_externals(external_nodes, parse),
        buildable=buildable,
        notes=notes,
        providers=providers,
    )


def _is_true(node: yaml.Node) -> bool:
    """Return the value of `buildable:`; raises `LineFault`."""
    word = text_of(node, "true or false").lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise fault_at(node, f"buildable: is {word[:40]!r}, expected true or false")


def _requirements(node: yaml.Node, parse: Parser) -> Iterator[Requirement]:
    """Yield the requirements of `require:`, which may be one spec instead of a list."""
    if isinstance(node, yaml.ScalarNode):
        items: list[yaml.Node] = [node]
    else:
        items = items_of(node, "requirements")
    for item in items:
        yield _requirement(item, parse, "a requirement", ("spec", "one_of", "any_of"))


def _conflicts(node: yaml.Node, parse: Parser) -> Iterator[Requirement]:
    for item in items_of(node, "conflicts"):
        conflict = _requirement(item, parse, "a conflict", ("spec",))
        yield replace(conflict, is_conflict=True)


def _preferences(node: yaml.Node, parse: Parser) -> Iterator[Requirement]:
    for item in items_of(node, "preferences"):
        preference = _requirement(item, parse, "a preference", ("spec",))
        yield replace(preference, is_preferred=True)


def _requirement(
    node: yaml.Node, parse: Parser, kind: str, groups: Sequence[str]
) -> Requirement:
    """Return an item of `require`, `conflict` or `prefer`.

    Args:
        kind: the item in messages, such as `a requirement`.
        groups: the keys that it may have for its specs.
    """
    # A text is a single spec.
    if isinstance(node, yaml.ScalarNode):
        return Requirement((spec_at(node, parse),), line_of(node))

    # A mapping has one group of specs, and perhaps a condition.
    entries = entries_of(node, kind)
    group = next((name for name in groups if name in entries), None)
    if group is None:
        expected = f"expected {kind} with the key {' or '.join(groups)}"
        # The mapping may be a spec with a colon, such as `- hdf5@1.14: +mpi`.
        is_requirement = "message" in entries or "when" in entries
        advice = "" if is_requirement else quoting_advice(node)
        raise fault_at(node, advice or expected)
    spec_nodes = [entries[group]]
    if group != "spec":
        spec_nodes = items_of(entries[group], "specs")
    options = tuple(spec_at(spec_node, parse) for spec_node in spec_nodes)
    when = spec_at(entries["when"], parse) if "when" in entries else None
    return Requirement(options, line_of(node), when, is_single=group == "one_of")


def _providers(node: yaml.Node) -> Iterator[tuple[str, Set[str]]]:
    """Yield each virtual package with the names of its preferred providers."""
    for virtual, specs_node in entries_of(node, "virtual packages").items():
        names = set()
        for item in items_of(specs_node, "specs"):
            # `openmpi@5 +cuda` is a preferred version of openmpi.
            name = _NAME.match(text_of(item, "a spec"))
            if name is not None:
                names.add(name[0])
        yield virtual, names
