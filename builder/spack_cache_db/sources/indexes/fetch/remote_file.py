"""One file over the web into a folder: resumed, verified, and only then under its name."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import httpx
import msgspec

from spack_cache_db.bounded_files import read_file, sha256_of
from spack_cache_db.sources.indexes.fetch.addresses import FetchFault, shown
from spack_cache_db.sources.indexes.fetch.stack_folder import (
    FetchedFile,
    PartialFile,
    StackFolder,
)
from spack_cache_db.sources.indexes.fetch.web import (
    NO_HEADERS,
    Headers,
    MismatchFault,
    PassingTrouble,
    Tags,
    Web,
    is_encoded,
    length_of,
    require_size,
    tags_of,
)
from spack_cache_db.sources.indexes.spack_json import Index
from spack_cache_db.sources.strictness import BROKEN, said

_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_INDEX = msgspec.json.Decoder(Index)


@dataclass(frozen=True, slots=True)
class Download:
    """A file to fetch.

    Args:
        folder: where it goes.
        name: its path in there.
        url: where it comes from.
        sha256: the sum that it must have. Without one it must be an index that is whole.
    """

    folder: StackFolder
    name: str
    url: str
    sha256: str | None = None

    async def run(self, web: Web, headers: Headers = NO_HEADERS) -> bool:
        """Fetch the file; return whether it is another than before.

        Raises:
            MismatchFault: it is not what it must be.
            FetchFault: there is none, or none that can be read.
        """
        known = await asyncio.to_thread(self.folder.unchanged, self.name, self.url)
        if known is not None and known.sha256 == self.sha256:
            self.folder.keep(self.name)
            return False
        unless = known.tags.conditions() if known is not None and self.sha256 is None else {}
        sha256 = await web.persist(self.url, lambda: self._attempt(web, headers, unless))
        return known is None or sha256 not in (None, known.sha256)

    async def _attempt(self, web: Web, headers: Headers, unless: Headers) -> str | None:
        """Fetch the file, or the rest of it; return its sum, None if it is as before."""
        rest = self._rest()
        async with web.opened(self.url, {**headers, **(rest or unless)}) as response:
            if response.status_code == 304 and unless and not rest:
                self.folder.keep(self.name)
                return None
            is_rest = self._begin(response, rest)
            await self._receive(web, response)
        return await asyncio.to_thread(self._settle, is_rest, web.limits.max_size)

    def _rest(self) -> Headers:
        """Return the headers that ask for the rest of what an earlier try left; none without.

        Only a strong tag or the sum of the whole proves that a rest belongs to its beginning (RFC
        9110 section 13.1.5).
        """
        part, path = self.folder.started(self.name, self.url), self.folder.part(self.name)
        if part is None or part.is_encoded or path.is_symlink() or not path.is_file():
            return NO_HEADERS
        size = path.stat().st_size
        ranges = {"Range": f"bytes={size}-"}
        if size and part.tags.etag and not part.tags.etag.startswith("W/"):
            return {**ranges, "If-Range": part.tags.etag}
        return ranges if size and self.sha256 else NO_HEADERS

    def _begin(self, response: httpx.Response, rest: Headers) -> bool:
        """Make the part ready for what is sent; return whether that is a rest."""
        if response.status_code == 200:
            part = PartialFile(shown(self.url), tags_of(response), is_encoded(response))
            self.folder.start(self.name, part)
            return False
        if response.status_code == 206 and rest and not is_encoded(response):
            sent = _RANGE.match(response.headers.get("Content-Range", ""))
            if sent and rest["Range"] == f"bytes={sent[1]}-":
                return True
        self.folder.drop(self.name)
        raise PassingTrouble(f"answers {response.status_code}, which was not asked for")

    async def _receive(self, web: Web, response: httpx.Response) -> None:
        path, limit = self.folder.part(self.name), web.limits.max_size
        size = path.stat().st_size
        try:
            require_size(self.url, size + (length_of(response) or 0), limit)
            with path.open("ab") as stream:
                async for data in web.body(self.url, response):
                    size += len(data)
                    require_size(self.url, size, limit)
                    stream.write(data)
        except FetchFault:
            self.folder.drop(self.name)
            raise

    def _settle(self, is_rest: bool, limit: int) -> str:
        """Give the file its name if it is what it must be; return its sum."""
        path = self.folder.part(self.name)
        sha256 = sha256_of(path)
        try:
            if self.sha256 is None:
                _require_index(self.url, read_file(path, limit))
            elif sha256 != self.sha256:
                words = f"has the checksum {sha256}, expected {self.sha256} as the mirror says"
                raise MismatchFault(self.url, words)
        except FetchFault as fault:
            self.folder.drop(self.name)
            if is_rest:
                raise PassingTrouble(f"{fault} (after it was resumed)") from None
            raise
        part = self.folder.started(self.name, self.url)
        tags = part.tags if part is not None else Tags()
        file = FetchedFile(shown(self.url), path.stat().st_size, sha256, tags)
        self.folder.settle(self.name, file)
        return sha256


def _require_index(url: str, data: bytes) -> None:
    """Raise `MismatchFault` unless data is a whole index: no sum says that of it."""
    try:
        _INDEX.decode(data)
    except BROKEN as error:
        raise MismatchFault(url, f"is no whole index: {said(error)}") from None
