"""Builds of these tests read files of the made-up kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spack_cache_db.sources import readers
from tests.madeup import MADE_UP


@pytest.fixture(scope="module", autouse=True)
def second_kind() -> Iterator[None]:
    """Let builds read files of the made-up kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "KINDS", (MADE_UP, *readers.KINDS))
        yield
