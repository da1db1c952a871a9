"""`_facet_stack=stacks`: how many rows of a view each stack has.

A row has its stacks as a JSON list, such as `["e4s","radiuss"]`. Datasette's
`_facet_array` reads the list of each row, which takes longer than a facet may with the
whole cache. There are few different lists: this facet counts the rows of each list
first.
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
"""The number of rows of each stack, most rows first.

`rows` is Datasette's statement for the rows of the page, with all filters.
"""


class StackFacet(Facet):  # type: ignore[misc]
    """Counts the stacks in a column of lists; `root`, which is not a stack, is left
    out.

    Datasette makes an object of this class for each page of a table or view, with the
    page's request, its SQL and the parameters of the SQL.
    """

    # Datasette reads the fields of the address that begin with `_facet_` and this.
    type = STACK_FACET.removeprefix("_facet_")

    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the counts of each column that is asked for, and the columns without
        an answer.

        Counts that take longer than Datasette's `facet_time_limit_ms` have no answer.
        """
        results = []
        without_answer = []
        # The facets of this class, from the address and from the owner's metadata.
        for entry in self.get_configs():
            config = entry["config"]
            # `{"simple": "stacks"}` for `_facet_stack=stacks`, or the owner's mapping.
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
        """Return the counts of a column in the form of Datasette's facets.

        As there, the address that hides the facet is a path, and those that filter by a
        stack are whole.

        Args:
            column: the name of the column.
            counts: stacks with their rows, from `_counts`.
            source: `request` for a facet of the address, or `metadata` for one of the
                owner's, which visitors cannot hide.
        """
        shown_count = self.get_facet_size()
        values = [
            self._value(column, stack, count) for stack, count in counts[:shown_count]
        ]
        path_without_facet = path_with_removed_args(self.request, {STACK_FACET: column})
        return {
            "name": column,
            "type": self.type,
            "results": values,
            "hideable": source != "metadata",
            "toggle_url": self.ds.urls.path(path_without_facet),
            # `_counts` returns one stack more, if there are more.
            "truncated": len(counts) > shown_count,
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
        # Datasette need not cut the result, because the statement has its own limit.
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
        # Datasette's filter of a column of lists.
        field = f"{column}__arraycontains"
        is_selected = (field, stack) in self.get_querystring_pairs()
        if is_selected:
            path = path_with_removed_args(self.request, {field: stack})
        else:
            path = path_with_added_args(self.request, {field: stack})
        return {
            "value": stack,
            "label": stack,
            "count": count,
            "toggle_url": self.ds.absolute_url(self.request, self.ds.urls.path(path)),
            "selected": is_selected,
        }
