"""What is known of a file that is fetched, as frozen records that can be kept beside it."""

from __future__ import annotations

from msgspec import Struct


class Tags(Struct, frozen=True, omit_defaults=True):
    """What a server calls the state of a file (RFC 9110 section 8.8); empty where it does not."""

    etag: str = ""
    last_modified: str = ""

    def conditions(self) -> dict[str, str]:
        """Return the headers of a request for the file unless it is still this one."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


class FetchedFile(Struct, frozen=True):
    """A file that was fetched: from where, and what it was then."""

    url: str
    size: int
    sha256: str
    tags: Tags = Tags()


class Part(Struct, frozen=True):
    """A file that is under way: from where, in which state there, in which content encoding."""

    url: str
    tags: Tags
    encoding: str = ""
