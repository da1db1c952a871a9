"""Settings and metadata of Datasette, from the site and from the owner's file.

Datasette itself checks few of them; a mistake would be seen on a page, or never.
"""

from __future__ import annotations

import difflib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from datasette.app import DEFAULT_SETTINGS

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.errors import DatabaseError, Fault, LineFault
from spack_cache_db.site.folder import site_folder

SettingValues = dict[str, bool | int | str]
"""Settings by name, each in the type of its default."""

_Allowed = bool | dict[str, Any] | None
"""Who may do something: everybody, nobody, or those with certain properties."""


class _Section(msgspec.Struct):
    """A section of metadata, with the types of Datasette's documentation.

    The whole file is a section too. Keys that are not here may have any value.
    """

    allow: _Allowed = None
    allow_sql: _Allowed = None
    plugins: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    databases: dict[str, _Section] = {}
    tables: dict[str, _Section] = {}
    queries: dict[str, _Section | str] = {}


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


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the content of a metadata file, YAML or JSON.

    Raises:
        DatabaseError: it cannot be read, or has a section, a setting or a permission
            that Datasette does not understand.
    """
    try:
        text = read_file(path, METADATA_BOUNDS.size).decode()
        metadata = load(text, METADATA_BOUNDS)
        msgspec.convert(metadata, _Section)
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
    """Return the settings in the content of a metadata file.

    Raises:
        DatabaseError: see `checked_setting`.
    """
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
        if text in ("on", "true", "1"):
            return True
        if text in ("off", "false", "0"):
            return False
        raise DatabaseError(f"setting {name}: {value!r} is neither on nor off")
    if isinstance(default, int):
        if text.isdecimal():
            return int(text)
        raise DatabaseError(f"setting {name}: {value!r} is not a whole number")
    if name == "base_url":
        # `cache` and `/cache` become `/cache/`; an empty path becomes `/`.
        return f"/{text.strip('/')}/".replace("//", "/")
    return str(value)
