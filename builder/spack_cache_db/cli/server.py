"""The file → Datasette: which files, settings and plugins make up the site."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

import spack_cache_db
from spack_cache_db.build.inspect_file import NAME, current_inspection
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open import open_database

SettingValues = dict[str, bool | int]


def site_folder() -> Path:
    """Return the folder that holds metadata.yml, plugins, templates and static files.

    A wheel carries them in the package; in a checkout they stand at its root.

    Raises:
        DatabaseError: they are in neither place.
    """
    package = Path(spack_cache_db.__file__).resolve().parent
    folders = (package / "site" / "files", package.parents[1])
    for folder in folders:
        if (folder / "metadata.yml").is_file():
            return folder
    raise DatabaseError(
        f"no metadata.yml in {' or '.join(map(str, folders))}: the installation is damaged; "
        "install spack-cache-db again"
    )


def site_settings() -> SettingValues:
    """Return Datasette's settings from datasette.yml, by name."""
    text = (site_folder() / "datasette.yml").read_text(encoding="utf-8")
    settings: SettingValues = yaml.safe_load(text)["settings"]
    return settings


@contextmanager
def site(database: Path) -> Iterator[Path]:
    """Yield a folder in which the database is called `spack-cache.db`, beside its inspect file.

    Datasette names a database after its file. The inspect file there was verified against the
    database, or made from it: Datasette would believe a stale one.
    """
    open_database(database).close()
    folder = Path(tempfile.mkdtemp(prefix="spack-cache-db-"))
    try:
        (folder / f"{NAME}.db").symlink_to(database.resolve())
        inspected = current_inspection(database)
        (folder / "inspect.json").write_text(json.dumps(inspected), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def datasette_command(folder: Path, *, host: str, port: int, sql: bool) -> list[str]:
    """Return the command that serves the database in `folder` (see `site`)."""
    here = site_folder()
    command = [sys.executable, "-m", "datasette", "serve"]
    command += ["--immutable", str(folder / f"{NAME}.db")]
    command += ["--inspect-file", str(folder / "inspect.json")]
    command += ["--metadata", str(here / "metadata.yml")]
    command += ["--template-dir", str(here / "templates")]
    command += ["--plugins-dir", str(here / "plugins")]
    command += ["--static", f"static:{here / 'static'}"]
    command += ["--host", host, "--port", str(port)]
    for name, value in {**site_settings(), "default_allow_sql": sql}.items():
        command += ["--setting", name, json.dumps(value)]
    return command
