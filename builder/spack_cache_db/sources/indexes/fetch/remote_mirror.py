"""A mirror's index over HTTP: layout 3 with its views, or else layout 2.

Spack 1.0 `url_buildcache.py`. HTTP cannot list what a mirror has, so that views are named by
whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from spack_cache_db.sources.indexes.fetch.addresses import FetchFault, Wanted
from spack_cache_db.sources.indexes.fetch.stack_folder import Download, StackFolder
from spack_cache_db.sources.indexes.fetch.web import MismatchFault, NotThereFault, Web, require_size
from spack_cache_db.sources.indexes.layouts import (
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    Blob,
    is_sum,
    read_manifest,
)
from spack_cache_db.sources.indexes.spack_json import IndexFault

LAYOUT_3 = f"{MANIFESTS}/index.manifest.json"
_SUM = f"{LAYOUT_2_INDEX}.hash"
_SUM_SIZE = 1024
_TRIES = 3
"""How often a mirror that changes while it is read is read."""


class Outcome(NamedTuple):
    """Whether anything is another than before, and what could not be fetched beside it."""

    changed: bool
    faults: tuple[FetchFault, ...] = ()


async def fetch_mirror(web: Web, folder: StackFolder, wanted: Wanted) -> Outcome:
    """Bring a mirror's index, and the views that are asked for.

    Raises:
        FetchFault: it has no index and no view was asked for, or its index cannot be fetched.
    """
    url, changed, faults = wanted.url, False, list[FetchFault]()
    try:
        changed = await _steady(web, partial(_layout_3, web, folder, url, LAYOUT_3))
    except NotThereFault:
        if not wanted.views:
            return Outcome(await _steady(web, partial(_layout_2, web, folder, url)))
    for view in wanted.views:
        name = f"{MANIFESTS}/{view}/index.manifest.json"
        try:
            changed |= await _steady(web, partial(_layout_3, web, folder, url, name))
        except NotThereFault as fault:
            faults.append(FetchFault(url, f"has no view {view}: {name} {fault}"))
        except FetchFault as fault:
            faults.append(fault)
    _keep_other_views(folder, wanted.views)
    return Outcome(changed, tuple(faults))


def _keep_other_views(folder: StackFolder, views: tuple[str, ...]) -> None:
    """Keep the views of earlier runs that were not asked for in this one."""
    asked = {f"{MANIFESTS}/{view}/index.manifest.json" for view in views}
    for name in folder.names():
        if not name.startswith(f"{MANIFESTS}/") or name == LAYOUT_3 or name in asked:
            continue
        try:
            blob = _index_of(name, folder.read(name, MAX_MANIFEST) or b"")
        except FetchFault:
            continue
        folder.keep(name)
        folder.keep(blob.path.as_posix())


async def _layout_3(web: Web, folder: StackFolder, url: str, name: str) -> bool:
    """Bring the index that a manifest names, then the manifest; return whether it is another."""
    at = f"{url}/{name}"
    known = folder.unchanged(name, at)
    answer = await web.read(at, MAX_MANIFEST, known.tags.conditions() if known else {})
    data = answer.data if answer.data is not None or not known else folder.read(name, MAX_MANIFEST)
    if data is None:
        raise FetchFault(at, "answers 304, which was not asked for")
    blob = _index_of(at, data)
    require_size(at, blob.length, web.limits.max_size)
    try:
        path = blob.path.as_posix()
        changed = await Download(folder, path, f"{url}/{path}", blob.checksum).run(web)
    except NotThereFault as fault:
        raise MismatchFault(at, f"names {path}, which {fault}") from None
    if answer.data is None:
        folder.keep(name)
    else:
        folder.write(name, data, at, answer.tags)
    return changed


def _index_of(url: str, data: bytes) -> Blob:
    try:
        blob = read_manifest(data).blob(INDEX)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        raise FetchFault(url, f"names no index, expected one of media type {INDEX}…")
    return blob


async def _layout_2(web: Web, folder: StackFolder, url: str) -> bool:
    """Bring an index, and the file with its sum if there is one; return whether it is another.

    An old sum goes before the new index comes, so that at no time a sum lies beside an index that
    it is not of.
    """
    at = f"{url}/{_SUM}"
    try:
        answer = await web.read(at, _SUM_SIZE)
    except NotThereFault:
        folder.remove(_SUM)
        return await _index_of_layout_2(web, folder, url, None)
    data = answer.data or b""
    sha256 = _sum_of(at, data)
    if folder.unchanged(_SUM, at) is None or folder.read(_SUM, _SUM_SIZE) != data:
        folder.remove(_SUM)
    changed = await _index_of_layout_2(web, folder, url, sha256)
    folder.write(_SUM, data, at, answer.tags)
    return changed


async def _index_of_layout_2(web: Web, folder: StackFolder, url: str, sha256: str | None) -> bool:
    try:
        return await Download(folder, LAYOUT_2_INDEX, f"{url}/{LAYOUT_2_INDEX}", sha256).run(web)
    except NotThereFault:
        message = f"has neither {LAYOUT_3} nor {LAYOUT_2_INDEX}, expected a mirror with an index"
        raise FetchFault(url, f"{message}; --view names a view of one") from None


def _sum_of(url: str, data: bytes) -> str:
    text = data.decode("latin-1").strip()
    if not is_sum(text):
        raise FetchFault(url, "is no sha256, expected 64 hexadecimal digits")
    return text


async def _steady(web: Web, attempt: Callable[[], Awaitable[bool]]) -> bool:
    """Return what an attempt returns; when the mirror changes meanwhile, that of a later one."""
    for turn in range(_TRIES - 1):
        try:
            return await attempt()
        except MismatchFault:
            await asyncio.sleep(web.limits.pause * 2**turn)
    return await attempt()
