"""The settings of a `spack.yaml` for the reuse of binaries, as records.

The rules are those of Spack 1.2 (`solver/reuse.py`, `spec_filter.py`,
`mirrors/mirror.py`). `environments.reuse` reads them; `query.choice.reuse` applies them
to a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from spack_cache_db.spack.queries import SpecQuery

SourceKind = Literal["local", "buildcache", "environment", "external"]


@dataclass(frozen=True, slots=True)
class SpecFilter:
    """Selects specs: those that satisfy one of `include`, if it has any, and none of
    `exclude`.
    """

    include: tuple[SpecQuery, ...] = ()
    exclude: tuple[SpecQuery, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the filter may leave out a spec."""
        return bool(self.include or self.exclude)


EVERY_SPEC = SpecFilter()


@dataclass(frozen=True, slots=True)
class ReuseSource:
    """A source from which Spack's solver takes specs, and those that it takes.

    Attributes:
        kind: installed specs, build caches, the lockfile of an environment, or
            externals.
        filter: the specs that are taken.
        hashes: the hashes of an environment's lockfile; None if it cannot be read.
    """

    kind: SourceKind
    filter: SpecFilter = EVERY_SPEC
    hashes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class MirrorFilter:
    """A mirror of `mirrors:` with `include_binary` or `exclude_binary`, and its URL."""

    name: str
    url: str
    filter: SpecFilter = EVERY_SPEC


@dataclass(frozen=True, slots=True)
class DeclaredExternal:
    """An external of `packages:`.

    Attributes:
        query: its spec, in which `@1.2` is exactly this version, with its dependencies.
        written: its spec as it is written.
    """

    query: SpecQuery
    written: SpecQuery
    prefix: str | None = None
    modules: tuple[str, ...] = ()


ALL_SOURCES = (ReuseSource("local"), ReuseSource("buildcache"), ReuseSource("external"))


# Compared by identity, because an environment has few of these and many specs.
@dataclass(frozen=True, slots=True, eq=False)
class ReuseRules:
    """The settings of an environment for reuse.

    Attributes:
        sources: the sources of `concretizer: reuse:`; only externals for
            `reuse: false`.
        reuses_roots: whether the specs of the environment themselves are reused.
        allowed_to_mix: the packages that may have another compiler than the rest of an
            installation (`compiler_mixing`); None for all.
        mirrors: the mirrors with a filter.
        externals: the externals of each package that has some.
        setting: the setting that limits reuse, as it is named in answers, or "".
    """

    sources: tuple[ReuseSource, ...] = ALL_SOURCES
    reuses_roots: bool = True
    allowed_to_mix: frozenset[str] | None = None
    mirrors: tuple[MirrorFilter, ...] = ()
    externals: Mapping[str, tuple[DeclaredExternal, ...]] = field(default_factory=dict)
    setting: str = ""


REUSE_ALL = ReuseRules()
"""The rules of a text without a configuration: those of Spack's defaults."""
