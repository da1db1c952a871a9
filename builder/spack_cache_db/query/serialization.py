"""JSON and CSV as this project writes them: for commands, addresses and Python alike."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any


def json_text(value: Any) -> str:
    """Return plain values as JSON for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV below the names of their columns; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((names, *rows))
    return text.getvalue()
