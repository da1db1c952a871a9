"""Reads Spack's spec syntax into frozen records.

`parse_query("hdf5@1.14 +mpi %gcc@13 ^zlib")` is a `SpecQuery` for hdf5 with a version,
a variant and two dependencies. `lexer` splits the text into words, `NodeReader`
collects the constraints on one package, and `query_of_words` reads the root and then
its dependencies, one after the other.

The rules are those of Spack 1.2's `spec_parser.py`, `Spec._add_flag` and `variant.py`.
`legacy` reads specs as Spack before 1.0 did.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spack_cache_db.spack.facts import (
    DEPTYPES,
    FLAG_NAMES,
    LEGACY_COMPILERS,
    PATCHES,
    UNSPLIT_NAMES,
)
from spack_cache_db.spack.intersection import UnsatisfiableSpec, merged_edges
from spack_cache_db.spack.lexer import A_CONSTRAINT, QuerySyntaxError, Token, tokens
from spack_cache_db.spack.normal_forms import VariantKind
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Dependency, Flag, SpecQuery, VariantConstraint
from spack_cache_db.spack.versions import VersionRanges

Parser = Callable[[str], SpecQuery]
"""Reads one spec; raises `QuerySyntaxError`."""

_SIGILS = ("edge_start", "dependency")
"""The kinds of words with which a dependency begins: `%[` or `^[`, and `%` or `^`."""

_EDGE_KEYS = ("deptypes", "virtuals", "when")
"""The keys that may be between the brackets of a dependency."""

_ARCH_KEYS = {
    "os": "os",
    "operating_system": "os",
    "platform": "platform",
    "target": "target",
}
"""The part of the architecture that each key sets."""

_WHOLE_ARCH_KEYS = frozenset({"arch", "architecture"})
"""The keys that set all parts at once: `arch=linux-debian12-zen3`."""

_NO_VARIANTS = _WHOLE_ARCH_KEYS | _ARCH_KEYS.keys() | {"namespace"}
"""Keys that cannot be written as variants, `+os`."""

_NOT_PROPAGATED = _NO_VARIANTS | {PATCHES} | (UNSPLIT_NAMES - FLAG_NAMES)
"""Keys that cannot be propagated to dependencies, `os==rhel8` (Spack 1.2 `variant.py`,
RESERVED_NAMES).
"""

_PAIR = re.compile(
    r"(?P<key>[a-zA-Z0-9_.\-]+)(?P<colon>:?)(?P<equals>==?)(?P<value>.*)", re.DOTALL
)
_FLAG = re.compile(r"(?P<sign>[+~\-]{1,2})\s*(?P<name>.+)", re.DOTALL)


def parse_query(text: str) -> SpecQuery:
    """Read one spec, such as `hdf5@1.14: +mpi target=zen3 %gcc@13`.

    The names of packages and variants are not checked.

    Raises:
        QuerySyntaxError: the text is not a spec, or is two, or too long.
    """
    return query_of_words(text, tokens(text))


def query_of_words(text: str, words: Sequence[Token]) -> SpecQuery:
    """Read the words of one spec, in the order in which Spack 1.2 reads them.

    Args:
        text: the spec, for messages.
        words: its words.
    """
    cursor = _Cursor(text, words)
    if cursor.word() is None:
        raise cursor.error(
            "a package name or a constraint such as +mpi (* is any package)"
        )
    root = _node(cursor)
    dependencies = _dependencies(cursor)
    word = cursor.word()
    if word is not None:
        raise cursor.error(
            f"one spec: {A_CONSTRAINT}, or the end", f"extra {word.text[:40]!r}"
        )
    return root.record(dependencies)


class _Cursor:
    """A position in the words of a query."""

    __slots__ = ("_position", "_words", "text")

    def __init__(self, text: str, words: Sequence[Token]) -> None:
        self.text = text
        self._words = words
        self._position = 0

    def word(self) -> Token | None:
        """Return the next word without taking it; None at the end."""
        if self._position == len(self._words):
            return None
        return self._words[self._position]

    def advance(self) -> None:
        """Go on to the word after the next one."""
        self._position += 1

    def take(self, *kinds: str) -> Token | None:
        """Return the next word and advance; None if it is not of one of these kinds."""
        word = self.word()
        if word is None or word.kind not in kinds:
            return None
        self.advance()
        return word

    def require_name(self, before: Token) -> None:
        """Raise `QuerySyntaxError` if the next word is not the name of a package."""
        word = self.word()
        if word is None or word.kind != "name":
            raise self.error(f"the name of a package after {before.text[:40]!r}")

    def error(self, expected: str, found: str = "") -> QuerySyntaxError:
        """Return an error at the next word, or at the end of the text."""
        word = self.word()
        column = len(self.text.rstrip()) if word is None else word.column
        return QuerySyntaxError(self.text, column, expected, found)


def _node(cursor: _Cursor) -> NodeReader:
    """Read a name and its constraints, up to a dependency or the end."""
    node = NodeReader(cursor.text)
    name = cursor.take("name")
    if name is not None:
        node.set_name(name)
    word = cursor.word()
    while word is not None and node.read(word):
        cursor.advance()
        word = cursor.word()
    return node


def _dependencies(cursor: _Cursor) -> tuple[Dependency, ...]:
    """Read all dependencies; a `%` after a `^dep` belongs to that dependency."""
    groups: list[_EdgeGroup] = []
    edge = _dependency(cursor)
    while edge is not None:
        # `^hdf5 %gcc`: gcc is a dependency of hdf5.
        is_after_transitive = bool(groups) and not groups[-1].edge.direct
        if edge.direct and is_after_transitive:
            groups[-1].below.append(edge)
        else:
            groups.append(_EdgeGroup(edge, below=[]))
        edge = _dependency(cursor)
    # Two constraints on one package, as in `^hdf5+mpi ^hdf5@1.14`, become one.
    try:
        return merged_edges(_with_edges_below(group) for group in groups)
    except UnsatisfiableSpec as error:
        raise QuerySyntaxError(
            cursor.text, 0, "each dependency once", str(error)
        ) from None


class _EdgeGroup(NamedTuple):
    """A dependency, and the `%` after it that belong to it."""

    edge: Dependency
    below: list[Dependency]


def _with_edges_below(group: _EdgeGroup) -> Dependency:
    """Return the dependency of a group; the package at its end has those below."""
    if not group.below:
        return group.edge
    node = replace(group.edge.node, dependencies=merged_edges(group.below))
    return replace(group.edge, node=node)


def _dependency(cursor: _Cursor) -> Dependency | None:
    """Read a sign (`%` or `^`), its attributes and the package after it.

    Returns None if the next word is not such a sign.
    """
    sigil = cursor.take(*_SIGILS)
    if sigil is None:
        return None

    # What the edge has to be: `%[deptypes=build]`, or `%c,cxx=`.
    attributes: dict[str, tuple[str, ...]] = {}
    if sigil.kind == "edge_start":
        attributes = _edge_attributes(cursor)
    else:
        assigned = _assigned_virtuals(sigil.text.lstrip("%^"))
        if assigned:
            cursor.require_name(sigil)
            attributes["virtuals"] = assigned

    # The package at its end. A bare `^` is any dependency, a bare `%` an error.
    is_direct = sigil.text.startswith("%")
    word = cursor.word()
    is_bare = word is None or word.kind in _SIGILS
    if is_direct and is_bare and not attributes:
        raise cursor.error(
            f"the name of a package, or a constraint, after {sigil.text[:40]!r}"
        )
    node = _node(cursor)
    # `%clang` is `%llvm`, its name since Spack 1.0. Spack renames only behind `%`.
    if is_direct and node.name is not None:
        node.name = LEGACY_COMPILERS.get(node.name, node.name)

    # Printed and read again, so that equal conditions are equal records.
    when = None
    if "when" in attributes:
        condition = parse_query(attributes["when"][0])
        when = parse_query(spec_text(condition))
    return Dependency(
        node=node.record(),
        direct=is_direct,
        virtuals=attributes.get("virtuals", ()),
        deptypes=attributes.get("deptypes", ()),
        when=when,
        propagate=sigil.text.startswith("%%"),
        column=sigil.column,
    )


def _edge_attributes(cursor: _Cursor) -> dict[str, tuple[str, ...]]:
    """Read the text behind an opening bracket: `virtuals=c,cxx deptypes=build]`."""
    attributes: dict[str, tuple[str, ...]] = {}
    word = cursor.word()
    while word is not None and word.kind == "pair":
        pair = read_pair(word)
        if pair.name not in _EDGE_KEYS or pair.propagate:
            raise cursor.error(f"one of {', '.join(_EDGE_KEYS)}, then '=' and a value")
        # A condition is a spec, in which commas have their own meaning.
        values: tuple[str, ...] = (pair.value,)
        if pair.name != "when":
            values = tuple(pair.value.split(","))
        if pair.name == "deptypes" and not set(values).issubset(DEPTYPES):
            raise cursor.error(f"types of dependencies: {', '.join(DEPTYPES)}")
        attributes[pair.name] = values
        cursor.advance()
        word = cursor.word()

    # The closing bracket, or `]c,cxx=` with more virtual packages.
    closing = cursor.take("edge_end")
    if closing is None:
        raise cursor.error("deptypes=, virtuals=, when= or the closing ']'")
    assigned = _assigned_virtuals(closing.text[1:])
    if assigned:
        cursor.require_name(closing)
        attributes["virtuals"] = (*attributes.get("virtuals", ()), *assigned)
    return attributes


def _assigned_virtuals(assignment: str) -> tuple[str, ...]:
    """Read the `c,cxx=` of `%c,cxx=gcc`; the lexer leaves `gcc` as the next word."""
    names = assignment.strip().removesuffix("=")
    if not names:
        return ()
    return tuple(names.split(","))


@dataclass(slots=True)
class NodeReader:
    """Collects the constraints on one package of a query; `record` returns them.

    Attributes:
        text: the whole query, for messages.
        arch: the parts of the architecture, by `os`, `platform` and `target`.
        variants: the constraints on variants, by name.
    """

    text: str
    name: str | None = None
    namespace: str | None = None
    versions: VersionRanges | None = None
    hash: str | None = None
    arch: dict[str, str] = field(default_factory=dict)
    variants: dict[str, VariantConstraint] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)

    def set_name(self, word: Token) -> None:
        """Set the name and, if there is one, its namespace; `*` is any name."""
        if word.text == "*":
            return
        namespace, _, name = word.text.rpartition(".")
        self.name = name
        self.namespace = namespace or None

    def read(self, word: Token) -> bool:
        """Read a word, and return whether it belongs to this package.

        Raises:
            QuerySyntaxError: the word is faulty, or a second one of its kind.
        """
        if word.kind == "version":
            self._read_version(word)
        elif word.kind in ("flag", "pair"):
            self._read_option(read_pair(word), word)
        elif word.kind == "hash" and self.hash is None:
            self.hash = word.text.removeprefix("/")
        else:
            return False
        return True

    def _error(self, word: Token, found: str, expected: str) -> QuerySyntaxError:
        return QuerySyntaxError(self.text, word.column, expected, found)

    def _read_version(self, word: Token) -> None:
        if self.versions is not None:
            expected = "one version list (@a,b for several)"
            raise self._error(word, "a second version", expected)
        try:
            self.versions = VersionRanges.parse(word.text)
        except ValueError as error:
            expected = "a version list like @1.2:1.4"
            raise self._error(word, str(error), expected) from None

    def _read_option(self, pair: Pair, word: Token) -> None:
        """Read an option: an architecture, a namespace, a flag or a variant."""
        # A name that cannot have this form.
        name = pair.name
        if word.kind == "flag" and name in _NO_VARIANTS:
            raise self._error(
                word, f"{name!r} is not a variant", f"{name}= and a value"
            )
        if pair.propagate and name in _NOT_PROPAGATED:
            problem = f"{name!r} cannot apply to all dependencies"
            raise self._error(word, problem, f"one '=' after {name}")

        # A name that is not used otherwise is a variant.
        if name in _WHOLE_ARCH_KEYS:
            self._read_whole_arch(pair, word)
        elif name in _ARCH_KEYS:
            self._set_arch(word, {_ARCH_KEYS[name]: pair.value})
        elif name == "namespace":
            self.namespace = pair.value
        elif name in FLAG_NAMES:
            self.flags.append(Flag(name, pair.value, pair.propagate, word.column))
        else:
            self._read_variant(pair, word)

    def _read_whole_arch(self, pair: Pair, word: Token) -> None:
        """Read `arch=platform-os-target`, or `arch=target` as Spack does."""
        if self.arch:
            first = next(iter(self.arch))
            expected = "arch= alone, or before the parts that it leaves out"
            raise self._error(word, f"{pair.name}= after {first}=", expected)
        parts = pair.value.split("-")
        if len(parts) != 3:
            parts = ["", "", pair.value]
        platform, os, target = parts
        self._set_arch(word, {"platform": platform, "os": os, "target": target})

    def _set_arch(self, word: Token, parts: dict[str, str]) -> None:
        """Set parts of the architecture; those that are empty or `None` are not set."""
        if not any(parts.values()):
            key = word.text.partition("=")[0]
            raise self._error(word, "an empty value", f"a value for {key}")
        for key, part in parts.items():
            # Spack prints a part that is not set as the word None.
            if not part or part == "None":
                continue
            if key in self.arch:
                expected = f"one {key} (target=a,b for several)"
                raise self._error(word, f"a second {key}", expected)
            # A list with nothing before, between or after its commas.
            if "" in part.split(","):
                raise self._error(word, "an empty value", f"a value for {key}")
            self.arch[key] = part

    def _read_variant(self, pair: Pair, word: Token) -> None:
        if pair.name in self.variants:
            raise self._error(word, f"a second {pair.name!r}", "each variant once")
        if pair.value != "*" and "*" in pair.value.split(","):
            expected = "'*' alone, or values without it"
            raise self._error(word, "'*' among other values", expected)
        self.variants[pair.name] = _variant_constraint(pair, word.column)

    def record(self, dependencies: tuple[Dependency, ...] = ()) -> SpecQuery:
        """Return the constraints as a record; `os=*` and the like constrain nothing."""
        arch = {key: part for key, part in self.arch.items() if part != "*"}
        return SpecQuery(
            name=self.name,
            namespace=self.namespace,
            versions=self.versions,
            variants=tuple(self.variants.values()),
            flags=tuple(self.flags),
            os=arch.get("os"),
            platform=arch.get("platform"),
            target=arch.get("target"),
            hash=self.hash,
            dependencies=dependencies,
            text=self.text,
        )


class Pair(NamedTuple):
    """The parts of a word such as `libs:=shared,static` or `++mpi`.

    Attributes:
        name: `libs`.
        value: `shared,static`, without quotes; `true` for `+x`, `false` for `~x`.
        exact: whether the sign is `:=`, or the word is `+x` or `~x`.
        propagate: whether the sign is doubled.
    """

    name: str
    value: str
    exact: bool
    propagate: bool


def read_pair(word: Token) -> Pair:
    """Split a word of the kind pair (`k=v`) or flag (`+x`) into its parts."""
    if word.kind == "flag":
        flag = _parts_of(word, _FLAG)
        sign = flag["sign"]
        value = "true" if sign.startswith("+") else "false"
        return Pair(flag["name"], value, exact=True, propagate=len(sign) == 2)
    pair = _parts_of(word, _PAIR)
    return Pair(
        pair["key"],
        _unquoted(pair["value"]),
        exact=pair["colon"] == ":",
        propagate=pair["equals"] == "==",
    )


def _parts_of(word: Token, pattern: re.Pattern[str]) -> re.Match[str]:
    """Match a word with the pattern of its kind."""
    match = pattern.fullmatch(word.text)
    if match is None:
        raise ValueError(f"{word.text!r} is not a {word.kind}")
    return match


def _unquoted(value: str) -> str:
    """Return a value without the quotes around it.

    The quote is the only character that a backslash escapes in a query.
    """
    if len(value) < 2:
        return value
    quote = value[0]
    if quote not in "'\"" or value[-1] != quote:
        return value
    return value[1:-1].replace(f"\\{quote}", quote)


def _variant_constraint(pair: Pair, column: int) -> VariantConstraint:
    """Read the value of a variant, as Spack's `VariantValue.from_string_or_bool`."""
    values: tuple[str, ...] = (pair.value,)
    kind: VariantKind = "multi"
    exact = pair.exact
    if pair.value.upper() in ("TRUE", "FALSE"):
        values = (pair.value.lower(),)
        kind = "bool"
        exact = True
    elif pair.value == "*":
        # Any value, so `k:=*` is no more exact than `k=*`.
        values = ()
        exact = False
    elif pair.name not in UNSPLIT_NAMES:
        values = tuple(sorted(set(pair.value.split(","))))
    return VariantConstraint(pair.name, values, kind, exact, pair.propagate, column)
