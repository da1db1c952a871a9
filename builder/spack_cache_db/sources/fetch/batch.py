"""Runs `fetch`: resolves URLs to mirrors, downloads each into the folder of its stack, and reports.

`web` sends requests, `remote_indexes` finds the index of a mirror, `stack_folder` writes files. A
fault stops one mirror only, and files of earlier runs remain.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from spack_cache_db.bounded_files import alone_in, checked_file
from spack_cache_db.errors import Fault, InputError, faults_of, reason
from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, Progress
from spack_cache_db.sources.fetch.addresses import (
    FetchFault,
    Mirror,
    NamedMirrors,
    mirror_place,
    read_mirror_config,
    read_release_manifest,
    shown,
)
from spack_cache_db.sources.fetch.package_site import fetch_packages, package_request
from spack_cache_db.sources.fetch.remote_indexes import (
    Registry,
    fetch_mirror,
    fetch_sizes,
    manifest_size,
)
from spack_cache_db.sources.fetch.stack_folder import StackFolder, opened, stacks_of
from spack_cache_db.sources.fetch.web import Access, SilenceFault, Web
from spack_cache_db.sources.indexes.mirrors import Binary, binaries_left_out

_MANIFEST_SIZE = 16 * 2**20
"""Bytes of a manifest of releases; the public cache's has far less than 1 MB."""


def fetch(
    urls: Iterable[str],
    output: Path,
    options: FetchOptions,
    limits: FetchLimits,
    progress: Progress | None,
) -> FetchReport:
    """Download the indexes of mirrors into a folder (see `fetch` of this package)."""
    started = time.monotonic()
    with alone_in(output, "fetch"):
        run = _Run(output, options, limits)
        size = asyncio.run(run.download([*dict.fromkeys(urls)], progress))
    return FetchReport(
        run.downloaded + run.failed,
        run.downloaded,
        run.changed,
        size,
        time.monotonic() - started,
        tuple(sorted(run.vanished)),
        tuple(sorted(run.faults)),
        tuple(sorted(run.notes)),
    )


class _Run:
    """One run, and its counts."""

    def __init__(self, output: Path, options: FetchOptions, limits: FetchLimits) -> None:
        self.downloaded = self.changed = self.failed = 0
        self.vanished: set[Path] = set()
        self.faults: set[Fault] = set()
        self.notes: list[str] = []
        self._output = output
        self._options = options
        self._limits = limits
        self._mirrors: dict[str, Mirror] = {}

    async def download(self, urls: list[str], progress: Progress | None) -> int:
        """Download all mirrors of the URLs; return the number of bytes received."""
        options, configured = self._options, NamedMirrors()
        if options.mirrors is not None:
            configured = read_mirror_config(checked_file("mirrors", options.mirrors), os.environ)
            self._add_faults(configured.faults)
            self.notes += configured.notes
        accesses = []
        for mirror in configured.mirrors:
            # Fetching it reports a text that is not a URL.
            with suppress(FetchFault):
                url, _ = mirror_place(mirror.url, options.maps)
                accesses.append(mirror._replace(url=url))
        async with Web(self._limits, progress, Access(accesses, os.environ)) as web:
            if options.packages is not None:
                with self._faults_kept():
                    self._add(package_request(options.packages, options.maps))
            await self._each(web, [*map(Mirror, urls), *configured.mirrors], self._resolve)
            await self._each(web, [*self._mirrors.values()], self._download)
            return web.received

    async def _each(
        self, web: Web, mirrors: list[Mirror], do: Callable[[Web, Mirror], Awaitable[None]]
    ) -> None:
        """Process mirrors in parallel; a fault stops only its own mirror."""

        async def process(mirror: Mirror) -> None:
            with self._faults_kept(), faults_of(shown(mirror.url)):
                await do(web, mirror)

        await web.in_parallel(mirrors, process)

    @contextmanager
    def _faults_kept(self) -> Iterator[None]:
        """Record the faults of one mirror, and continue with the others."""
        try:
            yield
        except InputError as error:
            self.failed += 1
            self.faults.update(error.faults)

    def _add_faults(self, faults: tuple[Fault, ...]) -> None:
        """Record one fault for each of several mirrors."""
        self.failed += len(faults)
        self.faults.update(faults)

    async def _resolve(self, web: Web, mirror: Mirror) -> None:
        """Add the mirrors of a URL."""
        options = self._options
        url, view = mirror_place(mirror.url, options.maps)
        is_mirror = not mirror.has_index or view or url.startswith("oci:")
        data = None if is_mirror else await _release_manifest(web, url)
        if data is None:
            release, views = options.release or mirror.release, (*mirror.views, *options.views)
            mirror = mirror._replace(release=release, stack=options.stack, views=views)
            self._add(mirror.placed(options.maps))
            return
        maximum = self._limits.max_mirrors
        selected = options.release, options.stack
        manifest = read_release_manifest(url, data, options.maps, *selected, maximum)
        if options.views:
            raise FetchFault(url, "is a manifest of releases, which has no views: no --view")
        self._add_faults(manifest.faults)
        for member in manifest.mirrors:
            with self._faults_kept():
                self._add(member)
        self.vanished |= {
            folder
            for folder in stacks_of(self._output, url)
            if (folder.parent.name, folder.name) not in manifest.stacks
        }

    def _add(self, mirror: Mirror) -> None:
        """Add a mirror; `FetchFault` if its folder is taken, or there are too many mirrors."""
        maximum = self._limits.max_mirrors
        if len(self._mirrors) >= maximum and mirror.folder not in self._mirrors:
            message = f"is one of more than {maximum:,} mirrors, expected fewer (--max-mirrors)"
            raise FetchFault(mirror.url, message)
        first = self._mirrors.setdefault(mirror.folder, mirror)
        if first.url != mirror.url:
            message = f"goes to {mirror.folder} as {shown(first.url)} does"
            raise FetchFault(mirror.url, f"{message}; fetch it with another --release")

    async def _download(self, web: Web, mirror: Mirror) -> None:
        try:
            with opened(self._output, mirror) as folder:
                await self._fetch(web, folder, mirror)
        except OSError as error:
            path = self._output / mirror.folder
            message = f"cannot be written: {reason(error)}"
            raise InputError([Fault(str(path), 0, message)]) from None
        self.changed += folder.changed
        self.downloaded += not folder.faults
        if mirror.include_binary or mirror.exclude_binary:
            self.notes += await asyncio.to_thread(binaries_left_out, folder.path)
        if folder.faults:
            raise InputError(fault for error in folder.faults for fault in error.faults)

    async def _fetch(self, web: Web, folder: StackFolder, mirror: Mirror) -> None:
        url = mirror.url
        size_of: Callable[[Binary], Awaitable[int]] = partial(manifest_size, web, url)
        if mirror.is_package_data:
            await fetch_packages(web, folder, url, self._options.package_names)
            return
        if not url.startswith("oci:"):
            await fetch_mirror(web, folder, mirror)
        elif mirror.views:
            raise FetchFault(url, "is an image, which has no views: no --view")
        else:
            registry = Registry(web, url, plain_http=self._options.plain_http)
            size_of = registry.size
            await registry.fetch(folder)
        if self._options.sizes and not folder.faults:
            self.notes += await fetch_sizes(web, folder, url, size_of)


async def _release_manifest(web: Web, url: str) -> bytes | None:
    """Return the data at a URL if it looks like a manifest of releases, otherwise None.

    A mirror may return anything for its own URL, such as a list of files or an error.
    """
    try:
        data = (await web.read(url, _MANIFEST_SIZE)).data or b""
    except SilenceFault:
        raise
    except FetchFault:
        return None
    return data if data.lstrip()[:1] == b"{" else None
