"""Downloads the index of a mirror, and the indexes of its views.

In layout 3, that of Spack 1.0 and later (`url_buildcache.py`), a manifest names the
file of the index by its checksum. In layout 2, the index has one name,
`build_cache/index.json`, and its checksum may be in a file beside it. A local folder
may also be an installation, or have only spec files.
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
from spack_cache_db.sources.indexes.mirror_content import Binary, files_without_index

LAYOUT_3 = f"{MANIFESTS}/index.manifest.json"
"""The manifest of the index of a mirror of layout 3."""

_ADVICE = (
    "`spack buildcache update-index` makes one, --view names a view, "
    "and `spack-cache-db build FOLDER` reads a copy of the mirror without one"
)
_NO_BINARIES = (
    "a folder without spec files has no binaries; `spack buildcache push` adds some"
)


async def fetch_mirror(web: Web, folder: StackFolder, mirror: Mirror) -> None:
    """Download the index of a mirror, and those of its views.

    Faults of views go to `folder.faults`, because the other files are of use.

    Raises:
        FetchFault: the index of the mirror cannot be downloaded.
        InputError: its server does not respond, or its folder cannot be read.
    """
    # The index of layout 3, or else what else there may be. With views, there need not
    # be any index.
    url = mirror.url
    if mirror.has_index:
        try:
            await _steady(web, partial(_fetch_layout_3, web, folder, url, LAYOUT_3))
        except NotThereFault:
            if not mirror.views:
                await _fetch_without_layout_3(web, folder, url)
                return

    # Views.
    for view in mirror.views:
        name = f"{MANIFESTS}/{view}/index.manifest.json"
        try:
            await _steady(web, partial(_fetch_layout_3, web, folder, url, name))
        except NotThereFault as fault:
            message = f"has no view {view}: {name} {fault}"
            folder.faults.append(FetchFault(url, message))
        except FetchFault as fault:
            folder.faults.append(fault)

    # Views of earlier runs stay, each with the file that its manifest names.
    if not mirror.has_index:
        return
    for name in folder.files:
        is_view = name.startswith(f"{MANIFESTS}/") and name != LAYOUT_3
        if is_view and name not in folder.kept:
            with suppress(FetchFault):
                blob = blob_of(name, folder.stored(name, MAX_MANIFEST), INDEX)
                folder.kept |= {name, blob.path.as_posix()}


async def _fetch_layout_3(web: Web, folder: StackFolder, url: str, name: str) -> None:
    """Download the index of a manifest, and store the manifest after it.

    In this order, a folder never has a manifest without its index.
    """
    manifest_url = f"{url}/{name}"
    manifest = await web.read(manifest_url)
    blob = blob_of(manifest_url, manifest, INDEX)
    require_size(manifest_url, blob.content_length, web.limits.max_size)
    path = blob.path.as_posix()
    try:
        await folder.download(web, path, f"{url}/{path}", blob.checksum)
    except NotThereFault as fault:
        # The mirror has replaced both meanwhile.
        raise MismatchFault(manifest_url, f"names {path}, which {fault}") from None
    folder.write(name, manifest, manifest_url)


def blob_of(url: str, manifest: bytes, media_type: str) -> Blob:
    """Return the file that a manifest names.

    Args:
        url: the URL of the manifest, for messages.
        manifest: its bytes.
        media_type: the kind of the file: `INDEX` or `TARBALL`.

    Raises:
        FetchFault: it is not a manifest, or names no such file.
    """
    try:
        blob = read_manifest(manifest).blob(media_type)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        kind = "index" if media_type == INDEX else "tarball"
        message = f"names no {kind}, expected one of media type {media_type}…"
        raise FetchFault(url, message)
    return blob


async def _fetch_without_layout_3(web: Web, folder: StackFolder, url: str) -> None:
    """Download the files of a local folder that `build` reads without a mirror's index,
    or else an index of layout 2.
    """
    names = await asyncio.to_thread(_local_names, url)
    for name in names:
        file_url = f"{url}/{quote(name)}"
        data = await web.read(file_url, limit=web.limits.max_size)
        folder.write(name, data, file_url)
    if not names:
        await _steady(web, partial(_fetch_layout_2, web, folder, url))


def _local_names(url: str) -> list[str]:
    """Return the files that `build` reads from a local folder without a mirror's
    index; none for another URL.
    """
    if not url.startswith("file://"):
        return []
    folder = Path(url2pathname(urlsplit(url).path))
    with faults_of(url):
        if not folder.is_dir():
            raise FetchFault(url, "there is no such folder, expected a mirror")
        return files_without_index(folder)


async def _fetch_layout_2(web: Web, folder: StackFolder, url: str) -> None:
    """Download an index, and verify its checksum if the mirror has it."""
    checksum_url = f"{url}/{LAYOUT_2_INDEX}.hash"
    sha256 = None
    try:
        checksum = await web.read(checksum_url)
    except NotThereFault:
        pass
    else:
        sha256 = checksum.decode("latin-1").strip()
        if not is_sum(sha256):
            expected = "expected 64 hexadecimal digits"
            raise FetchFault(checksum_url, f"is not a sha256, {expected}")
    try:
        await folder.download(web, LAYOUT_2_INDEX, f"{url}/{LAYOUT_2_INDEX}", sha256)
    except NotThereFault as fault:
        message = f"has neither {LAYOUT_3} nor {LAYOUT_2_INDEX}, expected a mirror with an index"
        if fault.status == 403:
            raise FetchFault(url, f"{message}, or a login that may read it") from None
        advice = _NO_BINARIES if url.startswith("file:") else _ADVICE
        raise FetchFault(url, f"{message}: {advice}") from None


async def _steady(web: Web, attempt: Callable[[], Awaitable[None]]) -> None:
    """Repeat an attempt, at most twice, if the mirror changes between its requests."""
    for factor in (1, 2):
        try:
            return await attempt()
        except MismatchFault:
            await asyncio.sleep(web.limits.pause * factor)
    return await attempt()


def spec_manifest(url: str, binary: Binary) -> str:
    """Return the URL of the manifest of a binary in a mirror of layout 3.

    It is `…/v3/manifests/spec/zlib/zlib-1.3.1-<hash>.spec.manifest.json`.
    """
    name = f"{binary.package}-{binary.version}-{binary.hash}"
    # Names of files are those of Spack 1.2 (`filesystem.py`, `polite_filename`).
    name = re.sub(r"[^A-Za-z0-9_+.-]", "_", name)
    name = in_url(url, name)
    return f"{url}/v3/manifests/spec/{binary.package}/{name}.spec.manifest.json"


def in_url(url: str, name: str) -> str:
    """Return the name of a file of a mirror for its URL.

    The URL of an object store is percent-encoded later, when it is signed.
    """
    return name if url.startswith("s3:") else quote(name)
