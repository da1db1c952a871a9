"""`_facet_stack=stacks`: how many rows of a view each stack has.

Datasette's `_facet_array` reads the list of each row, which takes longer than a facet
may with the whole cache. There are few different lists: this facet counts the rows of
each list first.
"""

from __future__ import annotations

from typing import Any

from datasette.database import QueryInterrupted
from datasette.facets import Facet
from datasette.utils import escape_sqlite, path_with_added_args, path_with_removed_args

from spack_cache_db.model import ROOT

STACK_FACET = "_facet_stack"
"""The field of an address that asks for this facet."""
COUNTS = """
WITH lists AS (
    SELECT {column} AS list, count(*) AS count FROM ({rows}) GROUP BY {column}
)
SELECT stacks.value AS stack, sum(lists.count) AS count
FROM lists, json_each(lists.list) AS stacks
WHERE stacks.value <> '{root}'
GROUP BY stacks.value
ORDER BY count DESC, stack
LIMIT {limit}
"""


class StackFacet(Facet):  # type: ignore[misc]
    """Counts the stacks in a column of lists; `root`, which is not a stack, is left
    out.
    """

    type = STACK_FACET.removeprefix("_facet_")

    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the counts of each column that is asked for, and the columns without
        an answer.

        Counts that take longer than Datasette's `facet_time_limit_ms` have no answer.
        """
        results = []
        without_answer = []
        for entry in self.get_configs():
            config = entry["config"]
            column = config.get("column") or config["simple"]
            try:
                counts = await self._counts(column)
            except QueryInterrupted:
                without_answer.append(column)
                continue
            results.append(self._result(column, counts, entry["source"]))
        return results, without_answer

    def _result(
        self, column: str, counts: list[tuple[str, int]], source: str
    ) -> dict[str, Any]:
        """Return the counts of a column as Datasette's facets do.

        A facet of the owner's metadata cannot be hidden.
        """
        most = self.get_facet_size()
        without_facet = path_with_removed_args(self.request, {STACK_FACET: column})
        return {
            "name": column,
            "type": self.type,
            "results": [
                self._value(column, stack, count) for stack, count in counts[:most]
            ],
            "hideable": source != "metadata",
            "toggle_url": self.ds.urls.path(without_facet),
            # `_counts` returns one stack more, if there are more.
            "truncated": len(counts) > most,
        }

    async def _counts(self, column: str) -> list[tuple[str, int]]:
        """Return the stacks with their rows, most rows first; one more than are
        shown.
        """
        statement = COUNTS.format(
            column=escape_sqlite(column),
            rows=self.sql,
            root=ROOT,
            limit=self.get_facet_size() + 1,
        )
        result = await self.ds.execute(
            self.database,
            statement,
            self.params,
            truncate=False,
            custom_time_limit=self.ds.setting("facet_time_limit_ms"),
        )
        return [(stack, count) for stack, count in result.rows]

    def _value(self, column: str, stack: str, count: int) -> dict[str, Any]:
        """Return a stack with the link that adds or removes it as a filter."""
        field = f"{column}__arraycontains"
        is_selected = (field, stack) in self.get_querystring_pairs()
        change = path_with_removed_args if is_selected else path_with_added_args
        path = change(self.request, {field: stack})
        return {
            "value": stack,
            "label": stack,
            "count": count,
            "toggle_url": self.ds.absolute_url(self.request, self.ds.urls.path(path)),
            "selected": is_selected,
        }
