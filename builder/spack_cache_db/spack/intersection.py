"""Combines two spec queries (Spack's `constrain`), and says whether one implies another.

The rules are those of Spack 1.2's `Spec.constrain` and `Spec.satisfies` for specs that are not
concrete. What is compared is what the queries say, in time proportional to their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import (
    Dependency,
    SpecQuery,
    VariantConstraint,
    flag_words,
    spec_text,
    variant_text,
)
from spack_cache_db.spack.normal_forms import UNSPLIT_NAMES
from spack_cache_db.spack.targets import known_targets, runs_on, target_matches
from spack_cache_db.spack.versions import VersionRanges

MOST_RANGES = 32
"""Ranges of a target list that are compared with those of another, all with all."""


class UnsatisfiableSpec(BuilderError, ValueError):
    """Two specs that nothing satisfies together; the message names what excludes each other."""


def constrained(first: SpecQuery, second: SpecQuery) -> SpecQuery:
    """Return the query that asks what both ask; its text is printed anew.

    Raises:
        UnsatisfiableSpec: nothing can satisfy both.
    """
    merged = SpecQuery(
        name=_equal("the packages", first.name, second.name),
        namespace=_equal("the namespaces", first.namespace, second.namespace),
        versions=_versions(first.versions, second.versions),
        variants=_variants(first.variants, second.variants),
        flags=tuple(
            {(flag.name, flag.value): flag for flag in first.flags + second.flags}.values()
        ),
        os=_equal("os", first.os, second.os),
        platform=_equal("platform", first.platform, second.platform),
        target=_target(first.target, second.target),
        hash=_hash(first.hash, second.hash),
        dependencies=merged_edges(first.dependencies + second.dependencies),
    )
    return replace(merged, text=spec_text(merged))


def implies(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether whatever satisfies the first satisfies the second, by what they say alone.

    A variant's values count as all that it has, as where Spack excludes rows of a matrix; and a
    variant that the second asks of all dependencies (`k==v`) is one that the first may leave open.
    """
    parts = ("name", "namespace", "os", "platform")
    return (
        all(getattr(second, part) in (None, getattr(first, part)) for part in parts)
        and (second.hash is None or (first.hash or "").startswith(second.hash))
        and (second.target is None or _target_within(first.target, second.target))
        and (second.versions is None or _versions_within(first.versions, second.versions))
        and _flags_within(first, second)
        and _variants_within(first.variants, second.variants)
        and _dependencies_within(first.dependencies, second.dependencies)
    )


def _versions_within(first: VersionRanges | None, second: VersionRanges) -> bool:
    return first is not None and first.lies_in(second)


def _target_within(first: str | None, second: str) -> bool:
    """Return whether each part of a target list lies in another list."""
    if first is None:
        return False
    asked = {*second.split(",")}
    return all(
        part in asked or (":" not in part and target_matches(second, part))
        for part in dict.fromkeys(first.split(","))
    )


def _flags_within(first: SpecQuery, second: SpecQuery) -> bool:
    given: dict[str, set[str]] = {}
    for flag in first.flags:
        given.setdefault(flag.name, set()).update(flag_words(flag.value))
    return all(
        flag.name in given and {*flag_words(flag.value)} <= given[flag.name]
        for flag in second.flags
    )


def _variants_within(
    first: Iterable[VariantConstraint], second: Iterable[VariantConstraint]
) -> bool:
    given = {each.name: each for each in first}
    return all(
        _variant_within(given[each.name], each) if each.name in given else each.propagate
        for each in second
    )


def _variant_within(first: VariantConstraint, second: VariantConstraint) -> bool:
    if not second.values:
        return True
    if "bool" in (first.kind, second.kind):
        return (first.kind, first.values) == (second.kind, second.values)
    if second.exact:
        return {*first.values} == {*second.values}
    return {*second.values} <= {*first.values}


def _dependencies_within(first: tuple[Dependency, ...], second: tuple[Dependency, ...]) -> bool:
    """Return whether some edge of the first says what each edge of the second asks."""
    named: dict[str | None, list[Dependency]] = {}
    for edge in first:
        named.setdefault(edge.node.name, []).append(edge)
    return all(
        any(_edge_within(each, edge) for each in named.get(edge.node.name, ())) for edge in second
    )


def _edge_within(first: Dependency, second: Dependency) -> bool:
    return (
        first.direct >= second.direct
        and {*second.virtuals} <= {*first.virtuals}
        and {*second.deptypes} <= {*first.deptypes}
        and first.when == second.when
        and implies(first.node, second.node)
    )


def _excluded(what: str, first: str, second: str) -> UnsatisfiableSpec:
    return UnsatisfiableSpec(f"{what} {first} and {second} exclude each other")


def _equal(what: str, first: str | None, second: str | None) -> str | None:
    if first is not None and second is not None and first != second:
        raise _excluded(what, first, second)
    return second if first is None else first


def _hash(first: str | None, second: str | None) -> str | None:
    if first is None or second is None:
        return second if first is None else first
    if not (first.startswith(second) or second.startswith(first)):
        raise _excluded("the hashes", f"/{first}", f"/{second}")
    return max(first, second, key=len)


def _versions(first: VersionRanges | None, second: VersionRanges | None) -> VersionRanges | None:
    if first is None or second is None:
        return second if first is None else first
    both = first.intersection(second)
    if both is None:
        raise _excluded("the versions", f"@{first.text}", f"@{second.text}")
    return both


def _variants(
    first: tuple[VariantConstraint, ...], second: tuple[VariantConstraint, ...]
) -> tuple[VariantConstraint, ...]:
    found = {each.name: each for each in first}
    for each in second:
        known = found.get(each.name)
        found[each.name] = each if known is None else _variant(known, each)
    return tuple(found.values())


def _variant(first: VariantConstraint, second: VariantConstraint) -> VariantConstraint:
    if not first.values or not second.values:
        return first if first.values else second
    mine, others = {*first.values}, {*second.values}
    if "bool" in (first.kind, second.kind):
        fits = (first.kind, mine) == (second.kind, others)
    else:
        fits = (not first.exact or others <= mine) and (not second.exact or mine <= others)
        fits = fits and (mine == others or first.name not in UNSPLIT_NAMES)
    if not fits:
        raise _excluded("the variants", variant_text(first), variant_text(second))
    return replace(
        first,
        values=tuple(sorted(mine | others)),
        exact=first.exact or second.exact,
        propagate=first.propagate or second.propagate,
    )


def _target(first: str | None, second: str | None) -> str | None:
    if first is None or second is None or first == second:
        return second if first is None else first
    parts, others = dict.fromkeys(first.split(",")), dict.fromkeys(second.split(","))
    ranges, other_ranges = _target_ranges(parts), _target_ranges(others)
    found = [each for each in parts if each in others]
    found += _names_within(parts, other_ranges) + _names_within(others, ranges)
    found += filter(None, (_range_of_both(one, other) for one in ranges for other in other_ranges))
    if not found:
        raise _excluded("the targets", first, second)
    return ",".join(dict.fromkeys(",".join(found).split(",")))


def _target_ranges(parts: Iterable[str]) -> list[str]:
    ranges = [each for each in parts if ":" in each]
    if len(ranges) > MOST_RANGES:
        raise UnsatisfiableSpec(f"target= lists more than {MOST_RANGES} ranges")
    return ranges


def _names_within(parts: Iterable[str], ranges: list[str]) -> list[str]:
    asked = ",".join(ranges)
    return [each for each in parts if ":" not in each and ranges and target_matches(asked, each)]


def _range_of_both(first: str, second: str) -> str:
    """Return what two ranges of targets share, as one part or several; empty for nothing."""
    (low, _, high), (other_low, _, other_high) = first.partition(":"), second.partition(":")
    lows, highs = _in_order(low, other_low), _in_order(high, other_high)
    if lows and highs:
        return f"{lows[-1]}:{highs[0]}"
    shared = (each for each in known_targets() if target_matches(first, each))
    return ",".join(each for each in shared if target_matches(second, each))


def _in_order(first: str, second: str) -> tuple[str, ...]:
    """Return two bounds, or the one that there is, in archspec's order; none if they have none."""
    if not first or not second:
        return (first or second,)
    if runs_on(first, second):
        return first, second
    return (second, first) if runs_on(second, first) else ()


def merged_edges(edges: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return edges with those to one package, of the same types and condition, as one.

    If one of them is direct (`%x`), so is the merged one. Only `%x` and `^x %y` stay apart, because
    the text of a `%x` cannot have dependencies of its own.

    Raises:
        UnsatisfiableSpec: nothing can satisfy two edges to one package: what they ask, or their
            types exclude each other (Spack 1.2 `deptypes.py`, `compatible`).
    """
    found: list[Dependency] = []
    for edge in edges:
        place = None
        for at, other in enumerate(found if edge.node.name is not None else ()):
            if other.node.name != edge.node.name:
                continue
            if _have_clashing_types(edge, other):
                what = f"the types of the dependencies on {edge.node.name},"
                raise _excluded(what, ",".join(other.deptypes), ",".join(edge.deptypes))
            place = at if place is None and _are_one(edge, other) else place
        if place is None:
            found.append(edge)
        else:
            found[place] = _edge_of_both(found[place], edge)
    return tuple(found)


def _are_one(edge: Dependency, other: Dependency) -> bool:
    if (edge.node.name, edge.deptypes, edge.when) != (other.node.name, other.deptypes, other.when):
        return False
    return edge.direct == other.direct or not (edge.node.dependencies or other.node.dependencies)


_RUN_TIME = frozenset(("link", "run"))


def _have_clashing_types(edge: Dependency, other: Dependency) -> bool:
    """Return whether two edges to one package have types that no two edges can have."""
    one, two = {*edge.deptypes}, {*other.deptypes}
    if edge.node.name != other.node.name or edge.when != other.when or one == two:
        return False
    return bool(one & two or (one & _RUN_TIME and two & _RUN_TIME))


def _edge_of_both(first: Dependency, second: Dependency) -> Dependency:
    return replace(
        first,
        node=constrained(first.node, second.node),
        direct=first.direct or second.direct,
        virtuals=tuple(dict.fromkeys((*first.virtuals, *second.virtuals))),
    )
