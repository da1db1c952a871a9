"""The text of spec queries, as Spack writes specs."""

import re
from collections.abc import Iterator

from spack_cache_db.spack.lexer import WORD, is_package
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint

_BARE = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""A value that needs no quotes."""
_WORD = re.compile(WORD)
_PROVIDED = re.compile(rf"{WORD}=[a-zA-Z0-9_]")
"""The start of a spec that Spack reads as a provider behind a sigil: `mpi=openmpi`."""


def spec_text(query: SpecQuery) -> str:
    """Return a query as you would type it; `*` for one without constraints.

    Constraints on the package come first, then each `%`, then each `^`, because a
    constraint behind a sigil belongs to the dependency.
    """
    texts = list(constraint_texts(query))
    direct = [edge for edge in query.dependencies if edge.direct]
    others = [edge for edge in query.dependencies if not edge.direct]
    for edge in direct + others:
        texts.append(dependency_text(edge))
    return " ".join(texts) or "*"


def constraint_texts(query: SpecQuery) -> Iterator[str]:
    """Yield the constraints on the package itself, such as `hdf5@1.14`, `+mpi` and
    `os=rhel8`; name and version are one.
    """
    # A name with its namespace, unless Spack would not read both as one name.
    name = query.name or ""
    is_qualified = False
    if query.name and query.namespace:
        qualified = f"{query.namespace}.{query.name}"
        is_qualified = is_package(qualified)
        if is_qualified:
            name = qualified
    versions = f"@{query.versions.text}" if query.versions else ""
    if name or versions:
        yield f"{name}{versions}"
    if query.namespace is not None and not is_qualified:
        yield f"namespace={_value(query.namespace)}"

    # Variants, flags, architecture and hash.
    for variant in query.variants:
        yield variant_text(variant)
    for flag in query.flags:
        equals = "==" if flag.propagate else "="
        yield f"{flag.name}{equals}{_value(flag.value)}"
    for key in ("platform", "os", "target"):
        value = getattr(query, key)
        if value:
            yield f"{key}={_value(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`; with a doubled sign if it is
    propagated.
    """
    if variant.kind == "bool":
        sign = "+" if variant.values == ("true",) else "~"
        if variant.propagate:
            sign += sign
        return f"{sign}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = _value(",".join(variant.values)) if variant.values else "*"
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi` or `%[deptypes=build] cmake` with its
    constraints.
    """
    sign = "%" if edge.direct else "^"
    if edge.direct and edge.propagate:
        sign = "%%"
    node = spec_text(edge.node)
    if edge.node.name is None and _PROVIDED.match(node):
        # `^k=v` is the package v as provider of k; `^* k=v` is any package with k=v.
        node = f"* {node}"

    # Brackets are needed for types, a condition, and virtuals that `%c,cxx=gcc` cannot
    # express: Spack reads it only if both sides of the sign are plain words.
    if not edge.deptypes and edge.when is None:
        if not edge.virtuals:
            return f"{sign}{node}"
        are_words = all(_WORD.fullmatch(virtual) for virtual in edge.virtuals)
        if edge.node.name is not None and are_words:
            return f"{sign}{','.join(edge.virtuals)}={node}"
    attributes = []
    if edge.deptypes:
        attributes.append(f"deptypes={_value(','.join(edge.deptypes))}")
    if edge.virtuals:
        attributes.append(f"virtuals={_value(','.join(edge.virtuals))}")
    if edge.when is not None:
        attributes.append(f"when={_value(spec_text(edge.when))}")
    return f"{sign}[{' '.join(attributes)}] {node}"


def _value(text: str) -> str:
    """Return a value, in quotes if it needs them: `'-O2 -g'`."""
    if _BARE.fullmatch(text):
        return text
    quote = '"' if "'" in text else "'"
    escaped = text.replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"
