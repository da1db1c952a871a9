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
from typing import Any

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
    """

    def order(entry: PackageFacts) -> tuple[object, ...]:
        return entry.name, FORMS.index(entry.form), entry.path, entry.location

    entries: list[PackageFacts] = []
    refusals = []
    for entry in sorted(facts, key=order):
        last = entries[-1] if entries else None
        if last is None or (last.name, last.form) != (entry.name, entry.form):
            entries.append(entry)
        elif entry.content != last.content:
            before = f"has other data of the package {entry.name} than"
            refusals.append(
                Refusal(entry, last, before, ", expected one file for each package")
            )
    return entries, refusals


def package_catalogue(facts: Iterable[PackageFacts]) -> PackageCatalogue:
    """Return the catalogue of all packages from the result of `distinct_facts`."""
    groups = {name: tuple(group) for name, group in groupby(facts, attrgetter("name"))}
    packages = {name: _merged(group) for name, group in groups.items()}
    dependents: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for name, package in packages.items():
        for dependency, types in package.dependencies.items():
            dependents[dependency][name] = types
    for name, package in packages.items():
        for dependent in {*package.dependents} & packages.keys():
            dependents[name].setdefault(dependent, ())
    return PackageCatalogue(packages, groups, dependents)


def _merged(facts: Sequence[PackageFacts]) -> PackageFacts:
    """Return the merged facts of a package; those of the richest form have
    precedence.
    """
    texts, versions, variants, dependencies = (
        {
            key: value
            for entry in reversed(facts)
            for key, value in getattr(entry, field).items()
        }
        for field in ("texts", "versions", "variants", "dependencies")
    )
    for entry in facts[1:]:
        dependencies |= {
            name: types for name, types in entry.dependencies.items() if types
        }
    return replace(
        facts[0],
        texts=texts,
        versions={name: versions[name] for name in sorted(versions, key=version_key)},
        variants=variants,
        dependencies=dependencies,
    )


def _descriptions(packages: Mapping[str, PackageFacts]) -> dict[str, str]:
    """Return each package's own description, or the most frequent one in other
    packages.
    """
    descriptions = {
        name: text.rstrip()
        for name, package in packages.items()
        if (text := package.texts.get("description")) is not None
    }
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for package in packages.values():
        for name in {*package.descriptions}.difference(descriptions):
            counts[name][package.descriptions[name]] += 1
    return descriptions | {
        name: max(sorted(texts), key=texts.__getitem__)
        for name, texts in counts.items()
    }


def package_problems(
    catalogue: PackageCatalogue,
) -> Iterator[tuple[PackageFacts, Problem]]:
    """Yield the problems of files, and contradictions between two files."""
    for name, files in catalogue.facts.items():
        richest = files[0]
        for facts in files:
            for problem in facts.problems:
                yield facts, problem
        for facts in files[1:]:
            for word, value, other in _contradictions(facts, richest):
                code = f"package_{word.split()[-1]}"
                subject = f"the package {name} has {word} here than in {richest.path}"
                message = f"{subject}: {value}, not {other}"
                yield facts, Problem(code, message, value=json.dumps(value))


def _contradictions(
    facts: PackageFacts, richest: PackageFacts
) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each contradiction, and both values."""
    for column in sorted(facts.texts.keys() & richest.texts.keys()):
        if facts.texts[column] != richest.texts[column]:
            yield f"another {column}", facts.texts[column], richest.texts[column]
    for key in ("versions", "dependencies"):
        names, other_names = getattr(facts, key).keys(), getattr(richest, key).keys()
        if names != other_names and names and other_names:
            more = ", ".join(sorted(names - other_names)) or "none"
            yield f"other {key}", more, ", ".join(sorted(other_names - names)) or "none"


def versions_behind(
    catalogue: PackageCatalogue, versions: Iterable[tuple[str, str]]
) -> Iterator[int | None]:
    """Yield the number of newer released versions for each package and version, in
    order.

    The pairs must be grouped by package; the number is None without package data.
    """
    for name, pairs in groupby(versions, itemgetter(0)):
        package = catalogue.packages.get(name)
        # A binary should have a version that is numbered and not deprecated.
        released = [
            name
            for name, version in (package.versions.items() if package else ())
            if _kind(name, version) == "number" and not version.is_deprecated
        ]
        for _, version in pairs:
            yield count_newer(version, released) if package else None


def package_rows(
    catalogue: PackageCatalogue, types: Mapping[str, int]
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Yield the tables of package data and their rows; `types` are existing dependency
    types.
    """
    packages = catalogue.packages.values()
    ids = {name: number for number, name in enumerate(catalogue.packages, start=1)}
    meanings = _numbered(
        _meaning(*variant)
        for package in packages
        for variant in package.variants.items()
    )
    yield (
        "variant_meanings",
        [(number, *meaning) for meaning, number in meanings.items()],
    )
    rows = [
        (number, *_package_row(catalogue, package, meanings))
        for number, package in enumerate(packages, start=1)
    ]
    yield "known_packages", rows
    dependents: dict[tuple[str, str], list[int]] = defaultdict(list)
    for dependency, types_by_name in catalogue.dependents.items():
        for name, names_of_types in types_by_name.items():
            dependents[dependency, ",".join(names_of_types)].append(ids[name])
    new = _numbered(
        {text for _, text in dependents} - types.keys(), start=len(types) + 1
    )
    yield "dependency_types", [(number, text) for text, number in new.items()]
    type_ids = {**types, **new}
    rows = [
        (dependency, type_ids[text], as_json(sorted(packages)))
        for (dependency, text), packages in sorted(dependents.items())
    ]
    yield "known_dependents", rows
    yield "providers", [(virtual, ids[name]) for virtual, name in _providers(catalogue)]
    yield "package_rests", _rests(catalogue)


def _package_row(
    catalogue: PackageCatalogue,
    package: PackageFacts,
    meanings: Mapping[tuple[str, ...], int],
) -> tuple[Any, ...]:
    """Return a row of `known_packages`; `meanings` has the ids of variants."""
    columns = ("description", "homepage", "build_system", "latest_version", "recipe")
    dependents = {*catalogue.dependents.get(package.name, ()), *package.dependents}
    versions = [
        MARKS[_kind(name, version), version.is_deprecated] + name
        for name, version in package.versions.items()
    ]
    variants = [
        meanings[_meaning(*variant)] for variant in sorted(package.variants.items())
    ]
    texts = map(package.texts.get, columns)
    return package.name, *texts, len(dependents), as_json(versions), as_json(variants)


def _kind(name: str, version: KnownVersion) -> str:
    return "branch" if version.is_branch or preference_key(name)[0] else "number"


def _meaning(name: str, variant: KnownVariant) -> tuple[str, ...]:
    """Return a variant with its default and its description."""
    default = str(variant.default)
    is_switch = default in ("True", "False")
    return name, default.lower() if is_switch else default, variant.description


def _numbered(values: Iterable[Any], start: int = 1) -> dict[Any, int]:
    return {
        value: number for number, value in enumerate(sorted({*values}), start=start)
    }


def _providers(catalogue: PackageCatalogue) -> list[tuple[str, str]]:
    """Return the virtual packages, each with its known provider.

    The packages site gives a virtual package the description of one of its providers. A
    name that depends on others is a package, even if it has no file.
    """
    descriptions = _descriptions(catalogue.packages)
    packages: dict[str, list[str]] = defaultdict(list)
    for name in catalogue.packages:
        packages[descriptions.get(name, "")].append(name)
    depending = {
        name for package in catalogue.packages.values() for name in package.dependents
    }
    virtuals = catalogue.dependents.keys() - catalogue.packages.keys() - depending
    described = ((name, descriptions.get(name)) for name in sorted(virtuals))
    candidates = ((name, packages[text]) for name, text in described if text)
    return [(name, names[0]) for name, names in candidates if len(names) == 1]


def _rests(catalogue: PackageCatalogue) -> Iterator[tuple[int, bytes]]:
    """Yield the facts of each file, compressed, to build other databases from this one.

    Row `n` has the packages with ids up to `n` times `PACKAGES_PER_REST`.
    """
    groups = [*catalogue.facts.values()]
    compressor = zstandard.ZstdCompressor(level=6)
    for start in range(0, len(groups), PACKAGES_PER_REST):
        group = chain.from_iterable(groups[start : start + PACKAGES_PER_REST])
        facts = [replace(entry, location="") for entry in group]
        data = compressor.compress(msgspec.json.encode(facts, order="deterministic"))
        yield start // PACKAGES_PER_REST + 1, data
