"""A spec query's records → text in Spack's syntax that reads as the same query.

What belongs to the package stands before the first `%` or `^`, for what follows one is asked of the
dependency (Spack 1.1 `spec_parser.py`).
"""

import re
from collections.abc import Iterator

from spack_cache_db.spack.constraints import Dependency, SpecQuery, VariantConstraint

_BARE = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""What a value may be made of without quotes."""
_WORD = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_\-]*")


def spec_text(query: SpecQuery) -> str:
    """Return a query as one would type it; `*` for one that asks nothing."""
    return " ".join((*own_texts(query), *map(dependency_text, query.dependencies))) or "*"


def own_texts(query: SpecQuery) -> Iterator[str]:
    """Yield what is asked of the package itself, one condition each; name and version are one."""
    if head := name_text(query) + version_text(query):
        yield head
    if query.name is None and query.namespace is not None:
        yield f"namespace={_value(query.namespace)}"
    yield from map(variant_text, query.variants)
    for flag in query.flags:
        yield f"{flag.name}{'==' if flag.propagate else '='}{_value(flag.value)}"
    for key in ("platform", "os", "target"):
        if value := getattr(query, key):
            yield f"{key}={_value(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def name_text(query: SpecQuery) -> str:
    """Return the name with its namespace; nothing for any package."""
    if query.name is None:
        return ""
    return f"{query.namespace}.{query.name}" if query.namespace else query.name


def version_text(query: SpecQuery) -> str:
    """Return `@` and the versions; nothing for any."""
    return f"@{query.versions.text}" if query.versions else ""


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`; doubled signs for what is propagated."""
    if variant.kind == "bool":
        sign = "+" if variant.values == ("True",) else "~"
        return f"{sign * (1 + variant.propagate)}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = _value(",".join(variant.values)) if variant.values else "*"
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi`, `%[deptypes=build] cmake` with what is asked of it."""
    sign = "%" * (1 + edge.propagate) if edge.direct else "^"
    node = spec_text(edge.node)
    # `%c,cxx=gcc` is read so only where words stand on both sides of the sign.
    is_short = edge.node.name is not None and all(map(_WORD.fullmatch, edge.virtuals))
    if not edge.deptypes and edge.when is None and (is_short or not edge.virtuals):
        named = f"{','.join(edge.virtuals)}=" if edge.virtuals else ""
        return f"{sign}{named}{node}"
    attributes = [f"deptypes={_value(','.join(edge.deptypes))}"] if edge.deptypes else []
    attributes += [f"virtuals={_value(','.join(edge.virtuals))}"] if edge.virtuals else []
    attributes += [f"when={_value(edge.when)}"] if edge.when is not None else []
    return f"{sign}[{' '.join(attributes)}] {node}"


def _value(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, chr(92) + quote)}{quote}"
