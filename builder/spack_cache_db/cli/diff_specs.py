"""What `diff /HASH /HASH` prints: in what two specs differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from spack_cache_db.cli.databases import opened
from spack_cache_db.cli.forms import form_of, say_notes
from spack_cache_db.cli.tables import NOTHING, Table, print_answer

if TYPE_CHECKING:
    from spack_cache_db.query.answers.diff_specs import SpecDiff


def print_spec_diff(file: Path, old: str, new: str, options: Any) -> NoReturn:
    """Print the difference between two specs, given by their hashes, and end."""
    from spack_cache_db.query.answers.diff_specs import diff_specs
    from spack_cache_db.query.names.known import spec_of_hash

    form = form_of(options)
    with opened(file) as lookups:
        answer = diff_specs(
            lookups, spec_of_hash(lookups, old), spec_of_hash(lookups, new)
        )
    notes = list(answer.notes)
    if form in ("json", "csv"):
        notes.insert(0, answer.sentence)
    say_notes(notes)
    print_answer(
        options,
        lambda: answer.rows,
        _lines(answer),
        value=answer.as_dict,
        markdown=_markdown(answer),
    )
    sys.exit(0 if answer.is_empty else 1)


def _tables(answer: SpecDiff) -> Iterator[Table]:
    """Yield the table of the specs themselves, and that of their dependencies."""
    headings = [f"/{side.hash[:7]}" for side in (answer.old, answer.new)]
    if answer.changes:
        rows = [
            (change.part, change.old or NOTHING, change.new or NOTHING)
            for change in answer.changes
        ]
        yield Table(("part", *headings), rows)
    if answer.dependencies:
        rows_of_dependencies = []
        for change in answer.dependencies:
            row = (
                change.package,
                change.of,
                _short(change.old),
                _short(change.new),
                change.text,
            )
            rows_of_dependencies.append(row)
        columns = ("dependency", "to", *headings, "differs in")
        yield Table(columns, rows_of_dependencies, long=("differs in",))


def _short(specs: Sequence[str]) -> str:
    """Return specs with short hashes: `3.0.5/2feova4`."""
    texts = []
    for spec in specs:
        version, _, dag_hash = spec.partition("/")
        texts.append(f"{version}/{dag_hash[:7]}")
    return ", ".join(texts) or NOTHING


def _common(answer: SpecDiff) -> str | None:
    """Return the line about the dependencies that both have; None if unknown."""
    if answer.common_count is None or answer.is_empty:
        return None
    return f"run-time dependencies of both: {answer.common_count:,}"


def _lines(answer: SpecDiff) -> Iterator[str]:
    """Yield the lines for people."""
    yield answer.sentence
    for table in _tables(answer):
        yield ""
        yield from table.lines()
    common = _common(answer)
    if common is not None:
        yield ""
        yield common


def _markdown(answer: SpecDiff) -> Iterator[str]:
    """Yield the lines in Markdown."""
    yield f"{answer.sentence}."
    for table in _tables(answer):
        yield ""
        yield from table.markdown()
    common = _common(answer)
    if common is not None:
        yield ""
        yield f"{common}."
