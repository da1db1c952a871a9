"""Downloads package data, which is what Spack's recipes say about packages.

A URL has it in one of three forms: an archive of the packages site, the list that Spack
prints, or the site itself, which has a file `data/packages/<name>.json` for each
package.
"""

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
from spack_cache_db.sources.archives import read_archive
from spack_cache_db.sources.bounds import MAX_INDEX
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    NO_HEADERS,
    SMALL,
    MismatchFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.files import File, RawFile, is_archive
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.spack.lexer import is_package

_FILE_OF_SITE = re.compile(
    r"(?:.*/)?(?P<path>data/(?:packages(?:/[^/]+)?|repology)\.json)"
)
"""The path of a file of the site in an archive, with the folders above it."""

_LARGEST = 2**28
"""Bytes of an archive or a list; the site's archive has 4 MB, the list 5 MB."""


async def fetch_packages(
    web: Web, folder: StackFolder, url: str, names: Sequence[str] | None
) -> None:
    """Download an archive or a list, recognized by its suffix, or files of a packages
    site.

    Packages that the site lacks are skipped, because they may be private. Faults of
    others go to `folder.faults`.

    Args:
        web: the HTTP client.
        folder: the folder to write into.
        url: the URL of the archive, the list or the site.
        names: the packages whose files are downloaded from a site.

    Raises:
        FetchFault: there is no package data at the URL.
    """
    if url.startswith("oci:"):
        raise FetchFault(url, "is an image, expected the address of package data")
    if is_archive(File(url, url)):
        await _download(web, folder, "packages.tar.zst", url, _site_files)
    elif url.endswith(".json"):
        await _download(web, folder, "packages.json", url, _package_data)
    elif names is None:
        advice = "for a packages site, name a database: --packages-of FILE"
        raise FetchFault(url, f"is neither an archive nor a list; {advice}")
    else:
        await _download_each(web, folder, url, names)


async def _download_each(
    web: Web, folder: StackFolder, url: str, names: Sequence[str]
) -> None:
    """Download the file of each package that the site has."""
    count = 0

    async def add(name: str) -> None:
        nonlocal count
        path = f"data/packages/{name}.json"
        try:
            await _download(web, folder, path, f"{url}/{path}", _package_data, SMALL)
            count += 1
        except NotThereFault:
            pass
        except FetchFault as fault:
            folder.faults.append(fault)

    await web.in_parallel(filter(is_package, names), add)
    if not count and not folder.faults:
        raise FetchFault(
            url, "has none of these packages, expected data/packages/<name>.json"
        )


async def _download(
    web: Web,
    folder: StackFolder,
    name: str,
    url: str,
    convert: Callable[[str, bytes], bytes],
    largest: int = _LARGEST,
) -> None:
    """Download and convert one file.

    Args:
        web: the HTTP client.
        folder: the folder to write into.
        name: the path of the file within the folder.
        url: its URL.
        convert: returns what is written, from the URL and the bytes.
        largest: the maximum number of bytes.

    Raises:
        FetchFault: it is not package data, or cannot be downloaded.
    """
    # A server sends only a file that has changed since the last run.
    earlier = await asyncio.to_thread(folder.unchanged, name, url)
    if_changed = NO_HEADERS if earlier is None else earlier.conditions
    stream = io.BytesIO()
    limit = min(largest, web.limits.max_size)
    conditions = await web.save(url, stream, limit, if_changed)
    folder.kept.add(name)
    # None: it has not changed.
    if conditions is None:
        return
    data = await asyncio.to_thread(convert, url, stream.getvalue())
    folder.write(name, data, url, conditions)


def _package_data(url: str, data: bytes) -> bytes:
    """Return the data unchanged; `MismatchFault` if it is not package data that `build`
    reads.
    """
    if not is_package_data(data):
        expected = "expected that of Spack or its packages site"
        raise MismatchFault(url, f"is not package data, {expected}")
    try:
        read_facts(RawFile(url, url, data))
    except InputError as error:
        raise MismatchFault(url, error.faults[0].message) from None
    return data


def _site_files(url: str, data: bytes) -> bytes:
    """Return an archive with only the package data of an archive.

    The archive may be that of a whole repository, of which the data is a part.
    """
    packed = io.BytesIO()
    size = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|") as archive,
    ):
        # A file, whose name shows the kind of the archive.
        path = Path(folder, Path(urlsplit(url).path).name)
        path.write_bytes(data)
        for file in read_archive(str(path), MAX_INDEX):
            if isinstance(file, Fault):
                raise MismatchFault(url, file.message)
            size += len(file.data)
            require_size(url, size, _LARGEST)
            file_of_site = _FILE_OF_SITE.fullmatch(file.path)
            if file_of_site is not None:
                member = tarfile.TarInfo(file_of_site["path"])
                member.size = len(file.data)
                archive.addfile(member, io.BytesIO(file.data))
        # The position in the archive: nothing was added.
        if not archive.offset:
            raise MismatchFault(
                url, "has no package data, expected data/packages/<name>.json"
            )
    return packed.getvalue()
