"""Reads the specs that Spack prints: `spack find`, `spec`, `install`, `uninstall` and
others.

    [+]  nekvq6z  hdf5@1.14.5+mpi          /opt/hdf5-1.14.5-nekvq6z
     -   n3bpxms      ^zlib@1.3.1

A line has one or more specs, at least two blanks apart. Each may have before it the
state of its installation, its hash and its dependency types, and behind it its prefix,
the folder in which it is installed (Spack 1.2 `cmd/__init__.py`, `display_specs`;
`spec.py`, `tree`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.environments.pasted.modules import HASH
from spack_cache_db.environments.pasted.prefixes import read_prefix, short_prefix
from spack_cache_db.spack.legacy import parse_legacy_query
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.normal_forms import PATCH_PRINTED
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery, VariantConstraint

_STATE = r"(?:(?P<state>\[[^\]]\]|(?<=\s)-)(?P<blanks>\s+))?"
"""The state of the installation of a spec: `[+]`, `[e]`, or `-` behind a blank."""
_HASH_BEFORE = rf"(?:(?P<hash>{HASH}|-{{32}}|-{{7}})(?P<gap>\s+)(?=[\[^\w]))?"
"""Seven or 32 characters of the hash of a spec, or as many dashes for an unknown hash;
a name, a `^` or a `[` must follow.
"""
_TYPES = r"(?P<types>\[[blrt ]{4}\]\s+)?"
"""The types of a dependency: `[bl  ]` for build and link."""
_LEAD = re.compile(rf"\s*{_STATE}{_HASH_BEFORE}{_TYPES}")
"""The three parts before a spec, each of which may be missing."""
_BODY = re.compile(r"""(?:"[^"]*"|'[^']*'|\S|\s(?!\s))*""")
"""A text up to two blanks that are not in quotes."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""A text up to a blank that is not in quotes."""
_CONSTRAINT = re.compile(r"[@+~%^-]|[\w.-]+:?==?")
"""The beginning of a word that constrains the spec before it: `+mpi`, `os=rhel8`."""
_WITH_HASH = re.compile(r"/[a-z2-7]{7}")
"""A word that constrains the hash of the spec before it."""
_INDENTED = 5
"""Blanks between a hash and the name of a dependency, in trees of `spack find`."""
_EXTERNAL_STATE = "[e]"
_HASH_WORD = re.compile(HASH)
_WHOLE_HASH = 32
"""Characters of a whole hash; Spack prints seven otherwise."""


class Cell(NamedTuple):
    """A spec in a line that Spack printed, not parsed yet.

    Attributes:
        state: the state of its installation, such as `[+]`; empty for none.
        hash: its hash; dashes if Spack does not know it yet, empty for none.
        is_below: whether a `^` or blanks make it a dependency of a spec above.
        text: the spec, as it is printed.
    """

    state: str
    hash: str
    is_below: bool
    text: str

    def read(self, heading: str) -> PastedSpec:
        """Return the spec with the constraints of a heading.

        `heading` is a spec without a name, such as `arch=linux-debian12-zen3 %gcc@12`.
        """
        is_printed = bool(self.state or self.hash)
        text = self.text
        if is_printed:
            text = _without_what_follows(text)
        known_hash = self.hash.strip("-")
        spec = _printed_spec(text, known_hash, heading)
        return PastedSpec(
            spec,
            external=spec if self.state == _EXTERNAL_STATE else "",
            is_dependency=self.is_below,
            is_printed=is_printed,
            is_certain=bool(self.hash),
            hash=known_hash,
        )


def hashes_of(text: str, known_names: KnownNames) -> tuple[PastedSpec, ...]:
    """Return the specs of a line that has only hashes, as `--format '{hash:7}'` prints
    them.

    A word of seven letters, such as `openmpi`, is a hash only if a binary has it.
    """
    specs = []
    for word in text.split():
        if not _HASH_WORD.fullmatch(word):
            return ()
        if len(word) < _WHOLE_HASH:
            is_package = known_names.is_package(word)
            if is_package or not known_names.is_hash(word):
                return ()
        spec = PastedSpec(f"/{word}", is_printed=True, is_certain=True, hash=word)
        specs.append(spec)
    return tuple(specs)


def cells_of(
    line: str, known_names: KnownNames, *, is_output: bool = False
) -> list[Cell]:
    """Return the specs of a line, which are at least two blanks apart.

    Args:
        line: the line, with the blanks at its beginning.
        known_names: decides whether a word is a package or a hash.
        is_output: whether a heading of Spack's is above the line: there, a word of
            seven letters before a name is a hash, even if a package has this name.
    """
    cells: list[Cell] = []
    position = 0
    while True:
        column = _next_column(line, position, known_names, is_output)
        if column is None:
            return cells
        cell = column.cell
        position = column.end
        # A column without state and hash may belong to the spec before it: the folder
        # in which it is installed, or more constraints.
        follows = bool(cells) and not cell.state and not cell.hash
        if follows and _is_path(cell.text):
            cells[-1] = _with_prefix(cells[-1], cell.text, known_names)
        elif follows and _CONSTRAINT.match(cell.text):
            before = cells[-1]
            cells[-1] = before._replace(text=f"{before.text} {cell.text}")
        else:
            cells.append(cell)


class _Column(NamedTuple):
    """A column of a line, and the position behind it."""

    cell: Cell
    end: int


def _next_column(
    line: str, position: int, known_names: KnownNames, is_output: bool
) -> _Column | None:
    """Return the column that begins at a position, or behind the blanks there.

    None at the end of the line.
    """
    lead = _LEAD.match(line, position)
    if lead is None:
        return None

    # The state and the hash before the spec.
    state = lead["state"] or ""
    dag_hash = lead["hash"] or ""
    start = lead.end()
    # `- hdf5` is an item of a list, but `-   hdf5` is not installed.
    is_bullet = state == "-" and not dag_hash and len(lead["blanks"]) == 1
    if is_bullet:
        state = ""
    if dag_hash and not _is_hash(lead, line[start:], known_names, is_output):
        # The word is a name, so the spec begins with it.
        dag_hash = ""
        start = lead.start("hash")

    # The spec ends at two blanks, or with the line.
    body = _BODY.match(line, start)
    text = body[0] if body else ""
    if not text:
        return None

    # In a tree, a dependency has a `^` or more blanks before it. A `^` at the beginning
    # of a line was typed by a person.
    is_indented = bool(dag_hash) and len(lead["gap"]) >= _INDENTED
    is_edge = text.startswith("^") and start > 0
    cell = Cell(state, dag_hash, is_indented or is_edge, text)
    return _Column(cell, start + len(text))


def _is_hash(
    lead: re.Match[str], following: str, known_names: KnownNames, is_output: bool
) -> bool:
    """Return whether a word before a name is a hash, not a package such as libxml2.

    Args:
        lead: the match of `_LEAD`, which has the word.
        following: the line behind it.
        known_names: the known packages and hashes.
        is_output: whether a heading of Spack's is above the line.
    """
    # Only hashes are so long, and only they are printed before types.
    dag_hash = lead["hash"]
    if len(dag_hash) == _WHOLE_HASH or dag_hash.startswith("-") or lead["types"]:
        return True
    # `openmpi ^zlib` is a spec, but `abcdefg      ^zlib` is in a tree.
    if following.startswith("^") and len(lead["gap"]) < _INDENTED:
        return False
    has_state = lead["state"] is not None
    # `openmpi zlib@1.3` are two packages, unless a binary has the hash /openmpi.
    is_package = known_names.is_package(dag_hash) and not known_names.is_hash(dag_hash)
    if is_package and not has_state and not is_output:
        return False
    # Behind a hash, Spack prints a version; with a state, the name may be alone. In
    # `[+] openmpi api=v18`, the next word is no name.
    word = following.split()[0]
    return "@" in word or (has_state and "=" not in word)


def _is_path(text: str) -> bool:
    """Return whether a column is the prefix of the spec before it."""
    return text.startswith(("/", "~/", "$", "./", "../")) and " " not in text


def _with_prefix(cell: Cell, path: str, known_names: KnownNames) -> Cell:
    """Return a cell with the hash in its prefix, if the prefix has one."""
    # A whole hash, or else the beginning of one.
    prefix = read_prefix(path) or short_prefix(path, known_names)
    if prefix is None:
        return cell
    return cell._replace(hash=prefix.hash)


def _without_what_follows(text: str) -> str:
    """Return a spec without the prefix, progress or time that Spack prints behind it.

    These begin with the first word that does not constrain the spec: of
    `hdf5@1.14 +mpi [3/5] (12s)`, `hdf5@1.14 +mpi` is left.
    """
    words = _WORD.findall(text)
    for count, (before, word) in enumerate(pairwise(words), start=1):
        is_constraint = _CONSTRAINT.match(word) or _WITH_HASH.fullmatch(word)
        # Behind `%`, `^` and the attributes of an edge (`%[virtuals=c] gcc`), a word is
        # a name.
        is_name = before[-1] in "]%^"
        if not is_name and not is_constraint:
            return " ".join(words[:count])
    return text


def _printed_spec(text: str, dag_hash: str, heading: str) -> str:
    """Return a spec that Spack printed, with its hash and the constraints of a heading.

    A text that is not a spec is returned as it is, with the hash.
    """
    text = " ".join(text.removeprefix("^").split())
    # Before Spack 1.0, variants are printed behind the compiler, to which they would
    # belong today.
    try:
        query = parse_legacy_query(text)
        heading_query = parse_legacy_query(heading) if heading else SpecQuery()
    except QuerySyntaxError:
        return f"{text} /{dag_hash}" if dag_hash else text
    # The spec has precedence over the heading.
    whole = replace(
        query,
        os=query.os or heading_query.os,
        platform=query.platform or heading_query.platform,
        target=query.target or heading_query.target,
        dependencies=query.dependencies or heading_query.dependencies,
        variants=tuple(_whole_variant(variant) for variant in query.variants),
        hash=query.hash or dag_hash or None,
    )
    return spec_text(whole)


def _whole_variant(variant: VariantConstraint) -> VariantConstraint:
    """Return a variant as a constraint that its binary satisfies.

    Spack prints only the first characters of the checksums of patches, so they are not
    the exact value, even behind `:=`.
    """
    if variant.name != "patches":
        return variant
    if any(len(value) > PATCH_PRINTED for value in variant.values):
        return variant
    return replace(variant, exact=False)
