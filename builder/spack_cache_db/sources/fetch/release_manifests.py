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
    stacks = [(name, entry) for name, entries in manifest.items() for entry in entries]
    if len(stacks) > max_mirrors:
        expected = f"expected at most {max_mirrors:,} (--max-mirrors)"
        raise FetchFault(url, f"names {len(stacks):,} mirrors, {expected}")
    mirrors, faults = list[Mirror](), list[Fault]()
    for name, entry in stacks:
        if release in (None, name) and stack in (None, entry.label):
            try:
                mirror = Mirror(entry.url, name, entry.label, manifest=url)
                # A remote manifest must not select files of this machine.
                if entry.url.startswith("file:") and not url.startswith("file:"):
                    message = f"is named by {shown(url)}, expected no file from there"
                    raise FetchFault(entry.url, message)
                mirrors.append(mirror.placed(maps))
            except FetchFault as fault:
                faults += fault.faults
    if not mirrors and not faults:
        filters = "/".join(name or "*" for name in (release, stack))
        names = sorted(manifest) or ["none"]
        first_names = ", ".join([*names[:10], *(["…"] if len(names) > 10 else [])])
        raise FetchFault(url, f"names no stack {filters}, it names {first_names}")
    pairs = frozenset((name, entry.label) for name, entry in stacks)
    return NamedMirrors(tuple(mirrors), tuple(faults), stacks=pairs)
