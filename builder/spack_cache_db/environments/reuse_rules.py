"""The settings of a `spack.yaml` for the reuse of binaries, as records.

Spack's solver decides between building a package and reusing one that is built already.
These settings say what it may reuse (Spack 1.2, `solver/reuse.py`, `spec_filter.py`,
`mirrors/mirror.py`). `environments.reuse` reads them; `query.choice.reuse` applies them
to a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from spack_cache_db.spack.queries import SpecQuery

SourceKind = Literal["local", "buildcache", "environment", "external"]
"""Installed specs, build caches, the lockfile of an environment, or externals: packages
that the system provides.
"""


@dataclass(frozen=True, slots=True)
class SpecFilter:
    """Selects specs.

    Attributes:
        include: specs are selected if they satisfy one of these; empty for all.
        exclude: specs are not selected if they satisfy one of these.
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
        kind: the kind of the source.
        filter: the specs that are taken.
        hashes: the hashes of an environment's lockfile; None if it cannot be read, and
            for other sources.
    """

    kind: SourceKind
    filter: SpecFilter = EVERY_SPEC
    hashes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class MirrorFilter:
    """A mirror of `mirrors:` that gives out only some of its binaries.

    Attributes:
        name: the key of the mirror.
        url: its URL, empty if it has none.
        filter: its `include_binary` and `exclude_binary`.
    """

    name: str
    url: str
    filter: SpecFilter = EVERY_SPEC


@dataclass(frozen=True, slots=True)
class DeclaredExternal:
    """An external of `packages:`, a package that the system provides.

    Attributes:
        query: its spec with its dependencies; `@1.2` is exactly this version in it.
        written: its spec as it is written.
        prefix: the folder in which it is installed, None if none is declared.
        modules: the environment modules that are loaded to use it.
    """

    query: SpecQuery
    written: SpecQuery
    prefix: str | None = None
    modules: tuple[str, ...] = ()


ALL_SOURCES = (ReuseSource("local"), ReuseSource("buildcache"), ReuseSource("external"))
"""The sources without a setting, as for `reuse: true`."""


# Compared by identity, because an environment has few of these and many specs.
@dataclass(frozen=True, slots=True, eq=False)
class ReuseRules:
    """The settings of an environment for reuse.

    Attributes:
        sources: the sources of `concretizer: reuse:`; only externals for
            `reuse: false`.
        reuses_roots: whether the specs of the environment themselves are reused, not
            only their dependencies.
        allowed_to_mix: the packages that may have another compiler than the rest of an
            installation (`compiler_mixing`); None for all.
        mirrors: the mirrors with a filter.
        externals: the externals of each package that has some.
        setting: the setting that limits reuse, as answers name it (`reuse: false`);
            empty for none.
    """

    sources: tuple[ReuseSource, ...] = ALL_SOURCES
    reuses_roots: bool = True
    allowed_to_mix: frozenset[str] | None = None
    mirrors: tuple[MirrorFilter, ...] = ()
    externals: Mapping[str, tuple[DeclaredExternal, ...]] = field(default_factory=dict)
    setting: str = ""


REUSE_ALL = ReuseRules()
"""The rules of a text without a configuration: those of Spack's defaults."""
