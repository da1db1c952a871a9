"""The JSON of package data as records: the list that Spack prints, and the packages site's files.

The keys are those of Spack 1.1 (`cmd/list.py`, `version_json`) and of the site's
`data/packages/<name>.json`. New keys appear with time: whatever is not declared here is kept with
its whole key (`Decoded.unknown`).
"""

from __future__ import annotations

import json
import re
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from spack_cache_db.sources.strict_json import read_strictly, said

S = TypeVar("S", bound=Struct)


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


class Decoded(NamedTuple, Generic[S]):
    """A record, and the values of keys of which it does not have all, by key."""

    package: S
    unknown: dict[str, Any]


_BEGINS_LIST = re.compile(rb"\s*\[\s*(?:\]|\"|\{)")
_BEGINS_PACKAGE = re.compile(rb"\s*\{\s*\"")
_OF_INDEXES = re.compile(rb"\s*\{\s*\"(?:database|spec|_meta)\"")

_LIST = msgspec.json.Decoder(list[Raw])
LISTED_PACKAGE = msgspec.json.Decoder(ListedPackage)
PUBLISHED_PACKAGE = msgspec.json.Decoder(PublishedPackage)


def is_package_data(data: bytes) -> bool:
    """Return whether bytes are those of package data: a list, or an object with its keys."""
    if _BEGINS_LIST.match(data):
        return True
    if not _BEGINS_PACKAGE.match(data) or _OF_INDEXES.match(data):
        return False
    return b'"latest_version"' in data and b'"name"' in data


def is_list(data: bytes) -> bool:
    """Return whether package data is a list of packages."""
    return data[:64].lstrip().startswith(b"[")


def read_list(data: bytes) -> list[bytes]:
    """Return the members of a list, undecoded; `msgspec.DecodeError` if it is none."""
    return [bytes(each) for each in _LIST.decode(data)]


def read_name(member: bytes) -> str | None:
    """Return the member of a list that is a name and nothing else; None of another one."""
    return msgspec.json.decode(member, type=str) if member.startswith(b'"') else None


def read_package(text: bytes, decoder: msgspec.json.Decoder[S]) -> Decoded[S]:
    """Return what a text says of a package.

    Raises:
        msgspec.DecodeError: it is no package, or a value has another type.
        ValueError: it is no JSON that can be kept, or a key stands twice.
    """
    package = decoder.decode(text)
    if _is_whole(text, package):
        return Decoded(package, {})
    known = msgspec.to_builtins(package)
    values = read_strictly(text)
    return Decoded(package, {key: each for key, each in values.items() if known.get(key) != each})


def fault_of(data: bytes, error: Exception) -> tuple[int, str]:
    """Return the line of what is no JSON, or 0, and what is wrong with it."""
    try:
        json.loads(data)
    except json.JSONDecodeError as found:
        return found.lineno, f"is no JSON: {found.msg}, column {found.colno}"
    except (ValueError, RecursionError) as found:
        return 0, said(found)
    return 0, said(error)


def _is_whole(text: bytes, package: Struct) -> bool:
    """Return whether a record has everything of its text, and no key stood twice.

    A key more has quotes more. Those within texts are escaped in both alike.
    """
    try:
        again = msgspec.json.encode(package)
    except OverflowError:  # A number that no decoder of JSON need understand.
        return False
    return text.count(b'"') == again.count(b'"') and b"\\u" not in text
