"""Two spec queries as one: what Spack calls to constrain a spec, and whether one asks the other.

The rules are those of Spack 1.1's `Spec.constrain` and `Spec.satisfies` for specs that are not
concrete.
"""

from dataclasses import replace

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import (
    Dependency,
    SpecQuery,
    VariantConstraint,
    dependency_text,
    spec_text,
    variant_text,
)
from spack_cache_db.spack.targets import known_targets, runs_on, target_matches
from spack_cache_db.spack.versions import Exact, Range, VersionRanges, version_key


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
        dependencies=_dependencies(first.dependencies, second.dependencies),
    )
    return replace(merged, text=spec_text(merged))


def asks_at_least(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether whatever satisfies the first satisfies the second, by what they say alone.

    A variant's values count as all that it has, as where Spack excludes rows of a matrix.
    """
    if not _speaks_of_all(first, second):
        return False
    try:
        both = constrained(first, second)
    except UnsatisfiableSpec:
        return False
    return _essence(both) == _essence(first) and _is_within(first.versions, both.versions)


def _speaks_of_all(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether the first says anything of all that the second asks; quickly told."""
    parts = ("name", "namespace", "versions", "os", "platform", "target", "hash")
    return (
        all(getattr(first, part) is not None or getattr(second, part) is None for part in parts)
        and {each.name for each in second.variants} <= {each.name for each in first.variants}
        and len(second.dependencies) <= len(first.dependencies)
    )


def _essence(query: SpecQuery) -> tuple[object, ...]:
    """Return what a query asks besides versions, in a form in which equal things are equal."""
    return (
        (query.name, query.namespace, query.os, query.platform, query.target, query.hash),
        {(each.name, each.values, each.kind) for each in query.variants},
        {(flag.name, flag.value) for flag in query.flags},
        {dependency_text(edge) for edge in query.dependencies},
    )


def _is_within(first: VersionRanges | None, both: VersionRanges | None) -> bool:
    if first is None or both is None:
        return both is None
    return {*first.parts} <= {*both.parts}


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
    found = [
        text
        for one in zip(first.parts, first.text.split(","), strict=True)
        for other in zip(second.parts, second.text.split(","), strict=True)
        if (text := _part_of_both(*one, *other)) is not None
    ]
    if not found:
        raise _excluded("the versions", f"@{first.text}", f"@{second.text}")
    return VersionRanges.parse(",".join(dict.fromkeys(found)))


def _part_of_both(first: Range | Exact, text: str, second: Range | Exact, other: str) -> str | None:
    """Return the text of what lies in both parts, None where nothing does."""
    if isinstance(first, Exact):
        return text if second.contains(version_key(text.removeprefix("="))) else None
    if isinstance(second, Exact):
        return other if first.contains(version_key(other.removeprefix("="))) else None
    if max(first.low, second.low) >= min(first.high, second.high):
        return None
    low = text if first.low >= second.low else other
    high = text if first.high <= second.high else other
    if low == high:
        return low
    return f"{low.partition(':')[0]}:{high.rpartition(':')[2]}"


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
    found = [
        part
        for one in first.split(",")
        for other in second.split(",")
        if (part := _target_of_both(one, other)) is not None
    ]
    if not found:
        raise _excluded("the targets", first, second)
    return ",".join(dict.fromkeys(found))


def _target_of_both(first: str, second: str) -> str | None:
    """Return what two parts of target lists share, as one part or several; None for nothing."""
    if ":" not in first:
        return first if target_matches(second, first) else None
    if ":" not in second:
        return second if target_matches(first, second) else None
    (low, _, high), (other_low, _, other_high) = first.partition(":"), second.partition(":")
    lows, highs = _in_order(low, other_low), _in_order(high, other_high)
    if lows and highs:
        return f"{lows[-1]}:{highs[0]}"
    shared = (each for each in known_targets() if target_matches(first, each))
    return ",".join(each for each in shared if target_matches(second, each)) or None


def _in_order(first: str, second: str) -> tuple[str, ...]:
    """Return two bounds, or the one that there is, in archspec's order; none if they have none."""
    if not first or not second:
        return (first or second,)
    if runs_on(first, second):
        return first, second
    return (second, first) if runs_on(second, first) else ()


def _dependencies(
    first: tuple[Dependency, ...], second: tuple[Dependency, ...]
) -> tuple[Dependency, ...]:
    """Return the edges of both; those that say the same of the same package become one."""
    found = list(first)
    for edge in second:
        for place, known in enumerate(found):
            if _is_same_edge(known, edge):
                found[place] = replace(known, node=constrained(known.node, edge.node))
                break
        else:
            found.append(edge)
    return tuple(found)


def _is_same_edge(first: Dependency, second: Dependency) -> bool:
    same_node = first.node.name is not None and first.node.name == second.node.name
    bare = SpecQuery()
    return same_node and replace(first, node=bare, column=0) == replace(second, node=bare, column=0)
