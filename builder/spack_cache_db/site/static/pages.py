"""Renders the pages of the site into files.

They are the answers of the site's own routes, so that an export and a server show the
same. `addresses` has the names of the files, and the links between them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from urllib.parse import quote

from spack_cache_db.errors import OutputError
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.pages.sides import Sides, comparisons, newest_comparison
from spack_cache_db.site.routes import respond, route_of
from spack_cache_db.site.site import Site
from spack_cache_db.site.static.addresses import (
    HOME,
    POLICY_OF_HOME,
    StaticSettings,
    file_of,
)

SINGLE_PAGES = ("/", "/packages", "/releases", "/stacks", "/about")
"""The pages that every export has."""
CHANGES = "/diff"
"""The page of the newest changes, which is that of the newest comparison."""
MOST_COMPARISONS = 200
"""Limit of the comparisons of two neighbouring releases; the newest are exported."""
_PACKAGES = "SELECT name FROM packages ORDER BY name"


def files_of(lookups: Lookups) -> dict[str, str]:
    """Return the files of all exported pages, by their paths on the site.

    Two paths may have one file: `/diff` is the newest comparison.
    """
    paths = [*SINGLE_PAGES]
    paths += [f"/package/{name}" for (name,) in select(lookups.conn, _PACKAGES)]
    paths += [f"/release/{release.name}" for release in lookups.releases.values()]
    paths += [f"/coverage/{release.name}" for release in lookups.releases.values()]
    paths += [f"/stack/{stack.name}" for stack in lookups.stacks.values()]
    compared = list(islice(comparisons(lookups), MOST_COMPARISONS))
    paths += [_path_of(sides) for _, sides in compared]

    files = {path: file_of(path) for path in paths}
    newest = newest_comparison(compared)
    if newest is not None:
        files[CHANGES] = files[_path_of(newest)]
    return files


def _path_of(sides: Sides) -> str:
    """Return the path of a comparison without percent signs."""
    return f"/diff/{sides.old}...{sides.new}"


class Pages:
    """The pages of an export.

    Args:
        conn: the database.
        settings: what pages need besides the database; the files are added.
    """

    def __init__(self, conn: sqlite3.Connection, settings: StaticSettings) -> None:
        self.files: Mapping[str, str] = files_of(read_lookups(conn))
        shared = replace(settings, files=self.files)
        # Pages in the folder itself, the first of them, and those in its folders.
        self._home = Site(replace(shared, base_url="", policy=POLICY_OF_HOME), conn)
        self._outer = Site(replace(shared, base_url=""), conn)
        self._inner = Site(replace(shared, base_url="../"), conn)

    def rendered(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name of each file and its content."""
        for path, file in self.files.items():
            if path == CHANGES:
                continue
            yield file, self._render(path, file)

    def _render(self, path: str, file: str) -> bytes:
        """Return the page of a path of the site."""
        site = self._inner if "/" in file else self._outer
        if file == HOME:
            site = self._home
        address = quote(path)
        number = route_of(address)
        if number is None:
            raise OutputError(f"{path}: no page of the site has this address")
        return respond(site, number, PageRequest(address)).body
