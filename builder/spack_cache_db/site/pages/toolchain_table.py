"""An environment by toolchain: which of its specs have a binary with each one.

Binaries that Spack takes one by one may mix compilers. The page of an environment shows
the toolchains as columns, and installs the binaries of the chosen column alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from spack_cache_db.errors import counted
from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.answers.toolchains import Toolchain, ToolchainCount
from spack_cache_db.site.filters import Pairs

MOST_COLUMNS = 6
"""Limit of the toolchains that the page compares."""
MIXED = "any"
"""The value of the field `toolchain` that mixes them, as Spack does."""
MOST_OTHERS = 2
"""Limit of the compilers that a note names."""


@dataclass(frozen=True, slots=True)
class ToolchainColumn:
    """A toolchain, and the page on which it is chosen.

    Attributes:
        compiler: its compiler for people, such as `gcc 13.2.0`.
        os: its operating system.
        target: its target.
        binary: how many specs have a binary with it.
        address: the address of the page, without the site's base.
        is_chosen: whether it is the chosen one.
    """

    compiler: str
    os: str
    target: str
    binary: int
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ToolchainRow:
    """A spec, and whether it has a binary with each toolchain.

    Attributes:
        spec: the answer for the chosen toolchain.
        version: the version of its binary; empty without one.
        cells: whether it has a binary with the toolchain of each column.
        note: where it has a binary instead, or that it has none; empty if it has one.
    """

    spec: CoveredSpec
    version: str
    cells: tuple[bool, ...]
    note: str

    @property
    def is_elsewhere(self) -> bool:
        """Whether only other toolchains have a binary."""
        return bool(self.note) and bool(self.spec.toolchains)


@dataclass(frozen=True, slots=True)
class ToolchainTable:
    """An environment by toolchain.

    Attributes:
        columns: the toolchains, those of most specs first.
        rows: the specs, in the order of the environment.
        more: how many toolchains are not shown.
        total: the number of specs.
        mixed: the address on which Spack mixes toolchains; empty if that has no more
            binaries than the chosen one.
        mixed_count: how many specs have a binary then.
    """

    columns: tuple[ToolchainColumn, ...]
    rows: tuple[ToolchainRow, ...]
    more: int
    total: int
    mixed: str
    mixed_count: int

    def heading(self, share: str) -> str:
        """Return how many specs have a binary: with the chosen compiler, if others have
        more, or `share`.
        """
        if not self.mixed or self.chosen is None:
            return share
        specs = counted(self.total, "spec")
        is_singular = self.chosen.binary == 1 or self.total == 1
        have = "has" if is_singular else "have"
        number = f"{self.chosen.binary:,} of {specs}"
        return f"{number} {have} a binary with {self.chosen.compiler}"

    @property
    def chosen(self) -> ToolchainColumn | None:
        """The chosen column; None if the chosen toolchain is not shown."""
        return next((column for column in self.columns if column.is_chosen), None)


def chosen_toolchain(answer: Cover, field: str | None) -> Toolchain | None:
    """Return the toolchain whose binaries are installed: the one of a field of the
    address, or that of most specs; None if toolchains are mixed, or there are none.
    """
    # Installed specs are loaded as they are, and a lockfile names its binaries.
    if field == MIXED or answer.is_lock or answer.is_of_trees:
        return None
    counts = answer.toolchains
    if not counts:
        return None
    asked = Toolchain.parse(field or "")
    known = [count.toolchain for count in counts]
    return asked if asked in known else known[0]


def toolchain_table(
    answer: Cover, within: Cover, chosen: Toolchain, fields: Pairs
) -> ToolchainTable:
    """Return an environment by toolchain.

    Args:
        answer: the answer for all binaries.
        within: the answer for those of the chosen toolchain.
        chosen: this toolchain.
        fields: the fields of the page's address, without the toolchain.
    """
    # The chosen one is shown even if others have more specs.
    counts = answer.toolchains
    shown = list(counts[:MOST_COLUMNS])
    if chosen not in [count.toolchain for count in shown]:
        shown[-1] = next(count for count in counts if count.toolchain == chosen)
    columns = []
    for count in shown:
        # Of the chosen one, it is known which binaries Spack takes.
        if count.toolchain == chosen:
            count = count._replace(binary=within.available)
        columns.append(_column(count, chosen, fields))

    rows = []
    for spec, spec_within in zip(answer.specs, within.specs, strict=True):
        if spec.status == "external":
            continue
        cells = []
        for count in shown:
            toolchain = count.toolchain
            has = any(toolchain.takes(other) for other in spec.toolchains)
            cells.append(spec_within.is_met if toolchain == chosen else has)
        configuration = spec_within.configuration if spec_within.is_met else None
        row = ToolchainRow(
            spec=spec,
            version="" if configuration is None else configuration.version,
            cells=tuple(cells),
            note="" if spec_within.is_met else _note(spec, chosen),
        )
        rows.append(row)

    has_more = answer.available > within.available
    return ToolchainTable(
        columns=tuple(columns),
        rows=tuple(rows),
        more=len(counts) - len(shown),
        total=answer.total,
        mixed=_address(fields, MIXED) if has_more else "",
        mixed_count=answer.available,
    )


def _column(count: ToolchainCount, chosen: Toolchain, fields: Pairs) -> ToolchainColumn:
    toolchain = count.toolchain
    return ToolchainColumn(
        compiler=spoken_compiler(toolchain.compiler),
        os=toolchain.os,
        target=toolchain.target,
        binary=count.binary,
        address=_address(fields, toolchain.text),
        is_chosen=toolchain == chosen,
    )


def _address(fields: Pairs, toolchain: str) -> str:
    return f"/cover?{urlencode([*fields, ('toolchain', toolchain)])}"


def _note(spec: CoveredSpec, chosen: Toolchain) -> str:
    """Return where a spec has a binary, if the chosen toolchain has none."""
    compilers = set()
    for toolchain in spec.toolchains:
        if not chosen.takes(toolchain):
            compilers.add(toolchain.compiler)
    if not spec.is_met or not compilers:
        return "no binary"
    if compilers <= {chosen.compiler, NO_COMPILER}:
        return "only for other systems or targets"
    return f"only with {_listed(sorted(compilers))}"


def _listed(compilers: Sequence[str]) -> str:
    """Return the first compilers for people, and how many more there are."""
    names = [spoken_compiler(compiler) for compiler in compilers[:MOST_OTHERS]]
    more = len(compilers) - len(names)
    if more:
        names.append(f"{more} more")
    return " or ".join(names)


def spoken_compiler(compiler: str) -> str:
    """Return a compiler for people: `gcc 13.2.0` for `gcc@13.2.0`, and `oneAPI` for
    the package `intel-oneapi-compilers`.
    """
    if compiler == NO_COMPILER:
        return "no compiler"
    return compiler.replace("intel-oneapi-compilers", "oneAPI").replace("@", " ")
