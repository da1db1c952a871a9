"""What `find` prints: a table for people, CSV and JSON. Pure text; knows no terminal."""

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

_VARIANTS = "variants"
_WORDS = tuple(name for name in Configuration._fields if name != _VARIANTS)
"""The parts of a configuration that are one word."""
_WHERE = tuple(field.name for field in fields(Presence))
_SHORTEST = 16
_GAP = "  "


def as_json(found: Iterable[Found], hashes: bool) -> str:
    """Return a JSON array with one object for each configuration, or for each spec."""
    records = [
        each.configuration._asdict() | {name: value} | _where(place)
        for each in found
        for name, value, place in _counted(each, hashes)
    ]
    return json.dumps(records, indent=2, ensure_ascii=False)


def as_csv(found: Sequence[Found], hashes: bool) -> str:
    """Return CSV, one line per configuration, or per spec; lists are separated by blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    counted = "hash" if hashes else "spec_count"
    writer.writerow((*Configuration._fields, counted, *_WHERE))
    for each in found:
        *words, variants = each.configuration
        for _, value, place in _counted(each, hashes):
            lists = (" ".join(place.releases), " ".join(place.stacks))
            rest = (value, *lists, place.first_seen, place.last_seen)
            writer.writerow((*words, " ".join(variants), *rest))
    return text.getvalue()


def as_table(found: Sequence[Found], hashes: bool, width: int | None = None) -> str:
    """Return an aligned table: what all rows share stands in one line above.

    Args:
        found: what was found, at least one.
        hashes: one row per spec instead of one per configuration.
        width: the longest line that is wanted; None for any.
    """
    lines = [_total(found)]
    configurations = [each.configuration for each in found]
    shared = {name for name in _WORDS if len({getattr(each, name) for each in configurations}) == 1}
    common = set.intersection(*(set(each.variants) for each in configurations))
    first = configurations[0]
    words = [first.package + "@" + first.version if "version" in shared else first.package]
    words = words if "package" in shared else []
    words += [getattr(first, name) for name in _WORDS[2:] if name in shared]
    words += [text for text in first.variants if text in common]
    if words and len(found) > 1:
        lines.append(_fitted(f"all: {' '.join(words)}", width))
    hidden = shared - {"version"} if len(found) > 1 else set()
    names = [name for name in _WORDS if name not in hidden]
    common = common if len(found) > 1 else set()
    header = [*names, "hash" if hashes else "specs", "last seen", "releases", "variants", "stacks"]
    table = [row for each in found for row in _rows(each, hashes, names, common)]
    return "\n".join([*lines, "", *_aligned([header, *table], width)])


def _counted(each: Found, hashes: bool) -> Iterator[tuple[str, str | int, Presence]]:
    """Yield what a row counts and where that is: the configuration, or each of its specs."""
    if not hashes:
        yield "spec_count", each.spec_count, each
        return
    for spec in each.specs or ():
        yield "hash", spec.hash, spec


def _where(place: Presence) -> dict[str, Any]:
    return {name: getattr(place, name) for name in _WHERE}


def _total(found: Sequence[Found]) -> str:
    specs = sum(each.spec_count for each in found)
    return f"{_count(len(found), 'configuration')}, {_count(specs, 'spec')}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _rows(each: Found, hashes: bool, names: Iterable[str], common: set[str]) -> Iterator[list[str]]:
    words = [getattr(each.configuration, name) for name in names]
    variants = " ".join(text for text in each.configuration.variants if text not in common)
    for _, value, place in _counted(each, hashes):
        more = len(place.releases) - 1
        first = place.releases[0] if place.releases else "-"
        yield [
            *words,
            value if isinstance(value, str) else f"{value:,}",
            place.last_seen or "-",
            f"{first} +{more}" if more > 0 else first,
            variants or "-",
            " ".join(place.stacks) or "-",
        ]


def _aligned(table: list[list[str]], width: int | None) -> list[str]:
    """Pad the columns, leave out those that are empty in all rows, shorten the last two to fit."""
    used = [place for place in range(len(table[0])) if any(row[place] != "-" for row in table[1:])]
    table = [[row[place] for place in used] for row in table]
    widths = [max(len(row[place]) for row in table) for place in range(len(used))]
    for place in (len(used) - 1, len(used) - 2):
        over = sum(widths) + len(_GAP) * (len(used) - 1) - (width or 1_000_000_000)
        if over > 0 and table[0][place] in ("stacks", "variants"):
            widths[place] = max(widths[place] - over, min(_SHORTEST, widths[place]))
    return [
        _GAP.join(
            _fitted(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]


def _fitted(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 1] + "…"
