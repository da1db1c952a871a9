"""Compares the keys of a configuration with those that Spack knows.

Spack refuses a file with an unknown key, and so does this check, because a requirement
with a misspelt key would be skipped in silence. In a few places Spack ignores unknown
keys; there the check returns a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import fault_at, key_of, line_of, quoting_advice
from spack_cache_db.environments.known_keys import ROOT, Place
from spack_cache_db.errors import LineFault

SIMILAR = 0.75
"""Least similarity of a misspelt key to a known one, as `difflib` computes it."""
MOST_FAULTS = 20
"""Maximum of unknown keys of one file that are reported."""
MOST_CHARACTERS = 60
"""Maximum of characters of a key that are shown."""
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class UnknownKeys:
    """The unknown keys of a configuration: the faults, and notes on those that Spack
    ignores.
    """

    faults: tuple[LineFault, ...]
    notes: tuple[str, ...]


def unknown_keys(node: yaml.Node) -> UnknownKeys:
    """Return the keys of a configuration, such as the value of `spack:`, that Spack
    does not know.

    The fault is at the line of the key, and names the nearest key, or else all that are
    known.
    """
    faults = []
    notes = []
    for unknown in _unknown(node, ROOT):
        message = unknown_key_message(unknown.key, unknown.known)
        if unknown.is_ignored:
            notes.append(f"line {line_of(unknown.node)}: {message}; Spack ignores it")
        else:
            faults.append(fault_at(unknown.node, unknown.advice or message))
        if len(faults) + len(notes) == MOST_FAULTS:
            break
    return UnknownKeys(tuple(faults), tuple(notes))


class _UnknownKey(NamedTuple):
    """An unknown key, the known keys of its place, and the node where the fault is.

    Attributes:
        advice: what to do if a spec was meant, as in `- hdf5@1.14: +mpi`; else empty.
        is_ignored: whether Spack reads over it.
    """

    key: str
    known: Set[str]
    node: yaml.Node
    advice: str = ""
    is_ignored: bool = False


def _unknown(node: yaml.Node, place: Place) -> Iterator[_UnknownKey]:
    """Yield the unknown keys of a node that is at a place, and of all nodes below
    it.
    """
    if isinstance(node, yaml.SequenceNode):
        item_place = place.below.get("[]")
        if item_place is not None:
            for item in node.value:
                yield from _unknown(item, item_place)
    if not isinstance(node, yaml.MappingNode):
        return
    for key_node, value in node.value:
        key, _ = key_of(key_node)
        if place.keys is not None and key not in place.keys:
            advice = "" if _WORD.fullmatch(key) else quoting_advice(node)
            fault_node = node if advice else key_node
            yield _UnknownKey(key, place.keys, fault_node, advice, place.is_open)
            continue
        below = place.below.get(key) or place.below.get("*")
        if below is not None:
            yield from _unknown(value, below)


def unknown_key_message(key: str, known: Set[str]) -> str:
    """Return what is wrong with an unknown key: the nearest known one, or else all of
    them.
    """
    expected = nearest_key(key, known)
    if not expected:
        expected = "one of " + ":, ".join(sorted(known))
    return f"{key[:MOST_CHARACTERS]}: is an unknown key, expected {expected}:"


def nearest_key(key: str, known: Set[str]) -> str:
    """Return the known key that is the most similar to a key; "" if none is similar
    enough.
    """
    similar = get_close_matches(
        key[:MOST_CHARACTERS], sorted(known), n=1, cutoff=SIMILAR
    )
    return similar[0] if similar else ""


def refuse_unknown_keys(node: yaml.Node, known: Set[str]) -> None:
    """Raise `LineFault` at the first unknown key of a mapping; other nodes have no
    keys.
    """
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    for key_node, _ in pairs:
        key, _ = key_of(key_node)
        if key not in known:
            raise fault_at(key_node, unknown_key_message(key, known))
