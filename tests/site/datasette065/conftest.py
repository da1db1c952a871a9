"""The tests of this room are for Datasette 0.65 alone: under 1.0 none is even imported."""

from __future__ import annotations

from typing import Any

import pytest
from datasette.app import Datasette
from datasette.database import Database

collect_ignore_glob = [] if hasattr(Datasette, "metadata") else ["test_*.py"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that Datasette executes, from now on."""
    statements: list[str] = []
    execute = Database.execute

    async def noted(self: Any, sql: str, *args: Any, **named: Any) -> Any:
        statements.append(sql)
        return await execute(self, sql, *args, **named)

    monkeypatch.setattr(Database, "execute", noted)
    return statements
