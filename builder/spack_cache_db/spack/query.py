"""Spack's spec syntax, read into frozen records.

Owns the grammar: how a package and its dependencies follow each other in a query. The words are
made in `lexer`, one package is read in `nodes`, what a query means for a spec is in `match`. The
rules are those of Spack 1.1's `spec_parser.py`; nothing here recurses, whatever the query.
"""

from dataclasses import replace

from spack_cache_db.spack.constraints import Dependency, Flag, SpecQuery, VariantConstraint
from spack_cache_db.spack.lexer import A_CONSTRAINT, MAX_LENGTH, QuerySyntaxError, Token, tokens
from spack_cache_db.spack.nodes import NodeReader, read_pair

__all__ = [
    "LEGACY_COMPILERS",
    "MAX_LENGTH",
    "Dependency",
    "Flag",
    "QuerySyntaxError",
    "SpecQuery",
    "VariantConstraint",
    "parse_query",
]

# Names that compilers had before Spack 1.0, when they were no packages, and have now.
LEGACY_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "rocmcc": "llvm-amdgpu",
    "intel": "intel-oneapi-compilers-classic",
    "arm": "acfl",
}

_EDGE_KEYS = ("deptypes", "virtuals", "when")
_SIGILS = ("edge_start", "dependency")


class _Cursor:
    """A place in the words of one query."""

    __slots__ = ("_position", "_words", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = tokens(text)
        self._position = 0

    def word(self) -> Token | None:
        """Return the next word, None at the end."""
        if self._position < len(self._words):
            return self._words[self._position]
        return None

    def take(self, *kinds: str) -> Token | None:
        """Return the next word and go on, when it is of one of these kinds."""
        word = self.word()
        if word is None or word.kind not in kinds:
            return None
        self._position += 1
        return word

    def skip(self) -> None:
        """Go on to the word after the next."""
        self._position += 1

    def error(self, expected: str, found: str = "") -> QuerySyntaxError:
        """Return an error at the next word, or at the end of the text."""
        word = self.word()
        column = len(self.text.rstrip()) if word is None else word.column
        return QuerySyntaxError(self.text, column, expected, found)


def _node(cursor: _Cursor) -> NodeReader:
    """Read a name and all that constrains it, up to a dependency or the end."""
    node = NodeReader(cursor.text)
    name = cursor.take("name")
    if name is not None:
        node.named(name)
    while (word := cursor.word()) is not None and node.take(word):
        cursor.skip()
    return node


def _virtuals(assignment: str) -> tuple[str, ...]:
    """Read the `c,cxx=` of `%c,cxx=gcc`; the lexer leaves `gcc` as the next word."""
    names = assignment.strip().removesuffix("=")
    return tuple(names.split(",")) if names else ()


def _edge_attributes(cursor: _Cursor) -> dict[str, tuple[str, ...]]:
    """Read `virtuals=c,cxx deptypes=build]`, from after one bracket to after the other."""
    found: dict[str, tuple[str, ...]] = {}
    while (word := cursor.word()) is not None and word.kind == "pair":
        pair = read_pair(word)
        if pair.name not in _EDGE_KEYS or pair.propagate:
            raise cursor.error(f"one of {', '.join(_EDGE_KEYS)}, then '=' and a value")
        whole = pair.name == "when"
        found[pair.name] = (pair.value,) if whole else tuple(pair.value.split(","))
        cursor.skip()
    end = cursor.take("edge_end")
    if end is None:
        raise cursor.error("deptypes=, virtuals=, when= or the closing ']'")
    assigned = _virtuals(end.text[1:])
    if assigned:
        found["virtuals"] = (*found.get("virtuals", ()), *assigned)
    return found


def _dependency(cursor: _Cursor) -> Dependency | None:
    """Read a sigil, its attributes and the package after it; None where no sigil stands."""
    sigil = cursor.take(*_SIGILS)
    if sigil is None:
        return None
    attributes: dict[str, tuple[str, ...]] = {}
    if sigil.kind == "edge_start":
        attributes = _edge_attributes(cursor)
    elif assigned := _virtuals(sigil.text.lstrip("%^")):
        attributes["virtuals"] = assigned
    if (word := cursor.word()) is None or word.kind in (*_SIGILS, "edge_end"):
        raise cursor.error(f"the name of a package, or a constraint, after {sigil.text[:40]!r}")
    direct = sigil.text.startswith("%")
    node = _node(cursor)
    if direct and node.name is not None:
        node.name = LEGACY_COMPILERS.get(node.name, node.name)
    when = attributes.get("when")
    return Dependency(
        node=node.record(),
        direct=direct,
        virtuals=attributes.get("virtuals", ()),
        deptypes=attributes.get("deptypes", ()),
        when=when[0] if when else None,
        propagate=sigil.text.startswith("%%"),
        column=sigil.column,
    )


def _dependencies(cursor: _Cursor) -> tuple[Dependency, ...]:
    """Read all dependencies; a `%` after a `^dep` belongs to that dependency."""
    groups: list[tuple[Dependency, list[Dependency]]] = []
    while (edge := _dependency(cursor)) is not None:
        if edge.direct and groups and not groups[-1][0].direct:
            groups[-1][1].append(edge)
        else:
            groups.append((edge, []))
    return tuple(
        replace(edge, node=replace(edge.node, dependencies=tuple(own))) if own else edge
        for edge, own in groups
    )


def parse_query(text: str) -> SpecQuery:
    """Read one spec in Spack's syntax.

    Args:
        text: for instance `hdf5@1.14: +mpi target=zen3 %gcc@13`.

    Returns:
        The query as records; nothing is checked against packages or data.

    Raises:
        QuerySyntaxError: the text is no spec, is two specs, or is too long.
    """
    cursor = _Cursor(text)
    if cursor.word() is None:
        raise cursor.error("a package name or a constraint such as +mpi (* is any package)")
    root = _node(cursor)
    dependencies = _dependencies(cursor)
    if (word := cursor.word()) is not None:
        raise cursor.error(f"one spec: {A_CONSTRAINT}, or the end", f"extra {word.text[:40]!r}")
    return root.record(dependencies)
