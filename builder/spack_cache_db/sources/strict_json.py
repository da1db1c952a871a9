"""JSON as it is, nothing guessed: keys that stand twice, and what a decoder says of bad text."""

from __future__ import annotations

import json
from collections import Counter
from math import isfinite
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

BROKEN = (msgspec.DecodeError, RecursionError, ValueError)
"""What reading JSON raises that is none, or is not what was expected."""

LONGEST = 200
"""Characters of what a message repeats."""


def said(error: BaseException) -> str:
    """Return what a decoder says, on one line: it quotes keys, which may be of any length."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return short(" ".join(str(error).split()))


def short(text: str) -> str:
    """Return text as it may stand in a message that is mostly of our own words: not long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


def name(text: str) -> str:
    """Return text of an index as it may stand in a message: printable, and not long."""
    return text if text.isprintable() and len(text) <= 60 else repr(text[:57] + "...")


def read_strictly(text: bytes) -> Any:
    """Return JSON as values, with exactly what it says.

    Raises:
        ValueError: it is no JSON, has a number that JSON cannot write again, or a key stands twice.
    """
    return json.loads(
        text, object_pairs_hook=_distinct, parse_constant=_no_number, parse_float=_finite
    )


def decode_once(text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what a decoder makes of a small JSON in which no key stands twice.

    Raises:
        ValueError: it is no JSON, or a key stands twice.
        msgspec.DecodeError: it has another form than the decoder's.
    """
    read_strictly(text)
    return decoder.decode(text)


def as_json(value: Any) -> str:
    """Return values as JSON, the same text for the same values; `ValueError` if it is no text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text.encode()  # A lone surrogate is a character in Python alone.
    return text


def require_once(text: bytes, value: Struct | dict[str, Any]) -> None:
    """Raise `ValueError` if a key stands twice in the JSON of a value: decoders keep the last.

    Args:
        text: the JSON.
        value: what was decoded from it, undecoded fields included.
    """
    again = msgspec.json.encode(value)
    # Mostly it is the same. Else, each key and each text has two quotes, but for escaped ones.
    if again != text and (b"\\" in text or text.count(b'"') != again.count(b'"')):
        read_strictly(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {name(twice)} stands twice, expected once")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number
