"""Runs `fetch`: finds out which mirrors there are, and downloads them in parallel.

A fault stops one mirror only, and files of earlier runs remain.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from spack_cache_db.bounded_files import checked_file
from spack_cache_db.errors import Fault, InputError, faults_of, reason
from spack_cache_db.output_folders import alone_in
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
from spack_cache_db.sources.indexes.mirror_content import Binary, binaries_left_out


class Run:
    """One run into a folder, and its counts."""

    def __init__(
        self, output: Path, options: FetchOptions, limits: FetchLimits
    ) -> None:
        self._output = output
        self._options = options
        self._limits = limits
        # The mirrors to download, by their folders below the output.
        self._mirrors: dict[str, Mirror] = {}
        # The numbers of mirrors without a fault, and of those with new content.
        self._downloaded = 0
        self._changed = 0
        # The faults of each mirror that was not downloaded completely.
        self._failures: list[tuple[Fault, ...]] = []
        # Folders of stacks that their manifest no longer names.
        self._vanished: set[Path] = set()
        self._notes: list[str] = []

    def report(self, urls: Iterable[str], progress: Progress | None) -> FetchReport:
        """Download all mirrors of the URLs, and return the report.

        Args:
            urls: URLs of mirrors, images of registries, or manifests of releases.
            progress: called with the bytes received and expected.

        Raises:
            OutputError: another run writes into the folder.
        """
        started = time.monotonic()
        distinct_urls = list(dict.fromkeys(urls))
        with alone_in(self._output, "fetch"):
            size = asyncio.run(self._download_all(distinct_urls, progress))
        # The exception sorts them, and leaves out repeated ones.
        faults = InputError(chain.from_iterable(self._failures)).faults
        return FetchReport(
            mirrors=self._downloaded + len(self._failures),
            downloaded=self._downloaded,
            changed=self._changed,
            size=size,
            seconds=time.monotonic() - started,
            vanished=tuple(sorted(self._vanished)),
            faults=faults,
            notes=tuple(sorted(self._notes)),
        )

    async def _download_all(self, urls: list[str], progress: Progress | None) -> int:
        """Download all mirrors; return the number of bytes received."""
        # The mirrors of a configuration.
        options = self._options
        configured = NamedMirrors()
        if options.mirrors is not None:
            configured = read_mirror_config(checked_file("mirrors", options.mirrors))
            self._failures += [(fault,) for fault in configured.faults]
            self._notes += configured.notes

        # Their logins are sent to the URLs from which they are downloaded, and to no
        # others. A text that is not a URL is reported when it is resolved below.
        mapped = []
        for mirror in configured.mirrors:
            with suppress(FetchFault):
                url, _ = mirror_place(mirror.url, options.maps)
                mapped.append(mirror._replace(url=url))

        # First find out which mirrors there are, then download them.
        async with Web(self._limits, progress, mapped) as web:
            if options.packages is not None:
                with self._faults_kept():
                    self._add_package_site(options.packages)
            named = [Mirror(url) for url in urls]
            named += configured.mirrors
            await self._each(web, named, self._resolve)
            await self._each(web, list(self._mirrors.values()), self._download)
            return web.received

    def _add_package_site(self, text: str) -> None:
        """Add package data at a URL; its folder is `packages/<host>`."""
        url, _ = mirror_place(text, self._options.maps)
        host = urlsplit(url).hostname
        self._add(Mirror(url, "packages", host, is_package_data=True))

    async def _each(
        self,
        web: Web,
        mirrors: list[Mirror],
        process: Callable[[Web, Mirror], Awaitable[None]],
    ) -> None:
        """Process mirrors in parallel; a fault stops only its own mirror."""

        async def process_one(mirror: Mirror) -> None:
            with self._faults_kept(), faults_of(shown(mirror.url)):
                await process(web, mirror)

        await web.in_parallel(mirrors, process_one)

    @contextmanager
    def _faults_kept(self) -> Iterator[None]:
        """Record the faults of one mirror, and continue with the others."""
        try:
            yield
        except InputError as error:
            self._failures.append(error.faults)

    async def _resolve(self, web: Web, named: Mirror) -> None:
        """Add the mirror at a URL, or the mirrors of the manifest of releases there."""
        manifest = await self._read_manifest(web, named)
        if manifest is not None:
            self._add_releases(*manifest)
            return
        options = self._options
        mirror = named._replace(
            release=options.release or named.release,
            stack=options.stack,
            views=(*named.views, *options.views),
        )
        self._add(mirror.placed(options.maps))

    async def _read_manifest(self, web: Web, named: Mirror) -> tuple[str, bytes] | None:
        """Return the URL and the bytes of a manifest of releases; None if there is none
        at a URL.
        """
        url, view = mirror_place(named.url, self._options.maps)
        # The index of a view, and an image, are certainly no manifest.
        if not named.has_index or view or url.startswith("oci:"):
            return None
        # A mirror may return anything for its own URL, such as a list of files or an
        # error.
        try:
            data = await web.read(url)
        except FetchFault:
            return None
        if not data.lstrip().startswith(b"{"):
            return None
        return url, data

    def _add_releases(self, url: str, data: bytes) -> None:
        """Add the mirrors of a manifest of releases."""
        options = self._options
        manifest = read_release_manifest(
            url,
            data,
            options.maps,
            options.release,
            options.stack,
            max_mirrors=self._limits.max_mirrors - len(self._mirrors),
        )
        if options.views:
            message = "is a manifest of releases, which has no views: no --view"
            raise FetchFault(url, message)
        self._failures += [(fault,) for fault in manifest.faults]
        for mirror in manifest.mirrors:
            with self._faults_kept():
                self._add(mirror)
        for folder in stacks_of(self._output, url):
            release_and_stack = (folder.parent.name, folder.name)
            if release_and_stack not in manifest.stacks:
                self._vanished.add(folder)

    def _add(self, mirror: Mirror) -> None:
        """Add a mirror; `FetchFault` if another one goes into its folder."""
        first = self._mirrors.setdefault(mirror.folder, mirror)
        if first.url != mirror.url:
            message = f"goes to {mirror.folder} as {shown(first.url)} does"
            raise FetchFault(mirror.url, f"{message}; fetch it with another --release")

    async def _download(self, web: Web, mirror: Mirror) -> None:
        """Download a mirror into its folder; `InputError` with its faults."""
        try:
            with opened(self._output, mirror) as folder:
                await self._fetch(web, folder, mirror)
        except OSError as error:
            path = self._output / mirror.folder
            fault = Fault(str(path), 0, f"cannot be written: {reason(error)}")
            raise InputError([fault]) from None
        if folder.changed:
            self._changed += 1
        if mirror.include_binary or mirror.exclude_binary:
            self._notes += await asyncio.to_thread(binaries_left_out, folder.path)
        # Faults of views and packages, after which the other files are of use.
        if folder.faults:
            raise InputError(
                chain.from_iterable(error.faults for error in folder.faults)
            )
        self._downloaded += 1

    async def _fetch(self, web: Web, folder: StackFolder, mirror: Mirror) -> None:
        """Download the files of a mirror: its index, then sizes and signatures."""
        url = mirror.url
        if mirror.is_package_data:
            await fetch_packages(web, folder, url, self._options.package_names)
            return

        # The index.
        is_image = url.startswith("oci:")
        # Whether binaries are signed, by hash; asking for their sizes shows it.
        signatures: dict[str, bool] = {}
        size_of: Callable[[Binary], Awaitable[int]]
        if is_image:
            if mirror.views:
                raise FetchFault(url, "is an image, which has no views: no --view")
            registry = Registry(web, url, plain_http=self._options.plain_http)
            size_of = registry.size
            await registry.fetch(folder)
        else:
            size_of = partial(manifest_size, web, url, signatures)
            await fetch_mirror(web, folder, mirror)

        # Sizes, if they were asked for. They are new content too, so whether the index
        # has changed is asked before.
        has_news = folder.changed or folder.signed is None
        if folder.faults:
            return
        if self._options.sizes:
            self._notes += await fetch_sizes(web, folder, url, size_of)

        # Signatures, unless the configuration says whether there are any. Images have
        # none.
        if has_news and not is_image and mirror.properties.signed is None:
            await fetch_signatures(web, folder, mirror, signatures)
