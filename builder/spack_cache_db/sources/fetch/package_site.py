"""Downloads package data: an archive or a list of the packages site, or its files one by one."""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import zstandard

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources import File, RawFile, is_archive
from spack_cache_db.sources.archives import read_archive
from spack_cache_db.sources.fetch.addresses import FetchFault, Map, MirrorRequest, mirror_place
from spack_cache_db.sources.fetch.remote_indexes import Outcome
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    NO_HEADERS,
    MismatchFault,
    NotThereFault,
    SilenceFault,
    Web,
    require_size,
)
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.sources.strictness import MAX_INDEX
from spack_cache_db.spack.lexer import is_package

FOLDER = "packages"
"""The folder of package data, with one folder for each host."""

_ARCHIVE, _LIST = "packages.tar.zst", "packages.json"
_OF_THE_SITE = re.compile(r"(?:.*/)?(data/packages(?:/[^/]+)?\.json)")
_LARGEST = 2**28
"""Bytes of an archive or a list; the site's archive has 4 MB, the list 5 MB."""
_LARGEST_FILE = 2**24
"""Bytes of one package's file; a package with thousands of dependents has 2 MB."""


def package_request(text: str, maps: Sequence[Map]) -> MirrorRequest:
    """Return the request for package data; `FetchFault` for a URL that cannot have any."""
    url, _ = mirror_place(text, maps)
    if url.startswith("oci:"):
        raise FetchFault(url, "is an image, expected the address of package data")
    return MirrorRequest(url, FOLDER, str(urlsplit(url).hostname), is_package_data=True)


async def fetch_packages(
    web: Web, folder: StackFolder, url: str, names: Sequence[str] | None
) -> Outcome:
    """Download package data: an archive, a list, or files of a packages site.

    Args:
        web: the client.
        folder: the folder to write into.
        url: URL of an archive or a list, recognized by its suffix, or of a packages site.
        names: packages to download from a packages site.

    Raises:
        FetchFault: nothing was downloaded.
    """
    if is_archive(File(url, url)):
        return Outcome(await _download(web, folder, _ARCHIVE, url, _site_files, _LARGEST))
    if url.endswith(".json"):
        return Outcome(await _download(web, folder, _LIST, url, _package_data, _LARGEST))
    if names is None:
        message = "is neither an archive nor a list"
        raise FetchFault(
            url, f"{message}; for a packages site, name a database: --packages-of FILE"
        )
    return await _download_each(web, folder, url, names)


async def _download_each(web: Web, folder: StackFolder, url: str, names: Sequence[str]) -> Outcome:
    """Download the files of packages in parallel; packages that the site lacks are skipped."""
    file_names = [f"data/packages/{name}.json" for name in names if is_package(name)]
    outcomes: list[bool] = []
    faults: list[FetchFault] = []
    for at in range(0, len(file_names), web.limits.jobs):
        batch = file_names[at : at + web.limits.jobs]
        results = await asyncio.gather(
            *(
                _download(web, folder, name, f"{url}/{name}", _package_data, _LARGEST_FILE)
                for name in batch
            ),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, FetchFault) and not isinstance(result, SilenceFault):
                # Private packages are not on the site.
                faults += [] if isinstance(result, NotThereFault) else [result]
            elif isinstance(result, BaseException):
                raise result
            else:
                outcomes.append(result)
    if not outcomes and not faults:
        raise NotThereFault(url, "has none of these packages, expected data/packages/<name>.json")
    return Outcome(any(outcomes), tuple(faults))


async def _download(
    web: Web,
    folder: StackFolder,
    name: str,
    url: str,
    convert: Callable[[str, bytes, int], bytes],
    largest: int,
) -> bool:
    """Download and convert one file; return whether it changed.

    Raises:
        FetchFault: it cannot be downloaded, or is not package data.
    """
    earlier = await asyncio.to_thread(folder.unchanged, name, url)
    limit = min(largest, web.limits.max_size)
    body = await web.read(url, limit, earlier.tags.conditions() if earlier else NO_HEADERS)
    if body.data is None:
        folder.keep(name)
        return False
    data = await asyncio.to_thread(convert, url, body.data, web.limits.max_size)
    return folder.write(name, data, url, body.tags)


def _package_data(url: str, data: bytes, _: int) -> bytes:
    """Return the data unchanged; `MismatchFault` if it is not package data that `build` reads."""
    if not is_package_data(data):
        raise MismatchFault(url, "is not package data, expected that of Spack or its packages site")
    try:
        read_facts(RawFile(url, url, data))
    except InputError as error:
        raise MismatchFault(url, error.faults[0].message) from None
    return data


def _site_files(url: str, data: bytes, limit: int) -> bytes:
    """Return an archive with only the package data of an archive, which may be a repository.

    Raises:
        MismatchFault: the data is not an archive, or has no package data.
        FetchFault: its uncompressed size exceeds the limit.
    """
    packed, size, is_site = io.BytesIO(), 0, False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(urlsplit(url).path).name)
        path.write_bytes(data)
        with (
            zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as compressed,
            tarfile.open(fileobj=compressed, mode="w|") as archive,
        ):
            for file in read_archive(str(path), MAX_INDEX):
                if isinstance(file, Fault):
                    raise MismatchFault(url, file.message)
                size += len(file.data)
                require_size(url, size, limit)
                inner = _OF_THE_SITE.fullmatch(file.path)
                if inner is None:
                    continue
                is_site = True
                member = tarfile.TarInfo(inner[1])
                member.size = len(file.data)
                archive.addfile(member, io.BytesIO(file.data))
    if not is_site:
        raise MismatchFault(url, "has no package data, expected data/packages/<name>.json")
    return packed.getvalue()
