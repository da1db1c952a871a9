"""What Datasette's own page of a database shows first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spack_cache_db.schema import TABLES, VIEWS

_ORDER = {name: place for place, name in enumerate((*VIEWS, *(table.name for table in TABLES)))}


def in_order(found: Iterable[Any]) -> list[Any]:
    """Return tables or views in the schema's order, those that are not ours last.

    Args:
        found: what Datasette tells of each; 0.65 has dictionaries, 1.0 may have records.
    """
    return sorted(found, key=lambda each: _ORDER.get(_name(each), len(_ORDER)))


def _name(each: Any) -> str:
    return str(each["name"] if isinstance(each, dict) else each.name)
