"""Combines two spec queries (Spack's `constrain`), and tests whether one implies
another.

The rules are those of Spack 1.2's `Spec.constrain` and `Spec.satisfies` for abstract
specs. Only the queries are compared, in time proportional to their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product, starmap

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.facts import RUN_TIME, UNSPLIT_NAMES
from spack_cache_db.spack.matching import flag_words
from spack_cache_db.spack.printing import spec_text, variant_text
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint
from spack_cache_db.spack.targets import known_targets, runs_on, target_matches
from spack_cache_db.spack.versions import VersionRanges

MOST_RANGES = 32
"""Maximum of ranges in a list of targets; each is compared with each of another
list.
"""


class UnsatisfiableSpec(BuilderError, ValueError):
    """Two specs that exclude each other; the message names the parts that do."""


def constrained(first: SpecQuery, second: SpecQuery) -> SpecQuery:
    """Return the query with the constraints of both; raises `UnsatisfiableSpec`."""
    merged = SpecQuery(
        name=_equal("the packages", first.name, second.name),
        namespace=_equal("the namespaces", first.namespace, second.namespace),
        versions=_versions(first.versions, second.versions),
        variants=_variants(first.variants, second.variants),
        flags=tuple(
            {
                (flag.name, flag.value): flag for flag in first.flags + second.flags
            }.values()
        ),
        os=_equal("os", first.os, second.os),
        platform=_equal("platform", first.platform, second.platform),
        target=_target(first.target, second.target),
        hash=_hash(first.hash, second.hash),
        dependencies=merged_edges(first.dependencies + second.dependencies),
    )
    return replace(merged, text=spec_text(merged))


def implies(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether every spec that satisfies the first satisfies the second.

    A variant's values count as complete, as where Spack excludes rows of a matrix. The
    first may leave out a variant that the second propagates (`k==v`).
    """
    parts = ("name", "namespace", "os", "platform")
    return (
        all(getattr(second, part) in (None, getattr(first, part)) for part in parts)
        and (second.hash is None or (first.hash or "").startswith(second.hash))
        and (second.target is None or _target_within(first.target, second.target))
        and (
            second.versions is None
            or (first.versions is not None and first.versions.lies_in(second.versions))
        )
        and _flags_within(first, second)
        and _variants_within(first.variants, second.variants)
        and _dependencies_within(first.dependencies, second.dependencies)
    )


def _target_within(first: str | None, second: str) -> bool:
    """Return whether each part of a target list lies in another list."""
    if first is None:
        return False
    constraint_parts = {*second.split(",")}
    return all(
        part in constraint_parts or (":" not in part and target_matches(second, part))
        for part in dict.fromkeys(first.split(","))
    )


def _flags_within(first: SpecQuery, second: SpecQuery) -> bool:
    words_by_name: dict[str, set[str]] = {}
    for flag in first.flags:
        words_by_name.setdefault(flag.name, set()).update(flag_words(flag.value))
    return all(
        flag.name in words_by_name
        and {*flag_words(flag.value)} <= words_by_name[flag.name]
        for flag in second.flags
    )


def _variants_within(
    first: Iterable[VariantConstraint], second: Iterable[VariantConstraint]
) -> bool:
    by_name = {variant.name: variant for variant in first}
    return all(
        _variant_within(by_name.get(variant.name), variant) for variant in second
    )


def _variant_within(first: VariantConstraint | None, second: VariantConstraint) -> bool:
    if first is None:
        return second.propagate
    if not second.values:
        return True
    if "bool" in (first.kind, second.kind):
        return (first.kind, first.values) == (second.kind, second.values)
    if second.exact:
        return {*first.values} == {*second.values}
    return {*second.values} <= {*first.values}


def _dependencies_within(
    first: tuple[Dependency, ...], second: tuple[Dependency, ...]
) -> bool:
    """Return whether each edge of the second is implied by an edge of the first."""
    by_name: dict[str | None, list[Dependency]] = {}
    for edge in first:
        by_name.setdefault(edge.node.name, []).append(edge)
    return all(
        any(
            _edge_within(candidate, edge)
            for candidate in by_name.get(edge.node.name, ())
        )
        for edge in second
    )


def _edge_within(first: Dependency, second: Dependency) -> bool:
    return (
        first.direct >= second.direct
        and {*second.virtuals} <= {*first.virtuals}
        and {*second.deptypes} <= {*first.deptypes}
        and first.when == second.when
        and implies(first.node, second.node)
    )


def _excluded(subject: str, first: str | None, second: str | None) -> UnsatisfiableSpec:
    return UnsatisfiableSpec(f"{subject} {first} and {second} exclude each other")


def _equal(subject: str, first: str | None, second: str | None) -> str | None:
    if first is not None and second is not None and first != second:
        raise _excluded(subject, first, second)
    return second if first is None else first


def _hash(first: str | None, second: str | None) -> str | None:
    shorter, longer = sorted((first or "", second or ""), key=len)
    if not longer.startswith(shorter):
        raise _excluded("the hashes", f"/{first}", f"/{second}")
    return longer or None


def _versions(
    first: VersionRanges | None, second: VersionRanges | None
) -> VersionRanges | None:
    if first is None or second is None:
        return second if first is None else first
    both = first.intersection(second)
    if both is None:
        raise _excluded("the versions", f"@{first.text}", f"@{second.text}")
    return both


def _variants(
    first: tuple[VariantConstraint, ...], second: tuple[VariantConstraint, ...]
) -> tuple[VariantConstraint, ...]:
    merged = {variant.name: variant for variant in first}
    for variant in second:
        earlier = merged.get(variant.name)
        merged[variant.name] = (
            variant if earlier is None else _variant(earlier, variant)
        )
    return tuple(merged.values())


def _variant(first: VariantConstraint, second: VariantConstraint) -> VariantConstraint:
    if not first.values or not second.values:
        return first if first.values else second
    first_values, second_values = {*first.values}, {*second.values}
    if "bool" in (first.kind, second.kind):
        fits = (first.kind, first_values) == (second.kind, second_values)
    else:
        fits = first_values == second_values or (
            (not first.exact or second_values <= first_values)
            and (not second.exact or first_values <= second_values)
            and first.name not in UNSPLIT_NAMES
        )
    if not fits:
        raise _excluded("the variants", variant_text(first), variant_text(second))
    return replace(
        first,
        values=tuple(sorted(first_values | second_values)),
        exact=first.exact or second.exact,
        propagate=first.propagate or second.propagate,
    )


def _target(first: str | None, second: str | None) -> str | None:
    if first is None or second is None or first == second:
        return second if first is None else first
    parts, other_parts = (
        dict.fromkeys(first.split(",")),
        dict.fromkeys(second.split(",")),
    )
    ranges, other_ranges = _target_ranges(parts), _target_ranges(other_parts)
    shared = [part for part in parts if part in other_parts]
    for names, constraints in ((parts, other_ranges), (other_parts, ranges)):
        shared += [
            name
            for name in names
            if ":" not in name
            and constraints
            and target_matches(",".join(constraints), name)
        ]
    shared += filter(None, starmap(_range_of_both, product(ranges, other_ranges)))
    if not shared:
        raise _excluded("the targets", first, second)
    return ",".join(dict.fromkeys(",".join(shared).split(",")))


def _target_ranges(parts: Iterable[str]) -> list[str]:
    ranges = [part for part in parts if ":" in part]
    if len(ranges) > MOST_RANGES:
        raise UnsatisfiableSpec(f"target= lists more than {MOST_RANGES} ranges")
    return ranges


def _range_of_both(first: str, second: str) -> str:
    """Return the targets in both ranges, as one range or a list of names; empty if
    none.
    """
    (low, _, high), (other_low, _, other_high) = (
        first.partition(":"),
        second.partition(":"),
    )
    lows, highs = _in_order(low, other_low), _in_order(high, other_high)
    if lows and highs:
        return f"{lows[-1]}:{highs[0]}"
    shared = (name for name in known_targets() if target_matches(first, name))
    return ",".join(name for name in shared if target_matches(second, name))


def _in_order(first: str, second: str) -> tuple[str, ...]:
    """Return the bounds that are not empty in archspec's order; `()` if it does not
    order them.
    """
    if not first or not second:
        return (first or second,)
    if runs_on(first, second):
        return first, second
    return (second, first) if runs_on(second, first) else ()


def merged_edges(edges: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Merge the edges to one package that have the same types and condition.

    The merged edge is direct (`%x`) if one of them is. `%x` and `^x %y` stay separate,
    because the text of a `%x` cannot have dependencies.

    Raises:
        UnsatisfiableSpec: the constraints or types of two edges to one package exclude
            each other (Spack 1.2 `deptypes.py`, `compatible`).
    """
    merged: list[Dependency] = []
    for edge in edges:
        same = None
        for index, other in enumerate(merged if edge.node.name is not None else ()):
            if other.node.name != edge.node.name:
                continue
            if _have_clashing_types(edge, other):
                subject = f"the types of the dependencies on {edge.node.name},"
                raise _excluded(
                    subject, ",".join(other.deptypes), ",".join(edge.deptypes)
                )
            same = index if same is None and _are_one(edge, other) else same
        if same is None:
            merged.append(edge)
        else:
            first = merged[same]
            merged[same] = replace(
                first,
                node=constrained(first.node, edge.node),
                direct=first.direct or edge.direct,
                virtuals=tuple(dict.fromkeys((*first.virtuals, *edge.virtuals))),
            )
    return tuple(merged)


def _are_one(edge: Dependency, other: Dependency) -> bool:
    if (edge.node.name, edge.deptypes, edge.when) != (
        other.node.name,
        other.deptypes,
        other.when,
    ):
        return False
    return edge.direct == other.direct or not (
        edge.node.dependencies or other.node.dependencies
    )


def _have_clashing_types(edge: Dependency, other: Dependency) -> bool:
    """Return whether Spack rejects the types of two edges to one package."""
    types, other_types = {*edge.deptypes}, {*other.deptypes}
    if edge.when != other.when or types == other_types:
        return False
    return bool(types & other_types or (types & RUN_TIME and other_types & RUN_TIME))
