"""Views and filters of configured mirrors: from Spack's configuration over HTTP to a database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.sources.fetch import FetchOptions, fetch
from spack_cache_db.sources.indexes import Address, read_address
from tests.commands import run
from tests.indexes import VIEWS
from tests.sources.fetch.mirrors import QUICK, files_in, says
from tests.sources.fetch.server import Site

pytestmark = pytest.mark.slow

INDEX = "v3/manifests/index"


@pytest.fixture
def mirror(site: Site) -> str:
    """The URL of a mirror that Spack 1.2 wrote, served over HTTP."""
    site.serve({f"m/{name}": data for name, data in files_in(VIEWS).items()})
    return f"{site.url}/m"


def configured(folder: Path, **mirrors: Any) -> Path:
    """Write a configuration of mirrors."""
    path = folder / "mirrors.yaml"
    path.write_text(json.dumps({"mirrors": mirrors}))
    return path


def built(folder: Path) -> list[tuple[str, str, str]]:
    """Build what was fetched; return release, stacks and package of each binary."""
    build(folder, folder.parent / "x.db")
    with closing(sqlite3.connect(folder.parent / "x.db")) as connection:
        return connection.execute(
            "SELECT release, stacks, package FROM build_listings ORDER BY 1, 3"
        ).fetchall()


@pytest.mark.parametrize(
    ("view", "binaries"),
    [
        ("sub/view2", [("one", '["sub/view2"]', "tool")]),
        ("myview", [("one", '["myview"]', "tlib"), ("one", '["myview"]', "tlib")]),
    ],
)
@pytest.mark.parametrize("is_in_fetch", [False, True])
def test_a_mirror_with_a_view(
    mirror: str, output: Path, view: str, binaries: list[Any], is_in_fetch: bool
) -> None:
    """Only its view is fetched, as Spack reads it; that of `fetch` counts before the mirror's."""
    if is_in_fetch:
        given: Any = {"url": "s3://nothing", "view": "no", "fetch": {"url": mirror, "view": view}}
    else:
        given = {"url": mirror, "view": view}
    options = FetchOptions(mirrors=configured(output.parent, one=given))

    reports = [fetch([], output, options, QUICK) for _ in range(2)]

    assert [(each.faults, each.changed) for each in reports] == [((), 1), ((), 0)]
    manifests = [name for name in files_in(output / "one/root") if name.startswith("v3/")]
    assert manifests == [f"{INDEX}/{view}/index.manifest.json"]
    assert built(output) == binaries


@pytest.mark.parametrize("ending", ["", "/index.manifest.json"])
def test_views_that_are_named(mirror: str, output: Path, ending: str) -> None:
    """`--view` takes a name with slashes; the URL of a view's index is that of the view alone."""
    if ending:
        report = fetch(f"{mirror}/{INDEX}/sub/view2{ending}", output, limits=QUICK)
    else:
        report = fetch(mirror, output, FetchOptions(views=("sub/view2",)), QUICK)

    names = [] if ending else [f"{INDEX}/index.manifest.json"]
    assert report.faults == ()
    assert {name for name in files_in(output / "m" / "root") if name.startswith("v3/")} == {
        *names, f"{INDEX}/sub/view2/index.manifest.json",
    }  # fmt: skip


def test_a_view_that_is_missing(mirror: str, output: Path) -> None:
    """A view that the mirror has not is named, and nothing else is taken instead."""
    path = configured(output.parent, one={"url": mirror, "view": "no/such"})

    message = says(fetch([], output, FetchOptions(mirrors=path), QUICK))

    assert message.startswith(f"has no view no/such: {INDEX}/no/such/index.manifest.json answers")
    assert files_in(output) == {}


def test_filters(mirror: str, output: Path) -> None:
    """What a mirror leaves out is recorded, counted by `fetch` and `build`, and not listed."""
    filters: dict[str, Any] = {"include_binary": ["tlib", "tapp"], "exclude_binary": ["^tprov"]}
    path = configured(
        output.parent,
        all={"url": mirror, "include_binary": ["nothing"], "fetch": {"include_binary": []}},
        some={"url": mirror, **filters},
    )

    fetched = run("fetch", "--mirrors", path, "-o", output)
    result = run("build", output, "-o", output.parent / "y.db")

    assert fetched.exit_code == result.exit_code == 0
    manifest = f"{output}/some/root/{INDEX}/index.manifest.json"
    words = "3 binaries left out by include_binary or exclude_binary in mirror.json"
    assert fetched.stderr == result.stderr == f"Note: {manifest}: {words}\n"
    address = read_address((output / "some/root/mirror.json").read_bytes())
    assert address == Address(mirror, ("tlib", "tapp"), ("^tprov",))
    assert [row[2] for row in built(output) if row[0] == "some"] == ["tlib", "tlib"]
    assert len([row for row in built(output) if row[0] == "all"]) == 5
