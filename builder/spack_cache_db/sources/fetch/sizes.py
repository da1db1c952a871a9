"""Downloads the sizes of binaries, which indexes do not have.

Each size needs a request, for the manifest of the binary or for its image. The sizes of
earlier runs are in `sizes.json`, so only new binaries are asked for.
"""

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
from spack_cache_db.sources.indexes.mirror_content import Binary, listed_binaries
from spack_cache_db.sources.texts import as_json


async def fetch_sizes(
    web: Web, folder: StackFolder, url: str, size_of: Callable[[Binary], Awaitable[int]]
) -> list[str]:
    """Write the sizes of the binaries that the indexes in a folder list.

    If the mirror stops responding, the sizes so far are stored.

    Args:
        web: the HTTP client.
        folder: the folder of the mirror.
        url: the URL of the mirror.
        size_of: asks for the size of one binary.

    Returns:
        A note with the number of binaries whose size is unknown, if there are any.
    """
    if LAYOUT_2_INDEX in folder.files:
        return [f"{url}: a mirror of layout 2 does not record sizes"]
    binaries = await asyncio.to_thread(listed_binaries, folder.path)
    try:
        earlier = read_sizes(folder.stored(SIZES_FILE, MAX_INDEX) or b"{}")
    except IndexFault:
        earlier = {}

    # The size of a binary never changes. Those of removed binaries are dropped.
    sizes = {}
    new_binaries = []
    for binary in binaries:
        if binary.hash in earlier:
            sizes[binary.hash] = earlier[binary.hash]
        else:
            new_binaries.append(binary)

    # Ask for the others.
    faults: list[FetchFault] = []

    async def add(binary: Binary) -> None:
        try:
            sizes[binary.hash] = await size_of(binary)
        except FetchFault as fault:
            faults.append(fault)

    try:
        await web.in_parallel(new_binaries, add)
    finally:
        folder.write(SIZES_FILE, as_json(sizes).encode(), f"{url}/{SIZES_FILE}")
    if not faults:
        return []
    count = counted(len(faults), "binary", "binaries")
    return [f"{url}: the size of {count} is unknown: {faults[0]}"]


async def manifest_size(
    web: Web, url: str, signatures: dict[str, bool], binary: Binary
) -> int:
    """Return the size of a tarball in a mirror of layout 3.

    Args:
        web: the HTTP client.
        url: the URL of the mirror.
        signatures: whether each binary is signed, by its hash. The manifest shows that
            too, so it is added.
        binary: the binary.

    Raises:
        FetchFault: the size is not known.
    """
    manifest_url = spec_manifest(url, binary)
    manifest = await web.read(manifest_url)
    size = blob_of(manifest_url, manifest, TARBALL).content_length
    signatures[binary.hash] = is_clear_signed(manifest)
    return size
