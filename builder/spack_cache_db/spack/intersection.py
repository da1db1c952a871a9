"""Combines two spec queries (Spack's `constrain`), and tests whether one implies
another.

The rules are those of Spack 1.2's `Spec.constrain` and `Spec.satisfies` for abstract
specs. Only the queries are compared, in time proportional to their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
    # Equal flags count once.
    flags = {(flag.name, flag.value): flag for flag in first.flags + second.flags}
    # The order of these calls decides which contradiction is reported.
    merged = SpecQuery(
        name=_equal("the packages", first.name, second.name),
        namespace=_equal("the namespaces", first.namespace, second.namespace),
        versions=_versions(first.versions, second.versions),
        variants=_variants(first.variants, second.variants),
        flags=tuple(flags.values()),
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
    for part in ("name", "namespace", "os", "platform"):
        if getattr(second, part) not in (None, getattr(first, part)):
            return False
    if second.hash is not None and not (first.hash or "").startswith(second.hash):
        return False
    if second.target is not None and not _target_within(first.target, second.target):
        return False
    return (
        _versions_within(first.versions, second.versions)
        and _flags_within(first, second)
        and _variants_within(first.variants, second.variants)
        and _dependencies_within(first.dependencies, second.dependencies)
    )


def _versions_within(first: VersionRanges | None, second: VersionRanges | None) -> bool:
    """Return whether all versions of the first are among those of the second."""
    if second is None:
        return True
    return first is not None and first.lies_in(second)


def _target_within(first: str | None, second: str) -> bool:
    """Return whether each part of a target list lies in another list."""
    if first is None:
        return False
    constraint_parts = set(second.split(","))
    for part in dict.fromkeys(first.split(",")):
        is_name = ":" not in part
        is_within = is_name and target_matches(second, part)
        if part not in constraint_parts and not is_within:
            return False
    return True


def _flags_within(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether the first has all words of the compiler flags of the second."""
    words_by_name: dict[str, set[str]] = {}
    for flag in first.flags:
        words_by_name.setdefault(flag.name, set()).update(flag_words(flag.value))
    for flag in second.flags:
        words = words_by_name.get(flag.name)
        if words is None or not words.issuperset(flag_words(flag.value)):
            return False
    return True


def _variants_within(
    first: Iterable[VariantConstraint], second: Iterable[VariantConstraint]
) -> bool:
    """Return whether the variants of the first imply those of the second."""
    by_name = {variant.name: variant for variant in first}
    return all(
        _variant_within(by_name.get(variant.name), variant) for variant in second
    )


def _variant_within(first: VariantConstraint | None, second: VariantConstraint) -> bool:
    """Return whether a variant, if there is one, implies another one."""
    if first is None:
        return second.propagate
    if not second.values:
        return True
    if "bool" in (first.kind, second.kind):
        return first.kind == second.kind and first.values == second.values
    first_values = set(first.values)
    second_values = set(second.values)
    if second.exact:
        return first_values == second_values
    return second_values <= first_values


def _dependencies_within(
    first: tuple[Dependency, ...], second: tuple[Dependency, ...]
) -> bool:
    """Return whether each edge of the second is implied by an edge of the first."""
    by_name: dict[str | None, list[Dependency]] = {}
    for edge in first:
        by_name.setdefault(edge.node.name, []).append(edge)
    for edge in second:
        candidates = by_name.get(edge.node.name, ())
        if not any(_edge_within(candidate, edge) for candidate in candidates):
            return False
    return True


def _edge_within(first: Dependency, second: Dependency) -> bool:
    """Return whether an edge implies another one."""
    if second.direct and not first.direct:
        return False
    if first.when != second.when:
        return False
    has_virtuals = set(second.virtuals) <= set(first.virtuals)
    has_types = set(second.deptypes) <= set(first.deptypes)
    return has_virtuals and has_types and implies(first.node, second.node)


def _excluded(subject: str, first: str | None, second: str | None) -> UnsatisfiableSpec:
    return UnsatisfiableSpec(f"{subject} {first} and {second} exclude each other")


def _equal(subject: str, first: str | None, second: str | None) -> str | None:
    """Return the one text of both; raises `UnsatisfiableSpec` if they differ."""
    if first is not None and second is not None and first != second:
        raise _excluded(subject, first, second)
    return second if first is None else first


def _hash(first: str | None, second: str | None) -> str | None:
    """Return the longer of two beginnings of a hash, which must begin with the
    other.
    """
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
        name = variant.name
        if name in merged:
            merged[name] = _variant(merged[name], variant)
        else:
            merged[name] = variant
    return tuple(merged.values())


def _variant(first: VariantConstraint, second: VariantConstraint) -> VariantConstraint:
    """Return a variant with the values of both."""
    if not first.values or not second.values:
        return first if first.values else second
    if not _have_compatible_values(first, second):
        raise _excluded("the variants", variant_text(first), variant_text(second))
    values = {*first.values, *second.values}
    return replace(
        first,
        values=tuple(sorted(values)),
        exact=first.exact or second.exact,
        propagate=first.propagate or second.propagate,
    )


def _have_compatible_values(
    first: VariantConstraint, second: VariantConstraint
) -> bool:
    """Return whether one binary can have the values of both."""
    first_values = set(first.values)
    second_values = set(second.values)
    if "bool" in (first.kind, second.kind):
        return first.kind == second.kind and first_values == second_values
    if first_values == second_values:
        return True
    # An exact list (`libs:=static`) has no other values.
    if first.exact and not second_values <= first_values:
        return False
    if second.exact and not first_values <= second_values:
        return False
    return first.name not in UNSPLIT_NAMES


def _target(first: str | None, second: str | None) -> str | None:
    """Return the targets of both lists, as a list."""
    if first is None or second is None or first == second:
        return second if first is None else first
    parts = dict.fromkeys(first.split(","))
    other_parts = dict.fromkeys(second.split(","))
    ranges = _target_ranges(parts)
    other_ranges = _target_ranges(other_parts)

    # Equal parts, the names of each list in a range of the other one, and the targets
    # in a range of each.
    shared = [part for part in parts if part in other_parts]
    shared += _names_in(parts, other_ranges)
    shared += _names_in(other_parts, ranges)
    for own_range in ranges:
        for other_range in other_ranges:
            in_both = _range_of_both(own_range, other_range)
            if in_both:
                shared += in_both.split(",")
    if not shared:
        raise _excluded("the targets", first, second)
    return ",".join(dict.fromkeys(shared))


def _names_in(parts: Iterable[str], ranges: Sequence[str]) -> list[str]:
    """Return the parts of a list of targets that are names in one of some ranges."""
    if not ranges:
        return []
    constraint = ",".join(ranges)
    names = [part for part in parts if ":" not in part]
    return [name for name in names if target_matches(constraint, name)]


def _target_ranges(parts: Iterable[str]) -> list[str]:
    """Return the ranges in a list of targets."""
    ranges = [part for part in parts if ":" in part]
    if len(ranges) > MOST_RANGES:
        raise UnsatisfiableSpec(f"target= lists more than {MOST_RANGES} ranges")
    return ranges


def _range_of_both(first: str, second: str) -> str:
    """Return the targets in both ranges, as one range or a list of names; empty if
    none.
    """
    low, _, high = first.partition(":")
    other_low, _, other_high = second.partition(":")
    lows = _in_order(low, other_low)
    highs = _in_order(high, other_high)
    if lows and highs:
        return f"{lows[-1]}:{highs[0]}"
    # The bounds have no order: name all targets in both.
    shared = []
    for name in known_targets():
        if target_matches(first, name) and target_matches(second, name):
            shared.append(name)
    return ",".join(shared)


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
        same = _index_of_same(merged, edge)
        if same is None:
            merged.append(edge)
            continue
        first = merged[same]
        virtuals = dict.fromkeys((*first.virtuals, *edge.virtuals))
        merged[same] = replace(
            first,
            node=constrained(first.node, edge.node),
            direct=first.direct or edge.direct,
            virtuals=tuple(virtuals),
        )
    return tuple(merged)


def _index_of_same(merged: Sequence[Dependency], edge: Dependency) -> int | None:
    """Return the place of the first edge that another one is merged with; None if it
    stays separate.

    Raises:
        UnsatisfiableSpec: Spack rejects the types of the two.
    """
    name = edge.node.name
    if name is None:
        return None
    same = None
    for index, other in enumerate(merged):
        if other.node.name != name:
            continue
        if _have_clashing_types(edge, other):
            subject = f"the types of the dependencies on {name},"
            raise _excluded(subject, ",".join(other.deptypes), ",".join(edge.deptypes))
        if same is None and _are_one(edge, other):
            same = index
    return same


def _are_one(edge: Dependency, other: Dependency) -> bool:
    """Return whether two edges to one package are merged."""
    if edge.deptypes != other.deptypes or edge.when != other.when:
        return False
    has_dependencies = bool(edge.node.dependencies or other.node.dependencies)
    return edge.direct == other.direct or not has_dependencies


def _have_clashing_types(edge: Dependency, other: Dependency) -> bool:
    """Return whether Spack rejects the types of two edges to one package."""
    types = set(edge.deptypes)
    other_types = set(other.deptypes)
    if edge.when != other.when or types == other_types:
        return False
    are_run_time = bool(types & RUN_TIME) and bool(other_types & RUN_TIME)
    return bool(types & other_types) or are_run_time
