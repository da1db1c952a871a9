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
from tests.site.conftest import SQL


@pytest.mark.asyncio
async def test_hashes_in_tables_lead_to_specs(datasette: Any) -> None:
    """Datasette's own tables link hashes and packages to our pages."""
    answer = await datasette.client.get("/spack-cache/builds?package=hdf5")
    changes = await datasette.client.get("/spack-cache/release_changes?package=hdf5")

    assert f'<a href="/spec/{spec_hash(MPI)}">' in answer.text
    assert '<a href="/package/hdf5">' in answer.text
    assert '<a href="/release/develop">' in changes.text


NUMBERS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 900) SELECT {} FROM n"
)


@pytest.mark.slow
def test_datasette_serves_a_checkout_by_itself(database: Path) -> None:
    """`datasette . -i spack-cache.db` has our pages, queries, styles and settings.

    CSV that is too large breaks the connection, so that no program takes a part for all rows.
    """
    port = free_port()
    command = [sys.executable, "-m", "datasette", ".", "-i", str(database), "--port", str(port)]
    command += ["--setting", "max_csv_mb", "1"]
    with (
        running(command, port, cwd=ROOT) as server,
        httpx.Client(base_url=server.address, verify=False, timeout=PATIENCE) as ask,
    ):
        found = ask.get("/spack-cache/variant_values_of_package.json?package=hdf5&_shape=array")
        settings = ask.get("/-/settings.json").json()

        assert sum(row["specs"] for row in found.json() if row["name"] == "mpi") == 14
        assert settings.items() >= {**site_settings(), "max_csv_mb": 1}.items()
        assert "hdf5" in ask.get("/package/hdf5").text
        assert ask.get("/static/site.css").status_code == 200
        assert ask.get("/-/threads.json").status_code == 404
        rows = {"sql": NUMBERS.format("x")}
        assert len(ask.get(f"{SQL}.csv", params=rows).text.splitlines()) == 901
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            ask.get(f"{SQL}.csv", params={"sql": NUMBERS.format(f"'{'x' * 2_000}'")})
