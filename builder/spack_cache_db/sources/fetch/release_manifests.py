"""Reads a manifest of releases: the mirrors of many releases and stacks.

    {"develop": [{"label": "e4s", "url": "https://mirror/e4s/…/index.manifest.json"}]}

The public cache has one at https://binaries.spack.io/cache_spack_io_index.json, which
Spack's `images/cache-indexer/cache_indexer.py` writes.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from spack_cache_db.errors import Fault
from spack_cache_db.sources.fetch.addresses import (
    FetchFault,
    Maps,
    Mirror,
    NamedMirrors,
    shown,
)
from spack_cache_db.sources.texts import BROKEN, message_of

_MOST_NAMES = 10
"""Number of releases that a message lists."""


class _Stack(Struct, frozen=True):
    """An entry of a release: the name of a stack, and the URL of its index."""

    label: str
    url: str


_Manifest = dict[str, tuple[_Stack, ...]]
_MANIFEST = msgspec.json.Decoder(_Manifest)


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Maps = (),
    release: str | None = None,
    stack: str | None = None,
    max_mirrors: int = 5000,
) -> NamedMirrors:
    """Return the mirrors of a manifest.

    Args:
        url: the URL of the manifest.
        data: its bytes.
        maps: prefixes of URLs that are replaced.
        release: the release whose mirrors are returned; None for all.
        stack: the stack whose mirrors are returned; None for all.
        max_mirrors: the maximum number of mirrors that it may name.

    Raises:
        FetchFault: it is not a manifest, names too many mirrors, or none that is
            selected.
    """
    manifest = _decoded(url, data)
    count = sum(len(stacks) for stacks in manifest.values())
    if count > max_mirrors:
        expected = f"expected at most {max_mirrors:,} (--max-mirrors)"
        raise FetchFault(url, f"names {count:,} mirrors, {expected}")

    # The mirrors that are selected, and the releases and stacks of all of them.
    mirrors: list[Mirror] = []
    faults: list[Fault] = []
    known_stacks = set()
    for name, stacks in manifest.items():
        for entry in stacks:
            known_stacks.add((name, entry.label))
            is_selected = release in (None, name) and stack in (None, entry.label)
            if not is_selected:
                continue
            try:
                mirrors.append(_mirror_of(url, name, entry).placed(maps))
            except FetchFault as fault:
                faults += fault.faults
    if not mirrors and not faults:
        selected = f"{release or '*'}/{stack or '*'}"
        names = sorted(manifest) or ["none"]
        if len(names) > _MOST_NAMES:
            names = [*names[:_MOST_NAMES], "…"]
        raise FetchFault(url, f"names no stack {selected}, it names {', '.join(names)}")
    return NamedMirrors(tuple(mirrors), tuple(faults), stacks=frozenset(known_stacks))


def _decoded(url: str, data: bytes) -> _Manifest:
    try:
        return _MANIFEST.decode(data)
    except BROKEN as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        message = f"is not a manifest of releases: {message_of(error)}; {expected}"
        raise FetchFault(url, message) from None


def _mirror_of(manifest: str, release: str, stack: _Stack) -> Mirror:
    """Return the mirror of a stack in the manifest at a URL.

    A remote manifest must not select files of this machine.
    """
    if stack.url.startswith("file:") and not manifest.startswith("file:"):
        message = f"is named by {shown(manifest)}, expected no file from there"
        raise FetchFault(stack.url, message)
    return Mirror(stack.url, release, stack.label, manifest=manifest)
