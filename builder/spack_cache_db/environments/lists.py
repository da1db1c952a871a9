"""Expands the lists of a `spack.yaml`, with references to definitions and matrices,
into specs.

The rules are those of Spack 1.1's `environment/list.py`. `$name` is replaced by the
specs of a definition, `$%name` and `$^name` by the same with a sign before each. A
matrix combines one item of each row, without combinations that imply a spec of
`exclude`.
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
from spack_cache_db.environments.key_check import unknown_key_message
from spack_cache_db.environments.known_keys import KEYS_OF_A_MATRIX
from spack_cache_db.environments.model import Limits, UserSpec
from spack_cache_db.environments.user_specs import read_spec, too_long
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

MOST_REPEATED = 20
"""Maximum of specs in all lists, as a multiple of the limit of the environment."""

MOST_ROWS = 100
MOST_EXCLUDED = 200
"""Maximum of specs that a matrix may exclude."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix: each of its specs combines one item of each row.

    Attributes:
        exclude: specs whose combinations are left out.
        count: the number of combinations before exclusion; never 0.
        signs: the signs `%` or `^` of references. The last one is put before the first
            item in every use of the matrix, as in Spack 1.2.
    """

    rows: tuple[tuple[Item, ...], ...]
    exclude: tuple[UserSpec, ...]
    line: int
    count: int
    signs: list[str] = field(default_factory=list)


Item = UserSpec | Matrix
_Combination = tuple[tuple[UserSpec, ...], UserSpec]
"""The chosen items of a matrix, one of each row, and their combination."""


class SpecLists:
    """Reads definitions, and lists that refer to them."""

    def __init__(
        self,
        limits: Limits,
        parse: Parser = parse_query,
        expand: Callable[[SpecQuery], SpecQuery] = lambda query: query,
        *,
        is_whole: bool = True,
    ) -> None:
        """Start without definitions.

        Args:
            limits: the limits of the environment.
            parse: reads a spec.
            expand: replaces the names of toolchains in a complete spec.
            is_whole: whether no include is missing, which could define other lists.
        """
        self._is_whole = is_whole
        self._expand = expand
        self._parse = parse
        self._most = limits.specs
        self._longest = limits.length
        self._count = 0
        self._definitions: dict[str, tuple[Item, ...]] = {}
        # The result for each mapping node, which aliases repeat.
        self._read: dict[int, tuple[Item, ...]] = {}

    def define(self, name: str, parts: Iterable[yaml.Node]) -> None:
        """Read all lists of one name, which may refer to earlier names; empty after a
        fault.
        """
        items: list[Item] = []
        try:
            for part in parts:
                items += self.items(part)
                self._require_few(items, line_of(part))
        except LineFault:
            self._definitions[name] = ()
            raise
        self._definitions[name] = tuple(items)

    def items(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return the items of a list with references replaced, and matrices not yet
        combined.

        Raises:
            LineFault: it is not a list of specs, has an undefined name, or is too long.
        """
        items: list[Item] = []
        limit = MOST_REPEATED * self._most
        for item in items_of(node, "specs"):
            if self._count > limit:
                raise fault_at(
                    item, f"its lists repeat more than {limit:,} specs: write fewer"
                )
            more = self._item(item)
            self._count += len(more)
            items += more
            if len(items) > self._most:
                break
        self._require_few(items, line_of(node))
        return tuple(items)

    def specs(self, items: tuple[Item, ...]) -> list[UserSpec]:
        """Return the specs of items; `LineFault` if a row of a matrix is not a spec."""
        specs: list[UserSpec] = []
        for item in items:
            if isinstance(item, Matrix):
                specs += [self._expanded(spec) for _, spec in self._combinations(item)]
            else:
                specs.append(self._expanded(self._spec(item)))
        return specs

    def _expanded(self, spec: UserSpec) -> UserSpec:
        """Return a spec with its toolchains, or with the error that they contradict
        it.
        """
        if spec.query is None:
            return spec
        try:
            return replace(spec, query=self._expand(spec.query))
        except UnsatisfiableSpec as error:
            return UserSpec(spec.text, spec.line, error=str(error))

    def _require_few(self, items: Iterable[Item], line: int) -> None:
        count = sum(item.count for item in items)
        if count > self._most:
            raise LineFault(
                line, f"stands for {count:,} specs, expected at most {self._most:,}"
            )

    def _spec(self, item: UserSpec) -> UserSpec:
        """Return an item with its query or error."""
        if item.error is not None:
            return item
        return read_spec(item.text, item.line, self._longest, self._parse)

    def _item(self, node: yaml.Node) -> tuple[Item, ...]:
        if isinstance(node, yaml.MappingNode):
            if id(node) not in self._read:
                self._read[id(node)] = self._matrix(node)
            return self._read[id(node)]
        text = text_of(node, "a spec").strip()
        if text.startswith("$"):
            return self._reference(text, line_of(node))
        return (UserSpec(text, line_of(node)),)

    def _reference(self, text: str, line: int) -> tuple[Item, ...]:
        sign = text[1:2] if text[1:2] in ("%", "^") else ""
        name = text[1 + len(sign) :]
        if name not in self._definitions and not self._is_whole:
            return (UserSpec(text, line, error=f"{text} is defined in a missing file"),)
        if name not in self._definitions:
            raise LineFault(line, f"{text} names a list that is not defined above it")
        items: list[Item] = []
        for item in self._definitions[name]:
            if isinstance(item, Matrix):
                item.signs.extend([sign] if sign else [])
            elif sign:
                item = UserSpec(sign + item.text, line, error=item.error)
            items.append(item)
        return tuple(items)

    def _matrix(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return a matrix, empty if one of its rows is."""
        entries, line = entries_of(node, "a spec or a matrix"), line_of(node)
        unknown = entries.keys() - KEYS_OF_A_MATRIX
        if unknown:
            advice = quoting_advice(node)
            message = unknown_key_message(min(unknown), KEYS_OF_A_MATRIX)
            raise fault_at(node, advice or message)
        if "matrix" not in entries:
            raise fault_at(node, "this is not a matrix, expected matrix: and exclude:")
        row_nodes = items_of(entries["matrix"], "rows")
        if len(row_nodes) > MOST_ROWS:
            message = (
                f"this matrix has {len(row_nodes):,} rows, expected at most {MOST_ROWS}"
            )
            raise LineFault(line, message)
        for row in row_nodes:
            _refuse_inner_matrix(row)
        rows = tuple(self.items(row) for row in row_nodes)
        exclude = items_of(entries["exclude"], "specs") if "exclude" in entries else []
        if len(exclude) > MOST_EXCLUDED:
            message = (
                f"excludes {len(exclude):,} specs, expected at most {MOST_EXCLUDED}"
            )
            raise LineFault(line, message)
        excluded = tuple(
            UserSpec(text_of(item, "a spec"), line_of(item)) for item in exclude
        )
        count = prod(sum(item.count for item in row) for row in rows) if rows else 0
        if count > self._most:
            message = f"this matrix stands for {count:,} specs, expected at most {self._most:,}"
            raise LineFault(line, message)
        for item in chain.from_iterable(rows):
            if isinstance(item, UserSpec) and item.error is not None:
                return (replace(item, line=line),)
        return (Matrix(rows, excluded, line, count),) if count else ()

    def _combinations(self, matrix: Matrix) -> list[_Combination]:
        """Return all combinations of one item of each row, in the order of the rows."""
        combinations: list[_Combination] = [
            ((), UserSpec("", matrix.line, SpecQuery()))
        ]
        for row in matrix.rows:
            items = self._row(row)
            combinations = [
                ((*chosen, item), self._both(spec, item))
                for chosen, spec in combinations
                for item in items
            ]
        excluded = [_required(self._spec(spec)) for spec in matrix.exclude]
        if excluded:
            combinations = [
                (chosen, spec)
                for chosen, spec in combinations
                if spec.query is None
                or not any(implies(spec.query, query) for query in excluded)
            ]
        if matrix.signs:
            combinations = [self._signed(chosen, matrix) for chosen, _ in combinations]
        return combinations

    def _row(self, items: tuple[Item, ...]) -> list[UserSpec]:
        """Return the items of a row as specs, and combinations of inner matrices as one
        each.
        """
        specs: list[UserSpec] = []
        for item in items:
            if isinstance(item, Matrix):
                for chosen, _ in self._combinations(item):
                    text = " ".join(spec_text(_required(spec)) for spec in chosen)
                    specs.append(self._spec(UserSpec(text, item.line)))
            else:
                specs.append(self._spec(item))
        for spec in specs:
            _required(spec)
        return specs

    def _signed(self, chosen: tuple[UserSpec, ...], matrix: Matrix) -> _Combination:
        """Return a combination with the matrix's sign before its first item."""
        text = matrix.signs[-1] + spec_text(_required(chosen[0]))
        first = self._spec(UserSpec(text, matrix.line))
        joined = UserSpec(first.text, matrix.line, _required(first))
        for item in chosen[1:]:
            joined = self._both(joined, item)
        return (first, *chosen[1:]), joined

    def _both(self, first: UserSpec, second: UserSpec) -> UserSpec:
        """Return two specs combined, or with the error that they exclude each other."""
        if first.query is None or second.query is None:
            return first
        try:
            query = constrained(first.query, second.query)
        except UnsatisfiableSpec as error:
            text = f"{first.query.text} {second.text}".strip()
            return UserSpec(text, first.line, error=str(error))
        if len(query.text) > self._longest:
            message = too_long(len(query.text), self._longest)
            return UserSpec(f"{query.text[:40]}…", first.line, error=message)
        return UserSpec(query.text, first.line, query)


def _required(spec: UserSpec) -> SpecQuery:
    if spec.query is None:
        raise LineFault(spec.line, f"{spec.text!r} {spec.error}")
    return spec.query


def _refuse_inner_matrix(row: yaml.Node) -> None:
    """Raise `LineFault` if a row has a matrix, which Spack's `schema/spec_list.py`
    refuses.

    A reference such as `$compilers` to a list with a matrix is allowed.
    """
    for item in items_of(row, "specs"):
        if isinstance(item, yaml.MappingNode) and "matrix" in entries_of(
            item, "a spec"
        ):
            problem = "this row of a matrix has a matrix"
            advice = "write the inner one below definitions:, and its name as $name in the row"
            raise fault_at(item, f"{problem}: {advice}")
