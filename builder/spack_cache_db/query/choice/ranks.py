"""The ranks by which the rule compares words, such as the versions `1.14.6` and
`develop`.

`rule` lists the steps. Each step compares some words of a configuration: a function of
`Ranks` returns their rank, and the largest rank is best. `Facts` has what the ranks
depend on, beside the words themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spack_cache_db.spack.facts import CRAY_COMPILERS
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import ancestors, has_platform, is_generic
from spack_cache_db.spack.versions import (
    is_git_version,
    is_stable,
    preference,
)

USUAL = {"platform": "linux", "family": "x86_64"}
"""The platform and the family of CPUs that come first where others are as common."""
UNNAMED = frozenset({"build_system", "patches"})
"""Variants that no user chooses."""


class Uses(NamedTuple):
    """How many packages use a word, such as the compiler `gcc`.

    Compared as tuples: the numbers of all releases count only if those of the release
    are equal.

    Attributes:
        in_release: the number of packages in the release of the question, or else in
            the first release of the database.
        anywhere: the number of packages in all releases.
    """

    in_release: int = 0
    anywhere: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rule knows beside the rows.

    Attributes:
        words: for each column of a configuration, such as `version`, its words by their
            ids; a word of `variants` is a tuple of variants.
        families: the family of each target, such as `x86_64` of `zen3`.
        uses: how many packages use a word, for each kind of word: the name of a
            `compiler`, an `os`, a `platform` or a `family` of targets.
        option_uses: returns for a version, given by id, how many of its binaries have
            each set of variants, by the ids of the sets.
        package_counts: the number of binaries of each package; empty if all rows are of
            one package.
        host: the CPU target of the chosen machine; None if none is chosen.
        latest: the version that the package's recipe prefers; None if unknown.
        deprecated: the versions that the recipe calls deprecated.
        has_stable: whether a row has a stable version that is not deprecated. As in
            Spack, a deprecated version is no reason to leave out a branch.
        defaults: the values of each variant by default; empty without package data.
        named_variants: the names of the variants that the question names.
        installed: the configurations with an installed spec, by id: 2 if one was
            installed explicitly, otherwise 1.
    """

    words: Mapping[str, Mapping[int, Any]]
    families: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, Mapping[str, Uses]] = field(default_factory=dict)
    option_uses: Callable[[int], Mapping[int, int]] = lambda version: {}
    package_counts: Mapping[str, int] = field(default_factory=dict)
    host: str | None = None
    latest: str | None = None
    deprecated: frozenset[str] = frozenset()
    has_stable: bool = False
    defaults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named_variants: frozenset[str] = frozenset()
    installed: Mapping[int, int] = field(default_factory=dict)

    def has_defaults(self, variants: Iterable[str]) -> bool:
        """Return whether all variants have their defaults; False without package
        data.
        """
        if not self.defaults:
            return False
        return all(self.is_default(variant) for variant in variants)

    def is_default(self, variant: str) -> bool:
        """Return whether a variant such as `+mpi` has its default value.

        True for variants that do not count: those that the question or nobody chooses,
        and those without a known default.
        """
        parsed = readable_variant(variant)
        if parsed is None or parsed.name in UNNAMED:
            return True
        if parsed.name in self.named_variants:
            return True
        default = self.defaults.get(parsed.name)
        return default is None or parsed.values == default


# The ranks of words. Records are compared as tuples: an earlier field counts more than
# all later ones, and the largest rank is best.


class Usage(NamedTuple):
    """The rank of a word by how many packages use it.

    Attributes:
        is_usual: whether it is one of `USUAL`.
    """

    uses: Uses
    is_usual: bool


class MachineRank(NamedTuple):
    """The rank of a kind of machine.

    Attributes:
        has_platform: whether the chosen machine can have the platform.
        is_usual: whether it is not a Cray.
        is_generic: whether the target is a family or a level of it, such as
            `x86_64_v3`, not a processor, such as `zen3`.
    """

    has_platform: bool
    is_usual: bool
    is_generic: bool
    platform: Usage
    family: Usage


class VersionRank(NamedTuple):
    """The rank of a version.

    Attributes:
        is_latest: whether it is the one that the recipe prefers.
        is_supported: whether it is not deprecated.
        is_numbered: whether it is not a version of git, such as a commit.
        preference: Spack's order, in which branches come behind numbers
            (`versions.preference`).
    """

    is_latest: bool
    is_supported: bool
    is_numbered: bool
    preference: Any


class OptionRank(NamedTuple):
    """The rank of a set of variants.

    Attributes:
        has_defaults: whether all variants have their defaults.
        spec_count: how many binaries of the version have this set.
    """

    has_defaults: bool
    spec_count: int


class CompilerRank(NamedTuple):
    """The rank of a compiler; `version` is a key in Spack's order of versions."""

    usage: Usage
    name: str
    version: Any


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of words: each method ranks the words that one step compares."""

    facts: Facts

    def of_installed(self, configuration: int) -> int:
        """Explicitly installed configurations first, then other installed ones."""
        return self.facts.installed.get(configuration, 0)

    def of_package(self, package: str) -> tuple[int, str]:
        """The package with most binaries first; of equal ones, the last by name."""
        return self.facts.package_counts.get(package, 0), package

    def of_stability(self, version: str) -> bool:
        """Versions that do not move first, and a branch that the recipe prefers."""
        return is_stable(version) or version == self.facts.latest

    def of_machine(self, compiler: str, platform: str, target: str) -> MachineRank:
        """Usual machines first, of the platforms that a chosen machine can have;
        without a chosen machine, then generic targets and the commonest family.
        """
        compiler_name, _, _ = compiler.partition("@")
        is_usual = compiler_name not in CRAY_COMPILERS
        platform_usage = self._usage("platform", platform)
        host = self.facts.host
        if host is not None:
            # All rows are equal in the other fields: the machine has one family, and
            # `of_target` compares the targets in it. Of a range such as `target=:m2`,
            # they may be for platforms that the machine does not have.
            return MachineRank(
                has_platform=has_platform(host, platform),
                is_usual=is_usual,
                is_generic=True,
                platform=platform_usage,
                family=Usage(Uses(), is_usual=False),
            )
        family = self.facts.families.get(target, target)
        return MachineRank(
            has_platform=True,
            is_usual=is_usual,
            is_generic=is_generic(target),
            platform=platform_usage,
            family=self._usage("family", family),
        )

    def of_version(self, version: str) -> VersionRank:
        """The version that Spack prefers first."""
        return VersionRank(
            is_latest=version == self.facts.latest,
            is_supported=version not in self.facts.deprecated,
            is_numbered=not is_git_version(version),
            preference=preference(version),
        )

    def of_compiler(self, compiler: str) -> CompilerRank:
        """The commonest compiler first, in any version; then its newest version."""
        name, _, version = compiler.partition("@")
        usage = self._usage("compiler", name)
        return CompilerRank(usage, name, preference(version))

    def of_os(self, name: str) -> Usage:
        """The commonest operating system first."""
        return self._usage("os", name)

    def of_target(self, target: str) -> int:
        """The nearest target for the chosen machine first, or else the target that runs
        on most machines.
        """
        host = self.facts.host
        if host is None:
            # A target runs on few machines if it extends many other targets.
            return -len(ancestors(target))
        nearest_first = (host, *ancestors(host))
        if target not in nearest_first:
            # It does not run on the machine, and comes last.
            return -len(nearest_first)
        return -nearest_first.index(target)

    def _usage(self, kind: str, word: str) -> Usage:
        """Return the rank of a word by its kind in `Facts.uses`."""
        uses_of_kind = self.facts.uses.get(kind, {})
        uses = uses_of_kind.get(word, Uses())
        return Usage(uses, is_usual=word == USUAL.get(kind))
