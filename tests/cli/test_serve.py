"""Serving: the settings, the database's name, and an inspect file that is never stale."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from spack_cache_db.build.inspect_file import inspect_path
from spack_cache_db.cli import cli
from spack_cache_db.cli.server import datasette_command, site
from spack_cache_db.errors import DatabaseError


def test_the_database_is_called_spack_cache(samples_file: Path) -> None:
    """Whatever the file is called, its name in URLs is spack-cache; the folder goes afterwards."""
    with site(samples_file) as folder:
        assert (folder / "spack-cache.db").resolve() == samples_file.resolve()
    assert not folder.exists()


def test_a_stale_inspect_file_is_not_believed(samples_file: Path, tmp_path: Path) -> None:
    """An inspect file of another database is replaced by what this one really holds."""
    copy = tmp_path / "copy.db"
    shutil.copy(samples_file, copy)
    inspected = json.loads(inspect_path(samples_file).read_text(encoding="utf-8"))
    inspected["spack-cache"]["hash"] = "0" * 64
    inspected["spack-cache"]["tables"]["specs"]["count"] = 999
    inspect_path(copy).write_text(json.dumps(inspected), encoding="utf-8")
    with site(copy) as folder:
        served = json.loads((folder / "inspect.json").read_text(encoding="utf-8"))
    assert served["spack-cache"]["tables"]["specs"]["count"] == 413


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A file that build did not make is refused before a server starts."""
    other = tmp_path / "other.db"
    other.write_bytes(b"something else")
    with pytest.raises(DatabaseError, match="is no spack-cache-db database"), site(other):
        pass
    result = CliRunner().invoke(cli, ["serve", str(tmp_path / "missing.db")])
    assert result.exit_code == 1
    assert "no such file" in result.stderr


def test_sql_can_be_switched_off(tmp_path: Path) -> None:
    """Visitors' SQL is on, unless --no-sql switches it off."""
    on = datasette_command(tmp_path, host="127.0.0.1", port=1, sql=True)
    off = datasette_command(tmp_path, host="127.0.0.1", port=1, sql=False)
    assert on[on.index("default_allow_sql") + 1] == "true"
    assert off[off.index("default_allow_sql") + 1] == "false"


@pytest.mark.slow
def test_a_real_server_answers_and_ends_with_its_parent(samples_file: Path) -> None:
    """`serve` answers on its port, and SIGTERM ends it together with Datasette."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "spack_cache_db",
        "serve",
        str(samples_file),
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url = f"http://127.0.0.1:{port}/spack-cache/specs.json?_size=max&_shape=array"
        try:
            assert len(wait_for(url)) == 413
        finally:
            os.kill(server.pid, signal.SIGTERM)
        server.wait(timeout=30)
    with pytest.raises(httpx.HTTPError):
        httpx.get(url, timeout=5)


def wait_for(url: str) -> list[dict[str, object]]:
    """Ask until a server answers; return its rows."""
    for _ in range(200):
        try:
            return list(httpx.get(url, timeout=30).json())
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer")
