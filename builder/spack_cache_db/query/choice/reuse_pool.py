"""What Spack's solver takes from a database, as sets of specs: a `Pool`.

The settings of an environment name specs, such as `exclude: [gcc@:12]`, and a `Pool`
has the ids of the specs of the database that satisfy them. `pool` reads these sets, and
the rules of `reuse` compare specs with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import Verdict
from spack_cache_db.query.stored.mirrors import Mirror


class NamedVerdict(NamedTuple):
    """A spec of a filter as text, and the specs of the database that satisfy it.

    Attributes:
        verdict: the ids of the specs that satisfy it (`matching`), and of those that
            may, because the database lacks the data (`unknown`).
    """

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class AppliedFilter:
    """A filter, applied to the specs of a database.

    It lets pass what satisfies one of `include`, if there are any, and none of
    `exclude`.
    """

    include: tuple[NamedVerdict, ...] = ()
    exclude: tuple[NamedVerdict, ...] = ()

    def why_not(self, spec: int) -> str:
        """Return the setting that leaves a spec out, or may leave it out, such as
        `exclude: gcc`; an empty text if it passes.
        """
        is_included = any(spec in named.verdict.matching for named in self.include)
        if self.include and not is_included:
            texts = [named.text for named in self.include]
            return f"include: {', '.join(texts)}"
        for named in self.exclude:
            # A spec that may satisfy it may be left out.
            if spec in named.verdict.matching or spec in named.verdict.unknown:
                return f"exclude: {named.text}"
        return ""


EVERYTHING = AppliedFilter()
"""The filter that lets every spec pass."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolSource:
    """A source from which the solver takes specs: an entry of `concretizer: reuse:`.

    Attributes:
        kind: `local` for installed specs, `buildcache`, `environment` for the lockfile
            of another environment, or `external`.
        selection: its filter.
        specs: the ids of the specs that it has. None for a `buildcache` that has all
            specs of the database, for an `external`, and for an `environment` whose
            lockfile cannot be read.
    """

    kind: str
    selection: AppliedFilter = EVERYTHING
    specs: Set[int] | None = None

    def has(self, spec: int) -> bool:
        """Return whether the source has a spec; False if that is not known."""
        if self.specs is None:
            return self.kind == "buildcache"
        return spec in self.specs


@dataclass(frozen=True, slots=True, eq=False)
class KnownExternal:
    """An external of `packages:`.

    Attributes:
        text: its spec, such as `openmpi@5.0.10`.
        prefix: the folder in which it is installed; None if it is not given.
        modules: the modules that load it.
        specs: the ids of the specs of the database that satisfy its spec.
    """

    text: str
    prefix: str | None
    modules: tuple[str, ...]
    specs: Set[int]


@dataclass(frozen=True, slots=True, eq=False)
class FilteredMirror:
    """A mirror of `mirrors:` that gives out only some of its binaries."""

    name: str
    url: str
    selection: AppliedFilter

    def may_be(self, mirror: Mirror, named: Set[str]) -> bool:
        """Return whether it is, or may be, a mirror of the database.

        Args:
            mirror: the mirror of the database.
            named: the names of all mirrors of `mirrors:` that have a filter.
        """
        if mirror.url is not None:
            return _without_ends(self.url) == _without_ends(mirror.url)
        # Without a URL, the name of its release may be that of a mirror. If it is not,
        # it may be any of them.
        return mirror.release == self.name or mirror.release not in named


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The sets of specs that decide what the solver takes from a database.

    Specs are given by their ids.

    Attributes:
        before_1_0: specs that Spack before 1.0 concretized.
        developed: specs that were built from a folder of sources.
        wrappers: the specs of `compiler-wrapper`.
        is_old: whether all recorded specs are from before Spack 1.0.
        sources: the sources of `concretizer: reuse:`.
        reuses_roots: whether the specs that a user asks for are reused.
        setting: the setting that limits reuse, such as `reuse: dependencies`; empty if
            none does.
        externals: the externals of `packages:`, by the package that declares them.
        allowed_to_mix: packages that may have another compiler than the rest of a
            closure; None if all may (`compiler_mixing: true`).
        mirrors: the mirrors with a filter.
    """

    before_1_0: Set[int] = frozenset()
    developed: Set[int] = frozenset()
    wrappers: Set[int] = frozenset()
    is_old: bool = False
    sources: tuple[PoolSource, ...] = (PoolSource("buildcache"),)
    reuses_roots: bool = True
    setting: str = ""
    externals: Mapping[str, tuple[KnownExternal, ...]] = field(default_factory=dict)
    allowed_to_mix: frozenset[str] | None = None
    mirrors: tuple[FilteredMirror, ...] = ()

    @property
    def takes_nothing(self) -> bool:
        """Whether the solver takes no binary of the database at all."""
        if self.is_old or not self.reuses_roots:
            return True
        return all(source.kind == "external" for source in self.sources)


class Compiler(NamedTuple):
    """A compiler: the id of its spec, and a text such as `gcc@13.2.0`."""

    spec: int
    text: str


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Facts about the members of closures that some rules need, by the ids of members.

    Attributes:
        listed: the mirrors that list each member; empty if no mirror has a filter.
        compilers: the compiler of each member for each language, such as `cxx`; empty
            if compilers may be mixed.
    """

    listed: Mapping[int, Sequence[Mirror]] = field(default_factory=dict)
    compilers: Mapping[int, Mapping[str, Compiler]] = field(default_factory=dict)


NO_FACTS = MemberFacts()
"""The facts for pools that need none."""


def _without_ends(url: str) -> str:
    """Return a URL without parts that Spack adds or does not need."""
    return url.removeprefix("file://").rstrip("/").removesuffix("/build_cache")
