"""A server that can behave badly, and a folder to fetch into."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.fetch.server import Site, serve


@pytest.fixture
def site() -> Iterator[Site]:
    """A server without a file."""
    with serve() as running:
        yield running


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A folder to fetch into, not made yet."""
    return tmp_path / "mirrors"
