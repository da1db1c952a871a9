"""What `cover` prints for one environment: a table, Markdown, and a text for each spec.

```
2 of 4 specs have a binary
none 1, near 1, binary 2

none    py-mpi4px          py-mpi4px: no package has this name (near: py-mpi4py)
near    py-mpi4py@99       no version 99 of py-mpi4py: newest 4.0.1
binary  py-mpi4py %gcc@13  py-mpi4py@4.0.1 gcc@13.2.0 ubuntu24.04 x86_64_v3 /4ae6wuu
binary  py-mpi4py          (the same)
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spack_cache_db.cli.tables import hanging
from spack_cache_db.errors import one_line

if TYPE_CHECKING:
    from spack_cache_db.query.answers.covered import Cover, CoveredSpec

COLOURS = {
    "lost": "red",  # no binary, but one in the older database of --baseline
    "missing": "red",  # a node of a lockfile without a similar binary
    "alike": "yellow",  # a node with a binary that has other dependencies
    "rebuilt": "yellow",  # a node with an equivalent binary of another hash
    "unanswerable": "red",  # the database cannot answer
    "none": "red",  # no binary satisfies the spec
    "near": "yellow",  # binaries satisfy it except for one or two conditions
    "incomplete": "yellow",  # a binary, but not of everything that it needs
    "unknown": "yellow",  # whether a binary satisfies it is not known
    "external": None,  # the environment names a package of the system
    "binary": "green",
    "installed": "green",
}
"""The colour of each status on a terminal. The table has the statuses in this order:
specs without a binary come first. `CoveredSpec.status` describes them exactly.
"""

STATUSES = list(COLOURS)
"""The statuses, in the order of the table."""

_WIDEST_SPEC = 40
"""Widest column of specs in the table; a longer spec moves its answer to the right."""

_THE_SAME = "(the same)"
"""The text for an answer that is that of the line above."""


def shown(answer: Cover, only: Sequence[str]) -> Cover:
    """Return the answers with the statuses in `only`, or all answers if it is empty."""
    if not only:
        return answer
    specs = [spec for spec in answer.specs if spec.status in only]
    return replace(answer, specs=tuple(specs))


def cover_table(answer: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    """Yield the totals, and a line for each spec with a status in `only`, or for all.

    An answer that repeats that of the line above is printed once.
    """
    yield answer.sentence
    has_several_statuses = "," in answer.statuses
    if has_several_statuses:
        yield answer.statuses
    yield from answer.groups
    yield from answer.totals

    specs = _in_order(shown(answer, only).specs)
    if not specs:
        return
    yield ""
    status_width = max(len(spec.status) for spec in specs)
    spec_width = min(max(len(spec.spec) for spec in specs), _WIDEST_SPEC)
    previous = None
    for spec in specs:
        text = text_of(spec)
        status_and_text = (spec.status, text)
        cells = (spec.status.ljust(status_width), spec.spec.ljust(spec_width))
        if status_and_text == previous and len(text) > len(_THE_SAME):
            text = _THE_SAME
        yield from hanging(cells, text)
        previous = status_and_text


def cover_markdown(answer: Cover, only: Sequence[str] = ()) -> Iterator[str]:
    """Yield the totals as sentences, and a table with the specs of `cover_table`."""
    yield f"{answer.sentence}."
    for total in answer.totals:
        yield ""
        yield f"{total[:1].upper()}{total[1:]}."
    yield ""
    yield "| status | spec | answer |"
    yield "| --- | --- | --- |"
    for spec in _in_order(shown(answer, only).specs):
        name = one_line(spec.spec).replace("|", "\\|")
        text = one_line(text_of(spec)).replace("|", "\\|")
        yield f"| {spec.status} | `` {name} `` | {text} |"


def cover_value(answer: Cover, only: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of one environment.

    It has only specs with a status in `only`, if that is not empty; its counts are
    those of all specs.
    """
    return {**answer.as_dict(), "specs": shown(answer, only).as_dict()["specs"]}


def _in_order(specs: Iterable[CoveredSpec]) -> list[CoveredSpec]:
    """Return specs in the order of their status: those without a binary first."""
    return sorted(specs, key=lambda spec: STATUSES.index(spec.status))


def text_of(spec: CoveredSpec) -> str:
    """Return the answer for one spec, on one line."""
    # Only a node of a lockfile is a root or not.
    is_node = spec.is_root is not None
    if is_node:
        return _text_of_node(spec)
    if spec.status == "external":
        return spec.external
    also = f"; or the external {spec.external}" if spec.external else ""

    # Why there is no binary.
    if spec.hash is None or spec.configuration is None:
        sentences = list(spec.reasons)
        if spec.corrected:
            sentences.append(f"perhaps you mean: {spec.corrected}")
        return one_line("; ".join(sentences)) + also

    release = f" in {spec.release}" if spec.release else ""
    found = f"{spec.configuration.summary} /{spec.hash}{release}"
    if spec.status in ("binary", "installed"):
        return found + also
    # There is a binary, but Spack may not take it.
    why_not = one_line("; ".join(spec.reasons))
    return f"{found}: {why_not}{also}"


def _text_of_node(node: CoveredSpec) -> str:
    """Return the answer for one node of a lockfile, on one line."""
    release = f" in {node.release}" if node.release else ""
    if not node.others:
        root = " (root)" if node.is_root else ""
        return "; ".join((f"/{node.hash}{release}{root}", *node.reasons))

    # The node has no binary, but others are equivalent or similar.
    other = f"/{node.others[0]}"
    if node.other_count > 1:
        other += f" and {node.other_count - 1:,} more"
    other += release
    if node.status == "alike" or node.differences:
        differences = "; ".join(node.differences)
        return f"/{node.hash} is not {other}, which differs: {differences}"
    return f"/{node.hash} would be replaced by {other}"
