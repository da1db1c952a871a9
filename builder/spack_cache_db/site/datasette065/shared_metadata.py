"""metadata.yml in memory: Datasette copies all of it for every permission check.

A check looks for a table's `allow`. The copies of five hundred descriptions and queries make a
third of the cost of the page that lists the tables, and a tenth of a row's (docs/performance.md).
Datasette never changes what it copied, so parts that give themselves as their copy serve as well.
"""

from __future__ import annotations

from typing import Any, Self


class Shared(dict[str, Any]):
    """A dict whose deep copy is itself."""

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def share_databases(databases: dict[str, Any]) -> None:
    """Make what the metadata says of each database a dict that is not copied."""
    for name, described in list(databases.items()):
        if isinstance(described, dict):
            databases[name] = Shared(described)
