"""How many rows two views have, known before anybody asks: counting them joins whole tables.

Datasette 0.65 takes the count of a page without filters from the inspect data, for a view as for a
table, if it is there.
"""

from __future__ import annotations

from typing import Any

ROWS_OF = {"builds": "specs", "release_specs": "listings", "build_listings": "listings"}
"""Each view has one row for each row of a table (`schema.views`: its other joins find one row).

Of `builds` that is so without indexes, which know of specs that are no binaries.
"""


def tell(datasette: Any) -> None:
    """Add the views' counts to the inspect data, where there is some."""
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
