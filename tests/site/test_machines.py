"""Rows of configurations stand below a heading for their system and family of CPUs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.spack.targets import family
from tests import pagetexts
from tests.pagetexts import spec
from tests.site.addresses import get
from tests.site.conftest import site

MAC = {"platform": "darwin", "os": "sequoia", "compiler": "apple-clang@16"}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site over two packages for three kinds of machine."""
    folder = tmp_path_factory.mktemp("machines")
    (folder / "pages").mkdir()
    for at, name in enumerate(("bar", "foo")):
        specs = [
            spec(4 * at + 1, target="m1", **MAC),
            spec(4 * at + 2, target="neoverse_v2"),
            spec(4 * at + 3, target="zen3"),
            spec(4 * at + 4, target="x86_64_v3"),
        ]
        text = pagetexts.page(name, "develop", specs)
        (folder / "pages" / f"{name}.md").write_bytes(text)
    build([str(folder / "pages")], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


def headed(text: str) -> list[tuple[str, list[str]]]:
    """Return the headings of a page's table, and the targets of the rows below each."""
    table = text.partition('id="configurations"')[2].partition("</table>")[0]
    groups = re.split(r'<th scope="rowgroup"', table)[1:]
    return [
        (group.partition(">")[2].partition("<")[0], re.findall(r'"Target"><code>([^<]+)', group))
        for group in groups
    ]


@pytest.mark.slow
@pytest.mark.asyncio
async def test_rows_stand_below_their_machines(machines: Any) -> None:
    """Each system and family has one heading, the usual first; of one alone there is none."""
    for path, rows in (("/package/foo", 1), ("/find?q=foo@0:", 1), ("/find?q=@0:", 2)):
        found = headed((await get(machines, path)).text)

        assert [name for name, _ in found] == ["linux, x86_64", "linux, aarch64", "darwin, aarch64"]
        assert [len(targets) for _, targets in found] == [2 * rows, rows, rows]
        for name, targets in found:
            assert {family(target) for target in targets} == {name.partition(", ")[2]}
    for path in ("/package/foo?host=zen4", "/find?q=@0:&host=zen4", "/find?q=foo+target=:zen4"):
        text = (await get(machines, path)).text

        assert headed(text) == []
        assert re.findall(r'"Target"><code>([^<]+)', text)[0] == "zen3"
