"""Compares the keys of a configuration with those that Spack knows.

Spack refuses a file with an unknown key. This check does so too, because a requirement
with a misspelt key, such as `requires:`, would otherwise be skipped in silence. In a
few places Spack ignores unknown keys; there the check returns a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import fault_at, key_of, line_of, quoting_advice
from spack_cache_db.environments.known_keys import ROOT, KnownValue
from spack_cache_db.errors import LineFault

SIMILAR = 0.75
"""Least similarity of a misspelt key to a known one, as `difflib` computes it."""
MOST_FAULTS = 20
"""Maximum of unknown keys of one file that are reported."""
MOST_CHARACTERS = 60
"""Maximum of characters of a key that are compared and shown."""
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class UnknownKeys:
    """The unknown keys of a configuration.

    Attributes:
        faults: the keys that Spack refuses.
        notes: the keys that Spack ignores.
    """

    faults: tuple[LineFault, ...]
    notes: tuple[str, ...]


def unknown_keys(node: yaml.Node) -> UnknownKeys:
    """Return the keys of a configuration that Spack does not know.

    The fault is at the line of the key, and names the most similar key, or else all
    that are known: "requires: is an unknown key, expected require:".

    Args:
        node: the value of `spack:`, or the content of an included file.
    """
    faults: list[LineFault] = []
    notes: list[str] = []
    for unknown in islice(_unknown_below(node, ROOT), MOST_FAULTS):
        message = unknown_key_message(unknown.key, unknown.known)
        if unknown.is_ignored:
            notes.append(f"line {line_of(unknown.node)}: {message}; Spack ignores it")
        else:
            faults.append(fault_at(unknown.node, unknown.advice or message))
    return UnknownKeys(tuple(faults), tuple(notes))


class _UnknownKey(NamedTuple):
    """An unknown key.

    Attributes:
        known: the keys that its mapping may have.
        node: the node at which a fault is reported.
        advice: what to do if a spec was meant, as in `- hdf5@1.14: +mpi`; else empty.
        is_ignored: whether Spack ignores it.
    """

    key: str
    known: Set[str]
    node: yaml.Node
    advice: str = ""
    is_ignored: bool = False


def _unknown_below(node: yaml.Node, known: KnownValue) -> Iterator[_UnknownKey]:
    """Yield the unknown keys of a node, and of all nodes below it.

    `known` describes the node: its keys, and the values below them. A value that the
    description lacks may have any keys.
    """
    if isinstance(node, yaml.SequenceNode):
        known_item = known.below.get("[]")
        if known_item is None:
            return
        for item in node.value:
            yield from _unknown_below(item, known_item)

    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            # The key without a suffix such as that of `packages::`.
            key, _ = key_of(key_node)
            if known.keys is not None and key not in known.keys:
                yield _unknown_key(key, key_node, node, known)
                continue
            # `*` describes the values of all other keys.
            known_value = known.below.get(key) or known.below.get("*")
            if known_value is not None:
                yield from _unknown_below(value, known_value)


def _unknown_key(
    key: str, key_node: yaml.Node, mapping: yaml.Node, known: KnownValue
) -> _UnknownKey:
    # A key such as `hdf5@1.14` is probably a spec that needs quotes.
    advice = ""
    if not _WORD.fullmatch(key):
        advice = quoting_advice(mapping)
    return _UnknownKey(
        key,
        known=known.keys or frozenset(),
        node=mapping if advice else key_node,
        advice=advice,
        is_ignored=known.ignores_unknown,
    )


def unknown_key_message(key: str, known: Set[str]) -> str:
    """Return what is wrong with an unknown key.

    It names the most similar known key, or else all of them.
    """
    expected = nearest_key(key, known)
    if not expected:
        expected = "one of " + ":, ".join(sorted(known))
    return f"{key[:MOST_CHARACTERS]}: is an unknown key, expected {expected}:"


def nearest_key(key: str, known: Set[str]) -> str:
    """Return the known key that is most similar to a key, or "" if none is similar."""
    # The comparison takes quadratic time, so a long key is cut.
    start = key[:MOST_CHARACTERS]
    similar = get_close_matches(start, sorted(known), n=1, cutoff=SIMILAR)
    return similar[0] if similar else ""


def refuse_unknown_keys(node: yaml.Node, known: Set[str]) -> None:
    """Raise `LineFault` at the first unknown key of a mapping.

    Other nodes, such as texts and lists, have no keys.
    """
    if not isinstance(node, yaml.MappingNode):
        return
    for key_node, _ in node.value:
        key, _ = key_of(key_node)
        if key not in known:
            raise fault_at(key_node, unknown_key_message(key, known))
