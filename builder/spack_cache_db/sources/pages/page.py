"""The record of one page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from spack_cache_db.errors import LineFault
from spack_cache_db.model import is_name
from spack_cache_db.sources.facts import Document, PageFacts
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.front_matter import (
    JSON_KEYS,
    Entry,
    read_front_matter,
)
from spack_cache_db.sources.pages.json_values import (
    Meta,
    SpecDetail,
    decode_details,
    decode_meta,
)
from spack_cache_db.sources.texts import quoted
from spack_cache_db.spack.lexer import is_package

T = TypeVar("T")

_LONGEST_NAME = 100
"""Characters of the name of a package or a release."""
_RELEASE_NAME = (
    f"at most {_LONGEST_NAME} printable characters, no blank at either end, "
    "none of = + - @ first"
)
_PACKAGE_NAME = (
    f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"
)


class Page(NamedTuple):
    """A page, whose listings are not decoded yet.

    Attributes:
        document: the page as a document, without problems.
        package: its package.
        meta: its summary of the listings.
        details: the JSON of its listings, the value of `spec_details`.
        line: the line of `spec_details`, for messages.
    """

    document: Document
    package: str
    meta: Meta
    details: bytes
    line: int


def parse_page(file: RawFile) -> Page:
    """Return the record of one page; raises `LineFault`."""
    front = read_front_matter(file.data)
    package: str = _value_of(front, "title", _package)
    _value_of(front, "layout", _require_layout)
    release: str = _value_of(front, "categories", _release)
    meta: Meta = _value_of(front, "meta", decode_meta)
    details: bytes = _value_of(front, "spec_details", bytes)

    # Format A is of 2025 and later, B of early 2025, C of 2023 and 2024.
    if front["meta"].value.startswith(b'{"versions"'):
        form = "C"
    elif "@=" in " ".join(meta.compilers):
        form = "B"
    else:
        form = "A"
    document = Document(
        file.location,
        file.path,
        hashlib.sha256(file.data).hexdigest(),
        release,
        page=PageFacts(package, form),
    )
    return Page(document, package, meta, details, front["spec_details"].line)


def details_of(page: Page) -> tuple[SpecDetail, ...]:
    """Return the listings of a page; raises `LineFault` if one cannot be read."""
    try:
        return decode_details(page.details)
    except ValueError as error:
        raise LineFault(page.line, str(error)) from None


def _value_of(front: dict[str, Entry], key: str, read: Callable[[Any], T]) -> T:
    """Return the value of a key as a function reads it.

    Raises:
        LineFault: the value of a big key is not JSON, or the function raises
            `ValueError`.
    """
    line, value = front[key]
    if key in JSON_KEYS and not isinstance(value, bytes):
        message = f"{key} is not plain JSON, expected a line `{key}: ` and JSON"
        raise LineFault(line, message)
    try:
        return read(value)
    except ValueError as error:
        raise LineFault(line, str(error)) from None


def _package(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError("title is not a package name, expected text")
    if not is_package(name) or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"title is {quoted(name)}, expected a package name: {_PACKAGE_NAME}"
        )
    return name


def _require_layout(text: Any) -> None:
    if text != "cache":
        value = quoted(text) if isinstance(text, str) else "not a text"
        raise ValueError(f"layout is {value}, expected cache")


def _release(categories: Any) -> str:
    match categories:
        case ["package", str(release)] if release:
            if is_name(release) and len(release) <= _LONGEST_NAME:
                return release
            raise ValueError(
                f"the release is {quoted(release)}, expected a name: {_RELEASE_NAME}"
            )
    raise ValueError("no release in categories, expected [package, RELEASE]")
