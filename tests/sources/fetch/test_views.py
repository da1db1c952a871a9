"""Views and filters of configured mirrors: from Spack's configuration over HTTP to a
database.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchOptions
from spack_cache_db.sources.indexes.addresses import Address, read_address
from tests.commands import run
from tests.indexes import VIEWS
from tests.sources.fetch.mirrors import (
    QUICK,
    bring_mine,
    changes,
    configured,
    files_in,
    says,
)
from tests.sources.fetch.server import Site

pytestmark = pytest.mark.slow

INDEX = "v3/manifests/index"


@pytest.fixture
def mirror(site: Site) -> str:
    """The URL of a mirror that Spack 1.2 wrote, served over HTTP."""
    site.serve({f"m/{name}": data for name, data in files_in(VIEWS).items()})
    return f"{site.url}/m"


def built(folder: Path) -> list[tuple[str, str, str]]:
    """Build what was fetched; return release, stacks and package of each binary."""
    build(folder, folder.parent / "x.db")
    with closing(sqlite3.connect(folder.parent / "x.db")) as connection:
        return connection.execute(
            "SELECT release, stacks, package FROM build_listings ORDER BY 1, 3"
        ).fetchall()


@pytest.mark.parametrize("is_in_fetch", [False, True])
@pytest.mark.parametrize(
    ("view", "names"), [("sub/view2", ["tool"]), ("myview", ["tlib"] * 2)]
)
def test_a_mirror_with_a_view(
    mirror: str, output: Path, view: str, names: list[str], is_in_fetch: bool
) -> None:
    """Only its view is fetched, as Spack reads it; that of `fetch` counts before the
    mirror's.
    """
    keys: dict[str, Any] = {"url": mirror, "view": view}
    if is_in_fetch:
        keys = {"url": "s3://nothing", "view": "no", "fetch": keys}

    assert changes([bring_mine(output, **keys) for _ in range(2)]) == [1, 0]

    manifests = [
        name for name in files_in(output / "mine/root") if name.startswith("v3/")
    ]
    assert manifests == [f"{INDEX}/{view}/index.manifest.json"]
    assert built(output) == [("mine", f'["{view}"]', name) for name in names]


@pytest.mark.parametrize("ending", ["", "/index.manifest.json"])
def test_views_that_are_named(mirror: str, output: Path, ending: str) -> None:
    """`--view` takes a name with slashes; the URL of a view's index is that of the view
    alone.
    """
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
    message = says(bring_mine(output, url=mirror, view="no/such"))

    assert message.startswith(
        f"has no view no/such: {INDEX}/no/such/index.manifest.json answers"
    )
    assert files_in(output) == {}


def test_filters(mirror: str, output: Path) -> None:
    """Binaries that a mirror leaves out are counted by `fetch` and `build`, and not
    listed.
    """
    filters: dict[str, Any] = {
        "include_binary": ["tlib", "tapp"],
        "exclude_binary": ["^tprov"],
    }
    options = configured(
        output.parent,
        all={
            "url": mirror,
            "include_binary": ["nothing"],
            "fetch": {"include_binary": []},
        },
        some={"url": mirror, **filters},
    )

    fetched = run("fetch", "--mirrors", options.mirrors, "-o", output)
    result = run("build", output, "-o", output.parent / "y.db")

    assert fetched.exit_code == result.exit_code == 0
    manifest = f"{output}/some/root/{INDEX}/index.manifest.json"
    words = "3 binaries left out by include_binary or exclude_binary in mirror.json"
    assert fetched.stderr == result.stderr == f"Note: {manifest}: {words}\n"
    address = read_address((output / "some/root/mirror.json").read_bytes())
    assert address == Address(
        url=mirror,
        # Its manifests are not signed.
        signed=False,
        include_binary=("tlib", "tapp"),
        exclude_binary=("^tprov",),
    )
    assert [row[2] for row in built(output) if row[0] == "some"] == ["tlib", "tlib"]
    assert len([row for row in built(output) if row[0] == "all"]) == 5
