"""Lists of specs in a `spack.yaml`: names of lists, and matrices, as the specs they stand for.

The rules are those of Spack 1.1's `environment/list.py`: `$name` stands for the specs of a
definition, `$%name` and `$^name` for them with that sign before each; a matrix asks one of each of
its rows, and `exclude` takes out what asks at least as much as it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import yaml

from spack_cache_db.bounded_yaml import line_of
from spack_cache_db.environments.expanded import Expanded, expanded_text, too_long
from spack_cache_db.environments.records import Limits
from spack_cache_db.environments.sections import entries_of, items_of, text_of
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies

MOST_EXCLUDED = 200
"""Each spec of a matrix is held against each that it excludes."""

GROUP_KEYS = {"group", "explicit", "needs"}
"""What Spack 1.2 may say of a group of specs beside its specs; it changes none of them."""


@dataclass(frozen=True, slots=True)
class SpecItem:
    """One spec of a list, as text."""

    text: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of which each spec takes one item; `count` is how many specs that makes."""

    rows: tuple[tuple[Item, ...], ...]
    exclude: tuple[SpecItem, ...]
    line: int
    count: int


Item = SpecItem | Matrix


class SpecLists:
    """The definitions of an environment, and the reading of lists that may name them."""

    def __init__(self, limits: Limits) -> None:
        """Begin without definitions."""
        self._most = limits.specs
        self._longest = limits.length
        self._definitions: dict[str, tuple[Item, ...]] = {}
        # What was read of each mapping, None while it is read: aliases put one at many places.
        self._read: dict[int, tuple[Item, ...] | None] = {}

    def define(self, name: str, node: yaml.Node) -> None:
        """Read a definition; one of the same name goes on with the list."""
        before = self._definitions.get(name, ())
        self._definitions[name] = self._bounded((*before, *self.items(node)), line_of(node))

    def items(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return what a list stands for, matrices not yet multiplied.

        Raises:
            LineFault: it is no list of specs, names what is not defined, or is too long.
        """
        found: list[Item] = []
        for each in items_of(node, "specs"):
            found += self._item(each)
            if len(found) > self._most:
                break
        return self._bounded(tuple(found), line_of(node))

    def specs(self, items: tuple[Item, ...]) -> list[Expanded]:
        """Return the specs that items stand for.

        Raises:
            LineFault: a row of a matrix is no spec.
        """
        found: list[Expanded] = []
        for item in items:
            if isinstance(item, Matrix):
                found += self._multiplied(item)
            else:
                found.append(expanded_text(item.text, item.line, self._longest))
        return found

    def _bounded(self, items: tuple[Item, ...], line: int) -> tuple[Item, ...]:
        count = sum(item.count for item in items)
        if count > self._most:
            raise LineFault(line, f"stands for {count:,} specs, expected at most {self._most:,}")
        return items

    def _item(self, node: yaml.Node) -> tuple[Item, ...]:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        text = text_of(node, "a spec")
        if text.startswith("$"):
            return self._named(text, line_of(node))
        return (SpecItem(text, line_of(node)),)

    def _named(self, text: str, line: int) -> tuple[Item, ...]:
        sign = text[1:2] if text[1:2] in ("%", "^") else ""
        name = text[1 + len(sign) :]
        if name not in self._definitions:
            raise LineFault(line, f"{text} names a list that is not defined above it")
        items = self._definitions[name]
        if not sign:
            return items
        if any(isinstance(each, Matrix) for each in items):
            raise LineFault(
                line, f"{text} puts {sign} before a matrix: write its rows with the sign"
            )
        return tuple(
            SpecItem(sign + each.text, line) for each in items if isinstance(each, SpecItem)
        )

    def _mapping(self, node: yaml.MappingNode) -> tuple[Item, ...]:
        """Return a matrix, or the specs of a group; each is read once, wherever aliases put it."""
        key = id(node)
        if key not in self._read:
            self._read[key] = None
            self._read[key] = self._matrix_or_group(node)
        found = self._read[key]
        if found is None:
            raise LineFault(line_of(node), "this stands within itself")
        return found

    def _matrix_or_group(self, node: yaml.MappingNode) -> tuple[Item, ...]:
        entries = entries_of(node, "a spec, a matrix or a group")
        if "override" in entries:
            raise LineFault(line_of(node), "override: a group's own configuration is not read")
        unknown = entries.keys() - {"matrix", "exclude", "specs"} - GROUP_KEYS
        if unknown or ("matrix" in entries) == ("specs" in entries):
            said = f"{min(unknown)}: is not known here" if unknown else "this is no matrix"
            raise LineFault(line_of(node), f"{said}, expected matrix: and exclude:")
        if "specs" in entries:
            return self.items(entries["specs"])
        return (self._matrix(entries, line_of(node)),)

    def _matrix(self, entries: dict[str, yaml.Node], line: int) -> Matrix:
        rows = tuple(self.items(row) for row in items_of(entries["matrix"], "rows"))
        exclude = items_of(entries["exclude"], "specs") if "exclude" in entries else []
        count = prod(sum(item.count for item in row) for row in rows) if rows else 0
        if count > self._most:
            said = f"this matrix stands for {count:,} specs, expected at most {self._most:,}"
            raise LineFault(line, said)
        if len(exclude) > MOST_EXCLUDED:
            said = f"excludes {len(exclude):,} specs, expected at most {MOST_EXCLUDED}"
            raise LineFault(line, said)
        taken_out = tuple(SpecItem(text_of(each, "a spec"), line_of(each)) for each in exclude)
        return Matrix(rows, taken_out, line, count)

    def _multiplied(self, matrix: Matrix) -> list[Expanded]:
        """Return one spec for each way to take one of each row, in the order of the rows."""
        found = [Expanded("", matrix.line, SpecQuery())] if matrix.count else []
        for row in matrix.rows if matrix.count else ():
            parts = self.specs(row)
            for part in parts:
                if part.query is None:
                    raise LineFault(part.line, f"{part.text!r} {part.error}")
            found = [self._joined(each, part) for each in found for part in parts]
        excluded = [self._excluding(each) for each in matrix.exclude]
        return [
            each
            for each in found
            if each.query is None or not any(implies(each.query, out) for out in excluded)
        ]

    def _excluding(self, item: SpecItem) -> SpecQuery:
        found = expanded_text(item.text, item.line, self._longest)
        if found.query is None:
            raise LineFault(item.line, f"{item.text!r} {found.error}")
        return found.query

    def _joined(self, first: Expanded, second: Expanded) -> Expanded:
        """Return what two rows ask together, or that they exclude each other."""
        if first.query is None or second.query is None:
            return first
        try:
            query = constrained(first.query, second.query)
        except UnsatisfiableSpec as error:
            text = f"{first.query.text} {second.text}".strip()
            return Expanded(text, first.line, None, str(error))
        if len(query.text) > self._longest:
            said = too_long(len(query.text), self._longest)
            return Expanded(f"{query.text[:40]}…", first.line, None, said)
        return Expanded(query.text, first.line, query)
