"""Runs `fetch`: a fault stops one mirror only, and files of earlier runs remain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from spack_cache_db.bounded_files import alone_in, checked_file
from spack_cache_db.errors import Fault, InputError, faults_of, reason
from spack_cache_db.sources.fetch.addresses import (
    FetchFault,
    Mirror,
    NamedMirrors,
    mirror_place,
    shown,
)
from spack_cache_db.sources.fetch.mirrors import fetch_mirror
from spack_cache_db.sources.fetch.mirrors_yaml import read_mirror_config
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions, Progress
from spack_cache_db.sources.fetch.package_site import fetch_packages
from spack_cache_db.sources.fetch.registry import Registry
from spack_cache_db.sources.fetch.release_manifests import read_release_manifest
from spack_cache_db.sources.fetch.report import FetchReport
from spack_cache_db.sources.fetch.signatures import fetch_signatures
from spack_cache_db.sources.fetch.sizes import fetch_sizes, manifest_size
from spack_cache_db.sources.fetch.stack_folder import StackFolder, opened, stacks_of
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.indexes.mirrors import Binary, binaries_left_out


class Run:
    """One run into a folder, and its counts."""

    def __init__(
        self, output: Path, options: FetchOptions, limits: FetchLimits
    ) -> None:
        self._downloaded = self._changed = 0
        self._failures: list[tuple[Fault, ...]] = []
        self._vanished: set[Path] = set()
        self._notes: list[str] = []
        self._output = output
        self._options = options
        self._limits = limits
        self._mirrors: dict[str, Mirror] = {}

    def report(self, urls: Iterable[str], progress: Progress | None) -> FetchReport:
        """Download all mirrors of the URLs, and return the report."""
        started = time.monotonic()
        with alone_in(self._output, "fetch"):
            size = asyncio.run(self._download_all([*dict.fromkeys(urls)], progress))
        return FetchReport(
            self._downloaded + len(self._failures),
            self._downloaded,
            self._changed,
            size,
            time.monotonic() - started,
            tuple(sorted(self._vanished)),
            InputError(fault for faults in self._failures for fault in faults).faults,
            tuple(sorted(self._notes)),
        )

    async def _download_all(self, urls: list[str], progress: Progress | None) -> int:
        """Download all mirrors; return the number of bytes received."""
        options, configured = self._options, NamedMirrors()
        if options.mirrors is not None:
            configured = read_mirror_config(checked_file("mirrors", options.mirrors))
            self._failures += [(fault,) for fault in configured.faults]
            self._notes += configured.notes
        mapped = []
        for mirror in configured.mirrors:
            # Fetching it reports a text that is not a URL.
            with suppress(FetchFault):
                url, _ = mirror_place(mirror.url, options.maps)
                mapped.append(mirror._replace(url=url))
        async with Web(self._limits, progress, mapped) as web:
            if options.packages is not None:
                with self._faults_kept():
                    url, _ = mirror_place(options.packages, options.maps)
                    self._add(
                        Mirror(
                            url,
                            "packages",
                            urlsplit(url).hostname,
                            is_package_data=True,
                        )
                    )
            await self._each(
                web, [*map(Mirror, urls), *configured.mirrors], self._resolve
            )
            await self._each(web, [*self._mirrors.values()], self._download)
            return web.received

    async def _each(
        self,
        web: Web,
        mirrors: list[Mirror],
        do: Callable[[Web, Mirror], Awaitable[None]],
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
            self._failures.append(error.faults)

    async def _resolve(self, web: Web, mirror: Mirror) -> None:
        """Add the mirrors of a URL."""
        options = self._options
        url, view = mirror_place(mirror.url, options.maps)
        data = b""
        if mirror.has_index and not view and not url.startswith("oci:"):
            # A mirror may return anything for its own URL, such as a list of files or
            # an error.
            with suppress(FetchFault):
                data = await web.read(url)
        if data.lstrip()[:1] != b"{":
            release, views = (
                options.release or mirror.release,
                (*mirror.views, *options.views),
            )
            mirror = mirror._replace(release=release, stack=options.stack, views=views)
            self._add(mirror.placed(options.maps))
            return
        maximum = self._limits.max_mirrors - len(self._mirrors)
        selected = options.release, options.stack
        manifest = read_release_manifest(url, data, options.maps, *selected, maximum)
        if options.views:
            raise FetchFault(
                url, "is a manifest of releases, which has no views: no --view"
            )
        self._failures += [(fault,) for fault in manifest.faults]
        for member in manifest.mirrors:
            with self._faults_kept():
                self._add(member)
        self._vanished |= {
            folder
            for folder in stacks_of(self._output, url)
            if (folder.parent.name, folder.name) not in manifest.stacks
        }

    def _add(self, mirror: Mirror) -> None:
        """Add a mirror; `FetchFault` if its folder is taken."""
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
            raise InputError(
                [Fault(str(path), 0, f"cannot be written: {reason(error)}")]
            ) from None
        self._changed += folder.changed
        self._downloaded += not folder.faults
        if mirror.include_binary or mirror.exclude_binary:
            self._notes += await asyncio.to_thread(binaries_left_out, folder.path)
        if folder.faults:
            raise InputError(fault for error in folder.faults for fault in error.faults)

    async def _fetch(self, web: Web, folder: StackFolder, mirror: Mirror) -> None:
        url = mirror.url
        signatures: dict[str, bool] = {}
        size_of: Callable[[Binary], Awaitable[int]] = partial(
            manifest_size, web, url, signatures
        )
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
        has_news = folder.changed or folder.signed is None
        if self._options.sizes and not folder.faults:
            self._notes += await fetch_sizes(web, folder, url, size_of)
        is_mirror = not url.startswith("oci:") and not folder.faults
        if is_mirror and has_news and mirror.properties.signed is None:
            await fetch_signatures(web, folder, mirror, signatures)
