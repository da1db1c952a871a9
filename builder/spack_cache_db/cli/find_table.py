"""What `find` prints for people: a table. Pure text; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from spack_cache_db.cli.input import counted
from spack_cache_db.query.find import Found
from spack_cache_db.query.found_data import row_values
from spack_cache_db.records import Configuration

_VARIANTS = "variants"
_WORDS = tuple(name for name in Configuration._fields if name != _VARIANTS)
"""The parts of a configuration that are one word."""
_SHORTEST = 16
_GAP = "  "


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


def _total(found: Sequence[Found]) -> str:
    specs = sum(each.spec_count for each in found)
    return f"{counted(len(found), 'configuration')}, {counted(specs, 'spec')}"


def _rows(each: Found, hashes: bool, names: Iterable[str], common: set[str]) -> Iterator[list[str]]:
    words = [getattr(each.configuration, name) for name in names]
    variants = " ".join(text for text in each.configuration.variants if text not in common)
    for _, value, place in row_values(each, hashes):
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
