"""The text of spec queries, as Spack writes specs."""

import re
from collections.abc import Iterator

from spack_cache_db.spack.lexer import WORD, is_package
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint

_BARE = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""A value that needs no quotes."""
_WORD = re.compile(WORD)
_PROVIDED = re.compile(rf"{WORD}=[a-zA-Z0-9_]")


def spec_text(query: SpecQuery) -> str:
    """Return a query as you would type it; `*` for one without constraints.

    Constraints on the package come first, then each `%`, then each `^`, because a
    constraint behind a sigil belongs to the dependency.
    """
    edges = sorted(query.dependencies, key=lambda edge: not edge.direct)
    return " ".join((*constraint_texts(query), *map(dependency_text, edges))) or "*"


def constraint_texts(query: SpecQuery) -> Iterator[str]:
    """Yield the constraints on the package itself, one by one; name and version are
    one.
    """
    qualified = f"{query.namespace}.{query.name}"
    is_qualified = bool(query.name and query.namespace) and is_package(qualified)
    name = qualified if is_qualified else query.name or ""
    if head := name + (f"@{query.versions.text}" if query.versions else ""):
        yield head
    if query.namespace is not None and not is_qualified:
        yield f"namespace={_value(query.namespace)}"
    yield from map(variant_text, query.variants)
    for flag in query.flags:
        yield f"{flag.name}{'==' if flag.propagate else '='}{_value(flag.value)}"
    for key in ("platform", "os", "target"):
        if value := getattr(query, key):
            yield f"{key}={_value(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`; with a doubled sign if it is
    propagated.
    """
    if variant.kind == "bool":
        sign = "+" if variant.values == ("true",) else "~"
        return f"{sign * (1 + variant.propagate)}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = _value(",".join(variant.values)) if variant.values else "*"
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi` or `%[deptypes=build] cmake` with its
    constraints.
    """
    sign = "%" * (1 + edge.propagate) if edge.direct else "^"
    node = spec_text(edge.node)
    # `^k=v` is the package v as provider of k; `^* k=v` is any package with k=v.
    node = f"* {node}" if edge.node.name is None and _PROVIDED.match(node) else node
    # Spack reads `%c,cxx=gcc` only if both sides of the sign are plain words.
    is_short = edge.node.name is not None and all(map(_WORD.fullmatch, edge.virtuals))
    if not edge.deptypes and edge.when is None and (is_short or not edge.virtuals):
        assigned = f"{','.join(edge.virtuals)}=" if edge.virtuals else ""
        return f"{sign}{assigned}{node}"
    attributes = (
        [f"deptypes={_value(','.join(edge.deptypes))}"] if edge.deptypes else []
    )
    attributes += (
        [f"virtuals={_value(','.join(edge.virtuals))}"] if edge.virtuals else []
    )
    attributes += (
        [f"when={_value(spec_text(edge.when))}"] if edge.when is not None else []
    )
    return f"{sign}[{' '.join(attributes)}] {node}"


def _value(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, chr(92) + quote)}{quote}"
