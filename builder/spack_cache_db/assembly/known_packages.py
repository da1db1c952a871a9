"""Turns package data into the rows of its tables; all other data is stored compressed.

If both forms have a package, the values of the richer form are stored, and different
values of the other form become problems.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import zstandard

from spack_cache_db.model import Problem
from spack_cache_db.schema.views import MARKS
from spack_cache_db.sources.facts import (
    FORMS,
    KnownVariant,
    KnownVersion,
    PackageFacts,
    Refusal,
)
from spack_cache_db.sources.texts import as_json
from spack_cache_db.spack.versions import count_newer, preference_key, version_key

T = TypeVar("T")

PACKAGES_PER_REST = 512
"""Number of packages that are compressed together, because their data is similar."""


@dataclass(frozen=True, slots=True)
class PackageCatalogue:
    """All packages, by name and sorted.

    Attributes:
        packages: the merged facts of all files; versions are in Spack's order, oldest
            first.
        facts: the facts of each file, the richest form first.
        dependents: the packages that depend on a name, with the types if they are
            known.
    """

    packages: Mapping[str, PackageFacts]
    facts: Mapping[str, tuple[PackageFacts, ...]]
    dependents: Mapping[str, Mapping[str, tuple[str, ...]]]


def distinct_facts(
    facts: Iterable[PackageFacts],
) -> tuple[list[PackageFacts], list[Refusal]]:
    """Return the first facts of each package and form, and refusals of those that
    differ.

    They are sorted by package; the richest form of a package comes first.
    """

    def order(entry: PackageFacts) -> tuple[str, int, str, str]:
        return entry.name, FORMS.index(entry.form), entry.path, entry.location

    entries: list[PackageFacts] = []
    refusals = []
    for entry in sorted(facts, key=order):
        last = entries[-1] if entries else None
        if last is None or last.name != entry.name or last.form != entry.form:
            entries.append(entry)
        elif entry.content != last.content:
            before = f"has other data of the package {entry.name} than"
            after = ", expected one file for each package"
            refusals.append(Refusal(entry, last, before, after))
    return entries, refusals


def package_catalogue(facts: Iterable[PackageFacts]) -> PackageCatalogue:
    """Return the catalogue of all packages from the result of `distinct_facts`."""
    facts_of: dict[str, tuple[PackageFacts, ...]] = {}
    packages: dict[str, PackageFacts] = {}
    for name, group in groupby(facts, attrgetter("name")):
        facts_of[name] = tuple(group)
        packages[name] = _merged(facts_of[name])

    # Packages name their dependencies; those that come first name their dependents too.
    dependents: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for name, package in packages.items():
        for dependency, types in package.dependencies.items():
            dependents[dependency][name] = types
    for name, package in packages.items():
        for dependent in package.dependents:
            # The types of such a dependency are not known.
            if dependent in packages:
                dependents[name].setdefault(dependent, ())
    return PackageCatalogue(packages, facts_of, dependents)


def _merged(facts: Sequence[PackageFacts]) -> PackageFacts:
    """Return the merged facts of a package; those of the richest form have
    precedence.
    """
    poorest_first = list(reversed(facts))
    versions = _joined(entry.versions for entry in poorest_first)
    dependencies = _joined(entry.dependencies for entry in poorest_first)
    # The packages site has no types of dependencies, but Spack's list has them.
    for entry in facts[1:]:
        for name, types in entry.dependencies.items():
            if types:
                dependencies[name] = types
    return replace(
        facts[0],
        texts=_joined(entry.texts for entry in poorest_first),
        versions={name: versions[name] for name in sorted(versions, key=version_key)},
        variants=_joined(entry.variants for entry in poorest_first),
        dependencies=dependencies,
        # Only one form has licenses and tags.
        maintainers=_first_of(entry.maintainers for entry in facts),
        licenses=_first_of(entry.licenses for entry in facts),
        tags=_first_of(entry.tags for entry in facts),
    )


def _first_of(lists: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Return the first list that is not empty."""
    return next((members for members in lists if members), ())


def _joined(mappings: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Return one dictionary; the value of the last mapping counts."""
    joined: dict[str, T] = {}
    for mapping in mappings:
        joined.update(mapping)
    return joined


def _descriptions(packages: Mapping[str, PackageFacts]) -> dict[str, str]:
    """Return each package's own description, or the most frequent one in other
    packages.
    """
    descriptions = {}
    for name, package in packages.items():
        text = package.texts.get("description")
        if text is not None:
            descriptions[name] = text.rstrip()

    # How often other packages describe a name so, such as that of a virtual package.
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for package in packages.values():
        for name, text in package.descriptions.items():
            if name not in descriptions:
                counts[name][text] += 1
    for name, count_of_text in counts.items():
        # Of descriptions that are equally frequent, the first one by text.
        descriptions[name] = max(sorted(count_of_text), key=count_of_text.__getitem__)
    return descriptions


def package_problems(
    catalogue: PackageCatalogue,
) -> Iterator[tuple[PackageFacts, Problem]]:
    """Yield the problems of files, and contradictions between two files."""
    for name, files in catalogue.facts.items():
        for facts in files:
            for problem in facts.problems:
                yield facts, problem
        richest = files[0]
        for facts in files[1:]:
            for contradiction in _contradictions(facts, richest):
                kind = contradiction.kind
                subject = f"the package {name} has {kind} here than in {richest.path}"
                message = f"{subject}: {contradiction.value}, not {contradiction.other}"
                code = f"package_{kind.split()[-1]}"
                value = json.dumps(contradiction.value)
                yield facts, Problem(code, message, value=value)


class _Contradiction(NamedTuple):
    """Two values of a package: `another homepage`, or `other versions`."""

    kind: str
    value: str
    other: str


def _contradictions(
    facts: PackageFacts, richest: PackageFacts
) -> Iterator[_Contradiction]:
    """Yield the values of a file that differ from those of the richest file."""
    for column in sorted(facts.texts.keys() & richest.texts.keys()):
        value = facts.texts[column]
        other = richest.texts[column]
        if value != other:
            yield _Contradiction(f"another {column}", value, other)
    for key in ("versions", "dependencies", "maintainers"):
        names = set(getattr(facts, key))
        other_names = set(getattr(richest, key))
        # A form without any names does not know them.
        if names and other_names and names != other_names:
            more = ", ".join(sorted(names - other_names))
            fewer = ", ".join(sorted(other_names - names))
            yield _Contradiction(f"other {key}", more or "none", fewer or "none")


def versions_behind(
    catalogue: PackageCatalogue, versions: Iterable[tuple[str, str]]
) -> Iterator[int | None]:
    """Yield the number of newer released versions for each package and version, in
    order.

    The pairs must be grouped by package; the number is None without package data.
    """
    for name, group in groupby(versions, itemgetter(0)):
        package = catalogue.packages.get(name)
        if package is None:
            yield from (None for _ in group)
            continue
        # A binary should have a version that is numbered and not deprecated.
        released = []
        for text, version in package.versions.items():
            if _kind(text, version) == "number" and not version.is_deprecated:
                released.append(text)
        for _, text in group:
            yield count_newer(text, released)


def package_rows(
    catalogue: PackageCatalogue, types: Mapping[str, int]
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Yield the tables of package data and their rows.

    Args:
        catalogue: all packages.
        types: the ids of dependency types that the database already has.
    """
    packages = catalogue.packages.values()
    ids = {name: number for number, name in enumerate(catalogue.packages, start=1)}

    # Variants with their descriptions, and the packages that have them.
    distinct = set()
    for package in packages:
        for name, variant in package.variants.items():
            distinct.add(_meaning(name, variant))
    meanings = _numbered(distinct)
    yield (
        "variant_meanings",
        [(number, *meaning) for meaning, number in meanings.items()],
    )
    rows = []
    for number, package in enumerate(packages, start=1):
        rows.append((number, *_package_row(catalogue, package, meanings)))
    yield "known_packages", rows

    # Who maintains each recipe, its licenses and its tags.
    yield from _fact_rows(packages)

    # Dependents by package and types, and the types that no index has.
    dependents: dict[tuple[str, str], list[int]] = defaultdict(list)
    for dependency, types_by_name in catalogue.dependents.items():
        for name, names_of_types in types_by_name.items():
            dependents[dependency, ",".join(names_of_types)].append(ids[name])
    texts = {text for _, text in dependents}
    new_types = _numbered(texts - types.keys(), start=len(types) + 1)
    yield "dependency_types", [(number, text) for text, number in new_types.items()]
    type_ids = {**types, **new_types}
    known_dependents = []
    for (dependency, text), package_ids in sorted(dependents.items()):
        known_dependents.append(
            (dependency, type_ids[text], as_json(sorted(package_ids)))
        )
    yield "known_dependents", known_dependents

    # Virtual packages, and everything else that other builds need.
    yield "providers", [(virtual, ids[name]) for virtual, name in _providers(catalogue)]
    yield "package_rests", _rests(catalogue)


def _fact_rows(
    packages: Iterable[PackageFacts],
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Yield the tables of maintainers, licenses and tags, and their rows."""
    maintainers: list[tuple[Any, ...]] = []
    licenses: list[tuple[Any, ...]] = []
    tags: list[tuple[Any, ...]] = []
    for number, package in enumerate(packages, start=1):
        maintainers += [(number, maintainer) for maintainer in package.maintainers]
        tags += [(number, tag) for tag in package.tags]
        for known in package.licenses:
            licenses.append((len(licenses) + 1, number, known.license, known.condition))
    yield "package_maintainers", maintainers
    yield "package_licenses", licenses
    yield "package_tags", tags


def _package_row(
    catalogue: PackageCatalogue,
    package: PackageFacts,
    meanings: Mapping[tuple[str, ...], int],
) -> tuple[Any, ...]:
    """Return a row of `known_packages`; `meanings` has the ids of variants."""
    columns = ("description", "homepage", "build_system", "latest_version", "recipe")
    texts = [package.texts.get(column) for column in columns]
    dependents = {*catalogue.dependents.get(package.name, ()), *package.dependents}
    versions = []
    for name, version in package.versions.items():
        mark = MARKS[_kind(name, version), version.is_deprecated]
        versions.append(mark + name)
    variants = []
    for name, variant in sorted(package.variants.items()):
        variants.append(meanings[_meaning(name, variant)])
    return package.name, *texts, len(dependents), as_json(versions), as_json(variants)


def _kind(name: str, version: KnownVersion) -> str:
    # The first part of the key is set for names such as `develop`.
    is_branch = version.is_branch or preference_key(name)[0]
    return "branch" if is_branch else "number"


def _meaning(name: str, variant: KnownVariant) -> tuple[str, ...]:
    """Return a variant with its default and its description."""
    default = str(variant.default)
    # Spack writes the default of a switch as `True` and shows it as `true`.
    if default in ("True", "False"):
        default = default.lower()
    return name, default, variant.description


def _numbered(values: Iterable[Any], start: int = 1) -> dict[Any, int]:
    """Return consecutive numbers of distinct values, in their order."""
    ordered = sorted(set(values))
    return {value: number for number, value in enumerate(ordered, start=start)}


def _providers(catalogue: PackageCatalogue) -> list[tuple[str, str]]:
    """Return the virtual packages, each with its known provider.

    The packages site gives a virtual package the description of one of its providers. A
    name that depends on others is a package, even if it has no file.
    """
    descriptions = _descriptions(catalogue.packages)
    described_so: dict[str, list[str]] = defaultdict(list)
    for name in catalogue.packages:
        described_so[descriptions.get(name, "")].append(name)

    # Names without a file that nothing but dependents mention.
    depending: set[str] = set()
    for package in catalogue.packages.values():
        depending.update(package.dependents)
    virtuals = catalogue.dependents.keys() - catalogue.packages.keys() - depending

    # The only package with the description of a virtual package provides it.
    providers = []
    for virtual in sorted(virtuals):
        description = descriptions.get(virtual)
        if description:
            candidates = described_so[description]
            if len(candidates) == 1:
                providers.append((virtual, candidates[0]))
    return providers


def _rests(catalogue: PackageCatalogue) -> Iterator[tuple[int, bytes]]:
    """Yield the facts of each file, compressed, to build other databases from this one.

    Row `n` has the packages with ids up to `n` times `PACKAGES_PER_REST`.
    """
    groups = list(catalogue.facts.values())
    compressor = zstandard.ZstdCompressor(level=6)
    for row, start in enumerate(range(0, len(groups), PACKAGES_PER_REST), start=1):
        facts = []
        for entry in chain.from_iterable(groups[start : start + PACKAGES_PER_REST]):
            # The location depends on where the input lies.
            facts.append(replace(entry, location=""))
        data = msgspec.json.encode(facts, order="deterministic")
        yield row, compressor.compress(data)
