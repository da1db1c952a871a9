"""Runs `fetch`: resolves URLs to mirrors, downloads each into the folder of its stack, and reports.

`web` sends requests, `remote_indexes` finds the index of a mirror, `stack_folder` writes files. A
fault stops one mirror only, and files of earlier runs remain.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from spack_cache_db.arguments import checked_file
from spack_cache_db.bounded_files import alone_in
from spack_cache_db.errors import Fault, InputError, faults_of, reason
from spack_cache_db.sources import SIZES_FILE
from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, Progress
from spack_cache_db.sources.fetch.addresses import (
    ConfiguredMirror,
    FetchFault,
    MirrorRequest,
    mirror_place,
    mirror_request,
    read_mirror_config,
    read_release_manifest,
    shown,
)
from spack_cache_db.sources.fetch.binary_sizes import download_sizes, manifest_size
from spack_cache_db.sources.fetch.package_site import fetch_packages, package_request
from spack_cache_db.sources.fetch.remote_indexes import Outcome, Registry, fetch_mirror
from spack_cache_db.sources.fetch.stack_folder import StackFolder, stacks_of
from spack_cache_db.sources.fetch.web import Access, SilenceFault, Web
from spack_cache_db.sources.indexes.mirrors import Binary, binaries_left_out

T = TypeVar("T", ConfiguredMirror, MirrorRequest)
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
        self._folders: dict[tuple[str, str], MirrorRequest] = {}

    async def download(self, urls: list[str], progress: Progress | None) -> int:
        """Download all mirrors of the URLs; return the number of bytes received."""
        configured = self._configured()
        async with Web(self._limits, progress, self._access(configured)) as web:
            if self._options.packages is not None:
                with self._faults_kept():
                    self._add(package_request(self._options.packages, self._options.maps))
            requests = [*map(ConfiguredMirror, urls), *configured]
            await self._each(requests, lambda mirror: self._resolve(web, mirror))
            mirrors = [*self._folders.values()]
            await self._each(mirrors, lambda mirror: self._download(web, mirror))
            return web.received

    async def _each(self, mirrors: Iterable[T], do: Callable[[T], Awaitable[None]]) -> None:
        """Process mirrors in parallel; a fault stops only its own mirror."""
        places = asyncio.Semaphore(self._limits.jobs)

        async def one(mirror: T) -> None:
            with self._faults_kept():
                async with places:
                    with faults_of(shown(mirror.url)):
                        await do(mirror)

        async with asyncio.TaskGroup() as tasks:
            for mirror in mirrors:
                tasks.create_task(one(mirror))

    def _configured(self) -> tuple[ConfiguredMirror, ...]:
        """Return the mirrors of Spack's configuration, if there is one."""
        if self._options.mirrors is None:
            return ()
        config = read_mirror_config(checked_file("mirrors", self._options.mirrors), os.environ)
        self._fail(config.faults)
        self.notes += config.notes
        return config.mirrors

    def _access(self, configured: Iterable[ConfiguredMirror]) -> Access:
        mapped = []
        for mirror in configured:
            # Fetching it reports a text that is not a URL.
            with suppress(FetchFault):
                mapped.append(replace(mirror, url=mirror_place(mirror.url, self._options.maps)[0]))
        return Access(mapped, os.environ)

    @contextmanager
    def _faults_kept(self) -> Iterator[None]:
        """Record the faults of one mirror, and continue with the others."""
        try:
            yield
        except InputError as error:
            self.failed += 1
            self.faults.update(error.faults)

    def _fail(self, faults: Collection[Fault]) -> None:
        """Record one fault for each of several mirrors."""
        self.failed += len(faults)
        self.faults.update(faults)

    async def _resolve(self, web: Web, mirror: ConfiguredMirror) -> None:
        """Add the mirrors of a URL."""
        options = self._options
        url, view = mirror_place(mirror.url, options.maps)
        view = mirror.view or view
        is_mirror = view or url.startswith("oci:")
        data = None if is_mirror else await _release_manifest(web, url)
        if data is None:
            release = options.release or mirror.name
            request = mirror_request(url, release, options.stack, options.views, view)
            filters = {key: getattr(mirror, key) for key in ("include_binary", "exclude_binary")}
            self._add(request._replace(**filters))
            return
        max_mirrors = self._limits.max_mirrors
        manifest = read_release_manifest(
            url, data, options.maps, options.release, options.stack, max_mirrors
        )
        if options.views:
            raise FetchFault(url, "is a manifest of releases, which has no views: no --view")
        self._fail(manifest.faults)
        for member in manifest.mirrors:
            with self._faults_kept():
                self._add(member)
        self._look_for_vanished(url, manifest.stacks)

    def _add(self, mirror: MirrorRequest) -> None:
        """Add a mirror; `FetchFault` if its folder is taken, or there are too many mirrors."""
        max_mirrors = self._limits.max_mirrors
        if (
            len(self._folders) >= max_mirrors
            and (mirror.release, mirror.stack) not in self._folders
        ):
            message = f"is one of more than {max_mirrors:,} mirrors, expected fewer (--max-mirrors)"
            raise FetchFault(mirror.url, message)
        first = self._folders.setdefault((mirror.release, mirror.stack), mirror)
        if first.url != mirror.url:
            folder = f"{mirror.release}/{mirror.stack}"
            message = (
                f"goes to {folder} as {shown(first.url)} does; fetch it with another --release"
            )
            raise FetchFault(mirror.url, message)

    async def _download(self, web: Web, mirror: MirrorRequest) -> None:
        try:
            folder = StackFolder(self._output, mirror)
            outcome = await self._fetch(web, folder, mirror)
            folder.keep(SIZES_FILE)
            self.changed += outcome.changed
            for fault in outcome.faults:
                self.faults.update(fault.faults)
            if outcome.faults:
                self.failed += 1
            else:
                folder.finish()
                self.downloaded += 1
            if mirror.include_binary or mirror.exclude_binary:
                self.notes += await asyncio.to_thread(binaries_left_out, folder.path)
        except OSError as error:
            path = self._output / mirror.release / mirror.stack
            self._fail([Fault(str(path), 0, f"cannot be written: {reason(error)}")])

    async def _fetch(self, web: Web, folder: StackFolder, mirror: MirrorRequest) -> Outcome:
        if mirror.is_package_data:
            return await fetch_packages(web, folder, mirror.url, self._options.package_names)
        if not mirror.url.startswith("oci:"):
            outcome = await fetch_mirror(web, folder, mirror)
            size_of: Callable[[Binary], Awaitable[int]] = partial(manifest_size, web, mirror.url)
        elif mirror.views:
            raise FetchFault(mirror.url, "is an image, which has no views: no --view")
        else:
            registry = Registry(web, mirror.url, plain_http=self._options.plain_http)
            outcome, size_of = Outcome(await registry.fetch(folder)), registry.size
        if not self._options.sizes or outcome.faults:
            return outcome
        changed, notes = await download_sizes(folder, mirror.url, size_of, self._limits.jobs)
        self.notes += notes
        return Outcome(outcome.changed or changed)

    def _look_for_vanished(self, manifest: str, stacks: frozenset[tuple[str, str]]) -> None:
        for folder in stacks_of(self._output, manifest):
            if (folder.parent.name, folder.name) not in stacks:
                self.vanished.add(folder)


async def _release_manifest(web: Web, url: str) -> bytes | None:
    """Return the data at a URL if it looks like a manifest of releases, otherwise None.

    A mirror may return anything for its own URL, such as a list of files or an error.
    """
    try:
        data = (await web.read(url, _MANIFEST_SIZE)).data
    except SilenceFault:
        raise
    except FetchFault:
        return None
    return data if data is not None and data.lstrip()[:1] == b"{" else None
