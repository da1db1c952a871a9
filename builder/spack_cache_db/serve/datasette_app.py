"""The Datasette that a server process holds, from the options of `serve`."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.app import Datasette
from datasette.plugins import pm
from datasette.utils import StartupError

from spack_cache_db.errors import DatabaseError
from spack_cache_db.inspect_file import NAME
from spack_cache_db.serve.metadata import checked_setting, settings_of, site_settings
from spack_cache_db.site import plugin, versions
from spack_cache_db.site.allowances import add_allowances
from spack_cache_db.site.http.download import close_files


def _secret() -> str:
    """Return the secret with which Datasette signs logins."""
    return os.environ.get("DATASETTE_SECRET") or secrets.token_hex(32)


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Options of `serve` for the site.

    Attributes:
        sql: whether visitors may send their own SQL.
        cors: whether other websites may read the data.
        metadata: the content of the owner's metadata file.
        settings: names and values of settings, as they were typed. They replace those
            of the metadata, and those replace the site's own.
        plugins_dir: a folder with plugins of the owner.
        embedding: the origins whose pages may show the site in a frame.
        stale_days: the age of data that `/-/health.json` reports as a problem, in days;
            None for the configured age.
        secret: signs logins. All processes and databases share it, so that a login is
            valid in each.
    """

    sql: bool = True
    cors: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: Sequence[tuple[str, str]] = ()
    plugins_dir: Path | None = None
    embedding: Sequence[str] = ()
    stale_days: float | None = None
    secret: str = field(default_factory=_secret)


class SiteDatasette(Datasette):  # type: ignore[misc]
    """A Datasette that serves one database under the name `inspect_file.NAME`.

    Otherwise, the name in URLs would be that of the file.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._path = str(path)
        self._connections: list[sqlite3.Connection] = []
        super().__init__(immutables=[self._path], **options)

    def add_database(
        self, db: Any, name: str | None = None, route: str | None = None
    ) -> Any:
        """Add a database; Datasette calls this for each of its databases."""
        if db.path == self._path:
            name = NAME
            db.connect = self._connect
        return super().add_database(db, name, route)

    def close_database(self) -> None:
        """Close the connections to the database, and the file for downloads."""
        close_files(self)
        for connection in self._connections:
            connection.close()

    def _connect(self, write: bool = False) -> sqlite3.Connection:
        """Connect to the database, in place of a method of Datasette.

        Datasette puts the path into an address as it is, in which `?`, `%` and `#` have
        a meaning.
        """
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

    # The settings in the metadata are among these already.
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
