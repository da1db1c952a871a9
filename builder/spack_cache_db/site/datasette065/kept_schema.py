"""The schema of a file that does not change, asked once: Datasette asks for it table by table.

Its list of tables asks for the columns, keys and full-text index of each, and each permission check
for the spelling of a table's name: 240 hops between threads (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any

Method = Callable[..., Awaitable[Any]]

METHODS = (
    *("table_names", "view_names", "hidden_table_names", "get_all_foreign_keys"),
    *("table_columns", "primary_keys", "fts_table"),
)
SPELLING = "select name from sqlite_master where type in ('table', 'view') and name = ?"
"""How the statement of a permission check begins; its parameters are one name."""
MOST_KEPT = 1_000
"""Visitors choose the names that are asked for."""


def keep(datasette: Any) -> None:
    """Let each file that does not change answer again what it answered before."""
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            for name in METHODS:
                setattr(database, name, _kept(getattr(database, name), lambda *_: True))
            database.execute = _kept(database.execute, _is_spelling)


def _is_spelling(*given: Any) -> bool:
    return len(given) == 2 and given[0].startswith(SPELLING) and isinstance(given[1], tuple)


def _kept(method: Method, is_kept: Callable[..., bool]) -> Method:
    """Return a method that does the same, and keeps answers; none where an exception was raised.

    Args:
        method: called with positional arguments alone where answers are kept.
        is_kept: of these arguments, whether their answer is.
    """
    answers: dict[Any, Any] = {}

    async def answered(*given: Any, **named: Any) -> Any:
        if named or not is_kept(*given):
            return await method(*given, **named)
        if given not in answers:
            if len(answers) >= MOST_KEPT:
                answers.clear()
            answers[given] = await method(*given)
        # Datasette adds to some of the lists that it is given.
        return copy(answers[given])

    return answered
