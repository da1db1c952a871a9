"""Names and fields in the addresses of Datasette's tables, views and canned queries.

Unknown columns, filters and names are refused, and other spellings of a name are
redirected. For example, `/spack-cache/builds?pakage=hdf5` is refused: Datasette would
ignore the field, and show the binaries of all packages.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.names.known import spec_of_hash
from spack_cache_db.query.names.scope import named_conditions
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.schema.full_text import FULL_TEXT
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.addresses import KINDS, NAMES, Pairs, near, respelled
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.refusals import BadAddress, refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.stack_facet import STACK_FACET
from spack_cache_db.site.table_actions import STACK_LISTS

_OPERATORS = """
exact not contains notcontains endswith startswith like notlike
gt gte lt lte glob in notin arraycontains arraynotcontains
date isnull notnull isblank notblank
"""
OPERATORS = tuple(_OPERATORS.split())
"""Suffixes of a column after `__` (Datasette's documentation, "Column filter
arguments").
"""
COLUMNS = "SELECT name FROM pragma_table_xinfo(:table)"

_NUMERIC = ("gt", "gte", "lt", "lte")
_MOST_DIGITS = 18
"""SQLite's integers have 64 bits."""

# Datasette's fields that have a column as their value, and those of a search.
_COLUMN_FIELDS = ("_sort", "_sort_desc", "_col", "_nocol", "_label")
_FACETS = ("_facet", "_facet_date", "_facet_array", STACK_FACET)
_SEARCHES = ("_search", "_search_tokens")

_STACK_COLUMNS = ", ".join(f"{view}.{column}" for view, column in STACK_LISTS.items())


def check_data(
    site: Site, request: PageRequest, name: str, fields: Collection[str] | None
) -> PageResponse | None:
    """Return the response to a wrong address of a table or canned query: a refusal, or
    a redirect; None for a right one.

    Args:
        site: the site.
        request: the request.
        name: the name of the table, view or query.
        fields: the fields of a query; None for a table or view.
    """
    try:
        if fields is None:
            return _check_table(site, request, name)
        return _check_query(site, request, fields)
    except (BadAddress, BuilderError) as error:
        if request.is_data:
            return refused(str(error), request.extension)
        return site.page(
            request, "error.html", 400, error=str(error), path=request.path
        )


def _check_query(
    site: Site, request: PageRequest, fields: Collection[str]
) -> PageResponse | None:
    """Return a redirect to whole hashes and usual names; raises for unknown fields and
    names.
    """
    lookups = site.lookups
    pairs = []
    for field, value in request.pairs:
        if field not in fields and not field.startswith("_"):
            raise BadAddress(
                f"this query has no field {field!r}; {near(field, fields)}"
            )
        text = value.strip()
        # Queries compare two releases, and no stacks.
        kind = "release" if field in ("old", "new") else field
        if text and kind == "hash":
            text = _whole_hash(lookups, text)
        elif text and kind in ("package", "release"):
            # Raises UnknownNameError if there is no such name.
            named_conditions(lookups, **{kind: text})
        pairs.append((field, text))
    return respelled(site, request, pairs, None)


def _whole_hash(lookups: Lookups, text: str) -> str:
    """Return the hash that a text begins; raises for none or several."""
    spec_id = spec_of_hash(lookups, text)
    prefix = text.removeprefix("/").lower()
    hashes = specs_beginning(lookups.conn, prefix)
    return hashes[spec_id]


def _check_table(site: Site, request: PageRequest, table: str) -> PageResponse | None:
    """Return a redirect to the usual names; raises for unknown columns, filters and
    searches.
    """
    pairs = request.pairs
    columns = [name for (name,) in site.conn.execute(COLUMNS, {"table": table})]
    if not columns:
        # Datasette says that there is no such table.
        return None

    # The shape, and the names of columns.
    if ("_shape", "object") in pairs and (table in VIEWS or table in FULL_TEXT):
        raise BadAddress(
            f"{table} has no primary key for _shape=object; use _shape=array"
        )
    for column in _columns_in(pairs):
        # SQLite's own column, which only tables have.
        is_row_id = column == "rowid" and table not in VIEWS
        if column not in columns and not is_row_id:
            raise BadAddress(
                f"{table} has no column {column!r}; {near(column, columns)}"
            )

    # The filters, and the full-text search.
    for name, value in pairs:
        _check_filter(table, name, value)
    _check_search(table, pairs)

    # The names, which are of the kind of the table in its column `name`.
    kinds = KINDS
    if table in NAMES:
        kinds = {**KINDS, "name": (NAMES[table],)}
    return respelled(site, request, pairs, None, kinds)


def _columns_in(pairs: Pairs) -> Iterator[str]:
    """Yield the columns that the fields of a table's address name.

    For example `version` for `version__gt=1`, for `version=1.2`, for `_sort=version`
    and for `_facet=version`.
    """
    for name, value in pairs:
        column, _, _operator = name.rpartition("__")
        if column:
            yield column
        elif not name.startswith("_"):
            yield name
        elif name in _COLUMN_FIELDS and value:
            yield value
        elif name in _FACETS:
            # Datasette refuses JSON that it cannot read.
            with suppress(ValueError, KeyError, AttributeError):
                yield _column_of_facet(value)


def _column_of_facet(value: str) -> str:
    """Return the column of a facet, which is its value or is named in JSON, such as
    `{"column": "version"}`.
    """
    if not value.startswith("{"):
        return value
    config = json.loads(value)
    return str(config.get("column") or config["simple"])


def _check_filter(table: str, name: str, value: str) -> None:
    """Raise `BadAddress` for a field of a table's address that Datasette cannot use."""
    column, _, operator = name.rpartition("__")
    if column and operator not in OPERATORS:
        raise BadAddress(
            f"no filter is called {operator!r}; {near(operator, OPERATORS)}"
        )
    is_number = operator in _NUMERIC and value.isdigit()
    if is_number and len(value.lstrip("0")) > _MOST_DIGITS:
        raise BadAddress(f"{name}: a number has at most {_MOST_DIGITS} digits")
    if name == STACK_FACET and STACK_LISTS.get(table) != value:
        raise BadAddress(
            f"{STACK_FACET}={value}: only {_STACK_COLUMNS} are lists of stacks"
        )
    if name == "_through":
        _check_through(value)


def _check_through(text: str) -> None:
    """Check the JSON of a filter through another table, whose names Datasette takes
    unseen.
    """
    try:
        through = json.loads(text)
    except (ValueError, RecursionError):
        through = None
    fields = through if isinstance(through, dict) else {}
    has_names = all(isinstance(fields.get(name), str) for name in ("table", "column"))
    has_value = isinstance(fields.get("value"), str | int | float)
    if not (has_names and has_value):
        expected = '{"table": "…", "column": "…", "value": "…"}'
        raise BadAddress(f"_through is not valid; expected {expected}")


def _check_search(table: str, pairs: Pairs) -> None:
    """Raise `BadAddress` for a full-text search that a table does not have."""
    searches = [
        name
        for name, _value in pairs
        if name.startswith("_search") and name != "_searchmode"
    ]
    # The address may name the full-text table itself.
    if not searches or "_fts_table" in dict(pairs):
        return
    if table not in FULL_TEXT and f"{table}_fts" not in FULL_TEXT:
        raise BadAddress(
            f"{table} has no full-text search; filter by a column, as in ?name=value"
        )
    for name in searches:
        if name not in _SEARCHES:
            raise BadAddress(f"{table} has no field {name!r}; {near(name, _SEARCHES)}")
