"""Asks for the sizes of binaries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spack_cache_db.errors import counted
from spack_cache_db.sources.bounds import MAX_INDEX
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.mirrors import blob_of, spec_manifest
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.files import SIZES_FILE
from spack_cache_db.sources.indexes.addresses import read_sizes
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import (
    LAYOUT_2_INDEX,
    TARBALL,
    is_clear_signed,
)
from spack_cache_db.sources.indexes.mirrors import Binary, listed_binaries
from spack_cache_db.sources.texts import as_json


async def manifest_size(
    web: Web, url: str, signatures: dict[str, bool], binary: Binary
) -> int:
    """Return the size of a tarball in a mirror of layout 3; `FetchFault` if it is not
    known.

    Whether the manifest is signed is added to `signatures`, by the hash of the binary.
    """
    at = spec_manifest(url, binary)
    manifest = await web.read(at)
    size = blob_of(at, manifest, TARBALL).content_length
    signatures[binary[-1]] = is_clear_signed(manifest)
    return size


async def fetch_sizes(
    web: Web, folder: StackFolder, url: str, size_of: Callable[[Binary], Awaitable[int]]
) -> list[str]:
    """Add the sizes of new binaries, and drop those of removed ones; return a note on
    others.

    If the mirror stops responding, the sizes so far are stored.
    """
    if LAYOUT_2_INDEX in folder.files:
        return [f"{url}: a mirror of layout 2 does not record sizes"]
    binaries = await asyncio.to_thread(listed_binaries, folder.path)
    try:
        earlier = read_sizes(folder.stored(SIZES_FILE, MAX_INDEX) or b"{}")
    except IndexFault:
        earlier = {}
    sizes = {
        binary[-1]: earlier[binary[-1]] for binary in binaries if binary[-1] in earlier
    }
    unknown: list[FetchFault] = []

    async def add(binary: Binary) -> None:
        try:
            sizes[binary[-1]] = await size_of(binary)
        except FetchFault as fault:
            unknown.append(fault)

    try:
        await web.in_parallel(
            (binary for binary in binaries if binary[-1] not in sizes), add
        )
    finally:
        folder.write(SIZES_FILE, as_json(sizes).encode(), f"{url}/{SIZES_FILE}")
    count = counted(len(unknown), "binary", "binaries")
    return [f"{url}: the size of {count} is unknown: {fault}" for fault in unknown[:1]]
