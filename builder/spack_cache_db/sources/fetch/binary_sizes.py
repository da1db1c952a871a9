"""Downloads the sizes of binaries from their manifests in a mirror or registry."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from spack_cache_db.errors import counted
from spack_cache_db.sources import SIZES_FILE
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import SilenceFault, Tags, Web
from spack_cache_db.sources.indexes import (
    LAYOUT_2_INDEX,
    MAX_MANIFEST,
    TARBALL,
    IndexFault,
    read_manifest,
    read_sizes,
)
from spack_cache_db.sources.indexes.mirrors import Binary, listed_binaries
from spack_cache_db.sources.strictness import MAX_INDEX, as_json


async def manifest_size(web: Web, url: str, binary: Binary) -> int:
    """Return the size of a tarball in a mirror of layout 3; `FetchFault` if it is not known."""
    # Names of files are those of Spack 1.2 (`filesystem.py`, `polite_filename`).
    name = re.sub(r"[^A-Za-z0-9_+.-]", "_", "-".join(binary))
    name = name if url.startswith("s3:") else quote(name)
    at = f"{url}/v3/manifests/spec/{binary[0]}/{name}.spec.manifest.json"
    try:
        blob = read_manifest((await web.read(at, MAX_MANIFEST)).data or b"").blob(TARBALL)
    except IndexFault as fault:
        raise FetchFault(at, str(fault)) from None
    if blob is None:
        raise FetchFault(at, "names no tarball, expected one")
    return blob.length


async def download_sizes(
    folder: StackFolder, url: str, size_of: Callable[[Binary], Awaitable[int]], jobs: int
) -> tuple[bool, list[str]]:
    """Add the sizes of new binaries to the recorded sizes, and drop those of removed binaries.

    Returns:
        Whether a size changed, and a note if some are unknown.

    Raises:
        SilenceFault: the mirror stopped responding; the sizes so far are stored.
    """
    if LAYOUT_2_INDEX in folder.names():
        return False, [f"{url}: a mirror of layout 2 does not record sizes"]
    binaries = await asyncio.to_thread(listed_binaries, folder.path)
    at, earlier, unknown = f"{url}/{SIZES_FILE}", dict[str, int](), list[object]()
    if folder.unchanged(SIZES_FILE, at):
        earlier = read_sizes(folder.read(SIZES_FILE, MAX_INDEX) or b"{}")
    sizes = {binary[-1]: earlier[binary[-1]] for binary in binaries if binary[-1] in earlier}
    new = [binary for binary in binaries if binary[-1] not in earlier]
    try:
        for start in range(0, len(new), jobs):
            batch = new[start : start + jobs]
            answers = await asyncio.gather(*map(size_of, batch), return_exceptions=True)
            for binary, size in zip(batch, answers, strict=True):
                if isinstance(size, int):
                    sizes[binary[-1]] = size
                elif isinstance(size, FetchFault) and not isinstance(size, SilenceFault):
                    unknown.append(size)
                else:
                    raise size
    finally:
        changed = folder.write(SIZES_FILE, as_json(sizes).encode(), at, Tags())
    count = counted(len(unknown), "binary", "binaries")
    return changed, [f"{url}: the size of {count} is unknown: {fault}" for fault in unknown[:1]]
