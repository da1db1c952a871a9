"""What a page says and what a file says of it → where they differ, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def differences(said: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a page says and what its file says instead, one text for each part.

    Args:
        said: see `said_by_source`.
        stored: see `said_by_file`.
    """
    yield from _parts("meta.", said["meta"], stored["meta"])
    ours, theirs = said["spec_details"], stored["spec_details"]
    for dag_hash in sorted(ours.keys() | theirs.keys()):
        if dag_hash not in theirs:
            yield f"lists the spec {dag_hash}, the file does not"
        elif dag_hash not in ours:
            yield f"does not list the spec {dag_hash}, the file does"
        elif ours[dag_hash] != theirs[dag_hash]:
            yield from _parts(f"the spec {dag_hash}: ", ours[dag_hash], theirs[dag_hash])


def _parts(what: str, said: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(said.keys() | stored.keys()):
        if key not in stored:
            yield f"{what}{key} is {_json(said[key])}, the file has none"
        elif key not in said:
            yield f"{what}{key} is not there, the file has {_json(stored[key])}"
        elif said[key] != stored[key]:
            ours, theirs = _only_different(said[key], stored[key])
            yield f"{what}{key} is {_json(ours)}, the file has {_json(theirs)}"


def _only_different(said: Any, stored: Any) -> tuple[Any, Any]:
    """Return both; of lists and objects, only the members that the other does not have."""
    if isinstance(said, dict) and isinstance(stored, dict):
        return _not_in(said, stored), _not_in(stored, said)
    if isinstance(said, list) and isinstance(stored, list):
        ours = [each for each in said if each not in stored]
        theirs = [each for each in stored if each not in said]
        # Where neither has a member of its own, one of them names something twice.
        return (ours, theirs) if ours or theirs else (said, stored)
    return said, stored


def _not_in(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if other.get(key) != value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
