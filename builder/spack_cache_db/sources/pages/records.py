"""What a page says, as frozen records. No text is changed here: `normal.py` does that."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page: the source's own summary of its `spec_details`.

    Pages may share one; two are equal if they are the same object.
    """

    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    oss: tuple[str, ...]
    platforms: tuple[str, ...]
    targets: tuple[str, ...]
    stacks: tuple[str, ...]
    num_specs: int
    num_specs_by_stack: dict[str, int]


class SpecDetail(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One member of `spec_details`: one listing, in the spelling of its page."""

    hash: str
    compiler: str
    versions: tuple[str, ...]
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    size: str
    tarball: str | UnsetType = UNSET


OF_A_LISTING = frozenset({"hash", "stacks", "size", "tarball"})
"""The fields of a detail that say nothing of the configuration."""


class Page(Struct, frozen=True, gc=False):
    """One page: one package in one release.

    `format` is the era of the page: A (2025 on), B (early 2025) or C (2023 and 2024). `location`
    and `line` (of `spec_details`) are for messages, `path` is the page's name within the input.
    """

    location: str
    path: str
    line: int
    sha256: str
    package: str
    release: str
    format: str
    meta: Meta
    details: tuple[SpecDetail, ...]
