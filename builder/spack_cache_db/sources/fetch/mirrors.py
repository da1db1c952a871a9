"""Downloads indexes of mirrors, sizes of binaries, and package data.

Layouts 2 and 3 are those of Spack 1.0 `url_buildcache.py`. In a registry, the index is
the only layer of the image with the tag `index.spack` (`binary_distribution.py`,
`OCIIndexFetcher`; OCI Distribution Specification 1.1; "Token Authentication
Specification", distribution/distribution).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from spack_cache_db.errors import faults_of
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    MismatchFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import (
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    Blob,
    is_sum,
    read_manifest,
)
from spack_cache_db.sources.indexes.mirrors import Binary, files_without_index

LAYOUT_3 = f"{MANIFESTS}/index.manifest.json"
_ADVICE = (
    "`spack buildcache update-index` makes one, --view names a view, "
    "and `spack-cache-db build FOLDER` reads a copy of the mirror without one"
)
_NO_BINARIES = (
    "a folder without spec files has no binaries; `spack buildcache push` adds some"
)


async def fetch_mirror(web: Web, folder: StackFolder, mirror: Mirror) -> None:
    """Download the index of a mirror, and its views; faults of views go to
    `folder.faults`.
    """
    try:
        if mirror.has_index:
            await _steady(web, partial(_layout_3, web, folder, mirror.url, LAYOUT_3))
    except NotThereFault:
        if not mirror.views:
            names = await asyncio.to_thread(_local_names, mirror.url)
            for at, name in ((f"{mirror.url}/{quote(name)}", name) for name in names):
                folder.write(name, await web.read(at, limit=web.limits.max_size), at)
            if not names:
                await _steady(web, partial(_layout_2, web, folder, mirror.url))
            return
    manifests = {
        view: f"{MANIFESTS}/{view}/index.manifest.json" for view in mirror.views
    }
    for view, name in manifests.items():
        try:
            await _steady(web, partial(_layout_3, web, folder, mirror.url, name))
        except NotThereFault as fault:
            message = f"has no view {view}: {name} {fault}"
            folder.faults.append(FetchFault(mirror.url, message))
        except FetchFault as fault:
            folder.faults.append(fault)
    # Views of earlier runs stay.
    for name in folder.files if mirror.has_index else ():
        if name.startswith(f"{MANIFESTS}/") and name not in {LAYOUT_3, *folder.kept}:
            with suppress(FetchFault):
                blob = blob_of(name, folder.stored(name, MAX_MANIFEST), INDEX)
                folder.kept |= {name, blob.path.as_posix()}


def _local_names(url: str) -> list[str]:
    """Return the files that `build` reads from a local folder without a mirror's
    index.
    """
    if not url.startswith("file://"):
        return []
    folder = Path(url2pathname(urlsplit(url).path))
    with faults_of(url):
        if not folder.is_dir():
            raise FetchFault(url, "there is no such folder, expected a mirror")
        return files_without_index(folder)


async def _layout_3(web: Web, folder: StackFolder, url: str, name: str) -> None:
    """Download the index of a manifest, then store the manifest."""
    at = f"{url}/{name}"
    manifest = await web.read(at)
    blob = blob_of(at, manifest, INDEX)
    require_size(at, blob.content_length, web.limits.max_size)
    path = blob.path.as_posix()
    try:
        await folder.download(web, path, f"{url}/{path}", blob.checksum)
    except NotThereFault as fault:
        raise MismatchFault(at, f"names {path}, which {fault}") from None
    folder.write(name, manifest, at)


def blob_of(url: str, manifest: bytes, media_type: str) -> Blob:
    """Return the blob of this type that the manifest at `url` names, or raise
    `FetchFault`.
    """
    try:
        blob = read_manifest(manifest).blob(media_type)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        kind = "index" if media_type == INDEX else "tarball"
        raise FetchFault(
            url, f"names no {kind}, expected one of media type {media_type}…"
        )
    return blob


async def _layout_2(web: Web, folder: StackFolder, url: str) -> None:
    """Download an index, and verify its checksum if it has one."""
    at, sha256 = f"{url}/{LAYOUT_2_INDEX}.hash", None
    try:
        sha256 = (await web.read(at)).decode("latin-1").strip()
        if not is_sum(sha256):
            raise FetchFault(at, "is not a sha256, expected 64 hexadecimal digits")
    except NotThereFault:
        pass
    try:
        await folder.download(web, LAYOUT_2_INDEX, f"{url}/{LAYOUT_2_INDEX}", sha256)
    except NotThereFault as fault:
        message = f"has neither {LAYOUT_3} nor {LAYOUT_2_INDEX}, expected a mirror with an index"
        if fault.status == 403:
            raise FetchFault(url, f"{message}, or a login that may read it") from None
        advice = _NO_BINARIES if url.startswith("file:") else _ADVICE
        raise FetchFault(url, f"{message}: {advice}") from None


async def _steady(web: Web, attempt: Callable[[], Awaitable[None]]) -> None:
    """Repeat an attempt, at most twice, if the mirror changes meanwhile."""
    for factor in (1, 2):
        try:
            return await attempt()
        except MismatchFault:
            await asyncio.sleep(web.limits.pause * factor)
    return await attempt()


def spec_manifest(url: str, binary: Binary) -> str:
    """Return the URL of the manifest of a binary in a mirror of layout 3."""
    # Names of files are those of Spack 1.2 (`filesystem.py`, `polite_filename`).
    name = re.sub(r"[^A-Za-z0-9_+.-]", "_", "-".join(binary))
    name = name if url.startswith("s3:") else quote(name)
    return f"{url}/v3/manifests/spec/{binary[0]}/{name}.spec.manifest.json"
