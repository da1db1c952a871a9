"""Lists of specs in a `spack.yaml`: references to definitions, and matrices, as specs.

The rules are those of Spack 1.1's `environment/list.py`. `$name` stands for the specs of a
definition, `$%name` and `$^name` for the same with a sign before each. A matrix asks for one
item of each of its rows, and `exclude` takes out what implies what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    items_of,
    line_of,
    quoting_advice,
    text_of,
)
from spack_cache_db.environments import Limits, SpecLine, read_spec, too_long
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.parser import Parser, parse_query

MOST_REPEATED = 20
"""How often all lists together may name as many specs as an environment may ask for."""

MOST_ROWS = 100
MOST_EXCLUDED = 200
"""Specs that a matrix may exclude."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of which each spec takes one item.

    Attributes:
        rows: the items of each row.
        exclude: what is taken out.
        line: where the matrix begins.
        count: how many specs it makes before some are taken out; never 0.
        signs: the sign `%` or `^` that is put before the first item of each spec, at its end. As
            in Spack 1.2, the last one counts, for every use of the matrix.
    """

    rows: tuple[tuple[Item, ...], ...]
    exclude: tuple[SpecLine, ...]
    line: int
    count: int
    signs: list[str] = field(default_factory=list)


Item = SpecLine | Matrix
_Combination = tuple[tuple[SpecLine, ...], SpecLine]
"""The items of a matrix that are taken together, and the spec that they make."""


class SpecLists:
    """The definitions of an environment, and the reading of lists that refer to them."""

    def __init__(
        self,
        limits: Limits,
        parse: Parser = parse_query,
        expand: Callable[[SpecQuery], SpecQuery] = lambda query: query,
        *,
        is_whole: bool = True,
    ) -> None:
        """Begin without definitions.

        Args:
            limits: how much the lists may ask for.
            parse: reads a spec.
            expand: puts toolchains in the place of their names, in specs that are complete.
            is_whole: whether no include that is missing may define other lists.
        """
        self._is_whole = is_whole
        self._expand = expand
        self._parse = parse
        self._most = limits.specs
        self._longest = limits.length
        self._count = 0
        self._definitions: dict[str, tuple[Item, ...]] = {}
        # What was read of each mapping, None while it is read: aliases put one at many places.
        self._read: dict[int, tuple[Item, ...] | None] = {}

    def define(self, name: str, parts: Iterable[yaml.Node]) -> None:
        """Read a definition: all lists of one name, which may refer to those read before.

        Raises:
            LineFault: as `items` does; the definition is empty then.
        """
        items: list[Item] = []
        try:
            for part in parts:
                items += self.items(part)
                self._require_few(items, line_of(part))
        except LineFault:
            items = []
            raise
        finally:
            self._definitions[name] = tuple(items)

    def items(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return what a list stands for, its matrices not yet multiplied.

        Raises:
            LineFault: it is no list of specs, names what is not defined, or is too long.
        """
        found: list[Item] = []
        most = MOST_REPEATED * self._most
        for each in items_of(node, "specs"):
            if self._count > most:
                raise fault_at(each, f"its lists repeat more than {most:,} specs: write fewer")
            more = self._item(each)
            self._count += len(more)
            found += more
            if len(found) > self._most:
                break
        self._require_few(found, line_of(node))
        return tuple(found)

    def specs(self, items: tuple[Item, ...]) -> list[SpecLine]:
        """Return the specs that items stand for.

        Raises:
            LineFault: a row of a matrix is no spec.
        """
        found: list[SpecLine] = []
        for item in items:
            if isinstance(item, Matrix):
                found += [self._expanded(spec) for _, spec in self._combinations(item)]
            else:
                found.append(self._expanded(self._spec(item)))
        return found

    def _expanded(self, spec: SpecLine) -> SpecLine:
        """Return a spec with its toolchains, or that they contradict it."""
        if spec.query is None:
            return spec
        try:
            return replace(spec, query=self._expand(spec.query))
        except UnsatisfiableSpec as error:
            return SpecLine(spec.text, spec.line, error=str(error))

    def _require_few(self, items: Iterable[Item], line: int) -> None:
        count = sum(item.count for item in items)
        if count > self._most:
            raise LineFault(line, f"stands for {count:,} specs, expected at most {self._most:,}")

    def _spec(self, item: SpecLine) -> SpecLine:
        """Return an item with what it asks, or why it is no spec."""
        if item.error is not None:
            return item
        return read_spec(item.text, item.line, self._longest, self._parse)

    def _item(self, node: yaml.Node) -> tuple[Item, ...]:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        text = text_of(node, "a spec").strip()
        if text.startswith("$"):
            return self._reference(text, line_of(node))
        return (SpecLine(text, line_of(node)),)

    def _reference(self, text: str, line: int) -> tuple[Item, ...]:
        sign = text[1:2] if text[1:2] in ("%", "^") else ""
        name = text[1 + len(sign) :]
        if name not in self._definitions and not self._is_whole:
            return (SpecLine(text, line, error=f"{text} is defined in a file that is not here"),)
        if name not in self._definitions:
            raise LineFault(line, f"{text} names a list that is not defined above it")
        items = self._definitions[name]
        if not sign:
            return items
        for each in items:
            if isinstance(each, Matrix):
                each.signs.append(sign)
        return tuple(
            each if isinstance(each, Matrix) else SpecLine(sign + each.text, line, error=each.error)
            for each in items
        )

    def _mapping(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return a matrix; each is read once, wherever aliases put it."""
        key = id(node)
        if key not in self._read:
            self._read[key] = None
            self._read[key] = self._matrix(node)
        found = self._read[key]
        if found is None:
            raise fault_at(node, "this stands within itself")
        return found

    def _matrix(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return a matrix; none where one of its rows is empty."""
        entries, line = entries_of(node, "a spec or a matrix"), line_of(node)
        unknown = entries.keys() - {"matrix", "exclude"}
        if unknown or "matrix" not in entries:
            said = f"{min(unknown)}: is not known here" if unknown else "this is not a matrix"
            said = f"{said}, expected matrix: and exclude:"
            raise LineFault(line, (quoting_advice(node) if unknown else "") or said)
        row_nodes = items_of(entries["matrix"], "rows")
        if len(row_nodes) > MOST_ROWS:
            said = f"this matrix has {len(row_nodes):,} rows, expected at most {MOST_ROWS}"
            raise LineFault(line, said)
        rows = tuple(self.items(row) for row in row_nodes)
        exclude = items_of(entries["exclude"], "specs") if "exclude" in entries else []
        if len(exclude) > MOST_EXCLUDED:
            said = f"excludes {len(exclude):,} specs, expected at most {MOST_EXCLUDED}"
            raise LineFault(line, said)
        excluded = tuple(SpecLine(text_of(each, "a spec"), line_of(each)) for each in exclude)
        count = prod(sum(item.count for item in row) for row in rows) if rows else 0
        if count > self._most:
            said = f"this matrix stands for {count:,} specs, expected at most {self._most:,}"
            raise LineFault(line, said)
        for each in chain.from_iterable(rows):
            if isinstance(each, SpecLine) and each.error is not None:
                return (replace(each, line=line),)
        return (Matrix(rows, excluded, line, count),) if count else ()

    def _combinations(self, matrix: Matrix) -> list[_Combination]:
        """Return each way to take one item of each row, in the order of the rows."""
        found: list[_Combination] = [((), SpecLine("", matrix.line, SpecQuery()))]
        for row in matrix.rows:
            items = self._row(row)
            found = [
                ((*taken, item), self._both(spec, item)) for taken, spec in found for item in items
            ]
        excluded = [self._required(self._spec(each)) for each in matrix.exclude]
        if excluded:
            found = [each for each in found if not self._is_excluded(each[1], excluded)]
        if matrix.signs:
            found = [self._signed(taken, matrix) for taken, _ in found]
        return found

    def _row(self, items: tuple[Item, ...]) -> list[SpecLine]:
        """Return the items of a row as specs; those of a matrix in it are one text each.

        Raises:
            LineFault: one of them is no spec.
        """
        found: list[SpecLine] = []
        for item in items:
            if isinstance(item, Matrix):
                for taken, _ in self._combinations(item):
                    text = " ".join(spec_text(self._required(each)) for each in taken)
                    found.append(self._spec(SpecLine(text, item.line)))
            else:
                found.append(self._spec(item))
        for each in found:
            self._required(each)
        return found

    def _required(self, spec: SpecLine) -> SpecQuery:
        if spec.query is None:
            raise LineFault(spec.line, f"{spec.text!r} {spec.error}")
        return spec.query

    def _signed(self, taken: tuple[SpecLine, ...], matrix: Matrix) -> _Combination:
        """Return a combination with the matrix's sign before its first item."""
        text = matrix.signs[-1] + spec_text(self._required(taken[0]))
        first = self._spec(SpecLine(text, matrix.line))
        joined = SpecLine(first.text, matrix.line, self._required(first))
        for each in taken[1:]:
            joined = self._both(joined, each)
        return (first, *taken[1:]), joined

    def _both(self, first: SpecLine, second: SpecLine) -> SpecLine:
        """Return what two specs ask together, or that they exclude each other."""
        if first.query is None or second.query is None:
            return first
        try:
            query = constrained(first.query, second.query)
        except UnsatisfiableSpec as error:
            text = f"{first.query.text} {second.text}".strip()
            return SpecLine(text, first.line, error=str(error))
        if len(query.text) > self._longest:
            said = too_long(len(query.text), self._longest)
            return SpecLine(f"{query.text[:40]}…", first.line, error=said)
        return SpecLine(query.text, first.line, query)

    def _is_excluded(self, spec: SpecLine, excluded: list[SpecQuery]) -> bool:
        if spec.query is None:
            return False
        return any(implies(spec.query, each) for each in excluded)
