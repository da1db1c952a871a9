"""Package data → records within limits.

The keys are those of the list that Spack 1.1 prints (`cmd/list.py`, `version_json`), and of the
packages site's `data/packages/<name>.json`. New keys appear with time: what is not declared here is
kept with its whole key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import FORMULA, Problem
from spack_cache_db.sources import Place, RawFile
from spack_cache_db.sources.columns import (
    LISTED,
    NAMED,
    PUBLISHED,
    KnownVariant,
    KnownVersion,
    PackageFacts,
    Writer,
)
from spack_cache_db.sources.strictness import (
    BROKEN,
    named,
    quoted,
    read_strictly,
    require_name,
    require_text,
    said,
)
from spack_cache_db.spack.lexer import is_package

MAX_DESCRIPTION = 2**16
"""Characters of any text; the longest descriptions of Spack's have three thousand."""

MAX_MEMBERS = 2**14
"""Versions, variants, dependencies or dependents of a package. Six thousand packages depend on the
virtual package `c`, and the package with the most versions has some hundreds."""

TYPES = ("build", "link", "run", "test")


class Dependencies(Struct, gc=False):
    """The names of dependencies by type, virtual packages among them."""

    build: list[str] | UnsetType = UNSET
    link: list[str] | UnsetType = UNSET
    run: list[str] | UnsetType = UNSET
    test: list[str] | UnsetType = UNSET


class ListedPackage(Struct, gc=False):
    """A member of the list that `spack list --format version_json` prints."""

    name: str
    latest_version: str | UnsetType | None = UNSET
    versions: list[str] | UnsetType = UNSET
    homepage: str | UnsetType | None = UNSET
    file: str | UnsetType | None = UNSET
    maintainers: Any = UNSET
    dependencies: Dependencies | UnsetType = UNSET


class Version(Struct, gc=False):
    """A version, and where its sources come from."""

    name: str
    sha256: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    commit: str | UnsetType = UNSET


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
    aliases: Any = UNSET
    versions: list[Version] | UnsetType = UNSET
    versions_deprecated: list[Version] | UnsetType = UNSET
    latest_version: str | UnsetType | None = UNSET
    build_system: str | UnsetType | None = UNSET
    conflicts: Any = UNSET
    variants: list[Variant] | UnsetType = UNSET
    homepage: str | UnsetType | None = UNSET
    maintainers: Any = UNSET
    patches: Any = UNSET
    resources: Any = UNSET
    description: str | UnsetType | None = UNSET
    dependencies: list[Described] | UnsetType = UNSET
    dependent_to: list[Described] | UnsetType = UNSET


_BEGINS_LIST = re.compile(rb"\s*\[\s*(?:\]|\"|\{)")
_ARCH = re.compile(rb"\"arch\"\s*:")
"""A key of the specs that `spack find --json` lists."""
_BEGINS_PACKAGE = re.compile(rb"\s*\{\s*\"")
_OF_INDEXES = re.compile(rb"\s*\{\s*\"(?:database|spec|_meta)\"")

_LIST = msgspec.json.Decoder(list[Raw])
_LISTED = msgspec.json.Decoder(ListedPackage)
_PUBLISHED = msgspec.json.Decoder(PublishedPackage)

_ORDINARY = re.compile(r"\w[\w.+=-]{0,99}", re.ASCII)
"""A name in which nothing can be wrong: nearly every one."""

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


def is_package_data(data: bytes) -> bool:
    """Return whether bytes are those of package data: a list, or an object with its keys."""
    if _BEGINS_LIST.match(data):
        return not _ARCH.search(data, 0, 4096)
    if not _BEGINS_PACKAGE.match(data) or _OF_INDEXES.match(data):
        return False
    return b'"latest_version"' in data and b'"name"' in data


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
    try:
        if file.data[:64].lstrip().startswith(b"["):
            return _facts_of_list(file, _LIST.decode(file.data))
        return [_within_bounds(_published(file), file.data)]
    except BROKEN as error:
        raise InputError([Fault(file.location, *_fault_of(file.data, error))]) from None


def _facts_of_list(file: RawFile, members: Iterable[Raw]) -> list[PackageFacts]:
    found: dict[str, PackageFacts] = {}
    faults, end, line = [], 0, 1
    for raw in members:
        member = bytes(raw)
        begin = file.data.index(member, end)
        line += file.data.count(b"\n", end, begin)
        try:
            each = _within_bounds(_listed(file, member), member)
            if found.setdefault(each.name, each) is not each:
                raise ValueError(f"the package {named(each.name)} stands twice, expected once")
        except BROKEN as error:
            faults.append(Fault(file.location, line, _fault_of(member, error)[1]))
        end = begin + len(member)
        line += member.count(b"\n")
    if faults:
        raise InputError(faults)
    return [*found.values()]


def _fault_of(data: bytes, error: BaseException) -> tuple[int, str]:
    """Return the line of what is no JSON, or 0, and what is wrong with it."""
    try:
        json.loads(data)
    except json.JSONDecodeError as found:
        return found.lineno, f"is no JSON: {found.msg}, column {found.colno}"
    except (ValueError, RecursionError) as found:
        return 0, said(found)
    return 0, said(error)


def _decoded(text: bytes, decoder: msgspec.json.Decoder[S]) -> tuple[S, dict[str, Any]]:
    """Return what a text says of a package, and the values of keys of which that has not all.

    Raises:
        msgspec.DecodeError: it is no package, or a value has another type.
        ValueError: it is no JSON that can be kept, or a key stands twice.
    """
    package = decoder.decode(text)
    if _is_whole(text, package):
        return package, {}
    known = msgspec.to_builtins(package)
    values = read_strictly(text)
    return package, {key: each for key, each in values.items() if known.get(key) != each}


def _is_whole(text: bytes, package: Struct) -> bool:
    """Return whether a record has everything of its text, and no key stood twice.

    A key more has quotes more. Those within texts are escaped in both alike.
    """
    try:
        again = msgspec.json.encode(package)
    except OverflowError:  # A number that no decoder of JSON need understand.
        return False
    return text.count(b'"') == again.count(b'"') and b"\\u" not in text


def _listed(file: RawFile, member: bytes) -> PackageFacts:
    """Return what a member of a list says, which may be a name alone (raises as `_decoded`)."""
    if member.startswith(b'"'):
        name = msgspec.json.decode(member, type=str)
        return PackageFacts(file.location, file.path, NAMED, name)
    package, unknown = _decoded(member, _LISTED)
    keys = unknown | _others(package, "maintainers")
    problems = _unknown_keys(package, unknown)
    columns = {"latest_version": "latest_version", "homepage": "homepage", "recipe": "file"}
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
        texts=_texts(package, keys, problems, **columns),
        versions={
            each: KnownVersion(None, False, {})
            for each in _distinct(keys, "versions", package, versions, str)
        },
        dependencies={each: tuple(found) for each, found in types.items()},
        absent=_absent(package),
        keys=keys,
        problems=tuple(problems),
    )


def _published(file: RawFile) -> PackageFacts:
    package, unknown = _decoded(file.data, _PUBLISHED)
    keys = unknown | _others(package, "aliases", "conflicts", "maintainers", "patches", "resources")
    columns = ("description", "homepage", "build_system", "latest_version")
    problems = _unknown_keys(package, unknown)
    variants = [
        each
        for each in _members("variants", package.variants)
        if not _is_formula(package, f"variant {named(each.name)}", each.description, problems)
        and not _is_formula(package, f"variant {named(each.name)}", str(each.default), problems)
    ]
    if package.variants is not UNSET and (
        len(variants) < len(package.variants)
        or any(each.default in ("True", "False") for each in variants)
    ):
        # Texts `True` and `False` would be read back as what is on or off.
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
        texts=_texts(package, keys, problems, **{each: each for each in columns}),
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
        problems=tuple(problems),
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


def _texts(
    package: Any, keys: dict[str, Any], problems: list[Problem], **columns: str
) -> dict[str, str]:
    """Return texts by column; any other value, and the word `None`, is kept in `keys` alone.

    The same holds for a homepage that is not a URL of the web and for a formula: each is a problem.
    """
    found = {}
    for column, key in columns.items():
        value = getattr(package, key)
        if value is UNSET:
            continue
        if value is None or value == "None" or _is_formula(package, key, value, problems):
            keys[key] = value
        elif key == "homepage" and not (value.isprintable() and _HOMEPAGE.fullmatch(value)):
            problems.append(_left_out(package, key, value, "an address of the web"))
            keys[key] = value
        else:
            found[column] = value
    return found


_HOMEPAGE = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)


def _is_formula(package: Any, word: str, text: str, problems: list[Problem]) -> bool:
    """Return whether a spreadsheet would run a cell with this text; then it is a problem."""
    is_formula = text.lstrip().startswith(FORMULA)
    if is_formula:
        problems.append(_left_out(package, word, text, "text that begins with no = + - @"))
    return is_formula


def _left_out(package: Any, word: str, text: str, expected: str) -> Problem:
    what = f"the package {named(package.name)} has the {word} {quoted(text)}, expected {expected}"
    return Problem("package_text", f"{what}; it is left out", value=json.dumps(text))


def _others(package: Struct, *names: str) -> dict[str, Any]:
    """Return the values of keys of which nothing is shown."""
    values = {name: getattr(package, name) for name in names}
    return {name: value for name, value in values.items() if value is not UNSET}


def _absent(package: Struct) -> tuple[str, ...]:
    return tuple(key for key in package.__struct_fields__ if getattr(package, key) is UNSET)


def _unknown_keys(package: Any, unknown: Iterable[str]) -> list[Problem]:
    return [
        Problem(
            "unknown_key", f"the package {named(package.name)} has unknown keys in {named(key)}"
        )
        for key in sorted(unknown)
    ]


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
    """Raise `ValueError` if a text is too long or cannot be stored.

    A description may have any other character: recipes are written by many hands.
    """
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
