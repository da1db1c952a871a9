"""serve.metrics: what Prometheus reads, and how processes count together."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.serve.metrics import (
    NO_CLIENT,
    Counters,
    Refusal,
    RequestClass,
    class_of,
    metrics,
)
from tests.programs import install_plugins
from tests.serving import Server, eventually, serving

PROCESSES = 4
REQUESTS = 2_000
HANGING = """
import time
from datasette import hookimpl

def hang():
    time.sleep(60)

@hookimpl
def register_routes():
    return [("^/hang$", hang)]
"""


@given(
    st.lists(st.tuples(st.sampled_from(RequestClass), st.integers(0, 999)), max_size=20)
)
def test_every_request_is_counted_once(
    requests: list[tuple[RequestClass, int]],
) -> None:
    """Whatever the status is, and although rows pass from process to process."""
    counters = Counters(workers=1)
    for request_class, status in requests:
        row = counters.take_row()
        counters.use_row(row)
        counters.count_request(request_class, status, seconds=0.5)
        counters.free_row(row)

    for request_class in RequestClass:
        expected = [each for each, _ in requests if each == request_class]
        outcomes = ("2xx", "3xx", "4xx", "5xx", "none")
        counted = sum(counters.requests(request_class, outcome) for outcome in outcomes)
        assert counted == len(expected)
        assert counters.seconds(request_class) == len(expected) / 2


@pytest.mark.slow
def test_processes_that_count_at_a_time_lose_nothing() -> None:
    """Each process has a row of its own."""
    counters = Counters(workers=PROCESSES)
    children = []
    for _ in range(PROCESSES):
        row = counters.take_row()
        child = os.fork()
        if child == 0:
            counters.use_row(row)
            for _ in range(REQUESTS):
                counters.count_request(RequestClass.PAGE, 200, seconds=1)
                counters.count_refusal(Refusal.BUSY)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)

    assert counters.requests(RequestClass.PAGE, "2xx") == PROCESSES * REQUESTS
    assert counters.refusals(Refusal.BUSY) == PROCESSES * REQUESTS


def test_processes_without_a_row_of_their_own_share_one() -> None:
    """No process is refused because there are many of them."""
    counters = Counters(workers=1)
    rows = [counters.take_row() for _ in range(100)]

    assert set(rows) == set(range(1, max(rows) + 1))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", RequestClass.PAGE),
        ("/package/hdf5.json", RequestClass.PAGE),
        ("/spack-cache/builds.csv", RequestClass.DATA),
        ("/-/search", RequestClass.DATA),
        ("/spack-cache.db", RequestClass.DOWNLOAD),
        ("/static/parts.css", RequestClass.STATIC),
        ("/-/static/app.css", RequestClass.STATIC),
        ("", RequestClass.DATA),
    ],
)
def test_every_path_has_a_class(path: str, expected: RequestClass) -> None:
    """Pages, data, downloads and static files are counted apart."""
    assert class_of(path) is expected


def test_without_the_client_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address has status 404, and names the package that is missing."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    answer = metrics(Counters(workers=1), tmp_path)

    assert answer.status == 404
    assert NO_CLIENT in answer.body.decode()


@pytest.fixture
def server(
    samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """A server with the client, below a base, with a page that hangs."""
    libraries = tmp_path / "libraries"
    install_plugins(libraries, "prometheus-client")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(libraries), *sys.path)))
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "hanging.py").write_text(HANGING, encoding="utf-8")
    options = ("--plugins-dir", str(plugins), "--base-url", "/cache/", "--workers", "3")
    with serving(samples_file, *options, temporary=tmp_path) as running:
        yield running


def value_of(server: Server, metric: str) -> float:
    """Return the value of a metric with its labels."""
    answer = server.get("/cache/-/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    (value,) = re.findall(rf"^{re.escape(metric)} (\S+)$", answer.text, re.MULTILINE)
    return float(value)


@pytest.mark.slow
def test_requests_of_all_processes_are_counted(server: Server) -> None:
    """Any process knows the counts of all, and those of processes that were ended."""
    pages = 'spack_cache_requests_total{class="page",status="2xx"}'
    unknown = 'spack_cache_requests_total{class="data",status="4xx"}'
    ended = "spack_cache_ended_processes_total"
    pages_before = value_of(server, pages)
    unknown_before = value_of(server, unknown)
    for _ in range(10):
        assert server.get("/about").status_code == 200
        assert server.get("/cache/about").status_code == 200
        assert server.get("/nowhere").status_code == 404

    for _ in range(6):
        assert value_of(server, pages) == pages_before + 20
        assert value_of(server, unknown) == unknown_before + 10
    assert value_of(server, "spack_cache_data_age_seconds") > 0
    assert value_of(server, ended) == 0
    with server.visit("/hang"):
        eventually(lambda: value_of(server, ended) == 1)
    assert value_of(server, pages) == pages_before + 20
