"""The site over pages that contradict themselves or carry markup: shown as data, never a 500."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db.build.steps import build
from tests.pagetexts import page, spec, spec_hash, write
from tests.site.conftest import site

SCRIPT = "<script>alert(1)</script>"
QUOTED = quote(SCRIPT, safe="")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site whose every name is a script, and whose one hash is two packages."""
    folder = tmp_path_factory.mktemp("odd")
    names = {"variants": [SCRIPT, "+cuda"], "stacks": [SCRIPT, "root"], "os": SCRIPT}
    pages = write(
        folder / "pages",
        hostile=page(SCRIPT, "develop", specs=[spec(1, target=SCRIPT, **names)]),
        other=page("zlib", SCRIPT, specs=[spec(1)]),
    )
    build([str(pages)], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_contradiction_stands_on_the_page_of_the_spec(odd: Any) -> None:
    """A hash that is two packages in two releases is told in words, on every page without a 500."""
    told = await odd.client.get(f"/spec/{spec_hash(1)}")

    assert told.status_code == 200
    assert "contradicts this" in told.text
    assert "<code>zlib</code> instead of" in told.text


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/package/{QUOTED}",
        "/package/zlib",
        f"/package/zlib?release={QUOTED}",
        f"/release/{QUOTED}",
        f"/stack/{QUOTED}",
        f"/find?q={QUOTED}",
        "/find?q=zlib",
        "/find?q=%2Bcuda",
        f"/spec/{spec_hash(1)}",
        "/spack-cache/configurations",
        "/spack-cache/builds",
        "/spack-cache/problems",
    ],
)
async def test_names_are_shown_not_run(odd: Any, path: str) -> None:
    """Every page answers, and a name that is a script stands there as text."""
    response = await odd.client.get(path, follow_redirects=True)

    assert response.status_code == 200
    assert SCRIPT not in response.text
