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
"""The folder into which package data goes, below it one for each host."""

_ARCHIVE, _LIST = "packages.tar.zst", "packages.json"
_OF_THE_SITE = re.compile(r"(?:.*/)?(data/packages(?:/[^/]+)?\.json)")
_LARGEST = 2**28
"""Bytes of an archive or a list; the site's archive has 4 million, the list 5 million."""
_LARGEST_FILE = 2**24
"""Bytes of one package's file; that of a package on which thousands depend has 2 million."""


def package_request(text: str, maps: Sequence[Map]) -> MirrorRequest:
    """Return where package data comes from and goes to; `FetchFault` for what cannot be asked."""
    url, _ = mirror_place(text, maps)
    if url.startswith("oci:"):
        raise FetchFault(url, "is an image, expected the address of package data")
    return MirrorRequest(url, FOLDER, str(urlsplit(url).hostname), is_package_data=True)


async def fetch_packages(
    web: Web, folder: StackFolder, url: str, names: Sequence[str] | None
) -> Outcome:
    """Bring package data: what is at a URL, or below it the files of some packages.

    Args:
        web: what asks.
        folder: where the files go.
        url: that of an archive or a list, known by its ending, or of a packages site.
        names: the packages whose files of the site are wanted.

    Raises:
        FetchFault: nothing could be brought.
    """
    if is_archive(File(url, url)):
        return Outcome(await _bring(web, folder, _ARCHIVE, url, _site_files, _LARGEST))
    if url.endswith(".json"):
        return Outcome(await _bring(web, folder, _LIST, url, _package_data, _LARGEST))
    if names is None:
        words = "is neither an archive nor a list"
        raise FetchFault(url, f"{words}; for a packages site, name a database: --packages-of FILE")
    return await _bring_each(web, folder, url, names)


async def _bring_each(web: Web, folder: StackFolder, url: str, names: Sequence[str]) -> Outcome:
    """Bring the file of each package that the site has, so many at once."""
    wanted = [f"data/packages/{name}.json" for name in names if is_package(name)]
    outcomes: list[bool] = []
    faults: list[FetchFault] = []
    for at in range(0, len(wanted), web.limits.jobs):
        some = wanted[at : at + web.limits.jobs]
        found = await asyncio.gather(
            *(
                _bring(web, folder, name, f"{url}/{name}", _package_data, _LARGEST_FILE)
                for name in some
            ),
            return_exceptions=True,
        )
        for each in found:
            if isinstance(each, FetchFault) and not isinstance(each, SilenceFault):
                # A package of somebody's own is on no site.
                faults += [] if isinstance(each, NotThereFault) else [each]
            elif isinstance(each, BaseException):
                raise each
            else:
                outcomes.append(each)
    if not outcomes and not faults:
        raise NotThereFault(url, "has none of these packages, expected data/packages/<name>.json")
    return Outcome(any(outcomes), tuple(faults))


async def _bring(
    web: Web,
    folder: StackFolder,
    name: str,
    url: str,
    wanted: Callable[[str, bytes, int], bytes],
    largest: int,
) -> bool:
    """Bring one file, or what is wanted of it; return whether it is another than before.

    Raises:
        FetchFault: it cannot be had, or is not package data.
    """
    known = await asyncio.to_thread(folder.unchanged, name, url)
    limit = min(largest, web.limits.max_size)
    body = await web.read(url, limit, known.tags.conditions() if known else NO_HEADERS)
    if body.data is None:
        folder.keep(name)
        return False
    data = await asyncio.to_thread(wanted, url, body.data, web.limits.max_size)
    return folder.write(name, data, url, body.tags)


def _package_data(url: str, data: bytes, _: int) -> bytes:
    """Return what is package data; `MismatchFault` if it is none that `build` takes."""
    if not is_package_data(data):
        raise MismatchFault(url, "is not package data, expected that of Spack or its packages site")
    try:
        read_facts(RawFile(url, url, data))
    except InputError as error:
        raise MismatchFault(url, error.faults[0].message) from None
    return data


def _site_files(url: str, data: bytes, limit: int) -> bytes:
    """Return an archive of the files of package data alone: a repository has many others.

    Raises:
        MismatchFault: it is not an archive, or has none of them.
        FetchFault: it unpacks to more than the limit.
    """
    packed, size, is_site = io.BytesIO(), 0, False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(urlsplit(url).path).name)
        path.write_bytes(data)
        with (
            zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as compressed,
            tarfile.open(fileobj=compressed, mode="w|") as archive,
        ):
            for each in read_archive(str(path), MAX_INDEX):
                if isinstance(each, Fault):
                    raise MismatchFault(url, each.message)
                size += len(each.data)
                require_size(url, size, limit)
                inner = _OF_THE_SITE.fullmatch(each.path)
                if inner is None:
                    continue
                is_site = True
                member = tarfile.TarInfo(inner[1])
                member.size = len(each.data)
                archive.addfile(member, io.BytesIO(each.data))
    if not is_site:
        raise MismatchFault(url, "has no package data, expected data/packages/<name>.json")
    return packed.getvalue()
