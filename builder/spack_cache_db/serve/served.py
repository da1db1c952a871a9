"""The database that a process serves, and how it notices a new one.

Before each request, the process looks at the file at the path: another one, or the same
one with other content, is opened and replaces the old one.
"""

from __future__ import annotations

import asyncio
import mmap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from spack_cache_db.assembly.inspection import current_inspection
from spack_cache_db.database_file import open_database
from spack_cache_db.errors import DatabaseError
from spack_cache_db.serve.datasette_app import SiteDatasette, SiteOptions, datasette_of
from spack_cache_db.site.log import log
from spack_cache_db.site.plugin_routes import is_in_plugin

SETTLED_SECONDS = 2.0
"""A file that is overwritten in place is not read before it has been unchanged for so
long.
"""

OVERWRITTEN = (
    "is overwritten in place; requests get status 503 until it is whole. Write another file and"
    " move it here instead"
)
MISSING = "there is no such file any more; the open one is served on"

_DIGEST_BYTES = 32
"""The size of a sha256."""


class Identity(NamedTuple):
    """What changes when a file is replaced or overwritten.

    Attributes:
        device: the number of its file system.
        inode: its number there.
        size: its bytes.
        time_ns: when it was written last, in nanoseconds since the epoch.
    """

    device: int
    inode: int
    size: int
    time_ns: int

    @property
    def file(self) -> tuple[int, int]:
        """What changes only when a file is replaced."""
        return self.device, self.inode


class Event(Enum):
    """What can happen to the file of a database, and is logged."""

    MISSING = "missing"
    OVERWRITTEN = "overwritten"
    REFUSED = "refused"


def identity_of(path: Path) -> Identity | None:
    """Return the identity of the file at a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True)
class Opened:
    """An open database.

    Attributes:
        identity: that of its file.
        datasette: the Datasette that serves it.
        app: its ASGI application.
    """

    identity: Identity
    datasette: SiteDatasette
    app: Any


class Served:
    """The database at a path, and the Datasette that serves it in this process.

    Args:
        path: the path.
        options: the options of `serve`.

    Attributes:
        path: the absolute path.
        base: the path of the site, such as `/` or `/cache/`.
        while_opening: returns a context for the seconds in which a new database is
            opened; by default, one that does nothing.

    Raises:
        DatabaseError: the file is not a database of `build`, is damaged, or its pages
            fail.
    """

    def __init__(self, path: Path, options: SiteOptions) -> None:
        self.path = path.absolute()
        self.while_opening: Callable[[], AbstractContextManager[None]] = nullcontext
        self._options = options
        # The file that could not be opened last, which is not tried again.
        self._refused: Identity | None = None
        # The digest of the last line about each event, in memory that all processes
        # share: only one of them writes the line.
        self._logged = {event: mmap.mmap(-1, _DIGEST_BYTES) for event in Event}
        opened = _opened(self.path, options)
        self._opened: Opened | None = opened
        # The file that was opened last, also after it was overwritten and closed.
        self._file = opened.identity.file
        self.base = str(opened.datasette.setting("base_url"))

    @property
    def app(self) -> Any:
        """The ASGI application; None while the database is being overwritten."""
        return self._opened.app if self._opened else None

    @property
    def datasette(self) -> SiteDatasette:
        """The Datasette over the open database."""
        assert self._opened is not None
        return self._opened.datasette

    @property
    def identity(self) -> Identity | None:
        """The identity of the open database; None while it is being overwritten."""
        return self._opened.identity if self._opened else None

    def refresh(self) -> bool:
        """Open the file at the path if it is another one; return whether it was opened.

        A file that cannot be served is reported once, and the old one is served on. If
        the old one itself was overwritten, it is closed.
        """
        identity = identity_of(self.path)
        if identity is None:
            self._log_once(Event.MISSING, MISSING)
            return False
        is_known = identity in (self.identity, self._refused)
        if is_known:
            return False
        if identity.file == self._file:
            # The content has changed below the open connections.
            self._close()
            # Wait until it is whole. A time in the future, which a wrong clock wrote,
            # says nothing.
            age = time.time() - identity.time_ns / 1e9
            if 0 <= age < SETTLED_SECONDS:
                self._log_once(Event.OVERWRITTEN, OVERWRITTEN)
                return False
        return self._replace(identity)

    def _replace(self, identity: Identity) -> bool:
        """Open the new database and close the old one; False if that is refused."""
        try:
            with self.while_opening():
                opened = _opened(self.path, self._options)
        except DatabaseError as error:
            if identity != identity_of(self.path):
                # Another file has come meanwhile, and the error may be its own. The
                # next request looks at it.
                return False
            self._refused = identity
            effect = "all requests get status 503"
            if self._opened is not None:
                effect = "the old content is served on"
            text = f"the new file is refused, and {effect}: {error}"
            self._log_once(Event.REFUSED, text)
            return False
        self._close()
        self._opened = opened
        self._file = opened.identity.file
        self._refused = None
        # From now on, each kind of event is reported again.
        for digest in self._logged.values():
            digest[:] = bytes(_DIGEST_BYTES)
        return True

    def _close(self) -> None:
        """Close the open database, if there is one."""
        if self._opened is not None:
            self._opened.datasette.close_database()
            self._opened = None

    def _log_once(self, event: Event, text: str) -> None:
        """Write a line unless it was the last one about such an event, from any
        process.
        """
        digest = sha256(text.encode()).digest()
        if self._logged[event][:] != digest:
            self._logged[event][:] = digest
            log(f"{self.path}: {text}")


def _opened(path: Path, options: SiteOptions) -> Opened:
    """Return the opened database of a path, after its first page was made.

    Raises:
        DatabaseError: see `Served`.
    """
    identity = identity_of(path)
    # Check it as all commands do.
    open_database(path).close()
    # Unlike Datasette, `current_inspection` checks that the inspect file is of this
    # database.
    datasette = datasette_of(path, current_inspection(path), options)
    app = datasette.app()
    # Make its first page.
    try:
        status = asyncio.run(_first_status(datasette, app))
    except Exception as error:
        if not is_in_plugin(error):
            raise
        fault = f"{type(error).__name__}: {error}"
        raise DatabaseError(
            f"{path}: a plugin fails at the first page: {fault}"
        ) from error

    # Only a file that is whole and works is served.
    if identity is None or identity != identity_of(path):
        raise DatabaseError(f"{path}: it changes while it is opened")
    if status >= 500:
        raise DatabaseError(f"{path}: its first page fails with status {status}")
    return Opened(identity, datasette, app)


async def _first_status(datasette: SiteDatasette, app: Any) -> int:
    """Return the status of `/`.

    Making this page opens the database, and reads what all pages need.
    """
    # The command `datasette` calls the hook `startup` now. Otherwise Datasette calls it
    # after the first request has reached the wrappers of plugins.
    await datasette.invoke_startup()
    statuses = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await app(scope, receive, send)
    return int(statuses[0]) if statuses else 500
