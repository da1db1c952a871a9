"""The rules by which Spack's solver reuses binaries and installed specs, given sets of
specs.

The rules are those of Spack 1.2 (`solver/reuse.py`, `spec_filter.py`,
`mirrors/mirror.py`, `concretize.lp`). Installing a binary by its hash is not restricted
by them. For the solver, a binary and everything that it links or runs must be

1. of Spack 1.0 or newer, not built from a folder of sources (`dev_path`), and not a
   `compiler-wrapper` (`_is_reusable`);
2. on externals that `packages:` declares with a matching spec, the same prefix and the
   same modules; the C library needs no declaration (`_is_reusable`);
3. built with one compiler for each language, if `compiler_mixing: false`
   (`concretize.lp`);
4. in mirrors, or the solver builds the binary anew;
5. in a source of `concretizer: reuse:`, and not left out by its filters (`SpecFilter`);
6. given out by the mirrors that list it (`_spec_matches_filters`).

The first rule that fails decides the status of an answer: `near` for 1 to 3,
`incomplete` for 4, and `unknown` for 5 and 6, because the solver's own solution may
have the same hash. An external of which `packages:` has no entry is `unknown` too: a
machine's own configuration may declare it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from spack_cache_db.errors import series
from spack_cache_db.query.conditions.conditions import Verdict
from spack_cache_db.query.stored.closure import Closure, External, Member
from spack_cache_db.query.stored.mirrors import Mirror
from spack_cache_db.spack.facts import COMPILER_WRAPPER, DEV_PATH, LIBC

ObstacleStatus = Literal["near", "incomplete", "unknown"]
RANKS: Mapping[ObstacleStatus, int] = {"near": 0, "incomplete": 1, "unknown": 2}
"""The statuses from bad to good: of two obstacles, the one with the higher rank is
shown.
"""

NOT_BEFORE_1_0 = "Spack 1.2 does not reuse binaries from before 1.0; install it by hash"
NOT_FROM_SOURCES = (
    f"Spack reuses no binary that was built from a folder of sources ({DEV_PATH})"
)
NOT_A_WRAPPER = f"Spack makes {COMPILER_WRAPPER} anew and reuses no binary of it"
OWN_SOLUTION = "Spack uses it only if its own solution has this hash"
MOST_NAMED = 3


class Obstacle(NamedTuple):
    """Why the solver does not take a binary, or may not take it."""

    status: ObstacleStatus
    reason: str

    @property
    def rank(self) -> int:
        """The place of the status from bad to good."""
        return RANKS[self.status]


class NamedVerdict(NamedTuple):
    """A spec of a filter as text, and the specs that satisfy it."""

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class AppliedFilter:
    """A filter, applied to a database: see `SpecFilter`."""

    include: tuple[NamedVerdict, ...] = ()
    exclude: tuple[NamedVerdict, ...] = ()

    def why_not(self, spec: int) -> str:
        """Return the key that leaves a spec out, or may leave it out; "" for none."""
        if self.include:
            is_included = any(spec in named.verdict.matching for named in self.include)
            if not is_included:
                return f"include: {', '.join(named.text for named in self.include)}"
        for named in self.exclude:
            # What may satisfy it may be left out.
            if spec in named.verdict.matching or spec in named.verdict.unknown:
                return f"exclude: {named.text}"
        return ""


EVERYTHING = AppliedFilter()


@dataclass(frozen=True, slots=True, eq=False)
class PoolSource:
    """A source of the solver.

    Attributes:
        kind: see `ReuseSource`.
        specs: the specs that it has; None for all specs of a database without
            installations, or for an environment whose lockfile cannot be read.
    """

    kind: str
    selection: AppliedFilter = EVERYTHING
    specs: Set[int] | None = None

    def has(self, spec: int) -> bool:
        """Return whether the source has a spec; nobody knows what an unread lockfile
        has.
        """
        if self.specs is None:
            return self.kind == "buildcache"
        return spec in self.specs


@dataclass(frozen=True, slots=True, eq=False)
class KnownExternal:
    """An external of `packages:`, and the specs that satisfy its spec."""

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
            mirror: the mirror; if its URL is not known, its release decides by its
                name.
            named: the names of all mirrors with a filter.
        """
        if mirror.url is not None:
            return _same_url(self.url, mirror.url)
        # A mirror of another name may be any of them.
        return mirror.release == self.name or mirror.release not in named


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The sets of specs that decide what the solver takes from a database.

    Attributes:
        before_1_0: specs that Spack before 1.0 concretized.
        developed: specs that were built from a folder of sources.
        wrappers: the specs of `compiler-wrapper`.
        is_old: whether all recorded specs are from before Spack 1.0.
        sources: the sources of `concretizer: reuse:`.
        reuses_roots: whether the specs that a user asks for are reused.
        setting: the setting that limits reuse, as text.
        externals: the externals of `packages:`, by the package that declares them.
        allowed_to_mix: packages that may have another compiler; None for all.
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
        """Whether no binary is taken, whichever it is."""
        if self.is_old or not self.reuses_roots:
            return True
        return all(source.kind == "external" for source in self.sources)


class Compiler(NamedTuple):
    """A compiler: the id of its spec, and its name with the version."""

    spec: int
    text: str


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Facts about the members of closures that some rules need, by the ids of members.

    Attributes:
        listed: the mirrors that list each; read if mirrors have filters.
        compilers: the specs that compile each, by language, with their names; read if
            compilers must not be mixed.
    """

    listed: Mapping[int, Sequence[Mirror]] = field(default_factory=dict)
    compilers: Mapping[int, Mapping[str, Compiler]] = field(default_factory=dict)


NO_FACTS = MemberFacts()


def obstacle_of_spec(
    pool: Pool, spec: int, *, is_installed: bool = False
) -> Obstacle | None:
    """Return why the solver does not take a spec, whatever it needs; None if it may
    take it.

    An installed spec may be from before Spack 1.0: it can be loaded as it is.
    """
    if spec in pool.before_1_0 and not is_installed:
        return Obstacle("near", NOT_BEFORE_1_0)
    if spec in pool.developed:
        return Obstacle("near", NOT_FROM_SOURCES)
    if spec in pool.wrappers:
        return Obstacle("near", NOT_A_WRAPPER)
    if not pool.reuses_roots:
        return Obstacle("unknown", f"with {pool.setting}, {OWN_SOLUTION}")
    reason = _left_out(pool, spec)
    if reason:
        return Obstacle("unknown", f"with {reason}, {OWN_SOLUTION}")
    return None


def obstacle_of_closure(
    pool: Pool, closure: Closure, facts: MemberFacts = NO_FACTS
) -> Obstacle | None:
    """Return why the solver does not take a binary because of what it needs; None if it
    does.

    Args:
        pool: what the solver takes.
        closure: the binary, for which `obstacle_of_spec` returned None, and what it
            needs.
        facts: more about the members, as far as the pool needs it.
    """
    # The rules in the order of the statuses, from bad to good: the first obstacle is
    # the answer.
    dependencies = closure.members[1:]
    return (
        _never_taken(pool, dependencies)
        or _declared_otherwise(pool, closure.externals)
        or _mixed(pool, closure, facts.compilers)
        or missing_obstacle(closure)
        or _not_declared(pool, closure.externals)
        or _not_in_pool(pool, dependencies)
        or _not_given_out(pool, closure.binaries, facts.listed)
    )


def missing_obstacle(closure: Closure) -> Obstacle | None:
    """Return that mirrors lack a part of a closure; None if they list all of it."""
    missing = [member.name_and_version for member in closure.missing]
    if not missing:
        return None
    reason = f"no binary of {short_series(missing)}, so Spack would build it"
    return Obstacle("incomplete", reason)


def short_series(texts: Sequence[str]) -> str:
    """Return texts as a part of a sentence: up to four, or three and the number of the
    others.
    """
    # A fourth text is not longer than `1 more`.
    most = MOST_NAMED
    if len(texts) == MOST_NAMED + 1:
        most = len(texts)
    return series(texts, most)


def _never_taken(pool: Pool, dependencies: Sequence[Member]) -> Obstacle | None:
    """Return rule 1 for what a binary needs."""
    for member in dependencies:
        # The C library and other externals have rules of their own.
        if member.external is not None:
            continue
        reason = ""
        if member.spec in pool.before_1_0:
            reason = NOT_BEFORE_1_0
        elif member.spec in pool.developed:
            reason = NOT_FROM_SOURCES
        if reason:
            return Obstacle("near", f"it needs {member.name_and_version}, and {reason}")
    return None


def _declared_otherwise(pool: Pool, externals: Sequence[Member]) -> Obstacle | None:
    """Return rule 2 for packages of which `packages:` declares other externals."""
    for member in externals:
        declared = pool.externals.get(member.package, ())
        if not declared or _is_declared(pool, member):
            continue
        others = [f"{external.text}{_location(external)}" for external in declared]
        reason = (
            f"built on the external {_external_text(member)}, "
            f"but packages: has {short_series(others)}"
        )
        return Obstacle("near", reason)
    return None


def _not_declared(pool: Pool, externals: Sequence[Member]) -> Obstacle | None:
    """Return rule 2 for packages without externals in `packages:`, which a machine's
    configuration may declare.
    """
    missing = [
        _external_text(member) for member in externals if not _is_declared(pool, member)
    ]
    if not missing:
        return None
    reason = f"only if your configuration declares {short_series(missing)}"
    return Obstacle("unknown", reason)


def _is_declared(pool: Pool, member: Member) -> bool:
    """Return whether `packages:` declares an external with its spec, prefix and
    modules.
    """
    used = member.external
    assert used is not None
    # A provider of `mpi` may be declared below `mpi`.
    for declared in pool.externals.values():
        for external in declared:
            is_same_place = (
                external.prefix == used.prefix and external.modules == used.modules
            )
            if is_same_place and member.spec in external.specs:
                return True
    return False


def _external_text(member: Member) -> str:
    location = "" if member.external is None else _location(member.external)
    return f"{member.name_and_version}{location}"


def _location(external: External | KnownExternal) -> str:
    """Return where an external is: ` at /opt/zlib`,
    ` with the modules craype cray-mpich`.
    """
    text = f" at {external.prefix}" if external.prefix else ""
    if external.modules:
        text += f" with the modules {' '.join(external.modules)}"
    return text


def _mixed(
    pool: Pool, closure: Closure, compilers: Mapping[int, Mapping[str, Compiler]]
) -> Obstacle | None:
    """Return rule 3: a closure has several compilers of one language, and they must not
    be mixed.
    """
    if pool.allowed_to_mix is None:
        return None
    # The names of compilers by language and id: two builds of one version are two
    # compilers.
    names_by_language: dict[str, dict[int, str]] = {}
    for member in closure.binaries:
        if member.package in pool.allowed_to_mix:
            continue
        for language, compiler in compilers.get(member.spec, {}).items():
            names = names_by_language.setdefault(language, {})
            names[compiler.spec] = compiler.text
    for language, names in sorted(names_by_language.items()):
        if len(names) > 1:
            used = short_series(sorted(names.values()))
            reason = f"compiler_mixing: false: {used} compile its {language}"
            return Obstacle("near", reason)
    return None


def _not_in_pool(pool: Pool, dependencies: Sequence[Member]) -> Obstacle | None:
    """Return rule 5 for what a binary needs."""
    for member in dependencies:
        if member.external is None:
            setting = _left_out(pool, member.spec)
        elif member.package in LIBC:
            continue
        else:
            # Externals are a source of their own; their filters may leave one out.
            setting = _external_left_out(pool, member.spec)
        if setting:
            reason = (
                f"it needs {member.name_and_version}: with {setting}, {OWN_SOLUTION}"
            )
            return Obstacle("unknown", reason)
    return None


def _left_out(pool: Pool, spec: int) -> str:
    """Return the setting that keeps a spec out of all sources; "" if one source has
    it.
    """
    keys = []
    for source in pool.sources:
        if source.kind == "external" or not source.has(spec):
            continue
        key = source.selection.why_not(spec)
        if not key:
            return ""
        keys.append(key)
    if keys:
        return f"reuse: {keys[0]}"
    # No source has it at all.
    return pool.setting or "reuse: from:"


def _external_left_out(pool: Pool, spec: int) -> str:
    """Return the filter that keeps an external out of all sources; "" if one source has
    it.
    """
    keys = [
        source.selection.why_not(spec)
        for source in pool.sources
        if source.kind in ("external", "buildcache")
    ]
    is_left_out = bool(keys) and all(keys)
    return f"reuse: {keys[0]}" if is_left_out else ""


def _not_given_out(
    pool: Pool, members: Sequence[Member], listed: Mapping[int, Sequence[Mirror]]
) -> Obstacle | None:
    """Return rule 6 for a binary and what it needs, given the mirrors that list
    each.
    """
    if not pool.mirrors:
        return None
    named = {mirror.name for mirror in pool.mirrors}
    for member in members:
        mirrors = listed.get(member.spec, ())
        reasons = [_withheld(pool, member, mirror, named) for mirror in mirrors]
        # One mirror that gives it out is enough.
        if reasons and all(reasons):
            reason = f"{reasons[0]}, so Spack uses it only from another mirror"
            return Obstacle("unknown", reason)
    return None


def _withheld(pool: Pool, member: Member, mirror: Mirror, named: Set[str]) -> str:
    """Return why a mirror does not give out a binary; "" if it does."""
    for filtered in pool.mirrors:
        if not filtered.may_be(mirror, named):
            continue
        filter_text = filtered.selection.why_not(member.spec)
        if filter_text:
            # `exclude: gcc` of a source is `exclude_binary: gcc` of a mirror.
            key, _, specs = filter_text.partition(":")
            setting = f"{key}_binary:{specs}"
            binary = member.name_and_version
            return f"the mirror {filtered.name} leaves out {binary} ({setting})"
    return ""


def _same_url(first: str, second: str) -> bool:
    return _without_ends(first) == _without_ends(second)


def _without_ends(url: str) -> str:
    """Return a URL without parts that Spack adds or does not need."""
    return url.removeprefix("file://").rstrip("/").removesuffix("/build_cache")
