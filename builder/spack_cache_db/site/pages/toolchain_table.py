"""An environment by toolchain: which of its specs have a binary with each one.

Binaries that Spack takes one by one may mix compilers. The page of an environment shows
the toolchains as columns, and installs the binaries of the chosen column alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from spack_cache_db.errors import counted
from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.answers.toolchains import Toolchain, ToolchainCount
from spack_cache_db.query.names.scope import UnknownNameError, hint
from spack_cache_db.site.filters import Pairs
from spack_cache_db.site.names_for_people import compiler_name, system_name
from spack_cache_db.spack.processors import LINUX, processor_name

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
        os: its operating system for people, such as `Ubuntu 24.04`.
        target: its target for people, such as `x86-64-v3`.
        binary: how many specs have a binary with it.
        address: the address of the page, without the site's base.
        is_chosen: whether it is the chosen one.
        is_elsewhere: whether its binaries do not run on the machine of the reader.
    """

    compiler: str
    os: str
    target: str
    binary: int
    address: str
    is_chosen: bool
    is_elsewhere: bool = False

    @property
    def style(self) -> str:
        """The class of its cells."""
        if self.is_chosen:
            return "chosen"
        return "elsewhere" if self.is_elsewhere else ""

    @property
    def summary(self) -> str:
        """The toolchain in a line."""
        return f"{self.compiler} · {self.os} · {self.target}"


@dataclass(frozen=True, slots=True)
class ToolchainRow:
    """A spec, and whether it has a binary with each toolchain.

    Attributes:
        spec: the answer for the chosen toolchain.
        version: the version of its binary; empty without one.
        cells: whether it has a binary with the toolchain of each column.
        note: where it has a binary instead, or that it has none; empty if it has one.
        reason: the id of the reasons why no toolchain has one; empty if one has.
    """

    spec: CoveredSpec
    version: str
    cells: tuple[bool, ...]
    note: str
    reason: str


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
    def has_elsewhere(self) -> bool:
        """Whether some columns are for machines other than the reader's."""
        return any(column.is_elsewhere for column in self.columns)

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


def asked_toolchain(field: str | None) -> Toolchain | None:
    """Return the toolchain of a field of the address of data; None for all toolchains.

    Raises:
        UnknownNameError: the field is not a toolchain.
    """
    if not field or field == MIXED:
        return None
    toolchain = Toolchain.parse(field)
    if toolchain is None:
        raise UnknownNameError(
            f"{field!r} is not a toolchain; expected one such as "
            f"gcc@13.2.0,ubuntu24.04,x86_64_v3, or {MIXED}"
        )
    return toolchain


def check_toolchain(answer: Cover, toolchain: Toolchain) -> None:
    """Raise `UnknownNameError` if no spec has a binary with a toolchain."""
    known = [count.toolchain.text for count in answer.toolchains]
    if toolchain.text not in known:
        close = hint(toolchain.text, known, f"known: {', '.join(known) or 'none'}")
        raise UnknownNameError(
            f"no spec of this environment has a binary with the toolchain "
            f"{toolchain.text!r}; {close}"
        )


def toolchain_table(
    answer: Cover,
    within: Cover,
    chosen: Toolchain,
    fields: Pairs,
    everywhere: Cover | None = None,
) -> ToolchainTable:
    """Return an environment by toolchain.

    Args:
        answer: the answer for all binaries.
        within: the answer for those of the chosen toolchain.
        chosen: this toolchain.
        fields: the fields of the page's address, without the toolchain.
        everywhere: the answer for all machines, if the reader has chosen one.
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

    # Toolchains of other machines take the places that are left.
    others = _counts_elsewhere(answer, everywhere)[: MOST_COLUMNS - len(shown)]
    for count in others:
        columns.append(_column_elsewhere(count, fields))

    specs_everywhere = answer.specs if everywhere is None else everywhere.specs
    rows = []
    of_specs = zip(answer.specs, within.specs, specs_everywhere, strict=True)
    for number, (spec, spec_within, spec_everywhere) in enumerate(of_specs):
        if spec.status == "external":
            continue
        cells = []
        for count in shown:
            is_chosen = count.toolchain == chosen
            cells.append(
                spec_within.is_met if is_chosen else _has(spec, count.toolchain)
            )
        for count in others:
            cells.append(_has(spec_everywhere, count.toolchain))
        configuration = spec_within.configuration if spec_within.is_met else None
        row = ToolchainRow(
            spec=spec,
            version="" if configuration is None else configuration.version,
            cells=tuple(cells),
            note="" if spec_within.is_met else _note(spec, chosen),
            reason="" if spec.is_met else reason_id(number),
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


def reason_id(number: int) -> str:
    """Return the id of the reasons why a spec has no binary, by its number in the
    environment.
    """
    return f"spec-{number}"


def _has(spec: CoveredSpec, toolchain: Toolchain) -> bool:
    """Whether a spec has a binary with a toolchain."""
    return any(toolchain.takes(other) for other in spec.toolchains)


def _counts_elsewhere(
    answer: Cover, everywhere: Cover | None
) -> tuple[ToolchainCount, ...]:
    """Return the toolchains of other machines than the reader's."""
    if everywhere is None:
        return ()
    here = {count.toolchain for count in answer.toolchains}
    return tuple(
        count for count in everywhere.toolchains if count.toolchain not in here
    )


def _column(count: ToolchainCount, chosen: Toolchain, fields: Pairs) -> ToolchainColumn:
    toolchain = count.toolchain
    return ToolchainColumn(
        compiler=compiler_name(toolchain.compiler),
        os=system_name(toolchain.os),
        target=processor_name(LINUX, toolchain.target),
        binary=count.binary,
        address=_address(fields, toolchain.text),
        is_chosen=toolchain == chosen,
    )


def _column_elsewhere(count: ToolchainCount, fields: Pairs) -> ToolchainColumn:
    """Return the column of another machine; its link leaves out the reader's."""
    without_machine = [(name, value) for name, value in fields if name != "host"]
    column = _column(count, count.toolchain, without_machine)
    return replace(column, is_chosen=False, is_elsewhere=True)


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
    names = [compiler_name(compiler) for compiler in compilers[:MOST_OTHERS]]
    more = len(compilers) - len(names)
    if more:
        names.append(f"{more} more")
    return " or ".join(names)
