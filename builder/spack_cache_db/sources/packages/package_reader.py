"""Package data → what it says of each package, within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct

from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import Problem
from spack_cache_db.sources.bounds import require_name, require_text
from spack_cache_db.sources.columns import (
    LISTED,
    NAMED,
    PUBLISHED,
    KnownVariant,
    KnownVersion,
    PackageFacts,
    Writer,
)
from spack_cache_db.sources.packages.package_format import (
    LISTED_PACKAGE,
    PUBLISHED_PACKAGE,
    Decoded,
    Described,
    ListedPackage,
    PublishedPackage,
    fault_of,
    is_list,
    read_list,
    read_name,
    read_package,
)
from spack_cache_db.sources.strict_json import name as named
from spack_cache_db.sources.units import Place, RawFile
from spack_cache_db.spack.identifiers import is_package

MAX_DESCRIPTION = 2**16
"""Characters of any text; the longest descriptions of Spack's have three thousand."""

MAX_MEMBERS = 2**14
"""Versions, variants, dependencies or dependents of a package. Six thousand packages depend on the
virtual package `c`, and the package with the most versions has some hundreds."""

TYPES = ("build", "link", "run", "test")

_VALUES: Mapping[type[Struct], Callable[[Any], tuple[Any, ...]]] = {
    each: attrgetter(*each.__struct_fields__) for each in (ListedPackage, PublishedPackage)
}
"""What gives all values of a record, in the order of its fields."""

_ORDINARY = re.compile(r"\w[\w.+=-]{0,99}", re.ASCII)
"""A name in which nothing can be wrong: nearly every one."""

T = TypeVar("T")


class PackageReader:
    """Reads package data into columns."""

    def __init__(self, writer: Writer, place: Place) -> None:
        self._packages = writer.columns.packages

    def add(self, file: RawFile) -> None:
        """Read one file; `InputError` with all its faults if it cannot be kept."""
        self._packages.extend(read_facts(file))


def read_facts(file: RawFile) -> list[PackageFacts]:
    """Return what a file says of its packages; `InputError` with all its faults."""
    try:
        require_text(file.data)
    except LineFault as error:
        raise InputError([Fault(file.location, error.line, str(error))]) from None
    if is_list(file.data):
        return _facts_of_list(file)
    try:
        facts = _published(file, read_package(file.data, PUBLISHED_PACKAGE))
        return [_within_bounds(facts, file.data)]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError([Fault(file.location, *fault_of(file.data, error))]) from None


def _facts_of_list(file: RawFile) -> list[PackageFacts]:
    try:
        members = read_list(file.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError([Fault(file.location, *fault_of(file.data, error))]) from None
    found: dict[str, PackageFacts] = {}
    faults, at = [], 0
    for member in members:
        at = file.data.index(member, at)
        try:
            each = _member(file, member)
            if found.setdefault(each.name, each) is not each:
                raise ValueError(f"the package {named(each.name)} stands twice, expected once")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            line = file.data.count(b"\n", 0, at) + 1
            faults.append(Fault(file.location, line, fault_of(member, error)[1]))
        at += len(member)
    if faults:
        raise InputError(faults)
    return [*found.values()]


def _member(file: RawFile, member: bytes) -> PackageFacts:
    """Return what a member of a list says (raises as `read_package`, and for what is too long)."""
    name = read_name(member)
    if name is None:
        return _within_bounds(_listed(file, read_package(member, LISTED_PACKAGE)), member)
    return _within_bounds(PackageFacts(file.location, file.path, NAMED, name), member)


def _listed(file: RawFile, decoded: Decoded[ListedPackage]) -> PackageFacts:
    package, unknown = decoded
    keys = unknown | _others(package, "maintainers")
    types: dict[str, list[str]] = {}
    if package.dependencies is not UNSET:
        for each in TYPES:
            some = getattr(package.dependencies, each)
            for dependency in _distinct(keys, "dependencies", package, _members(each, some), str):
                types.setdefault(dependency, []).append(each)
            if some is UNSET:
                _keep(keys, package, "dependencies")
    versions = _members("versions", package.versions)
    return PackageFacts(
        location=file.location,
        path=file.path,
        form=LISTED,
        name=package.name,
        texts=_texts(package, keys, latest_version="latest_version", homepage="homepage")
        | _texts(package, keys, recipe="file"),
        versions={
            each: KnownVersion(None, False, {})
            for each in _distinct(keys, "versions", package, versions, str)
        },
        dependencies={each: tuple(found) for each, found in types.items()},
        absent=_absent(package),
        keys=keys,
        problems=_unknown_keys(package, unknown),
    )


def _published(file: RawFile, decoded: Decoded[PublishedPackage]) -> PackageFacts:
    package, unknown = decoded
    keys = unknown | _others(package, "aliases", "conflicts", "maintainers", "patches", "resources")
    columns = ("description", "homepage", "build_system", "latest_version")
    variants = _members("variants", package.variants)
    if any(each.default in ("True", "False") for each in variants):
        # As texts: they would be read back as what is on or off.
        _keep(keys, package, "variants")
    named_by = {
        key: _distinct(keys, key, package, _members(key, getattr(package, key)), _name)
        for key in ("dependencies", "dependent_to")
    }
    return PackageFacts(
        location=file.location,
        path=file.path,
        form=PUBLISHED,
        name=package.name,
        texts=_texts(package, keys, **{each: each for each in columns}),
        versions=_versions(package, keys),
        variants={
            name: KnownVariant(each.default, each.description)
            for name, each in _distinct(keys, "variants", package, variants, _name).items()
        },
        dependencies=dict.fromkeys(named_by["dependencies"], ()),
        dependents=tuple(named_by["dependent_to"]),
        descriptions=_descriptions(package, keys, named_by),
        absent=_absent(package),
        keys=keys,
        problems=_unknown_keys(package, unknown),
    )


def _versions(package: PublishedPackage, keys: dict[str, Any]) -> dict[str, KnownVersion]:
    """Return the versions of a package; one that is also deprecated is."""
    tells = package.versions_deprecated is not UNSET
    found: dict[str, KnownVersion] = {}
    for key, is_deprecated in (("versions", False), ("versions_deprecated", True)):
        some = _members(key, getattr(package, key))
        named_by = _distinct(keys, key, package, some, _name)
        if not found.keys().isdisjoint(named_by):
            _keep(keys, package, "versions", key)
        for name, rest in zip(named_by, msgspec.to_builtins([*named_by.values()]), strict=True):
            del rest["name"]
            found[name] = KnownVersion(is_deprecated if tells else None, "branch" in rest, rest)
    return found


def _descriptions(
    package: PublishedPackage, keys: dict[str, Any], named_by: dict[str, dict[str, Described]]
) -> dict[str, str]:
    """Return what is said of other packages; whoever is described in two ways is kept in `keys`."""
    found: dict[str, str] = {}
    for key, members in named_by.items():
        said = {name: each.description for name, each in members.items()}
        if any(said[name] != found[name] for name in found.keys() & said.keys()):
            _keep(keys, package, key)
        found = {**said, **found}
    return found


_name = attrgetter("name")


def _keep(keys: dict[str, Any], package: Struct, *names: str) -> None:
    """Keep the whole values of some keys, unless more is known of them than the record has."""
    for name in names:
        keys.setdefault(name, msgspec.to_builtins(getattr(package, name)))


def _distinct(
    keys: dict[str, Any],
    key: str,
    package: Struct,
    members: Sequence[T],
    name_of: Callable[[T], str],
) -> dict[str, T]:
    """Return members by name; if a name stands twice, the first, and all are kept in `keys`."""
    names = [*map(name_of, members)]
    found = dict(zip(names, members, strict=True))
    if len(found) < len(names):
        found = dict(zip(reversed(names), reversed(members), strict=True))
        _keep(keys, package, key)
    return found


def _members(word: str, some: Any) -> list[Any]:
    """Return the members of a list; `ValueError` if there are too many."""
    members: list[Any] = [] if some is UNSET else some
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"has {len(members):,} {word}, expected at most {MAX_MEMBERS:,}")
    return members


def _texts(package: Struct, keys: dict[str, Any], **columns: str) -> dict[str, str]:
    """Return texts by column; what is no text, or the word `None`, is kept in `keys` alone."""
    found = {}
    for column, key in columns.items():
        value = getattr(package, key)
        if value is None or value == "None":
            keys[key] = value
        elif value is not UNSET:
            found[column] = value
    return found


def _others(package: Struct, *names: str) -> dict[str, Any]:
    """Return the values of keys of which nothing is shown."""
    values = {name: getattr(package, name) for name in names}
    return {name: value for name, value in values.items() if value is not UNSET}


def _absent(package: Struct) -> tuple[str, ...]:
    values = _VALUES[type(package)](package)
    return tuple(
        key for key, each in zip(package.__struct_fields__, values, strict=True) if each is UNSET
    )


def _unknown_keys(package: Any, unknown: Iterable[str]) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            "unknown_key", f"the package {named(package.name)} has unknown keys in {named(key)}"
        )
        for key in sorted(unknown)
    )


def _within_bounds(facts: PackageFacts, data: bytes) -> PackageFacts:
    """Return what some JSON says of a package; `ValueError` if it is too long or cannot be stored.

    No text has more characters than all of the JSON has bytes.
    """
    if not is_package(facts.name):
        raise ValueError(f"has the name {named(facts.name)}, expected one that Spack can read")
    names = {
        "version": facts.versions,
        "variant": facts.variants,
        "dependency": (*facts.dependencies, *facts.dependents),
    }
    for word, some in names.items():
        if None in map(_ORDINARY.fullmatch, some):
            for name in some:
                require_name(word, name)
    if len(data) > MAX_DESCRIPTION or b"\\u0000" in data:
        _require_texts(facts)
    return facts


def _require_texts(facts: PackageFacts) -> None:
    for column, text in facts.texts.items():
        _require_text(column.replace("_", " "), text)
    for variant in facts.variants.values():
        _require_text("default", str(variant.default))
        _require_text("variant's description", variant.description)
    for name, text in facts.descriptions.items():
        _require_text(f"description of {named(name)}", text)


def _require_text(word: str, text: str) -> None:
    """Raise `ValueError` if a text is too long or cannot be stored.

    A description may have any other character: recipes are written by many hands.
    """
    if len(text) > MAX_DESCRIPTION:
        count = f"{len(text):,} characters, expected at most {MAX_DESCRIPTION:,}"
        raise ValueError(f"has a {word} of {count}")
    if "\0" in text:
        raise ValueError(f"has a {word} with the character NUL, expected text")
