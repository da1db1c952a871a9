"""What only Datasette 0.65 needs: a plugin of its own, which `site/plugin.py` registers.

1.0 does all of this itself, or has no place for it: with 0.65 this room can go, and its tests and
`settings.json`. Datasette finds `templates/` here because it looks for them in plugins.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, cast
from weakref import WeakKeyDictionary

from datasette import facets, url_builder, utils
from datasette.plugins import pm
from markupsafe import Markup, escape

from spack_cache_db.site.catalogues import is_site
from spack_cache_db.site.datasettes import Recent, hook
from spack_cache_db.site.identity import described, identity_of
from spack_cache_db.site.middleware import (
    READING_POSTS,
    App,
    Message,
    Receive,
    Scope,
    Send,
    path_of,
)

ROWS_OF = {"builds": "specs", "release_specs": "listings", "build_listings": "listings"}
"""Each view has one row for each row of a table (`schema`: its other joins find one row).

Of `builds` that is so without indexes, which know of specs that are no binaries.
"""

MOST_KEPT = 500
MOST_LABELS = 5_000
ROWS_AT_ONCE = 10
"""So many rows of a table are prepared at a stretch; then others have their turn."""

_SAFE, _tilde_encode = re.compile(r"[\w-]*", re.ASCII), utils.tilde_encode

_SILENT, _SAID = b"<html>", b'<html lang="en">'


@partial(hook, trylast=True)
def startup(datasette: Any) -> None:
    """Count facets once and the large views never; look up once who may see what, and labels."""
    if not is_site(datasette):
        return
    tell_view_counts(datasette)
    remember_labels(datasette)
    facets.ColumnFacet = KeptFacet
    make_cells_faster()
    if all(_is_known(each.plugin) for each in _deciding()):
        remember_permissions(datasette)


@hook
def get_metadata(datasette: Any) -> dict[str, str]:
    """Say whose data the site shows, where its metadata does not."""
    return described(identity_of(datasette))


@hook
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool:
    """Take environments from a form without a token: the page only reads, and sets no cookie."""
    if not is_site(datasette):
        return False
    return READING_POSTS.fullmatch(path_of(scope)) is not None


@hook
def extra_template_vars() -> dict[str, object]:
    """Give `_table.html` its rows in one piece."""
    return {"table_body": table_body}


@partial(hook, tryfirst=True)
def asgi_wrapper(datasette: Any) -> Callable[[App], App]:
    """Say the language of Datasette's pages, before the site's own wrapper compresses them."""
    return lambda app: say_language(app) if is_site(datasette) else app


def tell_view_counts(datasette: Any) -> None:
    """Add the counts of two views to the inspect data, where there is some.

    Counting them joins whole tables. 0.65 takes the count of a page without filters from the
    inspect data, for a view as for a table.
    """
    for name, inspected in (datasette.inspect_data or {}).items():
        if name not in datasette.databases:
            continue
        # Asked for now, so that it remembers the counts of tables before there are those of views.
        if datasette.get_database(name).cached_table_counts is None:
            continue
        tables = inspected["tables"]
        has_indexes = tables.get("mirrors", {"count": 0})["count"] > 0
        views = {view for view in ROWS_OF if view != "builds" or not has_indexes}
        tables.update({view: tables[ROWS_OF[view]] for view in views if ROWS_OF[view] in tables})


def remember_permissions(datasette: Any) -> None:
    """Decide once whether a visitor may do something.

    Datasette decides six times for every table that a page names, and each time puts all metadata
    together anew: nine tenths of what the page of a database costs. What the metadata says does not
    change while there is no plugin but ours that adds to it or decides itself.
    """
    inner, recent = datasette.permission_allowed, Recent(MOST_KEPT)

    async def allowed(
        actor: object, action: str, resource: object = None, default: object = False
    ) -> Any:
        asked = (actor, action, resource, default)
        return await recent.once(repr(asked), partial(inner, *asked), lambda _: True)

    datasette.permission_allowed = allowed


def _deciding() -> Iterable[Any]:
    hooks = (pm.hook.get_metadata, pm.hook.permission_allowed, pm.hook.canned_queries)
    return (each for hook in hooks for each in hook.get_hookimpls())


def _is_known(plugin: Any) -> bool:
    name = getattr(plugin, "__name__", "")
    return name.startswith("spack_cache_db.") or name == "datasette.default_permissions"


def remember_labels(datasette: Any) -> None:
    """Look up the labels of foreign keys once: a page asks for those of six columns."""
    inner, known = datasette.expand_foreign_keys, dict[tuple[Any, ...], object]()

    async def labels(database: str, table: str, column: str, values: Iterable[Any]) -> Any:
        if datasette.databases[database].is_mutable:
            return await inner(database, table, column, values)
        keys = {value: (database, table, column, value) for value in values}
        new = [value for value, key in keys.items() if key not in known]
        if new:
            if len(known) + len(new) > MOST_LABELS:
                known.clear()
                new = [*keys]
            found = await inner(database, table, column, new)
            known.update((keys[value], label) for (_, value), label in found.items())
        return {(column, value): known[key] for value, key in keys.items() if key in known}

    datasette.expand_foreign_keys = labels


def make_cells_faster() -> None:
    """Make the six hundred cells of a page here, which takes a third of the time.

    For each of them Datasette asks pluggy, which takes eight times as long as our hook, escapes
    texts that it has escaped before, and encodes addresses byte by byte.
    """
    modules: tuple[Any, ...] = (utils, url_builder, tables := _tables())
    for module in modules:
        module.tilde_encode = tilde_encode
    if tables.display_columns_and_rows is not displayed:
        tables.datasettes_own = tables.display_columns_and_rows
        tables.display_columns_and_rows = displayed


def _tables() -> Any:
    return import_module("datasette.views.table")


async def displayed(
    datasette: Any, database: str, table: str, description: Any, rows: Any, **options: Any
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the columns and rows of a page as Datasette's `display_columns_and_rows` does.

    What the tables of this site do not have is left to that: bytes, units, other plugins' cells.
    """
    # Imported late: that module imports this one.
    from spack_cache_db.site import plugin

    own = partial(_tables().datasettes_own, datasette, database, table, description, **options)
    plugins = pm.hook.render_cell.get_hookimpls()
    if len(plugins) > 1 or datasette.table_metadata(database, table).get("units"):
        return cast("tuple[Any, Any]", await own(rows))
    columns, _ = await own([])
    file = datasette.databases[database]
    keys = await file.primary_keys(table)
    start = f"{datasette.setting('base_url')}{database}"
    cells = _Cells(
        link=partial(plugin.link, table=table, database=database, datasette=datasette),
        linked=plugin.LINKED,
        addresses={
            each["column"]: f"{start}/{tilde_encode(each['other_table'])}"
            for each in await file.foreign_keys_for_table(table)
        },
        most=options["truncate_cells"],
    )
    address = datasette.urls.table(database, table)
    names = [name for name, *_ in description]
    found = []
    for number, row in enumerate(rows):
        if number % ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
        values = dict(zip(names, row, strict=True))
        if any(isinstance(value, bytes) for value in values.values()):
            found += (await own([row]))[1]
            continue
        first = []
        if options["link_column"]:
            first = [_key_cell(row, keys, address)]
            if len(keys) == 1:
                del values[keys[0]]
        found.append(_tables().Row(first + [cells.cell(*each) for each in values.items()]))
    return columns, found


def _key_cell(row: Any, keys: list[str], address: str) -> dict[str, Any]:
    """Return the cell that leads to the page of a row."""
    path = utils.path_from_row_pks(row, keys, not keys, False)
    quoted = utils.path_from_row_pks(row, keys, not keys)
    return {
        "column": keys[0] if len(keys) == 1 else "Link",
        "value_type": "pk",
        "is_special_link_column": len(keys) != 1,
        "raw": path,
        "value": Markup(f'<a href="{address}/{quoted}">{escape(path)}</a>'),
    }


@dataclass
class _Cells:
    """Makes the cells of one page.

    Attributes:
        link: returns the link to the page of what a value names, if it has one here.
        linked: the columns with such values.
        addresses: where the rows are to which the columns of foreign keys lead.
        most: characters of a text that are shown; 0 for all.
    """

    link: Callable[..., Markup | None]
    linked: Set[str]
    addresses: Mapping[str, str]
    most: int
    _links: dict[tuple[str, Any, Any], Markup] = field(default_factory=dict)

    def cell(self, column: str, value: Any) -> dict[str, Any]:
        """Return the cell of a value that is no bytes."""
        shown = self.link(value, column) if column in self.linked else None
        if isinstance(value, dict):
            label, value = value["label"], value["value"]
            key = column, label, value
            shown = self._links[key] = self._links.get(key) or self._link(*key)
        kind = "none" if value is None else type(value).__name__
        return {
            "column": column,
            "value": shown or self._text(value),
            "raw": value,
            "value_type": kind,
        }

    def _link(self, column: str, label: Any, value: Any) -> Markup:
        address, text = f"{self.addresses[column]}/{tilde_encode(str(value))}", escape(value)
        if label == value:
            return Markup(f'<a href="{address}">{text}</a>')
        return Markup(f'<a href="{address}">{escape(label) or "-"}</a>&nbsp;<em>{text}</em>')

    def _text(self, value: Any) -> str:
        if value in ("", None):
            return Markup("&nbsp;")
        text = str(value)
        if "://" in text and utils.is_url(url := text.strip()):
            shown = escape(utils.truncate_url(url, self.most))
            return Markup(f'<a href="{escape(url)}">{shown}</a>')
        return f"{text[: self.most]}…" if 0 < self.most < len(text) else text


def tilde_encode(text: str) -> str:
    """Return what Datasette's own function returns; most texts need no encoding."""
    return text if _SAFE.fullmatch(text) else _tilde_encode(text)


def say_language(app: App) -> App:
    """Return the application with the language in the first piece of each page: screen readers ask.

    The first line of Datasette's base template is fixed; only its blocks can be filled.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = False

        async def say(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                headers = [(key.lower(), value) for key, value in message.get("headers", ())]
                is_page = dict(headers).get(b"content-type", b"").startswith(b"text/html")
                if is_page:
                    headers = [each for each in headers if each[0] != b"content-length"]
                message = {**message, "headers": headers}
            elif is_page and message.get("body"):
                message = {**message, "body": message["body"].replace(_SILENT, _SAID, 1)}
                is_page = False
            await send(message)

        await app(scope, receive, say)

    return wrapped


def table_body(rows: Iterable[Iterable[Mapping[str, Any]]]) -> Markup:
    """Return the rows of `display_rows` as Datasette's `_table.html` writes them, in one piece.

    A page of a table has six hundred cells. Datasette's template writes each as four pieces that
    climb one by one through every template the page extends, a third of what the page costs.
    """
    openings: dict[tuple[str, str], str] = {}
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            column, kind = key = cell["column"], cell["value_type"]
            if key not in openings:
                openings[key] = f'<td class="col-{utils.to_css_class(column)} type-{kind}">'
            value = cell["value"]
            text = value if isinstance(value, Markup) else escape(value)
            cells.append(f"{openings[key]}{text}</td>")
        lines.append("<tr>" + "\n".join(cells) + "</tr>")
    # Values are escaped above; classes and names of Python's types need no escaping.
    return Markup("\n".join(lines))


MOST_ROWS = 50
LONGEST = 1_000
"""Characters of a query with its parameters; visitors choose these."""

_recent: WeakKeyDictionary[Any, Recent] = WeakKeyDictionary()


class KeptFacet(facets.ColumnFacet):  # type: ignore[misc]
    """The facet of a column: one that was counted is not counted again."""

    def __init__(self, ds: Any, *args: Any, **named: Any) -> None:
        super().__init__(ds, *args, **named)
        database = ds.get_database(self.database)
        if not database.is_mutable:
            self.ds = Remembering(ds, _recent.setdefault(database, Recent(MOST_KEPT)))

    def get_configs(self) -> list[dict[str, Any]]:
        """Return what is asked for, without what both the metadata and the address ask for."""
        found = super().get_configs()
        asked = [each["config"] for each in found if each["source"] == "request"]
        return [
            each for each in found if each["source"] == "request" or each["config"] not in asked
        ]


class Remembering:
    """Datasette as a facet sees it: what it has counted once, it does not count again."""

    def __init__(self, datasette: Any, recent: Recent) -> None:
        self._datasette = datasette
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._datasette, name)

    async def execute(self, database: str, sql: str, params: Any = None, **options: Any) -> Any:
        """Run a query, or return what it gave before."""
        given = tuple(params.items()) if isinstance(params, dict) else tuple(params or ())
        is_short = len(repr((sql, given))) <= LONGEST
        return await self._recent.once(
            (sql, given),
            lambda: self._datasette.execute(database, sql, params, **options),
            lambda answer: is_short and len(answer) <= MOST_ROWS,
        )
