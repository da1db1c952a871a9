"""What was found as data: JSON and CSV, the same from the command line and on the site."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from spack_cache_db.query.find import Found
from spack_cache_db.query.specs import Presence
from spack_cache_db.records import Configuration

_WHERE = tuple(field.name for field in fields(Presence))


def as_json(found: Iterable[Found], hashes: bool) -> str:
    """Return a JSON array with one object for each configuration, or for each spec."""
    records = [
        each.configuration._asdict() | {name: value} | _where(place)
        for each in found
        for name, value, place in row_values(each, hashes)
    ]
    return json.dumps(records, indent=2, ensure_ascii=False)


def as_csv(found: Sequence[Found], hashes: bool) -> str:
    """Return CSV, one line per configuration, or per spec; lists are separated by blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*Configuration._fields, "hash" if hashes else "spec_count", *_WHERE))
    for each in found:
        *words, variants = each.configuration
        for _, value, place in row_values(each, hashes):
            lists = (" ".join(place.releases), " ".join(place.stacks))
            rest = (value, *lists, place.first_seen, place.last_seen)
            writer.writerow((*words, " ".join(variants), *rest))
    return text.getvalue()


def row_values(each: Found, hashes: bool) -> Iterator[tuple[str, str | int, Presence]]:
    """Yield what a row counts and where that is: the configuration, or each of its specs."""
    if not hashes:
        yield "spec_count", each.spec_count, each
        return
    for spec in each.specs or ():
        yield "hash", spec.hash, spec


def _where(place: Presence) -> dict[str, Any]:
    return {name: getattr(place, name) for name in _WHERE}
