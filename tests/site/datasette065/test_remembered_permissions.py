"""What is remembered of permissions means what it meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasette import hookimpl
from datasette.plugins import pm

from tests.site.conftest import metadata, site

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]


async def test_a_closed_table_stays_closed(database: Path) -> None:
    """A table that the metadata closes stays closed, the others open."""
    described = metadata()
    described["databases"]["spack-cache"]["tables"]["pages"]["allow"] = False
    served = site(database, described)

    asked = ["pages", "specs", "pages", "specs", "stacks"]
    found = [(await served.client.get(f"/spack-cache/{name}")).status_code for name in asked]

    assert found == [403, 200, 403, 200, 200]


class Closing:
    """A plugin that closes a table when it is told to."""

    __name__ = "closing"

    def __init__(self) -> None:
        self.closed: set[str] = set()

    @hookimpl  # type: ignore[untyped-decorator]
    def get_metadata(self) -> dict[str, Any]:
        """Return what is closed now."""
        tables = {name: {"allow": False} for name in self.closed}
        return {"databases": {"spack-cache": {"tables": tables}}}


async def test_what_other_plugins_close_is_looked_up_each_time(database: Path) -> None:
    """Metadata of another plugin may change while the site runs."""
    plugin = Closing()
    pm.register(plugin)
    try:
        served = site(database)
        before = await served.client.get("/spack-cache/pages")
        plugin.closed.add("pages")
        after = await served.client.get("/spack-cache/pages")
    finally:
        pm.unregister(plugin)

    assert (before.status_code, after.status_code) == (200, 403)
