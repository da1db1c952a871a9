"""`/-/metrics`: counts of requests and the age of the data, for Prometheus.

Each process adds to a row of numbers of its own, in memory that all processes share. So
no process waits for another one, and a process that is killed harms no count. A new
process continues the row of one that has ended: the sums over all rows never decrease.
"""

from __future__ import annotations

import mmap
import sqlite3
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from spack_cache_db.errors import DatabaseError
from spack_cache_db.inspect_file import looked_at
from spack_cache_db.query.open.sql import connected, select
from spack_cache_db.schema.identity import AS_OF
from spack_cache_db.site.http.health import FACTS, days_since
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.routes import route_of

METRICS = "/-/metrics"
"""The path of the page, below the base of the site."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus
(prometheus.io/docs/instrumenting/exposition_formats).
"""
NO_CLIENT = (
    "The metrics need the Python package prometheus-client, which is not installed beside"
    " spack-cache-db on this server."
)
OUTCOMES = ("2xx", "3xx", "4xx", "5xx", "none")
"""What became of a request; `none` is one whose connection was closed without a
response.
"""

_ROWS_PER_WORKER = 8
"""While a new database is opened, a server has more processes than workers."""

_NUMBER_BYTES = 8
"""The size of a number in shared memory: a C double."""

_DAY = 86_400
"""The seconds of a day."""


class RequestClass(Enum):
    """Kinds of requests that differ in what they cost."""

    PAGE = "page"  # of the site
    DATA = "data"  # pages of Datasette and its plugins
    DOWNLOAD = "download"  # the database
    STATIC = "static"  # scripts, styles and images


class Refusal(Enum):
    """Why the server did not pass a request on to Datasette."""

    ADDRESS = "address"
    HOST = "host"
    BUSY = "busy"
    NOT_WHOLE = "database is being replaced"


def class_of(path: str) -> RequestClass:
    """Return the class of a path below the base of the site."""
    if path.startswith(("/static/", "/-/static")):
        return RequestClass.STATIC
    if path.endswith(".db"):
        return RequestClass.DOWNLOAD
    if route_of(path) is None:
        return RequestClass.DATA
    return RequestClass.PAGE


_ENDED = "ended"
"""The key of the count of processes that ended while they answered a request."""


def _positions() -> dict[Any, int]:
    """Return the position of each number in a row, by its key.

    Keys are `_ENDED`, reasons of refusals, pairs of a class and an outcome for counts
    of requests, and classes for the seconds that their requests took.
    """
    keys: list[Any] = [_ENDED, *Refusal]
    for request_class in RequestClass:
        keys.append(request_class)
        keys.extend((request_class, outcome) for outcome in OUTCOMES)
    return {key: position for position, key in enumerate(keys)}


_POSITIONS = _positions()


class Counters:
    """The counts of all processes of a server; made before the first process is
    started.

    Args:
        workers: the number of processes that answer at a time.
    """

    def __init__(self, workers: int) -> None:
        rows = 1 + _ROWS_PER_WORKER * workers
        self._shared = mmap.mmap(-1, rows * len(_POSITIONS) * _NUMBER_BYTES)
        self._numbers = memoryview(self._shared).cast("d")
        # Row 0 is that of the process that starts the others.
        self._row = 0
        # The rows that no process uses, the next one to use last.
        self._free = list(range(rows - 1, 0, -1))

    def take_row(self) -> int:
        """Return a row for a new process.

        If no row is free, two processes share one, and counts may be lost.
        """
        return self._free.pop() if self._free else 1

    def free_row(self, row: int) -> None:
        """Take back the row of a process that has ended; its numbers stay."""
        if row not in self._free:
            self._free.append(row)

    def use_row(self, row: int) -> None:
        """Count in a row, from now on and in this process."""
        self._row = row

    def count_request(
        self, request_class: RequestClass, status: int, seconds: float
    ) -> None:
        """Count a request with its duration; status 0 is one without a response."""
        outcome = f"{status // 100}xx"
        if outcome not in OUTCOMES:
            outcome = "none"
        self._add((request_class, outcome), 1)
        self._add(request_class, seconds)

    def count_refusal(self, reason: Refusal) -> None:
        """Count a request that was not passed on to Datasette."""
        self._add(reason, 1)

    def count_ended(self) -> None:
        """Count a process that ended while it answered a request."""
        self._add(_ENDED, 1)

    def requests(self, request_class: RequestClass, outcome: str) -> float:
        """Return the number of requests of a class with one of `OUTCOMES`, of all
        processes.
        """
        return self._sum((request_class, outcome))

    def seconds(self, request_class: RequestClass) -> float:
        """Return the time that the requests of a class took together."""
        return self._sum(request_class)

    def refusals(self, reason: Refusal) -> float:
        """Return the number of requests that were refused for a reason."""
        return self._sum(reason)

    def ended(self) -> float:
        """Return the number of processes that ended while they answered a request."""
        return self._sum(_ENDED)

    def _add(self, key: Any, amount: float) -> None:
        start_of_row = self._row * len(_POSITIONS)
        self._numbers[start_of_row + _POSITIONS[key]] += amount

    def _sum(self, key: Any) -> float:
        # The rows follow each other, so a number is in every len(_POSITIONS)-th place.
        numbers_of_all_rows = self._numbers[_POSITIONS[key] :: len(_POSITIONS)]
        return sum(numbers_of_all_rows)


def metrics(counters: Counters, database: Path) -> PageResponse:
    """Return the response to `/-/metrics`: status 404 if prometheus-client is not
    installed.
    """
    # prometheus-client is optional.
    try:
        client = import_module("prometheus_client")
        families = import_module("prometheus_client.core")
    except ImportError:
        return refused(NO_CLIENT, form=None, status=404)
    # `auto_describe` would collect the metrics once more.
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Collector(lambda: _collect(counters, database, families)))
    answer = data(client.generate_latest(registry), "text")
    # Prometheus wants the version of its format in the type.
    others = [header for header in answer.headers if header[0] != "content-type"]
    return answer._replace(headers=(("content-type", CONTENT_TYPE), *others))


class _Collector:
    """What prometheus-client expects of an object that has the metrics."""

    def __init__(self, collect: Callable[[], Iterator[Any]]) -> None:
        self.collect = collect


def _collect(counters: Counters, database: Path, families: Any) -> Iterator[Any]:
    """Yield the metrics; the client adds `_total` to the names of counters.

    Args:
        counters: the counts of all processes.
        database: the path of the database.
        families: the module of prometheus-client with the classes of metrics.
    """
    # Requests, and how long they took.
    requests = families.CounterMetricFamily(
        "spack_cache_requests",
        "Requests by class and status.",
        labels=["class", "status"],
    )
    seconds = families.CounterMetricFamily(
        "spack_cache_request_seconds", "Time that requests took.", labels=["class"]
    )
    for request_class in RequestClass:
        for outcome in OUTCOMES:
            count = counters.requests(request_class, outcome)
            requests.add_metric([request_class.value, outcome], count)
        seconds.add_metric([request_class.value], counters.seconds(request_class))
    yield requests
    yield seconds

    # Requests and processes that failed.
    refusals = families.CounterMetricFamily(
        "spack_cache_refused", "Requests that Datasette did not get.", labels=["reason"]
    )
    for reason in Refusal:
        refusals.add_metric([reason.value], counters.refusals(reason))
    yield refusals
    yield families.CounterMetricFamily(
        "spack_cache_ended_processes",
        "Processes that ended while they answered a request.",
        value=counters.ended(),
    )

    # The age of the data, as far as it is known.
    age_in_days = data_age(database)
    if age_in_days is not None:
        yield families.GaugeMetricFamily(
            "spack_cache_data_age_seconds",
            "Age of the newest source of the database.",
            value=age_in_days * _DAY,
        )
    days_since_look = days_since(looked_at(database))
    if days_since_look is not None:
        yield families.GaugeMetricFamily(
            "spack_cache_look_age_seconds",
            "Time since a build looked for new data.",
            value=days_since_look * _DAY,
        )


def data_age(database: Path) -> float | None:
    """Return the age of the data in days; None if it is unknown, or the file cannot be
    read.
    """
    try:
        with connected(database) as conn:
            # One row: the number of binaries, and the date of the newest source.
            ((_, date),) = select(conn, FACTS, as_of=AS_OF)
    except (DatabaseError, sqlite3.Error):
        return None
    return days_since(date)
