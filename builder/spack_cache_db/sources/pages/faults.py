"""Why a page is refused: the slow, thorough second look at a page that the decoder refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from spack_cache_db.sources.pages.front_matter import JSON_KEYS, FrontMatter, Json, PageFault
from spack_cache_db.sources.pages.records import Meta, SpecDetail
from spack_cache_db.sources.pages.shapes import NUMBER, TEXT, TEXTS, Shape

KEYS = {"title", "layout", "categories"} | JSON_KEYS

MAX_FAULTS = 100
"""So many faults of one page are told; no more are looked for."""

META = Shape(Meta)
DETAIL = Shape(SpecDetail)
_HASH = re.compile(r"[a-z2-7]{32}")


def key_faults(front: FrontMatter) -> list[PageFault]:
    """Return what is wrong with the keys of a page; pages of 2021 are refused by name."""
    if front.keys & {"spec_files", "spec_names", "category"}:
        message = (
            "2021 page: it lists spec files, no spec details; expected a page of 2023 or later, "
            "with meta and spec_details"
        )
        return [PageFault(1, message)]
    faults = [
        PageFault(1, f"the key {key} is missing, expected {', '.join(sorted(KEYS))}")
        for key in KEYS - front.keys
    ]
    for key in front.keys - KEYS:
        message = f"unknown key {key}, expected only {', '.join(sorted(KEYS))}"
        faults.append(PageFault(front.lines[key], message))
    faults += [
        PageFault(front.lines[key], f"{key} is not plain JSON, expected a line `{key}: ` and JSON")
        for key in JSON_KEYS & front.values.keys()
    ]
    return faults


def json_faults(source: Json, key: str) -> tuple[Any, list[PageFault]]:
    """Decode JSON with Python's own decoder, which can say where it breaks.

    Returns:
        The value, and faults; the value is None where there are faults. An object comes as a
        `Pairs`, so that a key that stands twice can be seen.
    """
    try:
        text = source.text.decode()
        return json.loads(text, object_pairs_hook=Pairs, parse_constant=_refuse_constant), []
    except json.JSONDecodeError as error:
        line = source.line + error.lineno - 1
        column = error.colno + (source.column - 1 if error.lineno == 1 else 0)
        said = f"broken JSON in {key} at column {column}: {error.msg}, expected JSON"
        return None, [PageFault(line, said)]
    except RecursionError:
        said = f"broken JSON in {key}: nested too deeply, expected lists of objects"
        return None, [PageFault(source.line, said)]
    except ValueError as error:
        return None, [PageFault(source.line, f"broken JSON in {key}: {error}, expected JSON")]


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its list of (key, value), in the order of the text."""


def meta_faults(value: Any, line: int) -> list[PageFault]:
    """Return what is wrong with a decoded `meta`."""
    if isinstance(value, Pairs):
        keys = {key for key, _ in value}
        if not keys & {"stacks", "num_specs", "num_specs_by_stack"} and "versions" in keys:
            message = (
                "2022 page: its meta has no stacks and no num_specs, its specs lie in spec-N.json "
                "files; expected a page of 2023 or later"
            )
            return [PageFault(line, message)]
    return _object_faults(value, META, "meta", line)


def detail_faults(value: Any, line: int) -> list[PageFault]:
    """Return what is wrong with a decoded `spec_details`."""
    if isinstance(value, Pairs) or not isinstance(value, list):
        return [PageFault(line, "spec_details has a wrong type, expected a list of objects")]
    faults: list[PageFault] = []
    for index, item in enumerate(value):
        if len(faults) > MAX_FAULTS:
            return faults
        where = f"spec_details[{index}]"
        faults += _object_faults(item, DETAIL, where, line)
        dag_hash = dict(item).get("hash") if isinstance(item, Pairs) else None
        if isinstance(dag_hash, str) and not _HASH.fullmatch(dag_hash):
            said = f"{where}.hash is {quoted(dag_hash)}, expected 32 characters of a-z and 2-7"
            faults.append(PageFault(line, said))
    hashes = Counter(
        text
        for item in value
        if isinstance(item, Pairs)
        if isinstance(text := dict(item).get("hash"), str)
    )
    faults += [
        PageFault(line, f"spec_details lists the hash {_name(text)} {count} times, expected once")
        for text, count in hashes.items()
        if count > 1
    ]
    return faults


def _object_faults(value: Any, shape: Shape, where: str, line: int) -> list[PageFault]:
    if not isinstance(value, Pairs):
        return [PageFault(line, f"{where} has a wrong type, expected an object")]
    kinds = shape.kinds
    counts = Counter(key for key, _ in value)
    said = [
        f"{where}.{_name(key)} stands {n} times, expected once"
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
            said.append(f"unknown key {where}.{_name(key)}, expected only {', '.join(kinds)}")
        elif not _is(member, kinds[key]):
            said.append(f"{where}.{key} has a wrong type, expected {kinds[key]}")
        elif isinstance(member, Pairs) and len(dict(member)) < len(member):
            said.append(f"{where}.{key} names something twice, expected each stack once")
        elif _has_nul(member):
            said.append(f"{where}.{key} holds a NUL character, expected text")
    return [PageFault(line, each) for each in said]


def _is(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == TEXTS:
        return (
            isinstance(value, list)
            and not isinstance(value, Pairs)
            and all(isinstance(each, str) for each in value)
        )
    if kind == NUMBER:
        return _is_int(value)
    return isinstance(value, Pairs) and all(_is_int(count) for _, count in value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _has_nul(value: Any) -> bool:
    return (
        "\0" in value
        if isinstance(value, str)
        else (isinstance(value, list | tuple) and any(_has_nul(each) for each in value))
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _name(text: str) -> str:
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def quoted(text: str) -> str:
    """Return text as it may stand in a message: one line, printable, not long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
