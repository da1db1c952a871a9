"""Reads the section `packages:` of a `spack.yaml`: requirements and externals.

For example, this section requires `+mpi` of hdf5, and has an external (a package that
the system provides) for mpich, which Spack must not build:

    packages:
      hdf5: {require: +mpi}
      mpich: {externals: [{spec: mpich@4, prefix: /usr}], buildable: false}

The entry `all` applies to packages without an entry of the same kind (Spack 1.2,
`solver/requirements.py`). `prefer` is strong: Spack builds a package rather than reuse
a binary that violates it. Weak preferences (`version`, `target`, `compiler`,
`variants`, `providers`) exclude no existing binary. `query.match.requirements` tests
binaries.
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
"""The name at the beginning of a spec."""
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class PackagesSection:
    """The section `packages:`.

    Attributes:
        rules: the requirements, conflicts and preferences.
        externals: the externals of each package that has some.
        buildable: whether Spack may build a package, a virtual package (such as mpi,
            which other packages provide) or `all`, where an entry says so.
        weak_keys: the weak preferences (`PREFERENCES`) that it has.
        providers: the packages that provide a virtual package: those that Spack knows
            and those that the section prefers.
    """

    rules: PackageRules = NO_RULES
    externals: Mapping[str, tuple[DeclaredExternal, ...]] = field(default_factory=dict)
    buildable: Mapping[str, bool] = field(default_factory=dict)
    weak_keys: Set[str] = frozenset()
    providers: Mapping[str, Set[str]] = field(default_factory=dict)

    def external_of(self, query: SpecQuery) -> tuple[str, bool]:
        """Return the external that satisfies a spec, and whether Spack may build it.

        The external is "" if there is none. Parts that an external leaves open, such as
        variants, satisfy any constraint.
        """
        name = query.name or ""
        is_buildable = self._is_buildable(name)
        for external in self.externals.get(name, ()):
            if external_meets(external.query, query):
                return external.query.text, is_buildable
        return "", is_buildable

    def _is_buildable(self, package: str) -> bool:
        """Return whether Spack may build a package (Spack 1.1, `is_spec_buildable`)."""
        # The package's own entry decides.
        if package in self.buildable:
            return self.buildable[package]
        # Else that of a virtual package that it provides, if it differs from `all`:
        # with `mpi: {buildable: false}`, no provider of mpi is built.
        of_all = self.buildable.get(ALL, True)
        for virtual, packages in self.providers.items():
            if package not in packages:
                continue
            of_virtual = self.buildable.get(virtual, of_all)
            if of_virtual != of_all:
                return of_virtual
        return of_all

    def as_specs(self) -> Iterator[UserSpec]:
        """Yield the requirements and the externals of the packages as specs.

        A package has a spec for each combination of the options of its requirements.
        Requirements of `all` are not specs: they apply to every package.
        """
        for package, requirements in self.rules.required.items():
            if package == ALL:
                continue
            # An empty list of requirements has no line.
            line = requirements[0].line if requirements else 0
            user_spec = UserSpec(package, line, group="require")
            queries = combinations(SpecQuery(name=package, text=package), self.rules)
            for query in queries:
                yield replace(
                    user_spec, text=spec_text(query), query=query, rules=self.rules
                )
            if not queries:
                error = "its requirements in packages: contradict each other"
                yield replace(user_spec, error=error)
        for externals in self.externals.values():
            for external in externals:
                # The record of an external has no line.
                query = external.query
                yield UserSpec(query.text, 0, query, group="externals")


def read_packages(node: yaml.Node, parse: Parser = parse_query) -> PackagesSection:
    """Return the section `packages`; `LineFault` if it cannot be read."""
    # Collect the keys of all packages.
    external_nodes: dict[str, yaml.Node] = {}
    buildable: dict[str, bool] = {}
    required: dict[str, tuple[Requirement, ...]] = {}
    conflicts: dict[str, tuple[Requirement, ...]] = {}
    preferred: dict[str, tuple[Requirement, ...]] = {}
    providers: dict[str, Set[str]] = dict(PROVIDERS)
    weak_keys: set[str] = set()
    for package, package_node in entries_of(node, "packages").items():
        entries = _entries_with_value(package_node)
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
        weak_keys |= entries.keys() & set(PREFERENCES)

    # Externals are read together, because one may depend on those of other packages.
    return PackagesSection(
        rules=PackageRules(required, conflicts, preferred),
        externals=read_externals(external_nodes, parse),
        buildable=buildable,
        weak_keys=weak_keys,
        providers=providers,
    )


def _entries_with_value(package_node: yaml.Node) -> dict[str, yaml.Node]:
    """Return the keys of a package; one without a value sets nothing."""
    entries = entries_of(package_node, "the entry of the package")
    return {key: value for key, value in entries.items() if not is_nothing(value)}


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
    node: yaml.Node, parse: Parser, kind: str, spec_keys: Sequence[str]
) -> Requirement:
    """Return an item of `require`, `conflict` or `prefer`.

    It is a spec, or a mapping such as `{one_of: [+mpi, ~mpi], when: '@2:'}`.

    Args:
        node: the item.
        parse: reads its specs.
        kind: the item in messages, such as `a requirement`.
        spec_keys: the keys of which a mapping has one for its specs.
    """
    # A text is a single spec.
    if isinstance(node, yaml.ScalarNode):
        return Requirement((spec_at(node, parse),), line_of(node))

    # A mapping has one key with specs, and perhaps a condition.
    entries = entries_of(node, kind)
    spec_key = next((key for key in spec_keys if key in entries), None)
    if spec_key is None:
        expected = f"expected {kind} with the key {' or '.join(spec_keys)}"
        # The mapping may be a spec with a colon, such as `- hdf5@1.14: +mpi`.
        is_requirement = "message" in entries or "when" in entries
        advice = "" if is_requirement else quoting_advice(node)
        raise fault_at(node, advice or expected)
    # `spec` has one spec, the other keys have a list.
    spec_nodes = [entries[spec_key]]
    if spec_key != "spec":
        spec_nodes = items_of(entries[spec_key], "specs")
    options = tuple(spec_at(spec_node, parse) for spec_node in spec_nodes)
    when = spec_at(entries["when"], parse) if "when" in entries else None
    return Requirement(options, line_of(node), when, is_single=spec_key == "one_of")


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
