"""What a search was understood as: tokens that can be removed one by one.

`pytorch cuda zen3 gcc 13` has the tokens package `py-torch`, option `+cuda`, machine
`zen3` and compiler `gcc 13`. Each leads to the search without it; a word for several
processors (`graviton`) also leads to the search with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.words.reading import Meaning, Reading
from spack_cache_db.query.words.splitting import plain_words
from spack_cache_db.query.words.vocabulary import packages_providing
from spack_cache_db.site.filters import Narrowing
from spack_cache_db.site.words import STABLE_ONLY
from spack_cache_db.spack.facts import GPU_SWITCHES
from spack_cache_db.spack.printing import spec_text, variant_text
from spack_cache_db.spack.queries import SpecQuery
from spack_cache_db.spack.targets import machine_of

_VALUES = "SELECT value FROM variants WHERE name = :name ORDER BY value"
KINDS = {
    "package": "package",
    "words": "words",
    "compiler": "compiler",
    "dependency": "dependency",
    "os": "system",
    "platform": "system",
    "target": "machine",
    "host": "machine",
    "variant": "option",
    "release": "release",
    "stack": "stack",
}
"""The labels of tokens by what they are a condition on."""


class TokenLink(NamedTuple):
    """Another search: what its link says, and its address without the site's base."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a search.

    Attributes:
        label: what it is, such as `machine`.
        text: the part for people, such as `gcc 13`.
        without: the address of the search without it.
        others: searches with something narrower in its place.
    """

    label: str
    text: str
    without: str
    others: tuple[TokenLink, ...] = ()


def tokens_of_words(
    lookups: Lookups, text: str, reading: Reading, narrowing: Narrowing
) -> tuple[Token, ...]:
    """Return the tokens of plain words, and of the names that narrow the search.

    Args:
        lookups: the database.
        text: the words.
        reading: their meaning.
        narrowing: the names beside the words: those of the address.
    """
    words = plain_words(text)
    tokens = []
    for meaning in reading.meanings:
        without = _address(_left(words, meaning.words), narrowing)
        others = []
        for other in _others(lookups, meaning, reading):
            instead = [*_left(words, meaning.words), other]
            others.append(TokenLink(other, _address(instead, narrowing)))
        text_of_part = _readable(lookups, meaning)
        tokens.append(Token(KINDS[meaning.kind], text_of_part, without, tuple(others)))

    # Words that are searched for in names and descriptions.
    for word in reading.words:
        is_virtual = bool(packages_providing(lookups, word))
        label = KINDS["package" if is_virtual else "words"]
        text_of_word = f"provides {word}" if is_virtual else word
        without = _address(_left(words, (word,)), narrowing)
        tokens.append(Token(label, text_of_word, without))
    of_words = {meaning.kind for meaning in reading.meanings}
    tokens += _tokens_of_names(text, narrowing, of_words)
    return tuple(tokens)


def _others(lookups: Lookups, meaning: Meaning, reading: Reading) -> Sequence[str]:
    """Return what may be meant instead: the processors of one name, or the
    architectures of GPUs for which there are binaries.
    """
    if meaning.kind == "target":
        return reading.generations
    name = meaning.text.partition("=")[0]
    if name not in GPU_SWITCHES:
        return ()
    values = [value for (value,) in select(lookups.conn, _VALUES, name=name)]
    return [f"{name}={value}" for value in values if meaning.text != f"{name}={value}"]


def tokens_of_spec(
    lookups: Lookups, query: SpecQuery, narrowing: Narrowing
) -> tuple[Token, ...]:
    """Return the tokens of a spec, and of the names that narrow the search."""
    tokens = []
    for kind, part, rest in _parts(query):
        text = spec_text(rest)
        without = _address([] if text == "*" else [text], narrowing)
        meaning = Meaning(kind, part, ())
        tokens.append(Token(KINDS[kind], _readable(lookups, meaning), without))
    target = {"target"} if query.target is not None else set()
    tokens += _tokens_of_names(spec_text(query), narrowing, target)
    return tuple(tokens)


def _parts(query: SpecQuery) -> Iterator[tuple[str, str, SpecQuery]]:
    """Yield each part of a spec: its kind, its text, and the spec without it."""
    query = replace(query, text="")
    if query.name is not None or query.versions is not None:
        package = SpecQuery(name=query.name, versions=query.versions)
        rest = replace(query, name=None, versions=None)
        yield "package", spec_text(package), rest
    for variant in query.variants:
        others = tuple(other for other in query.variants if other != variant)
        yield "variant", variant_text(variant), replace(query, variants=others)
    if query.os is not None:
        yield "os", query.os, replace(query, os=None)
    if query.platform is not None:
        yield "platform", query.platform, replace(query, platform=None)
    if query.target is not None:
        yield "target", query.target, replace(query, target=None)
    for edge in query.dependencies:
        remaining = tuple(other for other in query.dependencies if other != edge)
        rest = replace(query, dependencies=remaining)
        kind = "compiler" if edge.direct else "dependency"
        yield kind, spec_text(edge.node), rest


def _tokens_of_names(
    text: str, narrowing: Narrowing, of_words: set[str]
) -> Iterator[Token]:
    """Yield the tokens of names in the address that the words do not have."""
    for kind in ("host", "release", "stack"):
        name = getattr(narrowing, kind)
        is_of_words = kind in of_words or (kind == "host" and "target" in of_words)
        if name is not None and not is_of_words:
            without = _address([text], replace(narrowing, **{kind: None}))
            yield Token(KINDS[kind], name, without)
    if narrowing.stable:
        without = _address([text], replace(narrowing, stable=None))
        yield Token("versions", STABLE_ONLY, without)


def _readable(lookups: Lookups, meaning: Meaning) -> str:
    """Return a part of a spec for people: `gcc 13` for `%gcc@13`."""
    text = meaning.text
    if meaning.kind == "target":
        return _machine(text.removeprefix("target="))
    if meaning.kind in ("os", "platform"):
        return text.rpartition("=")[2]
    if meaning.kind in ("compiler", "dependency"):
        return text.lstrip("%^").replace("@", " ")
    if meaning.kind == "package" and text not in lookups.packages:
        is_virtual = bool(packages_providing(lookups, text))
        return f"provides {text}" if is_virtual else text
    return text


def _machine(constraint: str) -> str:
    """Return a `target=` for people: `zen3` for `:zen3`, `any aarch64` for
    `aarch64:`.
    """
    machine = machine_of(constraint)
    if machine is not None:
        return machine
    if constraint.endswith(":") and constraint.count(":") == 1:
        return f"any {constraint.removesuffix(':')}"
    return constraint


def _left(words: Sequence[str], removed: Sequence[str]) -> list[str]:
    """Return the words without the first occurrence of each removed one."""
    left = list(words)
    for word in removed:
        if word in left:
            left.remove(word)
    return left


def _address(words: Sequence[str], narrowing: Narrowing) -> str:
    """Return the address of a search for words; that of the empty search without
    any.
    """
    text = " ".join(words)
    pairs = [("q", text)] if text else []
    query = urlencode([*pairs, *narrowing.pairs])
    return f"/find?{query}" if query else "/find"
