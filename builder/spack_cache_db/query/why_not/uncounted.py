"""What satisfies a query by its words and counts in no answer, or in those about one release only.

A release may show a hash so, and a release before it the same hash otherwise;
and what no release lists is known as a dependency (see `specs`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select_in
from spack_cache_db.query.selection import Scope, configurations_meeting
from spack_cache_db.query.specs import BEGINNING, IN_STACK

SHOWN = f"""
SELECT listed.spec, listed.release
FROM json_each(:ids) AS wanted
CROSS JOIN listings AS listed ON listed.configuration = wanted.value
CROSS JOIN specs ON specs.id = listed.spec
WHERE {BEGINNING} AND {IN_STACK.format("listed")}
"""  # noqa: S608 - our own condition
OWN = f"""
SELECT specs.id, specs.release_count
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
WHERE {BEGINNING}
"""  # noqa: S608 - our own condition


def uncounted(
    conn: sqlite3.Connection, lookups: Lookups, asked: Conditions, scope: Scope
) -> tuple[str, ...]:
    """Return what to say of specs that satisfy a query, where `find` finds nothing of it.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        asked: a query of which nothing is found in the scope, whatever the release.
        scope: what narrows it.
    """
    ids = configurations_meeting(conn, lookups, asked, scope, {"listed_hash": asked.hash})
    among, prefix = asked.specs.holds if asked.specs else None, asked.hash or ""

    def satisfying(rows: Iterable[tuple[int, int]]) -> Iterator[int]:
        return (value for spec, value in rows if among is None or spec in among)

    shown = select_in(conn, SHOWN, ids, prefix=prefix, stack=scope.stack)
    # The ids of releases are in the file's order.
    first = min(satisfying(shown), default=None)
    if first is not None:
        name = lookups.releases[first].name
        return (
            f"{name} shows such a spec, and a release before it shows the same hash otherwise: "
            f"only an answer about {name} has it",
        )
    counts = satisfying(select_in(conn, OWN, ids, prefix=prefix))
    if next(counts, 1) == 0 and not any(counts):
        return ("no release lists such a spec: it is known here as a dependency only",)
    return ()
