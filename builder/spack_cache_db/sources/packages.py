"""Reads package data, which is what Spack's recipes say about packages.

There are three formats. Unknown keys, such as those of later versions, are reported and
ignored.

1. The list that `spack list --format version_json` prints (Spack 1.1 `cmd/list.py`,
   `version_json`); a member may also be a name alone:
   `[{"name": "zlib", "latest_version": "1.3.1", ...}, "zsh"]`.
2. One file of the packages site for each package, `data/packages/zlib.json`, which also
   has variants and descriptions.
3. The file that the site publishes for Repology, `data/repology.json`, the only one
   with licenses and tags: `{"packages": {"zlib": {"licenses": ["Zlib"], ...}}}`.

All of them have the maintainers of recipes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from spack_cache_db.errors import LineFault, faults_of, one_line
from spack_cache_db.model import FORMULA, Problem
from spack_cache_db.sources.bounds import (
    MAX_NAME,
    MAX_TEXT,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.facts import (
    CATALOGUED,
    LISTED,
    NAMED,
    PUBLISHED,
    KnownLicense,
    KnownVariant,
    KnownVersion,
    PackageFacts,
)
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.texts import BROKEN, message_of, printable_name, quoted
from spack_cache_db.spack.facts import DEPTYPES
from spack_cache_db.spack.lexer import is_package

MAX_DESCRIPTION = 2**16
"""Maximum length of a text; Spack's longest descriptions have three thousand
characters.
"""

MAX_MEMBERS = 2**14
"""Maximum of versions, variants, dependencies or dependents of a package; the virtual
package `c` has six thousand dependents.
"""

Text = Annotated[str, Meta(max_length=MAX_DESCRIPTION, pattern=r"^[^\0]*\Z")]
"""A text of limited length, without a NUL."""

_Many = Meta(max_length=MAX_MEMBERS)


# The objects of all formats, as msgspec decodes them.


class ListedPackage(Struct, gc=False):
    """A member of the list; `dependencies` are names by type."""

    name: str
    latest_version: Text | None = None
    versions: Annotated[list[str], _Many] = []
    homepage: Text | None = None
    recipe: Text | None = msgspec.field(default=None, name="file")
    dependencies: dict[str, Annotated[list[str], _Many]] = {}
    maintainers: Annotated[list[str], _Many] = []


class Version(Struct, gc=False):
    """A version, and the branch of its source code if it is one."""

    name: str
    branch: str | None = None


class Variant(Struct, gc=False):
    """A variant; several default values are joined by commas."""

    name: str
    default: bool | Text
    description: Text


class Described(Struct, gc=False):
    """The name and description of another package."""

    name: str
    description: Text


class PublishedPackage(Struct, gc=False):
    """A file of the packages site; `dependent_to` are packages that depend on it."""

    name: str
    versions: Annotated[list[Version], _Many] = []
    versions_deprecated: Annotated[list[Version], _Many] | None = None
    latest_version: Text | None = None
    build_system: Text | None = None
    variants: Annotated[list[Variant], _Many] = []
    homepage: Text | None = None
    description: Text | None = None
    dependencies: Annotated[list[Described], _Many] = []
    dependent_to: Annotated[list[Described], _Many] = []
    maintainers: Annotated[list[str], _Many] = []


class CataloguedVersion(Struct, gc=False):
    """A version, and the branch of its source code if it is one."""

    version: str
    branch: str | None = None


class CataloguedPackage(Struct, gc=False):
    """An entry of the file for Repology; `categories` are the tags of the recipe.

    The first of its homepages is that of the recipe. A condition follows a license as
    it follows a patch, as in `MIT when @2:`.
    """

    name: str
    summary: Text | None = None
    homepages: Annotated[list[Text], _Many] = []
    version: Annotated[list[CataloguedVersion], _Many] = []
    dependencies: Annotated[list[str], _Many] = []
    maintainers: Annotated[list[str], _Many] = []
    licenses: Annotated[list[Text], _Many] = []
    categories: Annotated[list[str], _Many] = []


_KEYS_OF_SPACK = {
    *PublishedPackage.__struct_fields__, *ListedPackage.__struct_encode_fields__,
    "aliases", "conflicts", "patches", "resources",
}  # fmt: skip
_KNOWN_KEYS = {
    LISTED: _KEYS_OF_SPACK,
    PUBLISHED: _KEYS_OF_SPACK,
    CATALOGUED: {
        *CataloguedPackage.__struct_fields__, "alias", "downloads", "patches",
    },
}  # fmt: skip
"""The keys of a package in each format; others are unknown."""

_VERSION_KEYS = {*Version.__struct_fields__, "sha256", "tag", "commit"}
_KNOWN_KEYS_IN_LISTS = {
    "version": {*CataloguedVersion.__struct_fields__, "downloads", "repositories"},
    "versions": _VERSION_KEYS,
    "versions_deprecated": _VERSION_KEYS,
    "variants": set(Variant.__struct_fields__),
    "dependencies": set(Described.__struct_fields__),
    "dependent_to": set(Described.__struct_fields__),
}
"""The keys of the objects in each list of a package; others are unknown."""


# How the formats begin, to tell them from other JSON.

_BEGINS_LIST = re.compile(rb"\s*\[\s*(?:\]|\"|\{)")
_BEGINS_OBJECT = re.compile(rb"\s*\{\s*\"")
_BEGINS_CATALOGUE = re.compile(rb"\s*\{\s*\"(?:last_update|num_packages)\"")
_BEGINS_INDEX = re.compile(rb"\s*\{\s*\"(?:database|spec|_meta)\"")
_KEY_OF_CONCRETE_SPECS = re.compile(rb"\"arch\"\s*:")
"""A key of the specs that `spack find --json` prints, which are also a list."""


def is_package_data(data: bytes) -> bool:
    """Return whether a file is package data: a list, or an object with its keys."""
    if _BEGINS_LIST.match(data):
        return not _KEY_OF_CONCRETE_SPECS.search(data, 0, 4096)
    if _BEGINS_CATALOGUE.match(data):
        return True
    if not _BEGINS_OBJECT.match(data) or _BEGINS_INDEX.match(data):
        return False
    return b'"latest_version"' in data and b'"name"' in data


class Catalogue(Struct, gc=False):
    """The file for Repology; the packages are not decoded yet."""

    packages: dict[str, Raw]


_MEMBERS = msgspec.json.Decoder(list[Raw])
"""Splits a list into its members, without decoding them."""

_CATALOGUE = msgspec.json.Decoder(Catalogue)


class _Name(Struct, gc=False):
    """The name of a package, whatever else its entry has."""

    name: str


_NAME = msgspec.json.Decoder(_Name)


def read_facts(file: RawFile) -> list[PackageFacts]:
    """Return the facts about the packages of a file.

    Raises:
        InputError: the file is not package data; it has the first fault.
    """
    data = file.data
    form = _form_of(data)
    facts: dict[str, PackageFacts] = {}
    reported_keys: set[str] = set()
    # The member that is being read, and the byte at which it begins, for the line of a
    # fault.
    member = data
    start = 0
    with faults_of(file.location):
        require_text(data)
        try:
            for raw_member in _members(data, form):
                member = bytes(raw_member)
                start = data.index(member, start)
                package = _read_package(member, form, reported_keys)
                if package.name in facts:
                    raise ValueError(
                        f"the package {package.name} is repeated, expected once"
                    )
                facts[package.name] = replace(
                    package, location=file.location, path=file.path
                )
                start += len(member)
        except BROKEN as error:
            start += _broken_at(error, len(member))
            line = data.count(b"\n", 0, start) + 1
            raise LineFault(line, message_of(error)) from None
    return list(facts.values())


def _form_of(data: bytes) -> str:
    """Return the form of package data by its beginning."""
    if data[:64].lstrip().startswith(b"["):
        return LISTED
    return CATALOGUED if _BEGINS_CATALOGUE.match(data) else PUBLISHED


def _members(data: bytes, form: str) -> Iterator[Raw | bytes]:
    """Yield the JSON of each package.

    The file for Repology repeats a package under the names that it had before.
    """
    if form == LISTED:
        yield from _MEMBERS.decode(data)
    elif form == CATALOGUED:
        for name, member in _CATALOGUE.decode(data).packages.items():
            if _NAME.decode(member).name == name:
                yield member
    else:
        yield data


def _broken_at(error: BaseException, length: int) -> int:
    """Return the byte at which the JSON of a member is broken.

    The message of msgspec contains it: `... (byte 12)`, or `truncated` for the end. The
    fault of a value has no place, so it is that of the member, 0.
    """
    found = re.search(r"\(byte (?P<byte>\d+)\)|truncated", str(error))
    if found is None:
        return 0
    if found["byte"] is None:
        return length
    return int(found["byte"])


def _read_package(member: bytes, form: str, reported_keys: set[str]) -> PackageFacts:
    """Return the facts about one package, without the path of its file.

    An unknown key is a problem of the first package of the file that has it, and is
    added to `reported_keys`.
    """
    value = msgspec.json.decode(member)
    problems: list[Problem] = []
    package = _READERS[form](value, problems)
    _check_names(package)
    for key in sorted(_unknown_keys(value, form) - reported_keys):
        reported_keys.add(key)
        message = f"has the unknown key {printable_name(key)}"
        problems.append(Problem("unknown_key", message))

    # The messages name the package.
    named_problems = []
    for problem in problems:
        message = f"the package {package.name} {problem.message}"
        named_problems.append(problem._replace(message=message))
    return replace(package, problems=tuple(named_problems))


def _listed_package(value: Any, problems: list[Problem]) -> PackageFacts:
    """Return the facts of a member of a list, which may be a name alone."""
    package = msgspec.convert(value, ListedPackage | str)
    if isinstance(package, str):
        return PackageFacts("", "", NAMED, package)
    # The list has names by type: {"build": ["cmake"], "link": ["zlib"]}. The facts have
    # types by name. A name that is repeated counts once.
    types_of: dict[str, list[str]] = {}
    for deptype in DEPTYPES:
        names = package.dependencies.get(deptype, [])
        for name in dict.fromkeys(names):
            types_of.setdefault(name, []).append(deptype)
    return replace(
        PackageFacts("", "", LISTED, package.name),
        texts=_stored_texts(_texts_of(package), problems),
        # The list does not show which versions are deprecated, or branches.
        versions=dict.fromkeys(package.versions, KnownVersion(None, False)),
        dependencies={name: tuple(types) for name, types in types_of.items()},
        maintainers=_stored_names("maintainer", package.maintainers, problems),
    )


def _published_package(value: Any, problems: list[Problem]) -> PackageFacts:
    """Return the facts of a file of the packages site."""
    package = msgspec.convert(value, PublishedPackage)

    # Of several entries with one name, the first one counts. Read from the last to the
    # first, each entry replaces those after it.
    variants = {}
    for variant in reversed(package.variants):
        word = f"variant {printable_name(variant.name)}"
        if _is_formula(word, variant.description, problems):
            continue
        if _is_formula(word, str(variant.default), problems):
            continue
        variants[variant.name] = KnownVariant(variant.default, variant.description)
    descriptions = {}
    for other in reversed([*package.dependencies, *package.dependent_to]):
        descriptions[other.name] = other.description

    # A version may be in both lists. Without the list of deprecated versions, nothing
    # shows which ones are.
    is_deprecated = None if package.versions_deprecated is None else False
    versions = {}
    for version in package.versions:
        is_branch = version.branch is not None
        versions[version.name] = KnownVersion(is_deprecated, is_branch)
    for version in package.versions_deprecated or ():
        is_branch = version.branch is not None
        versions[version.name] = KnownVersion(True, is_branch)

    dependents = [dependent.name for dependent in package.dependent_to]
    return replace(
        PackageFacts("", "", PUBLISHED, package.name),
        texts=_stored_texts(_texts_of(package), problems),
        versions=versions,
        # In the order of the file again.
        variants=dict(reversed(variants.items())),
        # The site does not show the types of dependencies.
        dependencies={dependency.name: () for dependency in package.dependencies},
        dependents=tuple(dict.fromkeys(dependents)),
        descriptions=descriptions,
        maintainers=_stored_names("maintainer", package.maintainers, problems),
    )


def _catalogued_package(value: Any, problems: list[Problem]) -> PackageFacts:
    """Return the facts of an entry of the file for Repology."""
    package = msgspec.convert(value, CataloguedPackage)
    texts = {"description": package.summary}
    if package.homepages:
        texts["homepage"] = package.homepages[0]
    # The file does not show which versions are deprecated.
    versions = {}
    for version in package.version:
        versions[version.version] = KnownVersion(None, version.branch is not None)
    return replace(
        PackageFacts("", "", CATALOGUED, package.name),
        texts=_stored_texts(texts, problems),
        versions=versions,
        # The file does not show the types of dependencies.
        dependencies=dict.fromkeys(package.dependencies, ()),
        maintainers=_stored_names("maintainer", package.maintainers, problems),
        licenses=_stored_licenses(package.licenses, problems),
        tags=_stored_names("tag", package.categories, problems),
    )


_READERS = {
    LISTED: _listed_package,
    PUBLISHED: _published_package,
    CATALOGUED: _catalogued_package,
}
"""The function that reads a package of each form."""


_TEXTS = ("description", "homepage", "build_system", "latest_version", "recipe")
_HOMEPAGE = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)


def _texts_of(package: Struct) -> dict[str, str | None]:
    """Return the texts of a package, by column; each format lacks some of them."""
    return {key: getattr(package, key, None) for key in _TEXTS}


def _stored_texts(
    given: Mapping[str, str | None], problems: list[Problem]
) -> dict[str, str]:
    """Return the texts of a package that are stored, by column.

    Null and the word None, which Spack writes for a missing text, are left out. So are
    formulas and homepages that are not URLs, which are added to the problems.
    """
    texts = {}
    for key, value in given.items():
        if value is None or value == "None":
            continue
        if _is_formula(key, value, problems):
            continue
        if key == "homepage" and not _is_url(value):
            problems.append(_left_out(key, value, "a URL of the web"))
            continue
        texts[key] = value
    return texts


def _stored_names(
    kind: str, names: Iterable[str], problems: list[Problem]
) -> tuple[str, ...]:
    """Return the names of maintainers or tags, each once and sorted.

    Formulas are left out, and added to the problems.
    """
    stored = set()
    for name in names:
        word = one_line(name)
        if not word or _is_formula(kind, word, problems):
            continue
        require_short(kind, word, MAX_NAME)
        stored.add(word)
    return tuple(sorted(stored))


def _stored_licenses(
    texts: Iterable[str], problems: list[Problem]
) -> tuple[KnownLicense, ...]:
    """Return licenses such as `MIT` and `MIT when @2:`, each once and sorted."""
    stored = set()
    for text in texts:
        line = one_line(text)
        if not line or _is_formula("license", line, problems):
            continue
        require_short("license", line, MAX_TEXT)
        name, _, condition = line.partition(" when ")
        stored.add(KnownLicense(name, condition or None))
    # None sorts before all conditions.
    return tuple(sorted(stored, key=lambda known: (known[0], known[1] or "")))


def _is_url(text: str) -> bool:
    return text.isprintable() and _HOMEPAGE.fullmatch(text) is not None


def _is_formula(word: str, text: str, problems: list[Problem]) -> bool:
    """Return whether a spreadsheet would run a text; if so, add a problem."""
    is_formula = text.lstrip().startswith(FORMULA)
    if is_formula:
        problems.append(_left_out(word, text, "text that begins with no = + - @"))
    return is_formula


def _left_out(word: str, text: str, expected: str) -> Problem:
    """Return the problem of a text that is not stored; the problem has it as JSON."""
    message = f"has the {word} {quoted(text)}, expected {expected}; it is left out"
    return Problem("package_text", message, value=json.dumps(text))


def _check_names(facts: PackageFacts) -> None:
    """Raise `ValueError` if a name is too long or cannot be stored."""
    if not is_package(facts.name):
        name = printable_name(facts.name)
        raise ValueError(f"has the name {name}, expected one that Spack can read")
    for name in facts.versions:
        require_name("version", name)
    for name in facts.variants:
        require_name("variant", name)
    for name in (*facts.dependencies, *facts.dependents):
        require_name("dependency", name)


def _unknown_keys(value: Any, form: str) -> set[str]:
    """Return the unknown keys of a package, such as `odd` and `versions[].odd`."""
    # A name alone.
    if not isinstance(value, dict):
        return set()
    unknown = value.keys() - _KNOWN_KEYS[form]
    for key, known_keys in _KNOWN_KEYS_IN_LISTS.items():
        entries = value.get(key)
        # Null, or a key that this format does not have, or has with other content.
        if not isinstance(entries, list):
            continue
        for entry in entries:
            # In the list that Spack prints, versions are texts.
            if isinstance(entry, dict):
                names = entry.keys() - known_keys
                unknown |= {f"{key}[].{name}" for name in names}
    # In the list that Spack prints, dependencies are an object by type.
    dependencies = value.get("dependencies")
    if isinstance(dependencies, dict):
        names = dependencies.keys() - set(DEPTYPES)
        unknown |= {f"dependencies.{name}" for name in names}
    return unknown
