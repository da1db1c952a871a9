"""The rules by which Spack's solver reuses binaries and installed specs.

The rules are those of Spack 1.2 (`solver/reuse.py`, `spec_filter.py`,
`mirrors/mirror.py`, `concretize.lp`). For the solver, a binary and everything that it
links or runs (its closure) must be

1. of Spack 1.0 or newer, not built from a folder of sources (`dev_path`), and not a
   `compiler-wrapper` (`_is_reusable`);
2. on externals that `packages:` declares with a matching spec, the same prefix and the
   same modules; the C library needs no declaration (`_is_reusable`);
3. built with one compiler for each language, if `compiler_mixing: false`
   (`concretize.lp`);
4. in mirrors, or the solver builds the binary anew;
5. in a source of `concretizer: reuse:`, and not left out by its filters (`SpecFilter`);
6. given out by the mirrors that list it (`_spec_matches_filters`).

The first rule that fails is the obstacle, and decides the status of an answer: `near`
for 1 to 3, `incomplete` for 4, and `unknown` for 5 and 6, because the solver's own
solution may have the same hash. Rule 2 has two parts: an external of which `packages:`
has no entry is `unknown` too, because a machine's own configuration may declare it.

A binary that is asked for by its hash is not chosen by the solver: only 4 and 6 apply
(`obstacle_of_named`).

`obstacle_of_spec` checks what a spec is itself, and `obstacle_of_closure` what it
needs. Both only compare ids of specs with the sets of ids in a `Pool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Literal, NamedTuple

from spack_cache_db.errors import series
from spack_cache_db.query.choice.reuse_pool import (
    NO_FACTS,
    Compiler,
    KnownExternal,
    MemberFacts,
    Pool,
)
from spack_cache_db.query.stored.closure import Closure, External, Member
from spack_cache_db.query.stored.mirrors import Mirror
from spack_cache_db.spack.facts import COMPILER_WRAPPER, DEV_PATH, LIBC

ObstacleStatus = Literal["near", "incomplete", "unknown"]
"""The statuses of an answer whose binary has an obstacle."""
RANKS: Mapping[ObstacleStatus, int] = {"near": 0, "incomplete": 1, "unknown": 2}
"""The ranks of the statuses, from bad to good.

If each of several binaries has an obstacle, the one with the highest rank is shown.
"""

# Parts of reasons.
NOT_BEFORE_1_0 = "Spack 1.2 does not reuse binaries from before 1.0; install it by hash"
NOT_FROM_SOURCES = (
    f"Spack reuses no binary that was built from a folder of sources ({DEV_PATH})"
)
NOT_A_WRAPPER = f"Spack makes {COMPILER_WRAPPER} anew and reuses no binary of it"
OWN_SOLUTION = "Spack uses it only if its own solution has this hash"
MOST_NAMED = 3
"""Names in a series that is cut; see `short_series`."""


class Obstacle(NamedTuple):
    """Why the solver does not take a binary, or may not take it.

    Attributes:
        reason: a sentence, such as `no binary of zlib-ng@2.2.4, so Spack would build
            it`.
    """

    status: ObstacleStatus
    reason: str

    @property
    def rank(self) -> int:
        """The rank of the status; see `RANKS`."""
        return RANKS[self.status]


def obstacle_of_spec(
    pool: Pool, spec: int, *, is_installed: bool = False
) -> Obstacle | None:
    """Return why the solver does not take a spec, whatever it needs; None if it may
    take it.

    An installed spec may be from before Spack 1.0: it can be loaded as it is.
    """
    # Rule 1.
    if spec in pool.before_1_0 and not is_installed:
        return Obstacle("near", NOT_BEFORE_1_0)
    if spec in pool.developed:
        return Obstacle("near", NOT_FROM_SOURCES)
    if spec in pool.wrappers:
        return Obstacle("near", NOT_A_WRAPPER)
    # Rule 5.
    if not pool.reuses_roots:
        return Obstacle("unknown", f"with {pool.setting}, {OWN_SOLUTION}")
    setting = _setting_against(pool, spec)
    if setting:
        return Obstacle("unknown", f"with {setting}, {OWN_SOLUTION}")
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
    # The first obstacle is the answer. The rules are in the order of their statuses,
    # from bad to good, so rule 2 is in two places.
    dependencies = closure.members[1:]
    return (
        _old_or_developed(pool, dependencies)
        or _declared_otherwise(pool, closure.externals)
        or _several_compilers(pool, closure, facts.compilers)
        or missing_obstacle(closure)
        or _not_declared(pool, closure.externals)
        or _in_no_source(pool, dependencies)
        or _given_out_by_none(pool, closure.binaries, facts.listed)
    )


def obstacle_of_named(
    pool: Pool, closure: Closure, facts: MemberFacts = NO_FACTS
) -> Obstacle | None:
    """Return why Spack does not install a binary that is asked for by its hash; None if
    it does.

    The arguments are those of `obstacle_of_closure`.
    """
    return missing_obstacle(closure) or _given_out_by_none(
        pool, closure.binaries, facts.listed
    )


def _old_or_developed(pool: Pool, dependencies: Sequence[Member]) -> Obstacle | None:
    """Check rule 1 for dependencies; a `compiler-wrapper` is needed by builds only."""
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
    """Check rule 2 for packages of which `packages:` declares externals."""
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


def _several_compilers(
    pool: Pool, closure: Closure, compilers: Mapping[int, Mapping[str, Compiler]]
) -> Obstacle | None:
    """Check rule 3, given the compilers of members by their language."""
    if pool.allowed_to_mix is None:
        return None
    # Collect the compilers of each language by their ids, because two builds of one
    # version are two compilers.
    names_by_language: dict[str, dict[int, str]] = {}
    for member in closure.binaries:
        if member.package in pool.allowed_to_mix:
            continue
        for language, compiler in compilers.get(member.spec, {}).items():
            names = names_by_language.setdefault(language, {})
            names[compiler.spec] = compiler.text
    # The first language with several is named.
    for language, names in sorted(names_by_language.items()):
        if len(names) > 1:
            used = short_series(sorted(names.values()))
            reason = f"compiler_mixing: false: {used} compile its {language}"
            return Obstacle("near", reason)
    return None


def missing_obstacle(closure: Closure) -> Obstacle | None:
    """Return that mirrors lack a part of a closure (rule 4); None if they list all of
    it.
    """
    missing = [member.name_and_version for member in closure.missing]
    if not missing:
        return None
    reason = f"no binary of {short_series(missing)}, so Spack would build it"
    return Obstacle("incomplete", reason)


def _not_declared(pool: Pool, externals: Sequence[Member]) -> Obstacle | None:
    """Check rule 2 for packages of which `packages:` declares no external."""
    missing = [
        _external_text(member) for member in externals if not _is_declared(pool, member)
    ]
    if not missing:
        return None
    reason = f"only if your configuration declares {short_series(missing)}"
    return Obstacle("unknown", reason)


def _in_no_source(pool: Pool, dependencies: Sequence[Member]) -> Obstacle | None:
    """Check rule 5 for dependencies."""
    for member in dependencies:
        if member.external is None:
            setting = _setting_against(pool, member.spec)
        elif member.package in LIBC:
            # The C library needs no declaration.
            continue
        else:
            setting = _setting_against_external(pool, member.spec)
        if setting:
            reason = (
                f"it needs {member.name_and_version}: with {setting}, {OWN_SOLUTION}"
            )
            return Obstacle("unknown", reason)
    return None


def _given_out_by_none(
    pool: Pool, members: Sequence[Member], listed: Mapping[int, Sequence[Mirror]]
) -> Obstacle | None:
    """Check rule 6 for a binary and what it needs, given the mirrors that list each."""
    if not pool.mirrors:
        return None
    named = {mirror.name for mirror in pool.mirrors}
    for member in members:
        mirrors = listed.get(member.spec, ())
        reasons = [_why_withheld(pool, member, mirror, named) for mirror in mirrors]
        # An empty reason is a mirror that gives it out; one such mirror is enough.
        if reasons and all(reasons):
            reason = f"{reasons[0]}, so Spack uses it only from another mirror"
            return Obstacle("unknown", reason)
    return None


def _setting_against(pool: Pool, spec: int) -> str:
    """Return the setting that keeps a spec out of all sources, such as
    `reuse: exclude: gcc`; an empty text if one source has it.
    """
    left_out_by = []
    for source in pool.sources:
        if source.kind == "external" or not source.has(spec):
            continue
        filter_text = source.selection.why_not(spec)
        if not filter_text:
            return ""
        left_out_by.append(filter_text)
    if left_out_by:
        return f"reuse: {left_out_by[0]}"
    # No source has it at all.
    return pool.setting or "reuse: from:"


def _setting_against_external(pool: Pool, spec: int) -> str:
    """Return the filter that keeps an external out of all sources; an empty text if one
    source has it.
    """
    # Build caches have the externals of their binaries as well.
    filter_texts = [
        source.selection.why_not(spec)
        for source in pool.sources
        if source.kind in ("external", "buildcache")
    ]
    is_left_out = bool(filter_texts) and all(filter_texts)
    return f"reuse: {filter_texts[0]}" if is_left_out else ""


def _is_declared(pool: Pool, member: Member) -> bool:
    """Return whether `packages:` declares the external of a member, with its spec,
    prefix and modules.
    """
    used = member.external
    assert used is not None
    # All packages are searched: a provider of `mpi` may be declared below `mpi`.
    for declared in pool.externals.values():
        for external in declared:
            is_same_place = (
                external.prefix == used.prefix and external.modules == used.modules
            )
            if is_same_place and member.spec in external.specs:
                return True
    return False


def _external_text(member: Member) -> str:
    """Return an external and where it is, such as `zlib@1.3 at /opt/zlib`."""
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


def _why_withheld(pool: Pool, member: Member, mirror: Mirror, named: Set[str]) -> str:
    """Return why a mirror of the database does not give out a binary; an empty text if
    it does.
    """
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


def short_series(texts: Sequence[str]) -> str:
    """Return texts as a part of a sentence, such as `a, b and c`: up to four, or the
    first three and the number of the others.
    """
    # A fourth text is not longer than `1 more`.
    most = MOST_NAMED
    if len(texts) == MOST_NAMED + 1:
        most = len(texts)
    return series(texts, most)
