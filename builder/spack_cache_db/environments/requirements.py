"""What `packages:` of a `spack.yaml` requires of a spec, and what in it is no requirement.

The rules are those of Spack 1.1's `solver/requirements.py`: what stands under a package's name
takes the place of what stands under `all`; an `all` that asks for a variant holds for packages that
have it. Preferences (`prefer`, `version`, `target`, `compiler`, `variants`, `providers`) weigh less
than a binary that exists, so they take none away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import yaml

from spack_cache_db.bounded_yaml import line_of
from spack_cache_db.environments.expanded import expanded_text
from spack_cache_db.environments.records import Alternative
from spack_cache_db.environments.sections import entries_of, is_nothing, items_of, text_of
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies

ALL = "all"
PREFERENCES = ("prefer", "version", "target", "compiler", "variants", "providers")
MOST_ALTERNATIVES = 64
_GROUPS = ("spec", "one_of", "any_of")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One of `options` must hold where `when` does; `is_single`: and none of the others.

    `is_conflict`: none of the options may hold instead.
    """

    options: tuple[SpecQuery, ...]
    line: int
    when: SpecQuery | None = None
    is_single: bool = False
    is_conflict: bool = False


@dataclass(frozen=True, slots=True)
class Requirements:
    """All requirements, by the package under whose name they stand; `notes` on the rest."""

    required: Mapping[str, tuple[Requirement, ...]]
    conflicts: Mapping[str, tuple[Requirement, ...]]
    notes: tuple[str, ...] = ()

    def alternatives(self, query: SpecQuery) -> tuple[Alternative, ...]:
        """Return the ways to satisfy a spec together with what is required of its package.

        Raises:
            UnsatisfiableSpec: there is none, or there are too many to look for.
        """
        found = [Alternative(query)]
        for kind in (self.required, self.conflicts):
            own = kind.get(query.name or "", ())
            for requirement in own or kind.get(ALL, ()):
                cases = (
                    case for each in found for case in _cases(each, requirement, is_default=not own)
                )
                found = [*dict.fromkeys(cases)]
                if not found:
                    raise UnsatisfiableSpec(
                        f"the requirement on line {requirement.line} excludes it"
                    )
                if len(found) > MOST_ALTERNATIVES:
                    raise UnsatisfiableSpec(
                        f"its requirements make more than {MOST_ALTERNATIVES} cases"
                    )
        return tuple(found)


NO_REQUIREMENTS = Requirements({}, {})


def read_requirements(node: yaml.Node) -> Requirements:
    """Return what the section `packages` requires.

    Raises:
        LineFault: a requirement cannot be read.
    """
    required: dict[str, tuple[Requirement, ...]] = {}
    conflicts: dict[str, tuple[Requirement, ...]] = {}
    preferred: set[str] = set()
    externals: list[str] = []
    for package, section in entries_of(node, "packages").items():
        entries = entries_of(section, "what is said of the package")
        preferred |= {each for each in PREFERENCES if each in entries}
        if "externals" in entries and not is_nothing(entries["externals"]):
            externals.append(package)
        if "require" in entries:
            required[package] = tuple(_required(entries["require"]))
        if "conflict" in entries:
            conflicts[package] = tuple(_conflicts(entries["conflict"]))
    return Requirements(required, conflicts, tuple(_notes(preferred, externals)))


def _notes(preferred: set[str], externals: list[str]) -> Iterator[str]:
    if preferred:
        keys = ", ".join(each for each in PREFERENCES if each in preferred)
        yield f"packages: {keys}: preferences take no binary away, and are left aside"
    if externals:
        yield f"packages: externals are left aside (of {', '.join(externals)})"


def _required(node: yaml.Node) -> Iterator[Requirement]:
    if isinstance(node, yaml.ScalarNode):
        yield Requirement((_query(node),), line_of(node))
        return
    for each in items_of(node, "requirements"):
        if isinstance(each, yaml.ScalarNode):
            yield Requirement((_query(each),), line_of(each))
            continue
        entries = entries_of(each, "a requirement")
        group = next((name for name in _GROUPS if name in entries), None)
        if group is None:
            raise LineFault(line_of(each), f"expected one of {', '.join(_GROUPS)} here")
        texts = [entries["spec"]] if group == "spec" else items_of(entries[group], "specs")
        yield Requirement(
            tuple(map(_query, texts)),
            line_of(each),
            _query(entries["when"]) if "when" in entries else None,
            is_single=group == "one_of",
        )


def _conflicts(node: yaml.Node) -> Iterator[Requirement]:
    for each in items_of(node, "conflicts"):
        spec, when = each, None
        if not isinstance(each, yaml.ScalarNode):
            entries = entries_of(each, "a conflict")
            if "spec" not in entries:
                raise LineFault(line_of(each), "expected spec: here")
            spec = entries["spec"]
            when = _query(entries["when"]) if "when" in entries else None
        yield Requirement((_query(spec),), line_of(each), when, is_conflict=True)


def _query(node: yaml.Node) -> SpecQuery:
    found = expanded_text(text_of(node, "a spec"), line_of(node))
    if found.query is None:
        raise LineFault(found.line, f"{found.text!r} {found.error}")
    return found.query


def _cases(
    start: Alternative, requirement: Requirement, *, is_default: bool
) -> Iterator[Alternative]:
    """Yield the ways to satisfy a requirement as well; `is_default` if it stands under `all`."""
    if requirement.is_conflict:
        (option,) = requirement.options
        conflict = _both(option, requirement.when)
        if conflict is None or not _is_within(start.query, conflict):
            without = start.without if conflict is None else (*start.without, conflict)
            yield replace(start, without=without)
        return
    if requirement.when is not None and not _is_within(start.query, requirement.when):
        yield replace(start, without=(*start.without, requirement.when))
    for place, option in enumerate(requirement.options):
        query = _both(_both(start.query, requirement.when), option)
        if query is None:
            continue
        others = requirement.options[:place] + requirement.options[place + 1 :]
        excluded = [each for each in others if requirement.is_single and _both(query, each)]
        if not any(_is_within(query, each) for each in excluded):
            yield Alternative(query, (*start.without, *excluded))
    if is_default:
        for variants in product(*(option.variants for option in requirement.options)):
            missing = [
                SpecQuery(variants=(replace(each, values=(), kind="multi", exact=False),))
                for each in variants
            ]
            if not any(_is_within(start.query, each) for each in missing):
                yield replace(start, without=(*start.without, *missing))


def _is_within(query: SpecQuery, other: SpecQuery) -> bool:
    """Return whether what is asked is asked of the other already, whatever the package's name."""
    return implies(query, replace(other, name=None))


def _both(first: SpecQuery | None, second: SpecQuery | None) -> SpecQuery | None:
    """Return what both ask, the first alone if there is no second; None if nothing can be both."""
    if first is None or second is None:
        return first
    try:
        return constrained(first, second)
    except UnsatisfiableSpec:
        return None
