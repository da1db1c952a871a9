"""Writes spec queries as text, in the syntax in which Spack reads specs.

`parser.parse_query` reads the text of a query as an equal query. The order of the
parts may differ from what was typed: `hdf5 os=rhel8 -mpi` becomes
`hdf5 ~mpi os=rhel8`.
"""

import re
from collections.abc import Iterator

from spack_cache_db.spack.lexer import WORD, is_package
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint

_NEEDS_NO_QUOTES = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""A value that Spack reads without quotes."""

_WORD = re.compile(WORD)
_LOOKS_LIKE_PROVIDER = re.compile(rf"{WORD}=[a-zA-Z0-9_]")
"""The start of a text that Spack reads as the provider of a virtual package, if it
comes right after `%` or `^`: `mpi=openmpi`.
"""


def spec_text(query: SpecQuery) -> str:
    """Return a query as you would type it; `*` for one without constraints.

    A constraint after `%` or `^` belongs to the dependency. So the constraints on the
    package itself come first, then each `%`, then each `^`.
    """
    texts = list(constraint_texts(query))
    for edge in query.dependencies:
        if edge.direct:
            texts.append(dependency_text(edge))
    for edge in query.dependencies:
        if not edge.direct:
            texts.append(dependency_text(edge))
    if not texts:
        return "*"
    return " ".join(texts)


def constraint_texts(query: SpecQuery) -> Iterator[str]:
    """Yield the constraints on the package itself: `hdf5@1.14`, `+mpi`, `os=rhel8`.

    The name, its namespace and the version are one text.
    """
    # The name with its namespace, such as builtin.hdf5. If Spack would not read both as
    # one name, the namespace is an option.
    name = query.name or ""
    namespace = query.namespace
    if query.name and query.namespace:
        qualified = f"{query.namespace}.{query.name}"
        if is_package(qualified):
            name = qualified
            namespace = None
    versions = f"@{query.versions.text}" if query.versions else ""
    if name or versions:
        yield f"{name}{versions}"
    if namespace is not None:
        yield f"namespace={_quoted_if_needed(namespace)}"

    # Variants and flags.
    for variant in query.variants:
        yield variant_text(variant)
    for flag in query.flags:
        equals = "==" if flag.propagate else "="
        yield f"{flag.name}{equals}{_quoted_if_needed(flag.value)}"

    # The architecture and the hash.
    for key in ("platform", "os", "target"):
        value = getattr(query, key)
        if value:
            yield f"{key}={_quoted_if_needed(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`.

    The sign is doubled if the variant is propagated: `++x`, `k==a`.
    """
    if variant.kind == "bool":
        sign = "+" if variant.values == ("true",) else "~"
        if variant.propagate:
            sign = sign * 2
        return f"{sign}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = "*"
    if variant.values:
        value = _quoted_if_needed(",".join(variant.values))
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi` or `%[deptypes=build] cmake +ncurses`."""
    sign = "^"
    if edge.direct:
        sign = "%%" if edge.propagate else "%"
    node = spec_text(edge.node)
    if edge.node.name is None and _LOOKS_LIKE_PROVIDER.match(node):
        # `^k=v` is the package v as provider of k; `^* k=v` is any package with k=v.
        node = f"* {node}"

    # The short forms: no attributes, or only virtual packages (`%c,cxx=gcc`). Spack
    # reads the latter if each virtual package is a plain word and a name follows.
    if not edge.deptypes and edge.when is None:
        if not edge.virtuals:
            return f"{sign}{node}"
        are_words = all(_WORD.fullmatch(virtual) for virtual in edge.virtuals)
        if are_words and edge.node.name is not None:
            virtuals = ",".join(edge.virtuals)
            return f"{sign}{virtuals}={node}"

    # All other attributes are in brackets.
    attributes = {}
    if edge.deptypes:
        attributes["deptypes"] = ",".join(edge.deptypes)
    if edge.virtuals:
        attributes["virtuals"] = ",".join(edge.virtuals)
    if edge.when is not None:
        attributes["when"] = spec_text(edge.when)
    pairs = []
    for key, value in attributes.items():
        pairs.append(f"{key}={_quoted_if_needed(value)}")
    return f"{sign}[{' '.join(pairs)}] {node}"


def _quoted_if_needed(text: str) -> str:
    """Return a value, in quotes if it needs them: `-g`, but `'-O2 -g'`."""
    if _NEEDS_NO_QUOTES.fullmatch(text):
        return text
    quote = '"' if "'" in text else "'"
    # The parser reads a backslash with this quote after it as the quote alone.
    escaped = text.replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"
