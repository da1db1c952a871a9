"""The command serve: a real server, that ends when it should."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import httpx
import pytest

from tests.commands import run
from tests.site.conftest import free_port, running


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """A file that does not exist is refused before a server starts."""
    result = run("serve", tmp_path / "missing.db")
    assert result.exit_code == 1
    assert "no such file" in result.stderr


@pytest.mark.slow
def test_a_real_server_answers_and_ends_with_its_parent(samples_file: Path) -> None:
    """`serve` answers on its port, and SIGTERM ends it together with Datasette."""
    port = free_port()
    command = [sys.executable, "-m", "spack_cache_db", "serve", str(samples_file)]
    with running([*command, "--port", str(port)], port) as server:
        url = f"{server.address}/spack-cache/specs.json?_size=max&_shape=array"
        assert len(httpx.get(url, timeout=30).json()) == 413
        assert server.end(signal.SIGTERM) == 0
    with pytest.raises(httpx.HTTPError):
        httpx.get(url, timeout=5)
