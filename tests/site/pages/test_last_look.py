"""site.site: the first page and /about show when a build last looked at the
sources.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from spack_cache_db.inspect_file import looked_at
from spack_cache_db.site.site import Site
from tests.site.conftest import asked_of


@pytest.mark.parametrize("address", ["/", "/about"])
def test_pages_show_the_day_of_the_last_look(
    address: str, own_site: Site, database: Path, tmp_path: Path
) -> None:
    """From the inspect file beside the database, or not at all without one."""
    day = (looked_at(database) or "")[:10]
    known = replace(own_site, settings=replace(own_site.settings, file=str(database)))

    assert f"last checked {'on' if address == '/about' else ''}" in _text(
        known, address
    )
    assert day in _text(known, address)

    lone = str(tmp_path / "lone.db")
    unknown = replace(own_site, settings=replace(own_site.settings, file=lone))
    assert "last checked" not in _text(unknown, address)


def _text(site: Site, address: str) -> str:
    return asked_of(site, address).body.decode()
