"""What the sandbox computes for `/spec`, the sitemap, and addresses ending in `.json` or `.csv`.

Like the functions of `pages`, these take the file's small tables (`Lookups`) and what the address
asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import chain, islice
from typing import Any
from urllib.parse import quote

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers import found_part, found_rows
from spack_cache_db.query.catalogue import own_configurations
from spack_cache_db.query.connection import Lookups, select
from spack_cache_db.query.dependency_graph import NEEDED_PACKAGE
from spack_cache_db.query.package_data import PackageData, read_binaries, read_package_data
from spack_cache_db.query.spec_records import has_records
from spack_cache_db.row_forms import Rows, csv_text, json_text
from spack_cache_db.site.pages.changes import Sides, difference_of
from spack_cache_db.site.pages.filters import Narrowing
from spack_cache_db.site.pages.lag import load_package_list
from spack_cache_db.site.pages.lists import (
    ListFilters,
    load_releases,
    load_stacks,
)
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.site.pages.pasted_environment import PastedText, covered
from spack_cache_db.site.pages.search import (
    asked_spec,
    kept_matching,
    kept_question,
    load_find,
    reasons_of,
)
from spack_cache_db.site.pages.spec import (
    HashMatch,
    SpecPage,
    load_candidates,
    load_spec,
)
from spack_cache_db.site.sandbox.sql_functions import parse

SITEMAP_PAGES = ("", "packages", "releases", "stacks", "about")
SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{urls}</urlset>
"""
MOST_ADDRESSES = 50_000
"""A sitemap may have no more (sitemaps.org, "Sitemaps XML format")."""


@dataclass(frozen=True, slots=True)
class Data:
    """JSON or CSV, or why there is none.

    Attributes:
        is_more: whether there is another page of it.
        error: why there is none.
        status: the HTTP status of the error; 404 if nothing is found.
    """

    body: str = ""
    is_more: bool = False
    error: str | None = None
    status: int = 400


def read_early(lookups: Lookups) -> None:
    """Read what every answer about dependencies needs; else the first one would wait for it.

    Most of it is read by answering such a question, about any package that something needs.
    """
    for (name,) in select(lookups.conn, NEEDED_PACKAGE) if has_records(lookups.conn) else ():
        own_configurations(lookups)
        load_find(lookups, f"^{name}")


def data_of(lookups: Lookups, load: Callable[..., Data], *arguments: Any) -> Data:
    """Return what a function of this module returns, or why the file cannot answer."""
    try:
        return load(lookups, *arguments)
    except BuilderError as error:
        return Data(error=str(error))


def find_data(
    lookups: Lookups, text: str, narrowing: Narrowing, start: int, most: int, form: str
) -> Data:
    """Return what the command `find` prints with `--json` or `--csv`, `most` rows from `start`."""
    query = parse(asked_spec(lookups, text, narrowing).spec)
    question = kept_question(lookups, query, narrowing.scope(lookups))
    results = kept_matching(lookups, question.conditions)
    part = slice(start, start + most + 1)
    found = found_part(lookups, results, part, with_hashes=False)
    if not results.ids:
        return Data(
            error="; ".join(reasons_of(lookups, query, narrowing.scope(lookups))), status=404
        )
    rows = found_rows(found[:most], hashes=False)
    return Data(_text(form, rows.records, rows), len(found) > most)


def changes_data(lookups: Lookups, sides: Sides, form: str) -> Data:
    """Return what the command `diff` prints with `--json` or `--csv`."""
    found = difference_of(lookups, sides)
    if not any(found.specs):
        said = f"neither {found.old} nor {found.new} has such a binary, so nothing is compared"
        return Data(error=said, status=404)
    return Data(_text(form, found.as_dict(), found.rows))


def cover_data(lookups: Lookups, pasted: PastedText, form: str) -> Data:
    """Return what the command `cover` prints with `--json` or `--csv`."""
    found = covered(lookups, pasted)
    return Data(_text(form, found.as_dict(), found.rows))


def package_data(lookups: Lookups, name: str) -> PackageData | None:
    """Return what is known of a package; None if the database has nothing of it."""
    return read_package_data(lookups.conn, name) or read_binaries(lookups.conn, name)


def sitemap_of(lookups: Lookups, site: str) -> bytes:
    """Return the sitemap: the lists, and every package, release and stack.

    Args:
        lookups: the small tables of the database.
        site: the address of the first page, which ends in `/`.
    """
    named = (
        f"{name.kind}/{quote(name.name)}"
        for name in load_names(lookups)
        if name.kind in ("package", "release", "stack")
    )
    urls = "".join(
        f"<url><loc>{escape(site + path)}</loc></url>\n"
        for path in islice(chain(SITEMAP_PAGES, named), MOST_ADDRESSES)
    )
    return SITEMAP.format(urls=urls).encode()


LISTED = {"packages": load_package_list, "releases": load_releases, "stacks": load_stacks}


def list_data(lookups: Lookups, kind: str, asked: ListFilters, form: str) -> Data:
    """Return the rows of a list; an error where something is asked for that the file lacks."""
    page = LISTED[kind](lookups, asked)
    if page.notices:
        return Data(error=" ".join(page.notices))
    if not page.rows:
        nothing = f"none of {page.total:,} {kind} matches" if page.total else f"there are no {kind}"
        return Data(error=f"{nothing} in this database", status=404)
    rows = Rows(page.csv_columns, page.in_order())
    return Data(_text(form, rows.records, rows))


def _text(form: str, value: Any, rows: Rows) -> str:
    return json_text(value) if form == "json" else csv_text(rows)


def spec_page(
    lookups: Lookups, text: str, page: int, release: str | None
) -> SpecPage | tuple[HashMatch, ...]:
    """Return the page of the spec with this hash, or else the specs whose hash begins so."""
    found = load_spec(lookups, text, page, release)
    return found or load_candidates(lookups, text)
