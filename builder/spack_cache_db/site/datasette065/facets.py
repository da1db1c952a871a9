"""Facets of Datasette's tables, counted once: a published file does not change while it is served.

A facet counts its column over all rows of the page's table, a third of what the page costs. These
are the `facets` of metadata.yml; all but the memory is Datasette's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

from datasette.facets import ColumnFacet

MOST_KEPT = 500
MOST_ROWS = 50
LONGEST = 1_000
"""Characters of a query with its parameters; visitors choose these."""

_NAME = "kept_facets"

Answers = dict[Hashable, Any]

_kept: WeakKeyDictionary[Any, Answers] = WeakKeyDictionary()


def take_over(databases: dict[str, Any]) -> None:
    """Rename the `facets` of each table, so that Datasette's own class does not see them."""
    for described in databases.values():
        for table in ((described or {}).get("tables") or {}).values():
            if "facets" in table:
                table[_NAME] = table.pop("facets")


class KeptFacet(ColumnFacet):  # type: ignore[misc]
    """The facet of a column that the metadata asks for."""

    def __init__(self, ds: Any, *args: Any, **named: Any) -> None:
        super().__init__(ds, *args, **named)
        database = ds.get_database(self.database)
        if not database.is_mutable:
            self.ds = Remembering(ds, _kept.setdefault(database, {}))

    def get_configs(self) -> list[dict[str, Any]]:
        """Return what the metadata asks for, without what the address asks for as well."""
        asked = self.request.args.getlist("_facet")
        return [
            {"source": "metadata", "config": {"simple": column}}
            for column in (self.metadata or {}).get(_NAME, [])
            if column not in asked
        ]

    async def suggest(self) -> list[dict[str, Any]]:
        """Suggest nothing: Datasette's own facets of columns do."""
        return []


class Remembering:
    """Datasette as a facet sees it: what it has read once, it does not read again."""

    def __init__(self, datasette: Any, answers: Answers) -> None:
        self._datasette = datasette
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._datasette, name)

    async def execute(self, database: str, sql: str, params: Any = None, **options: Any) -> Any:
        """Run a query, or return what it gave before."""
        given = tuple(params.items()) if isinstance(params, dict) else tuple(params or ())
        return await self._once(
            (sql, given), lambda: self._datasette.execute(database, sql, params, **options)
        )

    async def expand_foreign_keys(
        self, database: str, table: str, column: str, values: Sequence[Any]
    ) -> dict[tuple[str, Any], Any]:
        """Return the labels of values, looked up or as before."""
        labels = await self._once(
            (table, column, tuple(values)),
            lambda: self._datasette.expand_foreign_keys(database, table, column, values),
        )
        return cast("dict[tuple[str, Any], Any]", labels)

    async def _once(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
        if key in self._answers:
            # What was asked for last stands last; the first is forgotten first.
            self._answers[key] = self._answers.pop(key)
            return self._answers[key]
        answer = await read()
        if len(answer) <= MOST_ROWS and len(repr(key)) <= LONGEST:
            while len(self._answers) >= MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = answer
        return answer
