"""The file → Datasette: which files, settings and plugins make up the site."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from datasette.app import Datasette

from spack_cache_db.build.publication import NAME, current_inspection
from spack_cache_db.cli.pinned import pinned
from spack_cache_db.cli.site import site_folder
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.connection import open_database

SettingValues = dict[str, bool | int]


def site_settings() -> SettingValues:
    """Return Datasette's settings from datasette.yml, by name."""
    text = (site_folder() / "datasette.yml").read_text(encoding="utf-8")
    settings: SettingValues = yaml.safe_load(text)["settings"]
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
        DatabaseError: it is no file that build made, or a damaged one, or Datasette cannot show it.
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


def datasette(file: Served, *, sql: bool, cors: bool) -> Any:
    """Return the Datasette that serves a file.

    Args:
        file: the file.
        sql: whether visitors may type SQL of their own.
        cors: whether pages of other sites may read what is served.
    """
    here = site_folder()
    described = yaml.safe_load((here / "metadata.yml").read_text(encoding="utf-8"))
    return Datasette(
        immutables=[str(file.path)],
        inspect_data=file.inspected,
        metadata=described,
        **_for_version_1(file, described),
        template_dir=str(here / "templates"),
        plugins_dir=str(here / "plugins"),
        static_mounts=[("static", str(here / "static"))],
        settings={**site_settings(), "default_allow_sql": sql},
        cors=cors,
    )


def _for_version_1(file: Served, described: dict[str, Any]) -> dict[str, Any]:
    """Return what only Datasette 1.0 is told: it reads half of what describes a site as `config`.

    Its own bookkeeping is a file, one for each process, which else a killed server leaves behind.
    """
    if "internal" not in inspect.signature(Datasette).parameters:
        return {}
    return {"config": described, "internal": str(file.path.with_name(f"internal-{os.getpid()}.db"))}
