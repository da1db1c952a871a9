"""The site over an invented build cache: as a connection, in process, and as a real server."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from datasette.app import Datasette

from spack_cache_db.build.steps import build
from spack_cache_db.cli.server import SETTINGS
from spack_cache_db.site.catalog import Catalog, load_catalog
from tests.paths import ROOT
from tests.site.cache import write_pages


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented cache, built by the real builder."""
    folder = tmp_path_factory.mktemp("site")
    file = folder / "spack-cache.db"
    build([str(write_pages(folder / "pages"))], file)
    return file


@pytest.fixture(scope="session")
def conn(database: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to the built file."""
    connection = sqlite3.connect(f"file:{database}?immutable=1", uri=True)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def catalog(conn: sqlite3.Connection) -> Catalog:
    """The dictionaries of the built file."""
    return load_catalog(conn)


def settings() -> dict[str, Any]:
    """The settings with which the site is served."""
    return dict(SETTINGS)


def metadata() -> dict[str, Any]:
    """The site's metadata."""
    described: dict[str, Any] = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
    return described


def site(
    database: Path,
    described: dict[str, Any] | None = None,
    templates: Path = ROOT / "templates",
    *,
    immutable: bool = True,
    cors: bool = False,
    **changes: Any,
) -> Any:
    """The site in process: unless told otherwise the real metadata, templates and settings."""
    inspected = json.loads(database.with_suffix(".inspect.json").read_text(encoding="utf-8"))
    return Datasette(
        [] if immutable else [str(database)],
        immutables=[str(database)] if immutable else [],
        inspect_data=inspected if immutable else None,
        metadata=described or metadata(),
        template_dir=str(templates),
        plugins_dir=str(ROOT / "plugins"),
        static_mounts=[("static", str(ROOT / "static"))],
        settings={**settings(), **changes},
        cors=cors,
    )


@pytest.fixture(scope="session")
def datasette(database: Path) -> Any:
    """The site in process, as it is served by default."""
    return site(database)


class Server:
    """A real server process, and how much memory it has taken at most."""

    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self._status = Path(f"/proc/{pid}/status")

    def peak_megabytes(self) -> float:
        """Return the most memory that the process has held."""
        lines = self._status.read_text(encoding="ascii").splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024


@contextmanager
def serving(database: Path, *options: str) -> Iterator[Server]:
    """Serve the site as `datasette` does from a folder of files, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", "--immutable", str(database)]
    command += ["--inspect-file", str(database.with_suffix(".inspect.json"))]
    command += ["--metadata", "metadata.yml", "--template-dir", "templates"]
    command += ["--plugins-dir", "plugins", "--static", "static:static", "--port", str(port)]
    for name, value in SETTINGS.items():
        command += ["--setting", name, str(int(value))]
    process = subprocess.Popen(
        [*command, *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process)
        yield Server(address, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            httpx.get(f"{address}/-/versions.json")
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start within 30 seconds")


@pytest.fixture(scope="session")
def server(database: Path) -> Iterator[Server]:
    """A real server process over the invented cache."""
    with serving(database) as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser; without one the browser tests fail, and say what to do."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("no Chromium here: run `apt-get install -y chromium`", pytrace=False)
    return found
