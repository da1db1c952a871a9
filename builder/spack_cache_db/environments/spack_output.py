"""What commands of Spack print as a list of specs: `find`, `spec`, `concretize`, `buildcache list`.

Headings say for what the specs below them were built, and trees what each of them needs. Both are
told from the specs that were asked for. The forms are those of Spack 0.17 to 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from spack_cache_db.spack.pasted_specs import (
    PastedSpec,
    pasted_spec,
    printed_cells,
    printed_spec,
)

_SECTION = re.compile(r"-- (?P<arch>.+?) / (?P<compiler>.+?) -{2,}")
_ARCH = re.compile(r"[\w.]+-[\w.]+-[\w.]+")
_COMPILER = re.compile(r"%?(?:[\w,]+=)?[\w.-]+@[\w.-]+")
_RULE = re.compile(r"-{4,}")
_INPUT = ("Input spec", "Normalized")
_TITLES = (*_INPUT, "Concretized")
_PRINTED = re.compile(r"==> |\s*-- .+ -{2,}\s*$|\s*(?:\[[-+^a-z]\]| - )\s+\S|Concretized$")
_HASH_BEFORE = re.compile(r"[a-z2-7]{7,32}(?P<gap>\s+)")
_INDENTED = 4
"""More blanks stand before the name of a dependency, in trees of `spack find`."""


class ListedSpec(NamedTuple):
    """A spec of a list, and its line, counted from 1."""

    line: int
    spec: PastedSpec


def is_spack_output(text: str) -> bool:
    """Return whether one of the first lines of a text is one that only Spack prints."""
    return any(_PRINTED.match(line) for line in text[:20_000].splitlines())


def printed_specs(text: str) -> Iterator[ListedSpec]:
    """Yield the specs of an output, with those that stand below others in a tree.

    What is between `Input spec` and `Concretized` is left out: the same follows, concretized.
    """
    around, is_input, are_cells, margin = "", False, False, 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.expandtabs().rstrip()
        words = line.strip()
        if section := _SECTION.fullmatch(words):
            around, are_cells, margin = _built_for(section), True, -1
        elif words.startswith("==>"):
            around, is_input, are_cells = "", False, "root specs" in words
        elif words in _TITLES:
            is_input, are_cells = words in _INPUT, False
        elif words and not is_input and not _RULE.fullmatch(words):
            margin = _blanks(line) if margin < 0 else margin
            specs = _cells(line, around, margin) if are_cells else _line(line)
            yield from (ListedSpec(number, each) for each in specs if each.spec)


def _built_for(section: re.Match[str]) -> str:
    """Return what a heading says of the specs below it, as a spec."""
    arch, compiler = section["arch"], section["compiler"]
    found = [f"arch={arch}"] if _ARCH.fullmatch(arch) else []
    if _COMPILER.fullmatch(compiler):
        found.append(f"%{compiler.removeprefix('%')}")
    return " ".join(found)


def _blanks(line: str) -> int:
    """Return how many blanks stand before the name of a spec, behind its hash if it has one."""
    hashed = _HASH_BEFORE.match(line)
    return len(hashed["gap"]) - 1 if hashed else len(line) - len(line.lstrip())


def _cells(line: str, around: str, margin: int) -> Iterator[PastedSpec]:
    """Yield the specs of a line below a heading of `spack find`: several, or one of a tree."""
    if _blanks(line) - margin >= _INDENTED:
        yield PastedSpec(line.split()[-1], is_dependency=True, is_printed=True)
        return
    for dag_hash, spec in printed_cells(line):
        yield printed_spec(spec, dag_hash, around)


def _line(line: str) -> Iterator[PastedSpec]:
    """Yield the spec of a line of a tree; commands that were typed ask for what follows."""
    found = pasted_spec(line)
    if found.left_out:
        return
    is_below = line.lstrip() != line and line.lstrip().startswith("^")
    yield (
        found if found.is_printed else printed_spec(found.spec.lstrip("^"), is_dependency=is_below)
    )
