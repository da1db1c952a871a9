"""The server processes of `serve`: uvicorn starts and replaces them, each has a Datasette.

The database is served from a private path, so that a build which replaces it does not change a
running server: Datasette opens the file again in every thread.
"""

from __future__ import annotations

import asyncio
import difflib
import fcntl
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from uvicorn import Config
from uvicorn.config import LOGGING_CONFIG, STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.build.sqlite_file import current_inspection
from spack_cache_db.cli.output import write_error
from spack_cache_db.database_file import NAME, open_database
from spack_cache_db.errors import BuilderError, DatabaseError, Fault, LineFault, reason
from spack_cache_db.site import site_folder

GRACE_SECONDS = 3
"""Seconds that unfinished responses get after a signal to end."""
HEALTH_SECONDS = 30
"""Seconds in which a process must start, and in which a running one must respond."""
PREFIX = ".spack-cache-db-served-"
NEW_SECONDS = 60
"""Age from which an unlocked folder was left by a server that was killed."""

SettingValues = dict[str, bool | int | str]
Allowed = bool | dict[str, Any] | None


class Section(msgspec.Struct):
    """A section of metadata, as Datasette's documentation has it; Datasette checks no types."""

    allow: Allowed = None
    allow_sql: Allowed = None
    plugins: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    databases: dict[str, Section] = {}
    tables: dict[str, Section] = {}
    queries: dict[str, Section | str] = {}


def site_settings() -> SettingValues:
    """Return Datasette's settings from datasette.yml, by name."""
    text = (site_folder() / "datasette.yml").read_text(encoding="utf-8")
    settings: SettingValues = load(text, METADATA_BOUNDS)["settings"]
    # Datasette reads the labels of a page's foreign keys with one parameter each, and SQLite before
    # 3.32 has at most 999 of them.
    with closing(sqlite3.connect(":memory:")) as connection:
        most_parameters = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    most_rows = int(settings["max_returned_rows"])
    return {**settings, "max_returned_rows": min(most_rows, most_parameters)}


class Served(NamedTuple):
    """A private path of a database, whose file has its name in URLs, and inspect data of it."""

    path: Path
    inspected: dict[str, Any]


@contextmanager
def served(database: Path) -> Iterator[Served]:
    """Yield a checked database that does not change while it is served.

    Raises:
        DatabaseError: it is not a database of `build`, or is damaged.
    """
    open_database(database).close()
    with pinned(database, f"{NAME}.db") as path:
        # Datasette does not detect stale inspect data.
        yield Served(path, current_inspection(path, database))


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Options of `serve` for the site; typed settings replace those of the metadata."""

    sql: bool = True
    cors: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: Sequence[tuple[str, str]] = ()
    plugins_dir: Path | None = None
    embedding: Sequence[str] = ()


def site_app(opened: Served, options: SiteOptions) -> Any:
    """Return the application of a server process, which ends on an error and with its parent."""
    from spack_cache_db.site.sandbox.statements import bound_heap

    # The reader of the log may disappear, and cancelled requests at the end are normal.
    logging.raiseExceptions = False
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not isinstance((record.exc_info or (0, 0))[1], asyncio.CancelledError)
    )
    threading.Thread(target=_end_with_parent, daemon=True).start()
    bound_heap()
    try:
        return datasette(opened, options).app()
    except BuilderError as error:
        write_error(f"Error: {error}\n")
        sys.exit(STARTUP_FAILURE)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class Supervisor(Multiprocess):
    """Starts server processes, replaces those that end or hang, and all of them at SIGHUP.

    The headers `X-Forwarded-Proto` and `X-Forwarded-For` of the proxy are trusted; by default,
    uvicorn would trust every process of this machine.
    """

    def __init__(
        self,
        database: Path,
        options: SiteOptions,
        listener: socket.socket,
        count: int,
        proxy: str | None,
    ) -> None:
        self._database, self._options = database, options
        self._pinned = ExitStack()
        opened = self._pinned.enter_context(served(database))
        # Report options that Datasette refuses before a process starts.
        datasette(opened, options)
        # All of uvicorn's log goes to standard error.
        log = deepcopy(LOGGING_CONFIG)
        log["handlers"]["access"]["stream"] = "ext://sys.stderr"
        config = Config(
            partial(site_app, opened, options),
            factory=True,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=log,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_worker_healthcheck=HEALTH_SECONDS,
            proxy_headers=proxy is not None,
            forwarded_allow_ips=proxy,
            workers=count,
        )
        is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        super().__init__(config, [listener])
        if is_ignored:
            # `nohup` ignores it.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # A terminal that closes sends SIGHUP as well.
        self._is_terminal = sys.stdin is not None and sys.stdin.isatty()

    @property
    def has_failed(self) -> bool:
        """Whether the start of a process failed."""
        return any(process.exitcode == STARTUP_FAILURE for process in self.processes)

    def run(self) -> None:
        """Serve until a signal ends the server."""
        try:
            super().run()
        finally:
            self._pinned.close()

    def handle_hup(self) -> None:
        """Serve the database that is at the path now; end if the server has a terminal."""
        if self._is_terminal:
            self.should_exit.set()
            return
        new = ExitStack()
        try:
            opened = new.enter_context(served(self._database))
        except BuilderError as error:
            write_error(f"SIGHUP: {error}. The old content is still served.\n")
            return
        old_processes, old_app = [*self.processes], self.config.app
        self.config.app = partial(site_app, opened, self._options)
        super().handle_hup()
        if any(process in old_processes for process in self.processes):
            self.config.app = old_app
        else:
            self._pinned, new = new, self._pinned
        new.close()


def datasette(file: Served, options: SiteOptions) -> Any:
    """Return the Datasette that serves a database; the plugin adds pages and templates.

    Raises:
        DatabaseError: Datasette refuses the options.
    """
    from datasette.app import Datasette
    from datasette.plugins import pm
    from datasette.utils import StartupError

    from spack_cache_db.site import plugin
    from spack_cache_db.site.allowances import allowances_of

    if not pm.is_registered(plugin):
        pm.register(plugin, "spack-cache-db")
    metadata = {key: value for key, value in options.metadata.items() if key != "settings"}
    arguments: dict[str, Any] = {"metadata": metadata}
    if not hasattr(Datasette, "metadata"):
        # Datasette 1.0 reads half of it from `config`, and stores its internal tables in a file.
        internal = file.path.with_name(f"internal-{os.getpid()}.db")
        arguments |= {"config": metadata, "internal": str(internal)}
    settings = {**site_settings(), "default_allow_sql": options.sql}
    typed = {name: checked_setting(name, value) for name, value in options.settings}
    try:
        app = Datasette(
            immutables=[str(file.path)],
            inspect_data=file.inspected,
            plugins_dir=str(options.plugins_dir) if options.plugins_dir else None,
            settings={**settings, **settings_of(options.metadata), **typed},
            cors=options.cors,
            **arguments,
        )
        allowances_of(app, options.embedding)
    except StartupError as error:
        raise DatabaseError(str(error)) from None
    return app


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the content of a metadata file, YAML or JSON.

    Raises:
        DatabaseError: it cannot be read, or has a section, a setting or a permission that Datasette
            does not understand.
    """
    try:
        metadata = load(read_file(path, METADATA_BOUNDS.size).decode(), METADATA_BOUNDS)
        msgspec.convert(metadata, Section)
        settings_of(metadata)
    except LineFault as fault:
        raise DatabaseError(str(Fault(str(path), fault.line, fault.message))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseError(f"{path}: {unreadable(error)}") from None
    except (msgspec.ValidationError, DatabaseError) as error:
        message = str(error).replace("Expected `object`", "expected a mapping")
        raise DatabaseError(f"{path}: {message}") from None
    return dict(metadata)


def settings_of(metadata: dict[str, Any]) -> SettingValues:
    """Return the settings in a metadata file."""
    settings = metadata.get("settings", {})
    return {str(name): checked_setting(str(name), value) for name, value in settings.items()}


def checked_setting(name: str, value: object) -> bool | int | str:
    """Return the value of a setting in its type; a text is read as Datasette reads it.

    Raises:
        DatabaseError: there is no setting of this name, or the value has another type.
    """
    from datasette.app import DEFAULT_SETTINGS

    if name not in DEFAULT_SETTINGS:
        close = difflib.get_close_matches(name, DEFAULT_SETTINGS)
        advice = f"close: {', '.join(close)}" if close else "see Datasette's documentation"
        raise DatabaseError(f"no setting is called {name!r}; {advice}")
    default, text = DEFAULT_SETTINGS[name], str(value).lower()
    if isinstance(default, bool):
        if text in ("on", "true", "1", "off", "false", "0"):
            return text in ("on", "true", "1")
        raise DatabaseError(f"setting {name}: {value!r} is neither on nor off")
    if isinstance(default, int):
        if text.isdecimal():
            return int(text)
        raise DatabaseError(f"setting {name}: {value!r} is not a whole number")
    return f"/{text.strip('/')}/".replace("//", "/") if name == "base_url" else str(value)


@contextmanager
def pinned(database: Path, name: str) -> Iterator[Path]:
    """Yield a private path to the database, called `name`, that replacing the file does not affect.

    Raises:
        DatabaseError: the database can neither be linked nor copied.
    """
    file, temporary = database.resolve(), Path(tempfile.gettempdir())
    with ExitStack() as stack:
        for folder in (temporary, file.parent):
            try:
                path = stack.enter_context(_own_folder(folder)) / name
                path.hardlink_to(file)
                break
            except OSError:
                # Another file system, one without links, or a file of another user.
                stack.close()
        else:
            try:
                path = stack.enter_context(_own_folder(temporary)) / name
                shutil.copyfile(database, path)
            except OSError as error:
                message = f"cannot be copied to {temporary}: {reason(error)}"
                message += "; set TMPDIR to another folder"
                raise DatabaseError(f"{database}: {message}") from None
        yield path


@contextmanager
def _own_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder, locked until it is removed; remove those that killed servers left."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError), _locked(folder):
            if time.time() - folder.stat().st_mtime > NEW_SECONDS:
                shutil.rmtree(folder)
    with (
        tempfile.TemporaryDirectory(
            prefix=PREFIX, dir=parent, ignore_cleanup_errors=True
        ) as new_folder,
        _locked(Path(new_folder)),
    ):
        yield Path(new_folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
