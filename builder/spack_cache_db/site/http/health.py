"""`/-/health.json`: whether the database answers, and how old its data are.

For containers, proxies and monitors: the status is 200, or 503 if a monitor should
report it.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spack_cache_db.database_file import looked_at
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import json_text
from spack_cache_db.schema.identity import AS_OF, SCHEMA_VERSION
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogue import published
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.sql.limits import time_limit

HEALTH = r"^/-/health\.json$"
FACTS = """
SELECT (SELECT count(*) FROM specs WHERE is_binary AND NOT is_gone),
    coalesce(
        (SELECT value FROM origin WHERE name = :as_of),
        (SELECT max(date) FROM releases)
    )
"""
_QUERY_SECONDS = 1.0
_DAY = 86_400


async def health(datasette: Any, send: Any) -> None:
    """Send the state of the published database."""
    answer = await _state(datasette)
    headers = (*answer.headers, ("cache-control", "no-store"))
    await answer._replace(headers=headers).asgi_send(send)


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
    # that a build looked.
    looked = looked_at(Path(database.path))
    age = days_since(as_of)
    look_age = days_since(looked)
    most_days = allowances_of(datasette).stale_days
    problem = _problem_of_age(age if look_age is None else look_age, most_days)
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
    """Return why data of some age are too old; None if they are not, or may have any
    age.

    Data of unknown age count as too old.
    """
    if most_days is None:
        return None
    if age is not None and age <= most_days:
        return None
    return f"no build has looked for {most_days:g} days"


def days_since(text: str | None) -> float | None:
    """Return the age of a date or time in days; None if it is unknown."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round((datetime.now(UTC) - time).total_seconds() / _DAY, 2)
