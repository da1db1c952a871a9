"""An environment's bytes → what it asks for. The content tells which format it has.

JSON with `concrete_specs` is a `spack.lock`, JSON with nodes what `spack find --json` prints, and
YAML with a key `spack` a `spack.yaml`. Anything else is a list of specs, one a line, as somebody
typed it or as Spack printed it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from spack_cache_db.environments import (
    NOWHERE,
    SCOPE_FILES,
    TOP_KEYS,
    Environment,
    Faults,
    Limits,
    Surroundings,
    decoded,
    legacy_notes,
)
from spack_cache_db.environments.lockfile import read_lock, read_nodes
from spack_cache_db.environments.pasted_lists import read_list, user_spec
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.parser import Parser, parse_query

MAX_BYTES = 2**26
"""Bytes of an environment; a lockfile of a thousand specs has two million."""

LIMITS = Limits()
_OF_A_LOCK = {"_meta", "concrete_specs"}
_OF_A_MANIFEST = {*TOP_KEYS, "specs", "definitions", "packages"}
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_EXPECTED = "expected a spack.yaml, a spack.lock, or one spec on each line"
_MANIFEST = re.compile(
    r"^ *['\"]?(?:spack|env|specs|definitions|packages)['\"]?\s*:(?:\s|$)", re.MULTILINE
)
_COMMENT = re.compile(r"(?:^|\s)#.*")

# Several files in one text: the line before each is that of a YAML document with a name, or the one
# that `tail` and `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env)['\"]?\s*:", re.MULTILINE)


def read_environment(
    data: bytes, path: str, limits: Limits = LIMITS, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return what an environment asks for.

    Args:
        data: a `spack.yaml`, a `spack.lock`, or one spec a line, with `#` for comments.
        path: what to call it in messages.
        limits: how much it may ask for.
        surroundings: what a `spack.yaml` may refer to beside itself.

    Raises:
        UnreadableEnvironment: it is none of these, or cannot be read.
    """
    faults = Faults(path)
    found = Environment()
    with faults.collected():
        if len(data) > MAX_BYTES:
            raise LineFault(0, f"has more than {MAX_BYTES:,} bytes")
        text = decoded(data)
        if files := joined_files(text, path):
            path, text = next(iter(files.items()))
            surroundings = _among(files, surroundings)
        found = _read(text, path, limits, surroundings)
    faults.raise_any()
    return found


def _among(files: Mapping[str, str], surroundings: Surroundings) -> Surroundings:
    """Return surroundings in which several files of one text include each other."""

    def open_either(path: str) -> bytes | Mapping[str, bytes] | None:
        found = opened(files, path)
        return surroundings.open(path) if found is None else found

    return replace(surroundings, open=open_either)


def user_specs(texts: Iterable[str], parse: Parser = parse_query) -> Environment:
    """Return specs given one by one, as an environment."""
    specs = tuple(user_spec(text, 0, LIMITS, parse) for text in texts)
    return Environment(specs, tuple(legacy_notes(specs)))


def _read(text: str, path: str, limits: Limits, surroundings: Surroundings) -> Environment:
    if text.startswith(_SIGNED):
        raise LineFault(1, f"is a signed file of a build cache (spec.json.sig), {_EXPECTED}")
    if text.lstrip().startswith(("{", "[")):
        data = _json(text)
        if nodes := _nodes(data):
            return read_nodes(nodes, limits.nodes)
        if isinstance(data, dict) and data.keys() & _OF_A_LOCK:
            return read_lock(data, limits.nodes)
        if data is not None and not (isinstance(data, dict) and data.keys() & _OF_A_MANIFEST):
            raise LineFault(1, f"{_json_kind(data)}, {_EXPECTED}")
        if text.lstrip()[0] == "{":
            return _manifest(text, path, limits, surroundings)
    if _MANIFEST.search(text):
        return _manifest(text, path, limits, surroundings)
    return read_list(text, limits, surroundings)


def _manifest(text: str, path: str, limits: Limits, surroundings: Surroundings) -> Environment:
    # PyYAML takes longer to load than all that a list of specs needs.
    from spack_cache_db.environments.manifest import read_manifest

    return read_manifest(text, path, limits, surroundings)


def _json(text: str) -> Any:
    """Return decoded JSON, None if it is none; YAML may begin with a brace as well."""
    try:
        return json.loads(text)
    except RecursionError:
        raise LineFault(0, "is nested too deeply, expected a spack.lock") from None
    except ValueError as error:
        if '"concrete_specs"' in text or text.lstrip().startswith("[{"):
            raise _broken(error, text) from None
        return None


def _broken(error: ValueError, text: str) -> LineFault:
    """Return what is wrong with JSON that cannot be read."""
    expected = "expected a whole spack.lock" if '"concrete_specs"' in text else _EXPECTED
    if not isinstance(error, json.JSONDecodeError):
        # A number of thousands of digits.
        return LineFault(0, f"broken JSON: {error}, {expected}")
    # The end of a text may lie a line behind its last one.
    line = min(error.lineno, text.removesuffix("\n").count("\n") + 1)
    return LineFault(line, f"broken JSON at column {error.colno}: {error.msg}, {expected}")


def _json_kind(data: Any) -> str:
    """Return what JSON is that is not an environment."""
    first = data[0] if isinstance(data, list) and data else data
    keys = first.keys() if isinstance(first, dict) else set()
    inner = next(iter(first.values())) if len(keys) == 1 else None
    if first is not data and ("arch" in keys or (isinstance(inner, dict) and "arch" in inner)):
        return "lists specs without their hashes, as 'spack find --json' did before Spack 0.18"
    if "database" in keys:
        return "is the index of a build cache, for 'spack-cache-db build'"
    if {"version", "data"} <= keys:
        return "is a manifest of a build cache"
    return "is JSON, but neither a spack.lock nor what 'spack find --json' prints"


def _nodes(data: Any) -> list[Any]:
    """Return the nodes that `spack find --json` or `spack spec --json` prints; none in others."""
    if isinstance(data, dict) and isinstance(data.get("spec"), dict):
        data = data["spec"].get("nodes")
    is_nodes = isinstance(data, list) and data and isinstance(data[0], dict) and "hash" in data[0]
    return data if is_nodes else []


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by their names, the environment first; none if it is one file.

    Args:
        text: the text.
        name: the path of the text; that of a file before the first line with a name.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    found = {name: text[: headings[0].start()]} if text[: headings[0].start()].strip() else {}
    ends = [each.start() for each in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        found[posixpath.normpath(path)] = text[heading.end() : end]
    first = next((each for each in found if _ENVIRONMENT.search(found[each])), next(iter(found)))
    return {first: found.pop(first), **found}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or the file of that name.

    Who drops files gives their names alone: these stand for a file in any folder.

    Args:
        files: the text of each file by its path, the environment first.
        path: the path that an environment asks for.
    """
    if path in files:
        return files[path].encode()
    inside = {
        posixpath.basename(name): text.encode()
        for name, text in files.items()
        if posixpath.dirname(name) == path and posixpath.basename(name) in SCOPE_FILES
    }
    if inside:
        return inside
    name, home = posixpath.basename(path), posixpath.dirname(next(iter(files)))
    named = [each for each in files if posixpath.basename(each) == name]
    beside = [each for each in named if posixpath.dirname(each) == home] or named
    return files[beside[0]].encode() if len(beside) == 1 else None
