"""What keeps an index from being fetched, in words for whoever asked for it."""

from __future__ import annotations

import re

from spack_cache_db.errors import Fault

_USER = re.compile(r"(?<=://)[^/?#]*@")


def shown(url: str) -> str:
    """Return a URL as it may be printed and kept: without a user, a password or a query."""
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


class FetchFault(Exception):
    """A URL that did not give what was expected; the text says what it gave, and what to do."""

    def __init__(self, url: str, message: str) -> None:
        super().__init__(message)
        self.url = url

    def fault(self) -> Fault:
        """Return the same as a line for the user."""
        return Fault(shown(self.url), 0, str(self))


class NotThereFault(FetchFault):
    """Nothing is at the URL; stores of objects say so by 403 as well (Amazon S3, GetObject)."""


class LoginFault(FetchFault):
    """The URL asks for a login; `challenge` is what it says of how."""

    def __init__(self, url: str, challenge: str) -> None:
        super().__init__(url, "asks for a login, expected what anybody may read")
        self.challenge = challenge


class SilenceFault(FetchFault):
    """The URL gave no answer, however often it was asked."""


class MismatchFault(FetchFault):
    """The URL's bytes are not those that the mirror promised: it may have changed meanwhile."""


class Passing(Exception):
    """A trouble that may pass: worth another try, not before `pause` seconds if it says so."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause
