"""What `find` prints: a table for people, CSV and JSON. Pure text; knows no terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from spack_cache_db.query.find import Found
from spack_cache_db.records import Configuration

_VARIANTS = "variants"
_WORDS = tuple(name for name in Configuration._fields if name != _VARIANTS)
"""The parts of a configuration that are one word."""
_SHORTEST = 16
_GAP = "  "


def as_json(found: Iterable[Found]) -> str:
    """Return a JSON array, one object for each record; `hashes` only where they were asked for."""
    records = [each.configuration._asdict() | _rest(each) for each in found]
    return json.dumps(records, indent=2, ensure_ascii=False)


def as_csv(found: Sequence[Found], hashes: bool) -> str:
    """Return CSV, one line per configuration, or per spec; lists are separated by blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    counted = "hash" if hashes else "spec_count"
    last = (counted, "releases", "stacks", "first_seen", "last_seen")
    writer.writerow((*Configuration._fields, *last))
    for each in found:
        *words, variants = each.configuration
        rest = (" ".join(each.releases), " ".join(each.stacks), each.first_seen, each.last_seen)
        for value in each.hashes or () if hashes else (each.spec_count,):
            writer.writerow((*words, " ".join(variants), value, *rest))
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
    table = [_row(each, names, common if len(found) > 1 else set()) for each in found]
    header = [*names, "specs", "last seen", "releases", "variants", "stacks"]
    if hashes:
        header[len(names)] = "hash"
        table = [
            [value if place == len(names) else cell for place, cell in enumerate(row)]
            for each, row in zip(found, table, strict=True)
            for value in each.hashes or ()
        ]
    return "\n".join([*lines, "", *_aligned([header, *table], width)])


def _rest(each: Found) -> dict[str, Any]:
    """Return what there is to say of a configuration that was found."""
    rest = {field.name: getattr(each, field.name) for field in fields(each)}
    del rest["configuration"]
    if rest["hashes"] is None:
        del rest["hashes"]
    return rest


def _total(found: Sequence[Found]) -> str:
    specs = sum(each.spec_count for each in found)
    return f"{_count(len(found), 'configuration')}, {_count(specs, 'spec')}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _row(each: Found, names: Iterable[str], common: set[str]) -> list[str]:
    more = len(each.releases) - 1
    releases = each.releases[0] if each.releases else "-"
    return [
        *(getattr(each.configuration, name) for name in names),
        f"{each.spec_count:,}",
        each.last_seen or "-",
        f"{releases} +{more}" if more > 0 else releases,
        " ".join(text for text in each.configuration.variants if text not in common) or "-",
        " ".join(each.stacks) or "-",
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
