"""Package data → the rows of its tables; what they do not show is stored compressed.

Where both forms tell of a package, the richer one is right; what the other says instead is a
problem, and is kept.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import zstandard

from spack_cache_db.records import Problem
from spack_cache_db.schema import MARKS
from spack_cache_db.sources.columns import (
    FORMS,
    KnownVariant,
    KnownVersion,
    PackageFacts,
    Refusal,
)
from spack_cache_db.sources.strictness import as_json
from spack_cache_db.spack.versions import count_newer, preference_key, version_key

PACKAGES_PER_REST = 512
"""Number of packages that are compressed together, because their data repeats."""

_LEVEL = 6
Meaning = tuple[str, str, str]
"""A variant with its default and its description."""


@dataclass(frozen=True, slots=True)
class PackageCatalogue:
    """All packages, by name and sorted.

    Attributes:
        packages: what all files together say of each; versions are in Spack's order, oldest first.
        facts: what each file says of a package, the richest first.
        dependents: the packages that depend on a name, with the types of each where they are known.
        dependencies: the names that a package depends on, with their types.
        descriptions: the description of each name that has one, without blanks at its end.
    """

    packages: Mapping[str, PackageFacts]
    facts: Mapping[str, tuple[PackageFacts, ...]]
    dependents: Mapping[str, Mapping[str, tuple[str, ...]]]
    dependencies: Mapping[str, Mapping[str, tuple[str, ...]]]
    descriptions: Mapping[str, str]


def kept_facts(facts: Iterable[PackageFacts]) -> tuple[list[PackageFacts], list[Refusal]]:
    """Return one of each package and form, sorted, and a refusal of each that differs from it."""

    def order(each: PackageFacts) -> tuple[object, ...]:
        return each.name, FORMS.index(each.form), each.path, each.location

    kept: list[PackageFacts] = []
    refusals = []
    for each in sorted(facts, key=order):
        last = kept[-1] if kept else None
        if last is None or (last.name, last.form) != (each.name, each.form):
            kept.append(each)
        elif each.content != last.content:
            before = f"tells of the package {each.name} otherwise than"
            refusals.append(Refusal(each, last, before, ", expected one file to tell of it"))
    return kept, refusals


def package_catalogue(facts: Iterable[PackageFacts]) -> PackageCatalogue:
    """Return all packages from what is kept of them (see `kept_facts`)."""
    groups = {name: tuple(group) for name, group in groupby(facts, attrgetter("name"))}
    packages = {name: _united(group) for name, group in groups.items()}
    dependencies = {name: {**each.dependencies} for name, each in packages.items()}
    dependents: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for name, needed in dependencies.items():
        for dependency, types in needed.items():
            dependents[dependency][name] = types
    for name, each in packages.items():
        others = {*each.dependents} - dependents.get(name, {}).keys()
        for dependent in others & packages.keys():
            dependents[name][dependent] = dependencies[dependent][name] = ()
    return PackageCatalogue(packages, groups, dependents, dependencies, _descriptions(packages))


def _united(facts: Sequence[PackageFacts]) -> PackageFacts:
    """Return what several files say of a package; the richest one is right."""

    def whole(field: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in reversed(facts):
            found |= getattr(each, field)
        return found

    versions, dependencies = whole("versions"), whole("dependencies")
    for each in facts[1:]:
        dependencies |= {to: types for to, types in each.dependencies.items() if types}
    return replace(
        facts[0],
        texts=whole("texts"),
        versions={each: versions[each] for each in sorted(versions, key=version_key)},
        variants=whole("variants"),
        dependencies=dependencies,
    )


def _descriptions(packages: Mapping[str, PackageFacts]) -> dict[str, str]:
    """Return a package's own description; of others, what most say of them."""
    own = {
        name: text.rstrip()
        for name, each in packages.items()
        if (text := each.texts.get("description")) is not None
    }
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for each in packages.values():
        described = each.descriptions
        for name in {*described}.difference(own):
            said[name][described[name]] += 1
    return own | {name: max(sorted(texts), key=texts.__getitem__) for name, texts in said.items()}


def package_problems(catalogue: PackageCatalogue) -> Iterator[tuple[PackageFacts, Problem]]:
    """Yield what does not add up in a file, and where two contradict each other."""
    for name, (richest, *others) in catalogue.facts.items():
        for facts in (richest, *others):
            for problem in facts.problems:
                yield facts, problem
        for facts in others:
            for word, here, there in _contradictions(facts, richest):
                what = f"the package {name} has {word} here than in {richest.path}"
                code = f"package_{word.split()[-1]}"
                yield facts, Problem(code, f"{what}: {here}, not {there}", value=json.dumps(here))


def _contradictions(facts: PackageFacts, richest: PackageFacts) -> Iterator[tuple[str, str, str]]:
    """Yield what both say in two ways, and how: of versions and dependencies, what one has more."""
    for column in sorted(facts.texts.keys() & richest.texts.keys()):
        if facts.texts[column] != richest.texts[column]:
            word = f"another {column}"
            yield word, facts.texts[column], richest.texts[column]
    for key in ("versions", "dependencies"):
        here, there = getattr(facts, key).keys(), getattr(richest, key).keys()
        if here != there and here and there:
            yield f"other {key}", _listed(here - there), _listed(there - here)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def versions_behind(
    catalogue: PackageCatalogue, versions: Iterable[tuple[str, str]]
) -> Iterator[int | None]:
    """Yield how many released versions are newer than each; None without package data.

    Args:
        catalogue: all packages.
        versions: pairs of a package and a version, by package.
    """
    for name, pairs in groupby(versions, itemgetter(0)):
        known = catalogue.packages.get(name)
        released = None if known is None else [*_released(known)]
        for _, version in pairs:
            yield None if released is None else count_newer(version, released)


def package_rows(
    catalogue: PackageCatalogue, types: Mapping[str, int]
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Yield the tables of package data and their rows, in the order of the schema's columns.

    Args:
        catalogue: all packages.
        types: the ids of the types of dependencies that the file has.
    """
    packages = catalogue.packages.values()
    ids = {name: at for at, name in enumerate(catalogue.packages, start=1)}
    meanings = _numbered(
        _meaning(*each) for package in packages for each in package.variants.items()
    )
    yield "variant_meanings", [(at, *meaning) for meaning, at in meanings.items()]
    yield (
        "known_packages",
        [
            (at, *_package_row(catalogue, each), *_lists(each, meanings))
            for at, each in enumerate(packages, start=1)
        ],
    )
    yield from _dependency_rows(catalogue, ids, types)
    yield "providers", [(virtual, ids[name]) for virtual, name in _providers(catalogue)]
    yield "package_rests", _rests(catalogue)


def _package_row(catalogue: PackageCatalogue, package: PackageFacts) -> tuple[Any, ...]:
    text = package.texts.get
    dependents = {*catalogue.dependents.get(package.name, ()), *package.dependents}
    return (
        package.name,
        text("description"),
        text("homepage"),
        text("build_system"),
        text("latest_version"),
        text("recipe"),
        len(dependents),
    )


def _released(package: PackageFacts) -> Iterator[str]:
    """Yield the versions that a binary should have: numbered and not deprecated."""
    for name, version in package.versions.items():
        if _kind(name, version) == "number" and not version.is_deprecated:
            yield name


def _kind(name: str, version: KnownVersion) -> str:
    return "branch" if version.is_branch or _is_branch(name) else "number"


@lru_cache(maxsize=2**16)
def _is_branch(name: str) -> bool:
    return preference_key(name)[0]


def _lists(package: PackageFacts, meanings: Mapping[Meaning, int]) -> tuple[str, str]:
    """Return the versions, each with its mark, and the ids of the variants, both as JSON."""
    versions = [
        MARKS[_kind(name, version), version.is_deprecated] + name
        for name, version in package.versions.items()
    ]
    variants = [meanings[_meaning(*each)] for each in sorted(package.variants.items())]
    return as_json(versions), as_json(variants)


def _meaning(name: str, variant: KnownVariant) -> Meaning:
    return name, str(variant.default), variant.description


def _dependency_rows(
    catalogue: PackageCatalogue, ids: Mapping[str, int], types: Mapping[str, int]
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for dependency, some in catalogue.dependents.items():
        for name, used in some.items():
            found[dependency, ",".join(used)].append(ids[name])
    new = {used for _, used in found} - types.keys()
    yield "dependency_types", [*enumerate(sorted(new), start=len(types) + 1)]
    known = {**types, **_numbered(new, start=len(types) + 1)}
    yield (
        "known_dependents",
        [
            (dependency, known[used], as_json(sorted(packages)))
            for (dependency, used), packages in sorted(found.items())
        ],
    )


def _numbered(things: Iterable[Any], start: int = 1) -> dict[Any, int]:
    return {each: at for at, each in enumerate(sorted({*things}), start=start)}


def _providers(catalogue: PackageCatalogue) -> list[tuple[str, str]]:
    """Return virtual packages, each with the package that is known to provide it.

    The packages site describes a virtual package by one of its providers. What depends on others
    is a package, though the data has no file of it.
    """
    by_description: dict[str, list[str]] = defaultdict(list)
    for name in catalogue.packages:
        if name in catalogue.descriptions:
            by_description[catalogue.descriptions[name]].append(name)
    depending = {name for each in catalogue.packages.values() for name in each.dependents}
    virtuals = catalogue.dependents.keys() - catalogue.packages.keys() - depending
    described = ((name, catalogue.descriptions.get(name, "")) for name in sorted(virtuals))
    found = ((name, by_description.get(text, ())) for name, text in described if text)
    return [(name, some[0]) for name, some in found if len(some) == 1]


def _rests(catalogue: PackageCatalogue) -> Iterator[tuple[int, bytes]]:
    """Yield what each file says of its packages, compressed, for databases that are built on.

    Row `n` is of the packages with ids up to `n` times `PACKAGES_PER_REST`.
    """
    groups = [*catalogue.facts.values()]
    compressor = zstandard.ZstdCompressor(_LEVEL)
    for at in range(0, len(groups), PACKAGES_PER_REST):
        some = chain.from_iterable(groups[at : at + PACKAGES_PER_REST])
        facts = [replace(each, location="") for each in some]
        data = compressor.compress(msgspec.json.encode(facts, order="deterministic"))
        yield at // PACKAGES_PER_REST + 1, data
