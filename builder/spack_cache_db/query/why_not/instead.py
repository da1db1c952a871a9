"""What configurations have in place of what a condition asks, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spack_cache_db.query.why_not.candidates import COLUMNS, PLACES, Candidates, Row
from spack_cache_db.query.why_not.misses import Condition
from spack_cache_db.records import Configuration
from spack_cache_db.spack.targets import runs_on

_MOST_TOLD = 3


def label(condition: Condition) -> str:
    """Return a condition as one says it: as it is typed, or with the word for what it names."""
    named = condition.kind in ("release", "stack", "host")
    return f"{condition.kind} {condition.text}" if named else condition.text


def in_words(configuration: Configuration) -> str:
    """Return a configuration in one line, without its variants."""
    it = configuration
    return f"{it.package}@{it.version} {it.compiler} {it.os} {it.target}"


def instead_of(candidates: Candidates, condition: Condition, rows: Iterable[Row]) -> str:
    """Return what configurations have in place of what a condition asks, in words."""
    if condition.kind in PLACES:
        return ""
    column = COLUMNS[condition.kind]
    keys = dict.fromkeys(getattr(row, column) for row in rows)
    if condition.kind == "variant":
        found = [
            each.text
            for key in keys
            for each in candidates.variants_of(key).get(condition.asked.name, ())
        ]
        return _there_are(found) or f"none has a variant {condition.asked.name}"
    words = [str(candidates.lookups.words[column][key]) for key in keys]
    if condition.kind == "version":
        return f"newest {words[0]}"
    if column == "target":
        host = condition.asked if condition.kind == "host" else condition.asked.rpartition(":")[2]
        running = [each for each in words if runs_on(each, host)]
        if running and condition.kind == "target":
            verb = "runs" if len(running) == 1 else "run"
            return f"{_listed(running)} {verb} on {host}: ask for target=:{host}"
    return _there_are(words)


def _there_are(words: Iterable[str]) -> str:
    found = [*dict.fromkeys(words)]
    if not found:
        return ""
    return f"there {'is' if len(found) == 1 else 'are'} {_listed(found)}"


def _listed(words: Sequence[str]) -> str:
    if len(words) > _MOST_TOLD + 1:
        return f"{', '.join(words[:_MOST_TOLD])} and {len(words) - _MOST_TOLD} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
