"""The Datasette that a server process holds, from the options of `serve`."""

from __future__ import annotations

import difflib
import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from datasette.app import DEFAULT_SETTINGS, Datasette
from datasette.plugins import pm
from datasette.utils import StartupError

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.errors import DatabaseError, Fault, LineFault
from spack_cache_db.inspect_file import NAME
from spack_cache_db.site import plugin, versions
from spack_cache_db.site.allowances import add_allowances
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.http.download import close_files

SettingValues = dict[str, bool | int | str]
Allowed = bool | dict[str, Any] | None


class Section(msgspec.Struct):
    """A section of metadata, as Datasette's documentation has it; Datasette checks no
    types.
    """

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
    # Datasette reads the labels of a page's foreign keys with one parameter each, and
    # SQLite before 3.32 has at most 999 of them.
    with closing(sqlite3.connect(":memory:")) as connection:
        most_parameters = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    most_rows = int(settings["max_returned_rows"])
    return {**settings, "max_returned_rows": min(most_rows, most_parameters)}


def _secret() -> str:
    """Return the secret that signs logins, which all processes and databases share."""
    return os.environ.get("DATASETTE_SECRET") or secrets.token_hex(32)


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Options of `serve` for the site; typed settings replace those of the metadata."""

    sql: bool = True
    cors: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: Sequence[tuple[str, str]] = ()
    plugins_dir: Path | None = None
    embedding: Sequence[str] = ()
    stale_days: float | None = None
    secret: str = field(default_factory=_secret)


class SiteDatasette(Datasette):  # type: ignore[misc]
    """A Datasette that serves one database, whose name in URLs does not depend on its
    path.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._path = str(path)
        self._connections: list[sqlite3.Connection] = []
        super().__init__(immutables=[self._path], **options)

    def add_database(
        self, db: Any, name: str | None = None, route: str | None = None
    ) -> Any:
        """Add a database; that of the site gets its own name."""
        if db.path == self._path:
            name = NAME
            db.connect = self._connect
        return super().add_database(db, name, route)

    def close_database(self) -> None:
        """Close the database and its file."""
        close_files(self)
        for connection in self._connections:
            connection.close()

    def _connect(self, write: bool = False) -> sqlite3.Connection:
        # Datasette puts the path into an address as it is; `?`, `%` and `#` have a
        # meaning there.
        address = f"file:{quote(self._path)}?immutable=1"
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._connections.append(connection)
        return connection


def datasette_of(
    path: Path, inspected: dict[str, Any], options: SiteOptions
) -> SiteDatasette:
    """Return the Datasette that serves a database; the plugin adds pages and templates.

    Args:
        path: the absolute path of the database.
        inspected: the content of its inspect file.
        options: the options of `serve`.

    Raises:
        DatabaseError: Datasette refuses the options.
    """
    if not pm.is_registered(plugin):
        pm.register(plugin, "spack-cache-db")
    # Our settings, those of the metadata, and those of the command line.
    settings = {**site_settings(), "default_allow_sql": options.sql}
    settings |= settings_of(options.metadata)
    for name, value in options.settings:
        settings[name] = checked_setting(name, value)
    # A process answers one request at a time, so it needs no threads for its
    # statements.
    settings["num_sql_threads"] = 0

    metadata = dict(options.metadata)
    metadata.pop("settings", None)
    try:
        datasette = SiteDatasette(
            path,
            inspect_data=inspected,
            plugins_dir=str(options.plugins_dir) if options.plugins_dir else None,
            settings=settings,
            cors=options.cors,
            secret=options.secret,
            **versions.options_of(metadata),
        )
        add_allowances(datasette, options.embedding, options.stale_days)
    except StartupError as error:
        raise DatabaseError(str(error)) from None
    versions.keep_internal_in_memory(datasette)
    return datasette


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the content of a metadata file, YAML or JSON.

    Raises:
        DatabaseError: it cannot be read, or has a section, a setting or a permission
            that Datasette does not understand.
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
    settings = {}
    for name, value in metadata.get("settings", {}).items():
        settings[str(name)] = checked_setting(str(name), value)
    return settings


def checked_setting(name: str, value: object) -> bool | int | str:
    """Return the value of a setting in its type; a text is read as Datasette reads it.

    Raises:
        DatabaseError: there is no setting of this name, or the value has another type.
    """
    if name not in DEFAULT_SETTINGS:
        advice = "see Datasette's documentation"
        close = difflib.get_close_matches(name, DEFAULT_SETTINGS)
        if close:
            advice = f"close: {', '.join(close)}"
        raise DatabaseError(f"no setting is called {name!r}; {advice}")

    # The default has the type of the setting. True is an int, too, so it comes first.
    default = DEFAULT_SETTINGS[name]
    text = str(value).lower()
    if isinstance(default, bool):
        if text in ("on", "true", "1", "off", "false", "0"):
            return text in ("on", "true", "1")
        raise DatabaseError(f"setting {name}: {value!r} is neither on nor off")
    if isinstance(default, int):
        if text.isdecimal():
            return int(text)
        raise DatabaseError(f"setting {name}: {value!r} is not a whole number")
    if name == "base_url":
        # `cache` and `/cache` become `/cache/`; an empty path becomes `/`.
        return f"/{text.strip('/')}/".replace("//", "/")
    return str(value)
