"""What `cover` prints for a folder of environments.

```
2 of 4 specs have a binary, in 2 environments

a/spack.yaml  1 of 2  none 1, binary 1
b/spack.yaml  1 of 2  near 1, binary 1
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spack_cache_db.cli.cover_texts import cover_markdown, cover_value, shown
from spack_cache_db.cli.environments import Covered
from spack_cache_db.cli.tables import hanging, print_answer
from spack_cache_db.errors import counted, one_line
from spack_cache_db.query.rows import Rows

if TYPE_CHECKING:
    from spack_cache_db.query.answers.covered import Cover, CoveredSpec


def print_folder(
    folder: str, environments: Iterable[Covered], options: Mapping[str, Any]
) -> Cover:
    """Print the answers for the environments of a folder; return those for all specs.

    Args:
        folder: the folder.
        environments: the answers for its environments, with their whole paths.
        options: the options of `cover`.
    """
    from spack_cache_db.query.answers.covered import COLUMNS, Cover

    only = options["only"]
    # Paths are printed as they are in the folder.
    in_folder = []
    for environment in environments:
        path = str(Path(environment.path).relative_to(folder))
        in_folder.append(environment._replace(path=path))
    covers = _readable(in_folder)

    every_spec: list[CoveredSpec] = []
    for _, cover in covers:
        every_spec += cover.specs
    baseline = str(options["baseline"] or "")
    total = Cover(tuple(every_spec), is_lock=False, baseline=baseline)

    def rows() -> Rows:
        records = []
        for path, cover in covers:
            for record in shown(cover, only).rows.records:
                records.append({"environment": path, **record})
        return Rows(("environment", *COLUMNS), records)

    sentence = f"{total.share}, in {counted(len(covers), 'environment')}"
    unread = len(in_folder) - len(covers)
    if unread:
        sentence += f"; {unread:,} more cannot be read"
    lines = [_line(environment) for environment in in_folder]
    print_answer(
        options,
        rows,
        (sentence, "", *_table(lines)),
        value=lambda: _value(in_folder, total, only),
        markdown=(f"{sentence}.", "", *_markdown(lines, covers, only)),
    )
    return total


def _readable(environments: Iterable[Covered]) -> list[tuple[str, Cover]]:
    """Return the path and the answers of each environment that can be read."""
    covers = []
    for path, cover, _ in environments:
        if cover is not None:
            covers.append((path, cover))
    return covers


class _Line(NamedTuple):
    """The line of an environment.

    Attributes:
        path: its path in the folder.
        numbers: how many specs have a binary, such as `1 of 2`; `-` if it cannot be
            read.
        text: how many specs have each status, or why it cannot be read.
    """

    path: str
    numbers: str
    text: str


def _line(environment: Covered) -> _Line:
    cover = environment.cover
    if cover is None:
        faults = [one_line(fault) for fault in environment.error.splitlines()]
        return _Line(environment.path, "-", f"cannot be read: {'; '.join(faults)}")
    numbers = f"{cover.available:,} of {cover.total:,}"
    return _Line(environment.path, numbers, cover.statuses)


def _table(lines: Sequence[_Line]) -> Iterator[str]:
    path_width = max((len(line.path) for line in lines), default=0)
    numbers_width = max((len(line.numbers) for line in lines), default=0)
    for line in lines:
        cells = (line.path.ljust(path_width), line.numbers.rjust(numbers_width))
        yield from hanging(cells, line.text)


def _markdown(
    lines: Sequence[_Line], covers: Iterable[tuple[str, Cover]], only: Sequence[str]
) -> Iterator[str]:
    """Yield a table of the environments, and a section for each that can be read."""
    yield "| environment | binaries | |"
    yield "| --- | ---: | --- |"
    for path, numbers, text in lines:
        yield f"| `{path}` | {numbers} | {text} |"
    for path, cover in covers:
        yield from ("", f"## {path}", "")
        yield from cover_markdown(cover, only)


def _value(
    environments: Iterable[Covered], total: Cover, only: Sequence[str]
) -> dict[str, Any]:
    """Return the JSON of a folder: a value for each environment, and the totals."""
    values = []
    for path, cover, error in environments:
        value = {"error": error} if cover is None else cover_value(cover, only)
        values.append({"path": path, **value})
    counts = {"binary": total.binary, "total": total.total}
    if total.baseline:
        counts["lost"] = total.counted("lost")
    return {"environments": values, **counts}
