"""One file over the web into a folder: resumed, decoded, verified, and only then under its name."""

from __future__ import annotations

import asyncio
import mmap
import re
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec

from spack_cache_db.sources.indexes.faults import said
from spack_cache_db.sources.indexes.fetch.answers import (
    encoding_of,
    length_of,
    require_size,
    tags_of,
    too_large,
)
from spack_cache_db.sources.indexes.fetch.encodings import BrokenEncoding, TooLong, decoded
from spack_cache_db.sources.indexes.fetch.faults import FetchFault, MismatchFault, Passing, shown
from spack_cache_db.sources.indexes.fetch.folder import StackFolder, sum_of
from spack_cache_db.sources.indexes.fetch.records import FetchedFile, Part, Tags
from spack_cache_db.sources.indexes.fetch.web import NO_HEADERS, Headers, Web
from spack_cache_db.sources.indexes.records import Index

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
            resumed = self._begin(response, rest)
            await self._receive(web, response)
        encoding = encoding_of(self.url, response)
        return await asyncio.to_thread(self._settle, resumed, encoding, web.limits.max_size)

    def _rest(self) -> Headers:
        """Return the headers that ask for the rest of what an earlier try left; none without.

        Only a strong tag or the sum of the whole proves that a rest belongs to its beginning (RFC
        9110 section 13.1.5).
        """
        part, path = self.folder.started(self.name, self.url), self.folder.part(self.name)
        if part is None or not path.is_file() or not (size := path.stat().st_size):
            return NO_HEADERS
        ranges = {"Range": f"bytes={size}-"}
        if part.tags.etag and not part.tags.etag.startswith("W/"):
            return {**ranges, "If-Range": part.tags.etag}
        return ranges if self.sha256 else NO_HEADERS

    def _begin(self, response: httpx.Response, rest: Headers) -> bool:
        """Make the part ready for what is sent; return whether that is a rest."""
        encoding = encoding_of(self.url, response)
        part = self.folder.started(self.name, self.url)
        if response.status_code == 200:
            self.folder.start(self.name, Part(shown(self.url), tags_of(response), encoding))
            return False
        if response.status_code == 206 and rest and part is not None and part.encoding == encoding:
            sent = _RANGE.match(response.headers.get("Content-Range", ""))
            if sent and rest["Range"] == f"bytes={sent[1]}-":
                return True
        self.folder.drop(self.name)
        raise Passing(f"answers {response.status_code}, which was not asked for")

    async def _receive(self, web: Web, response: httpx.Response) -> None:
        path, limit = self.folder.part(self.name), web.limits.max_size
        size = path.stat().st_size
        try:
            require_size(self.url, size + (length_of(response) or 0), limit)
            with path.open("ab") as stream:
                async for data in web.body(response):
                    size += len(data)
                    require_size(self.url, size, limit)
                    stream.write(data)
        except FetchFault:
            self.folder.drop(self.name)
            raise

    def _settle(self, resumed: bool, encoding: str, limit: int) -> str:
        """Give the file its name if it is what it must be; return its sum."""
        raw, plain = self.folder.part(self.name), self.folder.part(f"{self.name}.decoded")
        try:
            if encoding:
                self._decode(raw, plain, encoding, limit)
            path = plain if encoding else raw
            sha256 = sum_of(path)
            self._require(path, sha256)
        except (FetchFault, Passing) as fault:
            plain.unlink(missing_ok=True)
            self.folder.drop(self.name)
            if resumed:
                raise Passing(f"{fault} (after it was resumed)") from None
            raise
        part = self.folder.started(self.name, self.url)
        tags = part.tags if part is not None else Tags()
        file = FetchedFile(shown(self.url), path.stat().st_size, sha256, tags)
        self.folder.settle(self.name, path, file)
        raw.unlink(missing_ok=True)
        return sha256

    def _decode(self, raw: Path, plain: Path, encoding: str, limit: int) -> None:
        try:
            with raw.open("rb") as body, plain.open("wb") as stream:
                for data in decoded(body, encoding, limit):
                    stream.write(data)
        except TooLong:
            raise too_large(self.url, limit) from None
        except BrokenEncoding as error:
            raise Passing(str(error)) from None

    def _require(self, path: Path, sha256: str) -> None:
        if self.sha256 is None:
            _require_index(self.url, path)
        elif sha256 != self.sha256:
            words = f"has the checksum {sha256}, expected {self.sha256} as the mirror says"
            raise MismatchFault(self.url, words)


def _require_index(url: str, path: Path) -> None:
    """Raise `MismatchFault` unless a file is a whole index: no sum says that of it."""
    try:
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            _INDEX.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise MismatchFault(url, f"is no whole index: {said(error)}") from None
