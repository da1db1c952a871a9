"""Toolchains: the compiler, operating system and target with which binaries are built.

An environment whose binaries are of one toolchain is consistent. Those that Spack takes
one by one may mix compilers: eight with gcc 13.2, and the ninth only with oneAPI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Self

from spack_cache_db.errors import counted
from spack_cache_db.model import NO_COMPILER, Configuration
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    Word,
)

MOST_COMPILERS = 4
"""Maximum of compilers that a sentence names."""


class Toolchain(NamedTuple):
    """What binaries are built with, and for: `gcc@13.2.0`, `ubuntu24.04`,
    `x86_64_v3`.
    """

    compiler: str
    os: str
    target: str

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """Return the toolchain of a configuration."""
        return cls(configuration.compiler, configuration.os, configuration.target)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the toolchain of a text such as `gcc@13.2.0,ubuntu24.04,x86_64_v3`;
        None if it is not one.
        """
        parts = text.split(",")
        return cls(*parts) if len(parts) == len(cls._fields) else None

    @property
    def text(self) -> str:
        """The text that `parse` reads."""
        return ",".join(self)

    def takes(self, other: Toolchain) -> bool:
        """Return whether a binary of another toolchain belongs to this one: a binary
        that no compiler built belongs to all of its system and target.
        """
        if (other.os, other.target) != (self.os, self.target):
            return False
        return other.compiler in (self.compiler, NO_COMPILER)

    @property
    def conditions(self) -> Conditions:
        """The conditions on the binaries that belong to it."""
        # Each condition has its kind, its text in a search, and its value.
        compilers = OneOf(frozenset((self.compiler, NO_COMPILER)))
        return (
            Condition("compiler", f"%{self.compiler}", compilers),
            Condition("os", f"os={self.os}", Word(self.os)),
            Condition("target", f"target={self.target}", Word(self.target)),
        )


class ToolchainCount(NamedTuple):
    """A toolchain, and how many specs of an environment have a binary of it.

    Attributes:
        toolchain: the toolchain.
        binary: the number of specs, named after their status in `cover`.
    """

    toolchain: Toolchain
    binary: int

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `cover --json` prints."""
        return {**self.toolchain._asdict(), "binary": self.binary}


def toolchain_counts(
    toolchains_by_spec: Sequence[Collection[Toolchain]], chosen: Iterable[Toolchain]
) -> tuple[ToolchainCount, ...]:
    """Return the toolchains with which specs have a binary, those of most specs first.

    Of two toolchains with equally many specs, the one of more `chosen` binaries comes
    first.

    Args:
        toolchains_by_spec: for each spec, the toolchains of its binaries.
        chosen: the toolchains of the binaries that Spack takes.
    """
    toolchains: set[Toolchain] = set()
    for toolchains_of_spec in toolchains_by_spec:
        toolchains.update(toolchains_of_spec)
    # A binary that no compiler built belongs to other toolchains of its system and
    # target. If there are only such binaries, they have toolchains of their own.
    with_compiler = {
        toolchain for toolchain in toolchains if toolchain.compiler != NO_COMPILER
    }
    counts = []
    for toolchain in with_compiler or toolchains:
        spec_count = 0
        for toolchains_of_spec in toolchains_by_spec:
            if any(toolchain.takes(other) for other in toolchains_of_spec):
                spec_count += 1
        counts.append(ToolchainCount(toolchain, spec_count))

    chosen_counts = Counter(chosen)

    def rank(item: ToolchainCount) -> tuple[int, int, Toolchain]:
        return -item.binary, -chosen_counts[item.toolchain], item.toolchain

    return tuple(sorted(counts, key=rank))


def mixed_sentence(
    chosen: Sequence[Toolchain], best: ToolchainCount, total: int
) -> str | None:
    """Return that binaries mix compilers, and what one toolchain has alone; None if
    they do not.

    Args:
        chosen: the toolchains of the binaries that Spack takes.
        best: the toolchain with most specs.
        total: the number of all specs.
    """
    compilers = Counter(
        toolchain.compiler for toolchain in chosen if toolchain.compiler != NO_COMPILER
    )
    if len(compilers) < 2:
        return None
    most = compilers.most_common(MOST_COMPILERS)
    names = ", ".join(f"{compiler} ({count:,})" for compiler, count in most)
    if len(compilers) > len(most):
        names += ", …"
    toolchain = best.toolchain
    return (
        f"these binaries mix {counted(len(compilers), 'compiler')}: {names}; "
        f"{toolchain.compiler} on {toolchain.os} for {toolchain.target} alone has "
        f"{best.binary:,} of {total:,}"
    )
