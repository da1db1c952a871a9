"""Reads an environment in any format, which is recognized by its content.

JSON with `concrete_specs` is a `spack.lock`, JSON with nodes is output of `spack find --json`, and
YAML with a key `spack` is a `spack.yaml`. Other text is a list of specs, one a line, typed or
printed by Spack.
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
"""Maximum size of an environment; a lockfile of a thousand specs has two million bytes."""

LIMITS = Limits()
_OF_A_LOCK = {"_meta", "concrete_specs"}
_OF_A_MANIFEST = {*TOP_KEYS, "specs", "definitions", "packages"}
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_EXPECTED = "expected a spack.yaml, a spack.lock, or one spec on each line"
_MANIFEST = re.compile(
    r"^ *['\"]?(?:spack|env|specs|definitions|packages)['\"]?\s*:(?:\s|$)", re.MULTILINE
)
_COMMENT = re.compile(r"(?:^|\s)#.*")

# Several files in one text: before each is the start of a YAML document with a name, or the line
# that `tail` and `head` print.
_HEADING = re.compile(
    r"^(?:--- *# *(?P<yaml>\S+\.(?:ya?ml|lock))|==> (?P<tail>\S+) <==)[ \t]*\n", re.MULTILINE
)
_ENVIRONMENT = re.compile(r"^['\"]?(?:spack|env)['\"]?\s*:", re.MULTILINE)


def read_environment(
    data: bytes, path: str, limits: Limits = LIMITS, surroundings: Surroundings = NOWHERE
) -> Environment:
    """Return the content of an environment.

    Args:
        data: a `spack.yaml`, a `spack.lock`, or one spec a line, with `#` for comments.
        path: its path in messages.
        limits: the limits of its size.
        surroundings: the files and values that a `spack.yaml` may refer to.

    Raises:
        UnreadableEnvironment: it is none of these, or cannot be read.
    """
    faults = Faults(path)
    environment = Environment()
    with faults.collected():
        if len(data) > MAX_BYTES:
            raise LineFault(0, f"has more than {MAX_BYTES:,} bytes")
        text = decoded(data)
        if files := joined_files(text, path):
            path, text = next(iter(files.items()))
            surroundings = _among(files, surroundings)
        environment = _read(text, path, limits, surroundings)
    faults.raise_any()
    return environment


def _among(files: Mapping[str, str], surroundings: Surroundings) -> Surroundings:
    """Return surroundings in which several files of one text include each other."""

    def open_either(path: str) -> bytes | Mapping[str, bytes] | None:
        content = opened(files, path)
        return surroundings.open(path) if content is None else content

    return replace(surroundings, open=open_either)


def user_specs(texts: Iterable[str], parse: Parser = parse_query) -> Environment:
    """Return an environment of separate specs."""
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
    # Importing PyYAML takes longer than reading a list of specs.
    from spack_cache_db.environments.manifest import read_manifest

    return read_manifest(text, path, limits, surroundings)


def _json(text: str) -> Any:
    """Return decoded JSON, None if it may be YAML that begins with a brace."""
    try:
        return json.loads(text)
    except RecursionError:
        raise LineFault(0, "is nested too deeply, expected a spack.lock") from None
    except ValueError as error:
        if '"concrete_specs"' in text or text.lstrip().startswith("[{"):
            raise _broken(error, text) from None
        return None


def _broken(error: ValueError, text: str) -> LineFault:
    """Return the fault of JSON that cannot be read."""
    expected = "expected a whole spack.lock" if '"concrete_specs"' in text else _EXPECTED
    if not isinstance(error, json.JSONDecodeError):
        # A number of thousands of digits.
        return LineFault(0, f"broken JSON: {error}, {expected}")
    # The end of a text may be a line behind its last one.
    line = min(error.lineno, text.removesuffix("\n").count("\n") + 1)
    return LineFault(line, f"broken JSON at column {error.colno}: {error.msg}, {expected}")


def _json_kind(data: Any) -> str:
    """Return a description of JSON that is not an environment."""
    first = data[0] if isinstance(data, list) and data else data
    keys = first.keys() if isinstance(first, dict) else set()
    inner = next(iter(first.values())) if len(keys) == 1 else None
    if first is not data and ("arch" in keys or (isinstance(inner, dict) and "arch" in inner)):
        return "lists specs without their hashes, as 'spack find --json' did before Spack 0.18"
    if "database" in keys:
        return "is the index of a build cache, for 'spack-cache-db build'"
    if {"version", "data"} <= keys:
        return "is a manifest of a build cache"
    return "is JSON, but neither a spack.lock nor output of 'spack find --json'"


def _nodes(data: Any) -> list[Any]:
    """Return the nodes of `spack find --json` or `spack spec --json`; empty for other JSON."""
    if isinstance(data, dict) and isinstance(data.get("spec"), dict):
        data = data["spec"].get("nodes")
    is_nodes = isinstance(data, list) and data and isinstance(data[0], dict) and "hash" in data[0]
    return data if is_nodes else []


def joined_files(text: str, name: str) -> dict[str, str]:
    """Return the files of a text by path, the environment first; empty if it is one file.

    `name` is the path of the text, and of a file before the first heading.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return {}
    before = text[: headings[0].start()]
    files = {name: before} if before.strip() else {}
    stops = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, stop in zip(headings, stops, strict=True):
        path = posixpath.join(posixpath.dirname(name), heading["yaml"] or heading["tail"])
        files[posixpath.normpath(path)] = text[heading.end() : stop]
    first = next((path for path in files if _ENVIRONMENT.search(files[path])), next(iter(files)))
    return {first: files.pop(first), **files}


def opened(files: Mapping[str, str], path: str) -> bytes | dict[str, bytes] | None:
    """Return the file of a path, the files of a folder, or else the only file of that name.

    Files that a visitor drops have names without folders, so that folders are ignored in the end.
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
    same_names = [candidate for candidate in files if posixpath.basename(candidate) == name]
    beside = [
        candidate for candidate in same_names if posixpath.dirname(candidate) == home
    ] or same_names
    return files[beside[0]].encode() if len(beside) == 1 else None
