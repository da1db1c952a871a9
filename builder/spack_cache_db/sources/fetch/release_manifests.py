"""Reads the manifest of a release: its stacks and their mirrors."""

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
    label: str
    url: str


_MANIFEST = msgspec.json.Decoder(dict[str, tuple[_Stack, ...]])


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Maps = (),
    release: str | None = None,
    stack: str | None = None,
    max_mirrors: int = 5000,
) -> NamedMirrors:
    """Return the mirrors of a manifest, `{release: [{"label": stack, "url": index}]}`.

    Spack's `images/cache-indexer/cache_indexer.py` writes the public cache's; its URLs
    name indexes or their blobs. A release and a stack select mirrors.
    """
    try:
        manifest = _MANIFEST.decode(data)
    except BROKEN as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        message = f"is not a manifest of releases: {message_of(error)}; {expected}"
        raise FetchFault(url, message) from None
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
            if release not in (None, name) or stack not in (None, entry.label):
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


def _mirror_of(manifest: str, release: str, stack: _Stack) -> Mirror:
    """Return the mirror of a stack in the manifest at a URL.

    A remote manifest must not select files of this machine.
    """
    if stack.url.startswith("file:") and not manifest.startswith("file:"):
        message = f"is named by {shown(manifest)}, expected no file from there"
        raise FetchFault(stack.url, message)
    return Mirror(stack.url, release, stack.label, manifest=manifest)
