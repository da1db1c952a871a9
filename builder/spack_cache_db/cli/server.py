"""The server processes of `serve`: uvicorn starts and replaces them, each has a Datasette.

The file is served under a path of its own, so that what is built in its place meanwhile changes
nothing: Datasette opens a file again in every thread, and a restarted worker opens it anew. It is
linked (where that is impossible: copied) into a folder that belongs to this server alone. That
folder is locked for as long as a process of the server lives; the next server removes what a killed
one left behind.
"""

from __future__ import annotations

import asyncio
import difflib
import fcntl
import logging
import multiprocessing
import os
import reprlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uvicorn import Config
from uvicorn.config import LOGGING_CONFIG, STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.build.publication import NAME, current_inspection
from spack_cache_db.cli.signals import write_error
from spack_cache_db.database_file import open_database
from spack_cache_db.errors import BuilderError, DatabaseError, Fault, LineFault, reason
from spack_cache_db.site import site_folder

GRACE_SECONDS = 3
"""Seconds that unfinished answers get after a signal to end."""
HEALTH_SECONDS = 30
"""Seconds in which a process must start, and in which a running one must respond."""
PREFIX = ".spack-cache-db-served-"
EACH = "*"
SECTIONS: Mapping[str, Any] = {
    "databases": {EACH: {"plugins": {}, "queries": {}, "tables": {EACH: {"plugins": {}}}}},
    "plugins": {},
    "settings": {},
}
"""Which parts of metadata are mappings (Datasette's documentation, "Metadata"); `*` is any name."""

SettingValues = dict[str, bool | int | str]


def site_settings() -> SettingValues:
    """Return Datasette's settings from datasette.yml, by name."""
    text = (site_folder() / "datasette.yml").read_text(encoding="utf-8")
    settings: SettingValues = load(text, METADATA_BOUNDS)["settings"]
    return settings


@dataclass(frozen=True, slots=True)
class Served:
    """A file as Datasette serves it, under the name that it has in URLs.

    Args:
        path: leads to the file for as long as it is served.
        inspected: what an inspect file says, of this very file: Datasette would believe a stale
            one.
    """

    path: Path
    inspected: dict[str, Any]


@contextmanager
def served(database: Path) -> Iterator[Served]:
    """Yield a file that is whole, and stays what it is while it is served.

    Raises:
        DatabaseError: it is not a database of `build`, is damaged, or Datasette cannot show it.
    """
    open_database(database).close()
    with pinned(database, f"{NAME}.db") as path:
        inspected = current_inspection(path, database)
        for name in inspected[NAME]["tables"]:
            # Datasette 0.65 and 1.0 put names into SQL between brackets as they are.
            if "]" in name:
                message = "a name that Datasette cannot show; rename it"
                raise DatabaseError(f"{database}: has a table {name!r}, {message}")
        yield Served(path, inspected)


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """How a file is served.

    Attributes:
        sql: whether visitors may type SQL of their own.
        cors: whether pages of other sites may read what is served.
        metadata: titles, permissions, plugins and settings of whoever serves it; they come first.
        settings: settings of Datasette as they were typed; they come before those of the metadata.
        plugins_dir: a folder with plugins of their own.
        embedding: origins whose pages may show the site's in a frame, beside those of the metadata.
    """

    sql: bool = True
    cors: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: Sequence[tuple[str, str]] = ()
    plugins_dir: Path | None = None
    embedding: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SiteProcess:
    """The start of a server process: uvicorn calls it in that process for the application.

    Attributes:
        opened: the database to serve.
        options: how it is served.
    """

    opened: Served
    options: SiteOptions

    def __call__(self) -> Any:
        """Return the application; the process ends where there is none, or with its parent."""
        from spack_cache_db.site.sandbox.statements import bound_heap

        # A reader of the log may leave; and at the end requests are cancelled, as they should be.
        logging.raiseExceptions = False
        logging.getLogger("uvicorn.error").addFilter(
            lambda record: not isinstance((record.exc_info or (0, 0))[1], asyncio.CancelledError)
        )
        threading.Thread(target=_end_with_parent, daemon=True).start()
        bound_heap()
        try:
            return datasette(self.opened, self.options).app()
        except BuilderError as error:
            write_error(f"Error: {error}\n")
            sys.exit(STARTUP_FAILURE)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class Supervisor(Multiprocess):
    """Starts server processes, replaces those that end or hang, and all of them at SIGHUP.

    Args:
        database: the file to serve.
        options: how it is served.
        listener: the socket on which all of them listen.
        count: how many there are.
        proxy: the address of the proxy whose `X-Forwarded-Proto` and `X-Forwarded-For` are
            believed. uvicorn would believe everybody's on this machine.
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
        process = SiteProcess(self._pinned.enter_context(served(database)), options)
        # Here an option that Datasette refuses is an error of the command.
        datasette(process.opened, options)
        # All of uvicorn's log goes to standard error.
        log = deepcopy(LOGGING_CONFIG)
        log["handlers"]["access"]["stream"] = "ext://sys.stderr"
        config = Config(
            process,
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
            # As `nohup` has it.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # A terminal that closes sends SIGHUP as well.
        self._is_terminal = sys.stdin is not None and sys.stdin.isatty()

    @property
    def has_failed(self) -> bool:
        """Whether the start of a process failed."""
        return any(process.exitcode == STARTUP_FAILURE for process in self.processes)

    def run(self) -> None:
        """Serve until a signal says that it is enough."""
        with self._pinned:
            super().run()

    def handle_hup(self) -> None:
        """End where the terminal has gone; else serve the file that is there now."""
        if self._is_terminal:
            self.should_exit.set()
            return
        before, process = [*self.processes], self.config.app
        with ExitStack() as replaced:
            try:
                opened = replaced.enter_context(served(self._database))
            except BuilderError as error:
                write_error(f"SIGHUP: {error}. The old content is still served.\n")
                return
            self.config.app = SiteProcess(opened, self._options)
            super().handle_hup()
            if any(process in before for process in self.processes):
                self.config.app = process
            else:
                # What is closed below is what was served until now.
                new = replaced.pop_all()
                replaced.push(self._pinned.pop_all())
                self._pinned.push(new)


def datasette(file: Served, options: SiteOptions) -> Any:
    """Return the Datasette that serves a file; the plugin adds pages, templates and metadata.

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
    given = {key: value for key, value in options.metadata.items() if key != "settings"}
    if options.embedding:
        given["plugins"] = _with_embedding(given.get("plugins") or {}, options.embedding)
    settings = {**site_settings(), "default_allow_sql": options.sql}
    typed = {name: checked_setting(name, value) for name, value in options.settings}
    try:
        found = Datasette(
            immutables=[str(file.path)],
            inspect_data=file.inspected,
            **_metadata(file, given),
            plugins_dir=str(options.plugins_dir) if options.plugins_dir else None,
            settings={**settings, **settings_of(options.metadata), **typed},
            cors=options.cors,
        )
        allowances_of(found)
    except StartupError as error:
        raise DatabaseError(str(error)) from None
    return found


def _with_embedding(plugins: Any, origins: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of plugins, in which these origins are allowed as well."""
    from spack_cache_db.site.allowances import NAME as NAME_OF_PLUGIN

    own = plugins.get(NAME_OF_PLUGIN) or {} if isinstance(plugins, dict) else plugins
    known = own.get("embedding") or [] if isinstance(own, dict) else own
    if not isinstance(known, list):
        raise DatabaseError(f"plugins: {known!r} cannot be read")
    return {**plugins, NAME_OF_PLUGIN: {**own, "embedding": [*known, *origins]}}


def _metadata(file: Served, given: dict[str, Any]) -> dict[str, Any]:
    """Return what describes a site, as the arguments of Datasette.

    1.0 reads half of it as `config`, and takes plugins out of `metadata`, which visitors see. Its
    own bookkeeping is a file, one for each process, which else a killed server leaves behind.
    """
    from datasette.app import Datasette

    if hasattr(Datasette, "metadata"):
        return {"metadata": given}
    internal = file.path.with_name(f"internal-{os.getpid()}.db")
    return {"metadata": given, "config": given, "internal": str(internal)}


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the content of a metadata file, YAML or JSON.

    Raises:
        DatabaseError: it cannot be read, or something in it is no mapping, no setting, or says in
            no way that Datasette understands who may see what.
    """
    try:
        found = load(read_file(path, METADATA_BOUNDS.size).decode(), METADATA_BOUNDS)
    except LineFault as fault:
        raise DatabaseError(str(Fault(str(path), fault.line, fault.message))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseError(f"{path}: {unreadable(error)}") from None
    if not isinstance(found, dict):
        raise DatabaseError(f"{path}: expected a mapping, such as title: Our build cache")
    try:
        _check_sections(found, SECTIONS)
        settings_of(found)
    except DatabaseError as error:
        raise DatabaseError(f"{path}: {error}") from None
    return found


def _check_sections(found: Mapping[Any, Any], sections: Mapping[str, Any], place: str = "") -> None:
    if sections and EACH not in sections:
        _check_allowed(found, place)
    for key in (each for each in found if each in sections or EACH in sections):
        inner, where = found[key], f"{place}{key}: "
        if not isinstance(inner, dict):
            raise DatabaseError(f"{where}expected a mapping, found {reprlib.repr(inner)}")
        _check_sections(inner, sections.get(key) or sections.get(EACH, {}), where)
    queries = found.get("queries", {}) if "queries" in sections else {}
    for name, query in queries.items():
        if isinstance(query, dict):
            _check_allowed(query, f"{place}queries: {name}: ")


def _check_allowed(found: Mapping[Any, Any], place: str) -> None:
    """Check who may see something (Datasette's documentation, "Defining permissions")."""
    for key in ("allow", "allow_sql"):
        allowed = found.get(key)
        if not isinstance(allowed, dict | bool | None):
            expected = "expected true, false or a mapping such as id: root"
            raise DatabaseError(f"{place}{key}: {expected}, found {reprlib.repr(allowed)}")


def settings_of(metadata: dict[str, Any]) -> SettingValues:
    """Return the settings in a metadata file.

    Raises:
        DatabaseError: there is no setting of such a name, or a value of another type.
    """
    found = metadata.get("settings", {})
    return {str(name): checked_setting(str(name), value) for name, value in found.items()}


def checked_setting(name: str, value: object) -> bool | int | str:
    """Return the value of a setting in its type; a text is read as Datasette reads it.

    Raises:
        DatabaseError: there is no setting of this name, or the value is of another type.
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
        raise DatabaseError(f"setting {name}: {value!r} is no whole number")
    return f"/{text.strip('/')}/".replace("//", "/") if name == "base_url" else str(value)


@contextmanager
def pinned(database: Path, name: str) -> Iterator[Path]:
    """Yield another path of the file, called `name`, which leads to it whatever replaces it.

    Raises:
        DatabaseError: the file can neither be linked nor copied.
    """
    file, temporary = database.resolve(), Path(tempfile.gettempdir())
    for place in (temporary, file.parent):
        _remove_left_behind(place)
    with ExitStack() as stack:
        for place in (temporary, file.parent):
            try:
                path = stack.enter_context(_own_folder(place)) / name
                path.hardlink_to(file)
                break
            except OSError:
                # Another file system, one without links, or a file of somebody else.
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
def _own_folder(place: Path) -> Iterator[Path]:
    """Yield a new folder, which is locked until it is removed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another server may have taken it for one left behind before it was locked.
        if folder.exists():
            break
        os.close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_left_behind(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)
