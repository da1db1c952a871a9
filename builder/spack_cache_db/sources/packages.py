"""Package data → records within limits.

The keys are those of the list that Spack 1.1 prints (`cmd/list.py`, `version_json`), and of the
packages site's `data/packages/<name>.json`. New keys appear with time: those that are not declared
here are reported and left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sized
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import FORMULA, Problem
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import (
    LISTED,
    NAMED,
    PUBLISHED,
    KnownVariant,
    KnownVersion,
    PackageFacts,
)
from spack_cache_db.sources.strictness import (
    BROKEN,
    named,
    quoted,
    require_name,
    require_text,
    said,
)
from spack_cache_db.spack.lexer import is_package
from spack_cache_db.spack.nodes import require_known

MAX_DESCRIPTION = 2**16
"""Characters of any text; the longest descriptions of Spack's have three thousand."""

MAX_MEMBERS = 2**14
"""Versions, variants, dependencies or dependents of a package. Six thousand packages depend on the
virtual package `c`, and the package with the most versions has some hundreds."""

TYPES = ("build", "link", "run", "test")


class ListedPackage(Struct, gc=False):
    """A member of the list that `spack list --format version_json` prints.

    `dependencies` are names by type, virtual packages among them.
    """

    name: str
    latest_version: str | None = None
    versions: list[str] = []
    homepage: str | None = None
    file: str | None = None
    maintainers: Any = None
    dependencies: dict[str, list[str]] = {}


class Version(Struct, gc=False):
    """A version, and where its sources come from."""

    name: str
    sha256: str | None = None
    branch: str | None = None
    tag: str | None = None
    commit: str | None = None


class Variant(Struct, gc=False):
    """A variant. Several values of a default are joined by commas."""

    name: str
    default: bool | str
    description: str


class Described(Struct, gc=False):
    """Another package, and its description."""

    name: str
    description: str


class PublishedPackage(Struct, gc=False):
    """A file of the packages site."""

    name: str
    aliases: Any = None
    versions: list[Version] = []
    versions_deprecated: list[Version] | None = None
    latest_version: str | None = None
    build_system: str | None = None
    conflicts: Any = None
    variants: list[Variant] = []
    homepage: str | None = None
    maintainers: Any = None
    patches: Any = None
    resources: Any = None
    description: str | None = None
    dependencies: list[Described] = []
    dependent_to: list[Described] = []


_MEMBERS: Mapping[str, type[Struct]] = {
    "versions": Version,
    "versions_deprecated": Version,
    "variants": Variant,
    "dependencies": Described,
    "dependent_to": Described,
}
"""The keys of a file of the packages site that are lists of objects."""

_BEGINS_LIST = re.compile(rb"\s*\[\s*(?:\]|\"|\{)")
_ARCH = re.compile(rb"\"arch\"\s*:")
"""A key of the specs that `spack find --json` lists."""
_BEGINS_PACKAGE = re.compile(rb"\s*\{\s*\"")
_OF_INDEXES = re.compile(rb"\s*\{\s*\"(?:database|spec|_meta)\"")

_LIST = msgspec.json.Decoder(list[Raw])

T = TypeVar("T", bound=Sized)


def is_package_data(data: bytes) -> bool:
    """Return whether bytes are those of package data: a list, or an object with its keys."""
    if _BEGINS_LIST.match(data):
        return not _ARCH.search(data, 0, 4096)
    if not _BEGINS_PACKAGE.match(data) or _OF_INDEXES.match(data):
        return False
    return b'"latest_version"' in data and b'"name"' in data


def read_facts(file: RawFile) -> list[PackageFacts]:
    """Return what a file says of its packages; `InputError` with its first fault."""
    data, end = file.data, 0
    try:
        require_text(data)
        if not data[:64].lstrip().startswith(b"["):
            return [_within_bounds(_published(file))]
        found: dict[str, PackageFacts] = {}
        told: set[str] = set()
        members = map(bytes, _LIST.decode(data))
    except LineFault as fault:
        raise InputError([Fault(file.location, fault.line, str(fault))]) from None
    except BROKEN as error:
        raise InputError([Fault(file.location, _line_of(data, error), said(error))]) from None
    for member in members:
        start = data.index(member, end)
        end = start + len(member)
        try:
            each = _within_bounds(_listed(file, member, told))
            if found.setdefault(each.name, each) is not each:
                raise ValueError(f"the package {named(each.name)} stands twice, expected once")
        except BROKEN as error:
            line = data.count(b"\n", 0, start) + 1
            raise InputError([Fault(file.location, line, said(error))]) from None
    return [*found.values()]


def _line_of(data: bytes, error: Exception) -> int:
    """Return the line of what is not JSON; 0 if a value is wrong."""
    broken = re.search(r"\(byte (\d+)\)|truncated", str(error))
    return 0 if broken is None else data.count(b"\n", 0, int(broken[1] or len(data))) + 1


def _fields(record: type[Struct]) -> set[str]:
    return {*record.__struct_fields__}


def _listed(file: RawFile, member: bytes, told: set[str]) -> PackageFacts:
    """Return what a member of a list says, which may be a name alone.

    Args:
        file: the list.
        member: its JSON.
        told: the unknown keys of members before it; those of this one are added.

    Raises:
        msgspec.DecodeError: it is not a package, or a value has another type.
        ValueError: there are too many members, or it is not JSON.
    """
    value = msgspec.json.decode(member)
    if isinstance(value, str):
        return PackageFacts(file.location, file.path, NAMED, value)
    package, unknown = msgspec.convert(value, ListedPackage), set[str]()
    require_known(value, _fields(ListedPackage), "", unknown)
    unknown.update(f"dependencies.{each}" for each in package.dependencies.keys() - TYPES)
    problems = _unknown_keys(package.name, unknown - told)
    told |= unknown
    types: dict[str, list[str]] = {}
    for each in TYPES:
        for name in dict.fromkeys(_few(each, package.dependencies.get(each, []))):
            types.setdefault(name, []).append(each)
    texts = {
        "latest_version": package.latest_version,
        "homepage": package.homepage,
        "recipe": package.file,
    }
    versions = _few("versions", package.versions)
    return PackageFacts(
        location=file.location,
        path=file.path,
        form=LISTED,
        name=package.name,
        texts=_shown(package.name, texts, problems),
        versions=dict.fromkeys(versions, KnownVersion(None, False)),
        dependencies={each: tuple(found) for each, found in types.items()},
        problems=tuple(problems),
    )


def _published(file: RawFile) -> PackageFacts:
    """Return what a file of the packages site says (raises as `_listed`)."""
    value = msgspec.json.decode(file.data)
    package, unknown = msgspec.convert(value, PublishedPackage), set[str]()
    require_known(value, _fields(PublishedPackage), "", unknown)
    for key, member in _MEMBERS.items():
        for each in value.get(key) or ():
            require_known(each, _fields(member), f"{key}[]", unknown)
        _few(key, value.get(key) or ())
    problems = _unknown_keys(package.name, unknown)
    variants = {
        each.name: KnownVariant(each.default, each.description)
        for each in reversed(package.variants)
        if not any(
            _is_formula(package.name, f"variant {named(each.name)}", text, problems)
            for text in (each.description, str(each.default))
        )
    }
    # A version that is also deprecated is.
    versions = {
        each.name: KnownVersion(is_deprecated, each.branch is not None)
        for each, is_deprecated in (
            *(
                (each, None if package.versions_deprecated is None else False)
                for each in package.versions
            ),
            *((each, True) for each in package.versions_deprecated or ()),
        )
    }
    columns = ("description", "homepage", "build_system", "latest_version")
    described = [*package.dependencies, *package.dependent_to]
    return PackageFacts(
        location=file.location,
        path=file.path,
        form=PUBLISHED,
        name=package.name,
        texts=_shown(package.name, {each: getattr(package, each) for each in columns}, problems),
        versions=versions,
        variants=dict(reversed(variants.items())),
        dependencies={each.name: () for each in package.dependencies},
        dependents=tuple(dict.fromkeys(each.name for each in package.dependent_to)),
        descriptions={each.name: each.description for each in reversed(described)},
        problems=tuple(problems),
    )


def _few(word: str, members: T) -> T:
    """Return the members of a list; `ValueError` if there are too many."""
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"has {len(members):,} {word}, expected at most {MAX_MEMBERS:,}")
    return members


def _shown(name: str, texts: Mapping[str, str | None], problems: list[Problem]) -> dict[str, str]:
    """Return texts by column, without null and the word `None`.

    A homepage that is not a URL of the web and a formula are left out; each is a problem.
    """
    found = {}
    for key, value in texts.items():
        if value is None or value == "None" or _is_formula(name, key, value, problems):
            continue
        if key == "homepage" and not (value.isprintable() and _HOMEPAGE.fullmatch(value)):
            problems.append(_left_out(name, key, value, "an address of the web"))
        else:
            found[key] = value
    return found


_HOMEPAGE = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)


def _is_formula(name: str, word: str, text: str, problems: list[Problem]) -> bool:
    """Return whether a spreadsheet would run a cell with this text; then it is a problem."""
    is_formula = text.lstrip().startswith(FORMULA)
    if is_formula:
        problems.append(_left_out(name, word, text, "text that begins with no = + - @"))
    return is_formula


def _left_out(name: str, word: str, text: str, expected: str) -> Problem:
    message = f"the package {named(name)} has the {word} {quoted(text)}, expected {expected}"
    return Problem("package_text", f"{message}; it is left out", value=json.dumps(text))


def _unknown_keys(name: str, unknown: Iterable[str]) -> list[Problem]:
    return [
        Problem("unknown_key", f"the package {named(name)} has the unknown key {named(key)}")
        for key in sorted(unknown)
    ]


def _within_bounds(facts: PackageFacts) -> PackageFacts:
    """Return facts as they are; `ValueError` if a text is too long or cannot be stored.

    A description may have any other character: recipes are written by many hands.
    """
    if not is_package(facts.name):
        raise ValueError(f"has the name {named(facts.name)}, expected one that Spack can read")
    names = {
        "version": facts.versions,
        "variant": facts.variants,
        "dependency": (*facts.dependencies, *facts.dependents),
    }
    for word, some in names.items():
        for name in some:
            require_name(word, name)
    texts = [(column.replace("_", " "), text) for column, text in facts.texts.items()]
    for variant in facts.variants.values():
        texts.append(("default", str(variant.default)))
        texts.append(("variant's description", variant.description))
    texts += ((f"description of {named(name)}", text) for name, text in facts.descriptions.items())
    for word, text in texts:
        if len(text) > MAX_DESCRIPTION:
            count = f"{len(text):,} characters, expected at most {MAX_DESCRIPTION:,}"
            raise ValueError(f"has a {word} of {count}")
        if "\0" in text:
            raise ValueError(f"has a {word} with the character NUL, expected text")
    return facts
