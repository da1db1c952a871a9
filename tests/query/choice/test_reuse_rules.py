"""query.reuse: the rules of reuse over plain sets, for every closure."""

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.choice.reuse import (
    RANKS,
    obstacle_of_closure,
    obstacle_of_spec,
    short_series,
)
from spack_cache_db.query.choice.reuse_pool import (
    AppliedFilter,
    KnownExternal,
    NamedVerdict,
    Pool,
    PoolSource,
)
from spack_cache_db.query.conditions.conditions import Verdict
from spack_cache_db.query.stored.closure import Closure, External, Member

SPECS = range(6)
SETS = st.frozensets(st.sampled_from(SPECS))


def member(spec: int, *, is_external: bool = False, is_listed: bool = True) -> Member:
    """Return a member of a closure."""
    external = External(f"/opt/{spec}", ()) if is_external else None
    release = "r" if is_listed and not is_external else None
    return Member(spec, str(spec) * 32, f"p{spec}", "1", release, None, external)


def closure(external: frozenset[int], unlisted: frozenset[int]) -> Closure:
    """Return the closure of spec 0, which needs all others."""
    members = tuple(
        member(
            spec,
            is_external=bool(spec) and spec in external,
            is_listed=spec not in unlisted,
        )
        for spec in SPECS
    )
    return Closure(members, (), is_known=True)


def excluding(specs: frozenset[int]) -> PoolSource:
    """Return a source that leaves out specs."""
    return PoolSource(
        "buildcache", AppliedFilter((), (NamedVerdict("x", Verdict(specs)),))
    )


@given(external=SETS, unlisted=SETS, old=SETS, left_out=SETS, declared=SETS)
def test_every_member_counts(
    external: frozenset[int],
    unlisted: frozenset[int],
    old: frozenset[int],
    left_out: frozenset[int],
    declared: frozenset[int],
) -> None:
    """A binary is taken exactly if no member breaks a rule; the worst rule decides."""
    known = {
        f"p{spec}": (KnownExternal(f"p{spec}", f"/opt/{spec}", (), frozenset((spec,))),)
        for spec in declared
    }
    pool = Pool(before_1_0=old, sources=(excluding(left_out),), externals=known)
    needs = closure(external, unlisted)
    found = obstacle_of_spec(pool, 0) or obstacle_of_closure(pool, needs)

    of_system = external - {0}
    expected = set()
    if 0 in old or (old - of_system):
        expected.add("near")
    if unlisted - of_system:
        expected.add("incomplete")
    if of_system - declared or left_out:
        expected.add("unknown")
    if found is None:
        assert not expected
        return
    assert found.status in expected
    # What the binary itself is decides before what it needs.
    if 0 not in left_out:
        assert found.rank == min(
            RANKS[status] for status in RANKS if status in expected
        )


@given(sources=st.lists(SETS, min_size=1, max_size=3))
def test_one_source_is_enough(sources: list[frozenset[int]]) -> None:
    """A spec is left out exactly if all sources leave it out."""
    pool = Pool(sources=tuple(map(excluding, sources)))

    for spec in SPECS:
        is_left_out = all(spec in excluded for excluded in sources)
        assert (obstacle_of_spec(pool, spec) is not None) == is_left_out


def test_a_series_of_names() -> None:
    """A short list is whole; of a long one, the first three are named."""
    assert [short_series("abcdef"[:count]) for count in (0, 1, 2, 3, 4)] == [
        "",
        "a",
        "a and b",
        "a, b and c",
        "a, b, c and d",
    ]
    assert short_series("abcdef") == "a, b, c and 3 more"
