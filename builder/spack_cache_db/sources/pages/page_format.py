"""A page as frozen records, their JSON form, and the faults that a page can have.

No text is changed here. `Shape` reads the keys from the record itself: a field that is added is
decoded, checked and counted at once, and one of an unknown type stops the program when it starts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.strictness import named, quoted
from spack_cache_db.spack.lexer import is_hash


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page: the source's own summary of its `spec_details`.

    Pages may share one; two are equal if they are the same object.
    """

    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    oss: tuple[str, ...]
    platforms: tuple[str, ...]
    targets: tuple[str, ...]
    stacks: tuple[str, ...]
    num_specs: int
    num_specs_by_stack: dict[str, int]


class SpecDetail(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One member of `spec_details`: one listing, in the spelling of its page."""

    hash: str
    compiler: str
    versions: tuple[str, ...]
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    size: str
    tarball: str | UnsetType = UNSET


OF_A_LISTING = frozenset({"hash", "stacks", "size", "tarball"})
"""The fields of a detail that say nothing of the configuration."""


class Json(NamedTuple):
    """The JSON text of a big key, and where it stands (1-based line, column of its first byte)."""

    text: bytes
    line: int
    column: int


class Page(Struct, frozen=True, gc=False):
    """One page: one package in one release.

    `format` is the era of the page: A (2025 on), B (early 2025) or C (2023 and 2024). `location`
    is for messages, `path` is the page's name within the input. `spec_details` is not decoded.
    """

    location: str
    path: str
    sha256: str
    package: str
    release: str
    format: str
    meta: Meta
    spec_details: Json


TEXT = "text"
TEXTS = "a list of texts"
NUMBER = "a whole number"
NUMBERS = "an object of whole numbers"

_KINDS: dict[Any, str] = {
    str: TEXT,
    tuple[str, ...]: TEXTS,
    int: NUMBER,
    dict[str, int]: NUMBERS,
}


class Shape:
    """The keys of a record's JSON: `kinds` has the kind of each, `optional` those that may lack.

    Raises:
        TypeError: a field has a type that this module does not know, or a default.
    """

    def __init__(self, record: type[Struct]) -> None:
        self.kinds: dict[str, str] = {}
        self.optional: set[str] = set()
        for field in fields(record):
            is_optional = field.type == str | UnsetType and field.default is UNSET
            kind = TEXT if is_optional else _KINDS.get(field.type)
            if kind is None or field.required == is_optional:
                raise TypeError(f"{record.__name__}.{field.name}: a field of this type is unknown")
            self.kinds[field.name] = kind
            if is_optional:
                self.optional.add(field.name)
        required = [name for name in self.kinds if name not in self.optional]
        texts = len(required) + sum(self.kinds[name] == TEXT for name in required)
        many = [f"len(each.{name})" for name in required if self.kinds[name] in (TEXTS, NUMBERS)]
        # The key, and its text.
        present = [f"2 * (each.{name} is not UNSET)" for name in self.optional]
        self._count = _compiled(" + ".join([str(texts), *many, *present]))

    def texts(self, records: Iterable[Struct]) -> int:
        """Return how many strings the JSON of these records has: keys, and those in values."""
        return sum(map(self._count, records))


def values_of(names: Iterable[str]) -> Callable[[Struct], tuple[Any, ...]]:
    """Return the function that gives the values of these fields of a record."""
    return _compiled(f"({''.join(f'each.{name}, ' for name in names)})")


def _compiled(expression: str) -> Callable[[Any], Any]:
    """Return a function of `each`, compiled once: `attrgetter` takes three times as long."""
    function: Callable[[Any], Any] = eval(f"lambda each: {expression}", {"UNSET": UNSET})
    return function


MAX_FAULTS = 100
"""So many faults of one page are told; no more are looked for."""

META = Shape(Meta)
DETAIL = Shape(SpecDetail)


def json_faults(source: Json, key: str) -> list[LineFault]:
    """Return what is wrong with the JSON of `meta` or `spec_details`.

    Python's own decoder can say where it breaks, and has a key that stands twice.
    """
    try:
        text = source.text.decode()
        value = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = source.line + error.lineno - 1
        column = error.colno + (source.column - 1 if error.lineno == 1 else 0)
        said = f"broken JSON in {key} at column {column}: {error.msg}, expected JSON"
        return [LineFault(line, said)]
    except RecursionError:
        said = f"broken JSON in {key}: nested too deeply, expected lists of objects"
        return [LineFault(source.line, said)]
    except ValueError as error:
        return [LineFault(source.line, f"broken JSON in {key}: {error}, expected JSON")]
    return (_meta_faults if key == "meta" else _detail_faults)(value, source.line)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its list of (key, value), in the order of the text."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _meta_faults(value: Any, line: int) -> list[LineFault]:
    if isinstance(value, _Pairs):
        keys = {key for key, _ in value}
        if not keys & {"stacks", "num_specs", "num_specs_by_stack"} and "versions" in keys:
            message = (
                "2022 page: its meta has no stacks and no num_specs, its specs lie in spec-N.json "
                "files; expected a page of 2023 or later"
            )
            return [LineFault(line, message)]
    return _object_faults(value, META, "meta", line)


def _detail_faults(value: Any, line: int) -> list[LineFault]:
    if isinstance(value, _Pairs) or not isinstance(value, list):
        return [LineFault(line, "spec_details has a wrong type, expected a list of objects")]
    faults: list[LineFault] = []
    hashes = Counter[str]()
    for index, item in enumerate(value):
        if len(faults) > MAX_FAULTS:
            return faults
        where = f"spec_details[{index}]"
        faults += _object_faults(item, DETAIL, where, line)
        dag_hash = dict(item).get("hash") if isinstance(item, _Pairs) else None
        if not isinstance(dag_hash, str):
            continue
        hashes[dag_hash] += 1
        if not is_hash(dag_hash):
            said = f"{where}.hash is {quoted(dag_hash)}, expected 32 characters of a-z and 2-7"
            faults.append(LineFault(line, said))
    faults += [
        LineFault(line, f"spec_details lists the hash {named(text)} {count} times, expected once")
        for text, count in hashes.items()
        if count > 1
    ]
    return faults


def _object_faults(value: Any, shape: Shape, where: str, line: int) -> list[LineFault]:
    if not isinstance(value, _Pairs):
        return [LineFault(line, f"{where} has a wrong type, expected an object")]
    kinds = shape.kinds
    counts = Counter(key for key, _ in value)
    said = [
        f"{where}.{named(key)} stands {n} times, expected once"
        for key, n in counts.items()
        if n > 1
    ]
    said += [
        f"{where}.{key} is missing, expected {kind}"
        for key, kind in kinds.items()
        if key not in counts and key not in shape.optional
    ]
    for key, member in value:
        if key not in kinds:
            said.append(f"unknown key {where}.{named(key)}, expected only {', '.join(kinds)}")
        elif not _is(member, kinds[key]):
            said.append(f"{where}.{key} has a wrong type, expected {kinds[key]}")
        elif isinstance(member, _Pairs) and len(dict(member)) < len(member):
            said.append(f"{where}.{key} names something twice, expected each stack once")
        elif _has_nul(member):
            said.append(f"{where}.{key} holds a NUL character, expected text")
    return [LineFault(line, each) for each in said]


def _is(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == TEXTS:
        return type(value) is list and all(isinstance(each, str) for each in value)
    if kind == NUMBER:
        return type(value) is int
    return isinstance(value, _Pairs) and all(type(count) is int for _, count in value)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, list | tuple) and any(map(_has_nul, value))
