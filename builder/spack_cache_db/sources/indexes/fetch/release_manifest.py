"""A manifest of releases and stacks: `{release: [{"label": stack, "url": index}]}`.

spack-infrastructure `images/cache-indexer/cache_indexer.py`, which writes that of the public cache:
the URLs there are those of indexes (or of their blobs), in a store's own scheme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.faults import said
from spack_cache_db.sources.indexes.fetch.faults import FetchFault
from spack_cache_db.sources.indexes.fetch.wanted import Map, Wanted, mirror_url, require_name


class _Stack(Struct, frozen=True):
    label: str
    url: str


_MANIFEST = msgspec.json.Decoder(dict[str, tuple[_Stack, ...]])


class Named(NamedTuple):
    """What a manifest names: mirrors, every (release, stack), and what is wrong with the others."""

    mirrors: tuple[Wanted, ...]
    stacks: frozenset[tuple[str, str]]
    faults: tuple[FetchFault, ...]


def is_release_manifest(data: bytes) -> bool:
    """Return whether data looks like a manifest of releases, whole or not: an object of JSON."""
    return data.lstrip()[:1] == b"{"


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Sequence[Map] = (),
    release: str | None = None,
    stack: str | None = None,
) -> Named:
    """Return what a manifest names.

    Args:
        url: where it is.
        data: its bytes.
        maps: what its addresses are here.
        release: the only release whose mirrors are wanted; all without.
        stack: the only stack whose mirrors are wanted; all without.

    Raises:
        FetchFault: it is none, or names nothing that is wanted.
    """
    try:
        manifest = _MANIFEST.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        raise FetchFault(url, f"is no manifest of releases: {said(error)}; {expected}") from None
    stacks = {(name, each.label) for name, listed in manifest.items() for each in listed}
    mirrors: list[Wanted] = []
    faults: list[FetchFault] = []
    for name, listed in manifest.items():
        for each in listed:
            if release in (None, name) and stack in (None, each.label):
                try:
                    mirrors.append(_mirror(url, name, each, maps))
                except FetchFault as fault:
                    faults.append(fault)
    if not mirrors and not faults:
        asked = "/".join(each or "*" for each in (release, stack))
        raise FetchFault(url, f"names no stack {asked}, it names {_shortened(stacks)}")
    return Named(tuple(mirrors), frozenset(stacks), tuple(faults))


def _mirror(manifest: str, release: str, stack: _Stack, maps: Sequence[Map]) -> Wanted:
    require_name(manifest, "release", release)
    require_name(manifest, "stack", stack.label)
    address = mirror_url(stack.url, maps)
    return Wanted(address, release, stack.label, manifest=manifest)


def _shortened(stacks: set[tuple[str, str]]) -> str:
    """Return the names of releases, not more than a line takes."""
    names = sorted({release for release, _ in stacks})
    shown = ", ".join(names[:10]) or "none"
    return f"{shown}, …" if len(names) > 10 else shown
