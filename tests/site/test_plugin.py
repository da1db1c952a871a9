"""plugins/spack_cache.py: what Datasette finds, however it is started, and in each version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.server import free_port
from spack_cache_db.cli.server import site_settings
from tests.paths import ROOT
from tests.processes import PATIENCE
from tests.serving import running
from tests.site.cache import MPI, spec_hash


@pytest.mark.asyncio
async def test_hashes_in_tables_lead_to_specs(datasette: Any) -> None:
    """Datasette's own tables link hashes and packages to our pages."""
    answer = await datasette.client.get("/spack-cache/builds?package=hdf5")
    changes = await datasette.client.get("/spack-cache/release_changes?package=hdf5")

    assert f'<a href="/spec/{spec_hash(MPI)}">' in answer.text
    assert '<a href="/package/hdf5">' in answer.text
    assert '<a href="/release/develop">' in changes.text


@pytest.mark.slow
def test_datasette_serves_a_checkout_by_itself(database: Path) -> None:
    """`datasette . -i spack-cache.db` has our pages, queries, styles and settings."""
    port = free_port()
    command = [sys.executable, "-m", "datasette", ".", "-i", str(database), "--port", str(port)]
    with (
        running(command, port, cwd=ROOT) as server,
        httpx.Client(base_url=server.address, verify=False, timeout=PATIENCE) as ask,
    ):
        found = ask.get("/spack-cache/variant_values_of_package.json?package=hdf5&_shape=array")
        settings = ask.get("/-/settings.json").json()

        assert sum(row["specs"] for row in found.json() if row["name"] == "mpi") == 14
        assert settings.items() >= site_settings().items()
        assert "hdf5" in ask.get("/package/hdf5").text
        assert ask.get("/static/site.css").status_code == 200
        assert ask.get("/-/threads.json").status_code == 404
