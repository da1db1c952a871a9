"""`/-/health.json`: whether the database answers, and how old its data are.

For containers, proxies and monitors: the status is 200, or 503 if a monitor should
report it. For example `{"ok": true, "problem": null, "as_of": "2026-01-31", …}`.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spack_cache_db.inspect_file import looked_at
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import json_text
from spack_cache_db.schema.identity import AS_OF, SCHEMA_VERSION
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogue import published
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.sql.limits import time_limit

HEALTH = r"^/-/health\.json$"
"""The pattern of the address."""
FACTS = """
SELECT (SELECT count(*) FROM specs WHERE is_binary AND NOT is_gone),
    coalesce(
        (SELECT value FROM origin WHERE name = :as_of),
        (SELECT max(date) FROM releases)
    )
"""
"""The number of binaries, and the day of the newest source."""
_QUERY_SECONDS = 1.0
_DAY_SECONDS = 86_400


async def health(datasette: Any, send: Any) -> None:
    """Send the state of the published database: Datasette's handler of `HEALTH`."""
    response = await _state(datasette)
    headers = (*response.headers, ("cache-control", "no-store"))
    await response._replace(headers=headers).asgi_send(send)


async def _state(datasette: Any) -> PageResponse:
    """Return the state of the published database as JSON."""
    # Ask the database, which shows that it answers.
    database = published(datasette)

    def read(conn: sqlite3.Connection) -> tuple[Any, ...]:
        with time_limit(conn, _QUERY_SECONDS):
            (facts,) = select(conn, FACTS, as_of=AS_OF)
        return facts

    try:
        specs, as_of = await database.execute_fn(read)
    except sqlite3.Error as error:
        fault = {"ok": False, "problem": f"the database does not answer: {error}"}
        return data(json_text(fault), "json", status=503)

    # The age of the data. A source may have had nothing new for long; what counts is
    # that a build looked, if it is known when.
    looked = looked_at(Path(database.path))
    age = days_since(as_of)
    look_age = days_since(looked)
    age_that_counts = age if look_age is None else look_age
    most_days = allowances_of(datasette).stale_days
    problem = _problem_of_age(age_that_counts, most_days)
    state = {
        "ok": problem is None,
        "problem": problem,
        "schema_version": SCHEMA_VERSION,
        "sha256": database.hash,
        "specs": specs,
        "as_of": as_of,
        "age_days": age,
        "looked_at": looked,
        "look_age_days": look_age,
    }
    return data(json_text(state), "json", status=200 if problem is None else 503)


def _problem_of_age(age: float | None, most_days: float | None) -> str | None:
    """Return why data are too old; None if they are not.

    Args:
        age: their age in days; data of unknown age (None) count as too old.
        most_days: the age that they may have; None for any age.
    """
    if most_days is None:
        return None
    if age is not None and age <= most_days:
        return None
    return f"no build has looked for {most_days:g} days"


def days_since(text: str | None) -> float | None:
    """Return the age in days of a date or time, such as `2026-01-31`.

    None if the text is not a date; times without a zone are in UTC.
    """
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    seconds = (datetime.now(UTC) - time).total_seconds()
    return round(seconds / _DAY_SECONDS, 2)
