"""What many test modules share: the database of the sample pages, and a quick way to
build.
"""

import gc
import itertools
import math
import os
import signal
import sqlite3
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import settings

from spack_cache_db.assembly.builds import build
from tests import trees
from tests.builds import many_pages
from tests.commands import OLD
from tests.examples import examples
from tests.indexes import MIRRORS, REAL_FILE, index, node, real, record, write_layout3
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import MORE_SAMPLES, SAMPLES, write
from tests.shared import built_once
from tests.templates import compiled_once

# No test runs on a terminal, so the width of the one that started the tests does not
# count.
os.environ.pop("COLUMNS", None)

# The tests may be started with these signals ignored (nohup, a shell's &), and programs
# that they start would ignore them as well.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# Each client of httpx would read the certificates of all authorities again.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]

# Each build would read the descriptions of nine installed packages again: a quarter of
# the time of a small one.
metadata.version = cache(metadata.version)

# Each site that a test makes would compile its templates again.
jinja2.Environment.compile = compiled_once(jinja2.Environment.compile)  # type: ignore[method-assign]

# A deadline would be a timing, and fail on a machine that is busy.
settings.register_profile("tests", deadline=None, max_examples=examples(50))
settings.load_profile("tests")

# Thousands of tests are collected and stay until the end: the garbage collector would
# search them in vain.
gc.disable()

Build = Callable[..., sqlite3.Connection]
"""Builds pages, given as keyword=bytes, and connects to the database."""

RESULTS = "SPACK_CACHE_DB_TEST_RESULTS"
"""The environment variable with the path of a file for the outcomes of tests."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test at once: a run that is ended keeps the names of what
    failed.
    """
    path = os.environ.get(RESULTS)
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if path and not is_worker and (report.when == "call" or not report.passed):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(f"{report.outcome} {report.nodeid}\n")


LONGEST = (
    ("test_wheel.py", "test_catalogue.py"),
    ("test_documents.py", "test_every_page.py"),
    ("test_commands.py", "test_attacks.py"),
)
"""Files with tests that take longer than a minute, in groups that take about as
long.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each process of xdist begin with a group of the longest tests."""
    process_count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    groups: list[list[pytest.Item]] = [[] for _ in LONGEST]
    rest: list[pytest.Item] = []
    for item in items:
        _group_of(item, groups, rest).append(item)

    # xdist gives each process a slice of the list, so each slice begins with groups.
    size = math.ceil(len(rest) / process_count)
    in_order: list[pytest.Item] = []
    for number in range(process_count):
        for group in groups[number::process_count]:
            in_order += group
        in_order += rest[number * size : (number + 1) * size]
    items[:] = in_order


def _group_of(
    item: pytest.Item, groups: list[list[pytest.Item]], rest: list[pytest.Item]
) -> list[pytest.Item]:
    for names, group in zip(LONGEST, groups, strict=True):
        if item.path.name in names:
            return group
    return rest


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests leave."""
    gc.freeze()
    gc.enable()


def built_from(name: str, build_in: Callable[[Path], object]) -> Any:
    """Return a fixture: the path of a database that is built once for all processes."""

    @pytest.fixture(scope="session")
    def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
        return built_once(tmp_path_factory, name, build_in) / "spack-cache.db"

    return file


def connection_to(fixture: str) -> Any:
    """Return a fixture: a connection to the database of another fixture."""

    @pytest.fixture(scope="session")
    def connection(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(request.getfixturevalue(fixture))) as connection:
            yield connection

    return connection


def _build(*paths: Path, **options: Any) -> Callable[[Path], object]:
    """Return a function that builds some sources in a folder."""
    return lambda folder: build(paths, folder / "spack-cache.db", **options)


def _build_tree(folder: Path) -> None:
    mirror = folder / "mirrors" / "develop" / "e4s"
    mirror.mkdir(parents=True)
    (mirror / "index.json").write_bytes(real())
    tree = trees.write_tree(folder / "opt", trees.real_tree())
    build([tree, folder / "mirrors"], folder / "spack-cache.db")


# The five sample pages, and those of every era.
samples_file = built_from("samples", _build(SAMPLES))
samples = connection_to("samples_file")
all_samples_file = built_from("all-samples", _build(SAMPLES, MORE_SAMPLES))
all_samples = connection_to("all_samples_file")
# Pages of every era, an index, mirrors and package data.
_every_source = (SAMPLES, MORE_SAMPLES, REAL_FILE, MIRRORS, PACKAGE_DATA)
all_sources_file = built_from("sources", _build(*_every_source))
all_sources = connection_to("all_sources_file")
# A real index, which has externals: the stack e4s of develop.
real_index_file = built_from("index", _build(REAL_FILE, release="develop", stack="e4s"))
real_index = connection_to("real_index_file")
# An installed tree, and a mirror that has more binaries.
real_tree_file = built_from("tree", _build_tree)
real_tree = connection_to("real_tree_file")


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database `x.db`, to be copied to where a new one is built."""
    folder = tmp_path_factory.mktemp("old")
    build([SAMPLES], folder / "x.db")
    return folder


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Build]:
    """Build pages, given as keyword=bytes, and connect to the database."""
    numbers = itertools.count()
    with ExitStack() as stack:

        def build_pages(**pages: bytes) -> sqlite3.Connection:
            # A test may build several databases.
            number = next(numbers)
            folder = write(tmp_path / f"pages-{number}", **pages)
            output = tmp_path / f"built-{number}.db"
            build(folder, output)
            return stack.enter_context(closing(sqlite3.connect(output)))

        yield build_pages


@pytest.fixture
def layout3(tmp_path: Path) -> Path:
    """A mirror of layout 3: its own index, and two views of it."""
    names_in_view = {None: ("a", "b", "c"), "e4s": ("a", "b"), "hep": ("b", "c")}
    indexes = {}
    for view, names in names_in_view.items():
        records = [record(node(name)) for name in names]
        indexes[view] = index(*records)
    return write_layout3(tmp_path / "layout3", indexes)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The path of an old database, alone in its folder, that a build would replace."""
    path = tmp_path / "out" / "spack-cache.db"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pages, one folder in it per release and package."""
    for name, data in many_pages().items():
        write(tmp_path / "pages" / name, specs=data)
    return tmp_path / "pages"
