"""Reads the sections `packages:` and `toolchains:` of a `spack.yaml`.

The entry of a package replaces that of `all` (Spack 1.2, `solver/requirements.py`).
`prefer` is
strong: Spack builds a package rather than reuse a binary that violates it. Weak
preferences
(`version`, `target`, `compiler`, `variants`, `providers`) exclude no existing binary.
`query/records.py` tests binaries.

A toolchain is a name for compilers in specs, such as `%clang_gfortran`
(`spec_parser.py`, and the page "Toolchains" of Spack's documentation). A spec of it
applies if its `when:` holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain

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
    ways,
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
_GROUPS = ("spec", "one_of", "any_of")
_KINDS = {
    "require": "a requirement",
    "conflict": "a conflict",
    "prefer": "a preference",
}


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
        # Spack 1.1's `is_spec_buildable`: a package's own entry decides; else `all`,
        # unless a virtual package that it provides differs.
        usual = self.buildable.get(ALL, True)
        provided = (
            virtual for virtual, packages in self.providers.items() if name in packages
        )
        if any(self.buildable.get(virtual, usual) != usual for virtual in provided):
            usual = not usual
        is_buildable = self.buildable.get(name, usual)
        for external in self.externals.get(name, ()):
            if external_meets(external.query, query):
                return external.query.text, is_buildable
        return "", is_buildable

    def as_specs(self) -> Iterator[UserSpec]:
        """Yield each way to meet the requirements on a package, and each external, as a
        spec.

        Requirements of `all` are not specs: they apply to every package.
        """
        for package, requirements in self.rules.required.items():
            if package == ALL:
                continue
            start = UserSpec(
                package, requirements[0].line if requirements else 0, group="require"
            )
            queries = ways(SpecQuery(name=package, text=package), self.rules)
            for query in queries:
                yield replace(
                    start, text=spec_text(query), query=query, rules=self.rules
                )
            if not queries:
                yield replace(
                    start, error="its requirements in packages: contradict each other"
                )
        for external in chain.from_iterable(self.externals.values()):
            query = external.query
            yield UserSpec(query.text, 0, query, group="externals")


def read_packages(node: yaml.Node, parse: Parser = parse_query) -> PackagesSection:
    """Return the section `packages`; `LineFault` if it cannot be read."""
    required: dict[str, tuple[Requirement, ...]] = {}
    conflicts: dict[str, tuple[Requirement, ...]] = {}
    preferred: dict[str, tuple[Requirement, ...]] = {}
    weakly_preferred: set[str] = set()
    externals: dict[str, yaml.Node] = {}
    buildable: dict[str, bool] = {}
    providers = dict(PROVIDERS)
    for package, section in entries_of(node, "packages").items():
        all_entries = entries_of(section, "the entry of the package")
        entries = {
            key: value for key, value in all_entries.items() if not is_nothing(value)
        }
        weakly_preferred |= entries.keys() & set(PREFERENCES)
        if "externals" in entries:
            externals[package] = entries["externals"]
        if "buildable" in entries:
            is_built = text_of(entries["buildable"], "true or false").lower()
            if is_built not in (*_TRUE, *_FALSE):
                shown = is_built[:40]
                message = f"buildable: is {shown!r}, expected true or false"
                raise fault_at(entries["buildable"], message)
            buildable[package] = is_built in _TRUE
        if "require" in entries:
            require = entries["require"]
            is_alone = isinstance(require, yaml.ScalarNode)
            items = [require] if is_alone else items_of(require, "requirements")
            required[package] = tuple(_requirements(items, parse))
        if "conflict" in entries:
            items = items_of(entries["conflict"], "conflicts")
            conflicts[package] = tuple(_requirements(items, parse, "conflict"))
        if "prefer" in entries:
            items = items_of(entries["prefer"], "preferences")
            preferred[package] = tuple(_requirements(items, parse, "prefer"))
        if "providers" in entries:
            for virtual, specs in entries_of(
                entries["providers"], "virtual packages"
            ).items():
                texts = (text_of(item, "a spec") for item in items_of(specs, "specs"))
                names = frozenset(name[0] for name in map(_NAME.match, texts) if name)
                providers[virtual] = providers.get(virtual, frozenset()) | names
    keys = ", ".join(key for key in PREFERENCES if key in weakly_preferred)
    notes: tuple[str, ...] = ()
    if keys:
        notes = (f"packages: {keys}: preferences exclude no binary and are ignored",)
    rules = PackageRules(required, conflicts, preferred)
    return PackagesSection(
        rules, read_externals(externals, parse), buildable, notes, providers
    )


def _requirements(
    items: Iterable[yaml.Node], parse: Parser, key: str = "require"
) -> Iterator[Requirement]:
    """Yield the requirements below a key: `require`, `conflict` or `prefer`."""
    groups = _GROUPS if key == "require" else _GROUPS[:1]
    kind = _KINDS[key]
    is_conflict = key == "conflict"
    is_preferred = key == "prefer"
    for item in items:
        # A text is a single spec.
        if isinstance(item, yaml.ScalarNode):
            yield Requirement(
                (spec_at(item, parse),),
                line_of(item),
                is_conflict=is_conflict,
                is_preferred=is_preferred,
            )
            continue
        # A mapping has one group of specs, and perhaps a condition.
        entries = entries_of(item, kind)
        group = next((name for name in groups if name in entries), None)
        if group is None:
            advice = (
                "" if entries.keys() & {"message", "when"} else quoting_advice(item)
            )
            raise fault_at(
                item, advice or f"expected {kind} with the key {' or '.join(groups)}"
            )
        specs = (
            [entries["spec"]] if group == "spec" else items_of(entries[group], "specs")
        )
        yield Requirement(
            tuple(spec_at(spec, parse) for spec in specs),
            line_of(item),
            spec_at(entries["when"], parse) if "when" in entries else None,
            is_single=group == "one_of",
            is_conflict=is_conflict,
            is_preferred=is_preferred,
        )
