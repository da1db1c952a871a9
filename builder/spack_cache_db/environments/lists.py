"""Expands the lists of a `spack.yaml` into specs, with references and matrices.

    definitions:
    - compilers: [gcc, nvhpc]
    specs:
    - cmake
    - matrix:
      - [hdf5, zlib]
      - [$%compilers]
      exclude: [zlib %nvhpc]

stands for `cmake`, `hdf5 %gcc`, `hdf5 %nvhpc` and `zlib %gcc`. The reference `$name` is
replaced by the specs of a definition, `$%name` and `$^name` by the same with a sign
before each. A matrix combines one item of each row, without combinations that imply a
spec of `exclude`. The rules are those of Spack 1.1's `environment/list.py`.

A list is read in two steps, because a sign before a reference to a matrix counts for
all uses of this matrix, also earlier ones: `SpecLists.items` reads a list, and when all
lists are read, `SpecLists.specs` combines the rows of its matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    items_at,
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
"""Maximum of specs in all lists, as a multiple of the limit of the environment: each
list may refer to all lists before it.
"""

MOST_ROWS = 100
"""Maximum of rows of a matrix."""
MOST_EXCLUDED = 200
"""Maximum of specs that a matrix may exclude."""
_LONGEST_SHOWN = 40
"""Number of characters that are shown of a spec that is too long."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix: each of its specs combines one item of each row.

    Attributes:
        rows: the items of each row; an item may be a matrix of a definition.
        exclude: specs whose combinations are left out.
        line: its line, counted from 1.
        count: the number of combinations before exclusion; never 0.
        signs: the signs `%` or `^` of references to it, in their order. The last one is
            put before the first item in every use of the matrix, as in Spack 1.2.
    """

    rows: tuple[tuple[Item, ...], ...]
    exclude: tuple[UserSpec, ...]
    line: int
    count: int
    signs: list[str] = field(default_factory=list)


Item = UserSpec | Matrix
"""An item of a list. The queries of its specs are not parsed yet."""


class _Combination(NamedTuple):
    """The chosen items of a matrix, one of each row, and the spec that they make."""

    chosen: tuple[UserSpec, ...]
    spec: UserSpec


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
        self._most_specs = limits.specs
        self._longest_spec = limits.length
        # All items so far, those of references included.
        self._item_count = 0
        self._definitions: dict[str, tuple[Item, ...]] = {}
        # The result of each mapping by the identity of its node: with a YAML alias
        # (`*name`), a matrix that is written once has several uses.
        self._matrix_of_node: dict[int, tuple[Item, ...]] = {}

    def define(self, name: str, parts: Iterable[yaml.Node]) -> None:
        """Read all lists of a name, which may refer to earlier names.

        Raises:
            LineFault: a list cannot be read; the name then has no items.
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
        limit = MOST_REPEATED * self._most_specs
        for item_node in items_of(node, "specs"):
            if self._item_count > limit:
                message = f"its lists repeat more than {limit:,} specs: write fewer"
                raise fault_at(item_node, message)
            read_items = self._items_of_entry(item_node)
            self._item_count += len(read_items)
            items += read_items
            # One too many is enough for the fault below.
            if len(items) > self._most_specs:
                break
        self._require_few(items, line_of(node))
        return tuple(items)

    def specs(self, items: tuple[Item, ...]) -> list[UserSpec]:
        """Return the specs of items; `LineFault` if a row of a matrix is not a spec.

        Other texts that are not specs become specs with an error.
        """
        specs: list[UserSpec] = []
        for item in items:
            if isinstance(item, Matrix):
                for combination in self._combinations(item):
                    specs.append(self._expanded(combination.spec))
            else:
                specs.append(self._expanded(self._read(item)))
        return specs

    def _require_few(self, items: Iterable[Item], line: int) -> None:
        # A spec counts as one, a matrix as its combinations.
        count = sum(item.count for item in items)
        if count > self._most_specs:
            message = (
                f"stands for {count:,} specs, expected at most {self._most_specs:,}"
            )
            raise LineFault(line, message)

    def _items_of_entry(self, node: yaml.Node) -> tuple[Item, ...]:
        """Return what an entry of a list stands for: a matrix, a reference or a
        spec.
        """
        if isinstance(node, yaml.MappingNode):
            if id(node) not in self._matrix_of_node:
                self._matrix_of_node[id(node)] = self._matrix(node)
            return self._matrix_of_node[id(node)]
        text = text_of(node, "a spec").strip()
        if text.startswith("$"):
            return self._referenced(text, line_of(node))
        return (UserSpec(text, line_of(node)),)

    def _matrix(self, node: yaml.MappingNode) -> tuple[Item, ...]:
        """Return a matrix as the only item; no item if one of its rows is empty.

        If an item of a row is defined in a missing file, the item takes the place of
        the matrix.
        """
        entries = _entries_of_matrix(node)
        line = line_of(node)

        # The rows, in which references to matrices are allowed.
        row_nodes = items_of(entries["matrix"], "rows")
        if len(row_nodes) > MOST_ROWS:
            message = (
                f"this matrix has {len(row_nodes):,} rows, expected at most {MOST_ROWS}"
            )
            raise LineFault(line, message)
        for row_node in row_nodes:
            _refuse_inner_matrix(row_node)
        rows = tuple(self.items(row_node) for row_node in row_nodes)

        # The specs that it excludes.
        exclude_nodes = items_at(entries, "exclude", "specs")
        if len(exclude_nodes) > MOST_EXCLUDED:
            message = f"excludes {len(exclude_nodes):,} specs, expected at most {MOST_EXCLUDED}"
            raise LineFault(line, message)
        excluded = tuple(
            UserSpec(text_of(exclude_node, "a spec"), line_of(exclude_node))
            for exclude_node in exclude_nodes
        )

        # Its size, which must be known before the rows are combined.
        count = _combination_count(rows)
        if count > self._most_specs:
            stands = f"this matrix stands for {count:,} specs"
            raise LineFault(line, f"{stands}, expected at most {self._most_specs:,}")
        for row in rows:
            for item in row:
                if isinstance(item, UserSpec) and item.error is not None:
                    return (replace(item, line=line),)
        if count == 0:
            return ()
        return (Matrix(rows, excluded, line, count),)

    def _referenced(self, text: str, line: int) -> tuple[Item, ...]:
        """Return the items of a reference: `$name`, `$%name` or `$^name`."""
        name = text[1:]
        sign = ""
        if name.startswith(("%", "^")):
            sign = name[0]
            name = name[1:]
        if name not in self._definitions:
            if self._is_whole:
                raise LineFault(
                    line, f"{text} names a list that is not defined above it"
                )
            return (UserSpec(text, line, error=f"{text} is defined in a missing file"),)
        if not sign:
            return self._definitions[name]

        # A matrix remembers the sign until it is combined.
        items: list[Item] = []
        for item in self._definitions[name]:
            if isinstance(item, Matrix):
                item.signs.append(sign)
                items.append(item)
            else:
                items.append(UserSpec(sign + item.text, line, error=item.error))
        return tuple(items)

    def _combinations(self, matrix: Matrix) -> list[_Combination]:
        """Return all combinations of one item of each row, in the order of the rows."""
        # Extend each combination of the rows before by each item of a row.
        nothing_chosen = UserSpec("", matrix.line, SpecQuery())
        combinations = [_Combination((), nothing_chosen)]
        for row in matrix.rows:
            items = self._items_of_row(row)
            longer = []
            for chosen, spec in combinations:
                for item in items:
                    both = self._combined(spec, item)
                    longer.append(_Combination((*chosen, item), both))
            combinations = longer

        # Leave out those that imply a spec of `exclude`.
        excluded = [_query_of(self._read(spec)) for spec in matrix.exclude]
        combinations = [
            combination
            for combination in combinations
            if not _implies_any(combination.spec, excluded)
        ]

        # Put the sign of a reference such as `$%name` before each.
        if not matrix.signs:
            return combinations
        sign = matrix.signs[-1]
        return [
            self._signed(combination.chosen, sign, matrix.line)
            for combination in combinations
        ]

    def _items_of_row(self, items: tuple[Item, ...]) -> list[UserSpec]:
        """Return the items of a row as specs.

        A combination of an inner matrix, such as `%gcc` and `+pic`, is one item: the
        text `%gcc +pic`, in which `+pic` belongs to gcc.
        """
        specs: list[UserSpec] = []
        for item in items:
            if isinstance(item, Matrix):
                for combination in self._combinations(item):
                    texts = [spec_text(_query_of(spec)) for spec in combination.chosen]
                    specs.append(self._read(UserSpec(" ".join(texts), item.line)))
            else:
                specs.append(self._read(item))
        # Each must be a spec, because a matrix is combined as a whole or not at all.
        for spec in specs:
            _query_of(spec)
        return specs

    def _signed(
        self, chosen: tuple[UserSpec, ...], sign: str, line: int
    ) -> _Combination:
        """Return a combination with a sign before its first item."""
        text = sign + spec_text(_query_of(chosen[0]))
        signed = self._read(UserSpec(text, line))
        spec = UserSpec(signed.text, line, _query_of(signed))
        others = chosen[1:]
        for item in others:
            spec = self._combined(spec, item)
        return _Combination((signed, *others), spec)

    def _combined(self, first: UserSpec, second: UserSpec) -> UserSpec:
        """Return two specs as one, or with the error that they exclude each other.

        A spec with an error stays as it is; only the first may have one.
        """
        if first.query is None or second.query is None:
            return first
        try:
            query = constrained(first.query, second.query)
        except UnsatisfiableSpec as error:
            text = f"{first.query.text} {second.text}".strip()
            return UserSpec(text, first.line, error=str(error))
        if len(query.text) > self._longest_spec:
            message = too_long(len(query.text), self._longest_spec)
            start = query.text[:_LONGEST_SHOWN]
            return UserSpec(f"{start}…", first.line, error=message)
        return UserSpec(query.text, first.line, query)

    def _read(self, item: UserSpec) -> UserSpec:
        """Return an item with its query or error."""
        if item.error is not None:
            return item
        return read_spec(item.text, item.line, self._longest_spec, self._parse)

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


def _entries_of_matrix(node: yaml.MappingNode) -> Mapping[str, yaml.Node]:
    """Return the values of `matrix` and perhaps `exclude`; raises `LineFault`."""
    entries = entries_of(node, "a spec or a matrix")
    unknown = entries.keys() - KEYS_OF_A_MATRIX
    if unknown:
        # The mapping may be a spec with a colon, such as `- hdf5@1.14: +mpi`.
        advice = quoting_advice(node)
        message = unknown_key_message(min(unknown), KEYS_OF_A_MATRIX)
        raise fault_at(node, advice or message)
    if "matrix" not in entries:
        raise fault_at(node, "this is not a matrix, expected matrix: and exclude:")
    return entries


def _refuse_inner_matrix(row: yaml.Node) -> None:
    """Raise `LineFault` if a matrix is written in a row, as in Spack's
    `schema/spec_list.py`.

    A reference to a list with a matrix, such as `$compilers`, is allowed.
    """
    for item in items_of(row, "specs"):
        if not isinstance(item, yaml.MappingNode):
            continue
        if "matrix" in entries_of(item, "a spec"):
            problem = "this row of a matrix has a matrix"
            advice = "write the inner one below definitions:, and its name as $name in the row"
            raise fault_at(item, f"{problem}: {advice}")


def _combination_count(rows: Sequence[Sequence[Item]]) -> int:
    """Return in how many ways one item of each row can be chosen; 0 without rows."""
    if not rows:
        return 0
    count = 1
    for row in rows:
        count *= sum(item.count for item in row)
    return count


def _implies_any(spec: UserSpec, queries: Iterable[SpecQuery]) -> bool:
    """Return whether a spec implies one of some queries; False if it has an error."""
    if spec.query is None:
        return False
    return any(implies(spec.query, query) for query in queries)


def _query_of(spec: UserSpec) -> SpecQuery:
    """Return the query of a spec; raises `LineFault` if the text is not a spec."""
    if spec.query is None:
        raise LineFault(spec.line, f"{spec.text!r} {spec.error}")
    return spec.query
