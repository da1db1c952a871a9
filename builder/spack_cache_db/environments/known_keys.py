"""The keys that Spack knows in a `spack.yaml`.

The lists are those of Spack 1.2 (`schema/env.py`, `schema/merged.py`, `schema/packages.py`,
`schema/concretizer.py`), and names of older versions that files still have. A key that is similar
to a known one is misspelt, and a fault, because a misspelt requirement must not be skipped in
silence. Other unknown keys are those of tools and other versions of Spack; they get a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from difflib import get_close_matches

import yaml

from spack_cache_db.bounded_yaml import fault_at, key_of

_OF_SPACK = """
bootstrap cdash ci compilers concretizer config container definitions develop env_vars include
include_concrete mirrors modules packages repos specs toolchains upstreams view
"""
_OF_OLD_SPACK = "concretization gitlab-ci projections"
SECTIONS_OF_SPACK = frozenset((*_OF_SPACK.split(), *_OF_OLD_SPACK.split()))
"""The keys below `spack:`."""

_OF_A_PACKAGE = """
buildable compiler conflict externals package_attributes permissions prefer providers require target
variants version
"""
_OF_AN_OLD_PACKAGE = "modules paths"
KEYS_OF_A_PACKAGE = frozenset((*_OF_A_PACKAGE.split(), *_OF_AN_OLD_PACKAGE.split()))
"""The keys of a package, and of `all`, in `packages:`."""

KEYS_OF_AN_EXTERNAL = frozenset(
    ("dependencies", "extra_attributes", "id", "modules", "prefix", "spec")
)
KEYS_OF_A_REQUIREMENT = frozenset(("any_of", "message", "one_of", "spec", "when"))
_OF_CONCRETIZER = """
compiler_mixing concretization_cache duplicates error_on_timeout externals force os_compatible reuse
splice static_analysis targets timeout unify
"""
KEYS_OF_CONCRETIZER = frozenset((*_OF_CONCRETIZER.split(), "enable_node_namespace"))
KEYS_OF_REUSE = frozenset(("exclude", "from", "include", "roots"))
KEYS_OF_A_SOURCE = frozenset(("exclude", "include", "path", "type"))

SIMILAR = 0.75
"""Least similarity of a misspelt key to a known one, as `difflib` computes it."""


def unknown_keys(node: yaml.Node, known: Set[str]) -> tuple[str, ...]:
    """Return the keys of a mapping that are unknown; other nodes have no keys.

    Raises:
        LineFault: an unknown key is similar to a known one.
    """
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    unknown = []
    for key_node, _ in pairs:
        key, _ = key_of(key_node)
        if key in known:
            continue
        similar = get_close_matches(key, sorted(known), n=1, cutoff=SIMILAR)
        if similar:
            raise fault_at(key_node, f"{key}: is an unknown key, expected {similar[0]}:")
        unknown.append(key)
    return tuple(unknown)


def refuse_unknown_keys(node: yaml.Node, known: Set[str], example: str) -> None:
    """Raise `LineFault` if a mapping has an unknown key; the message names an example."""
    for key in unknown_keys(node, known):
        raise fault_at(node, f"{key[:60]}: is an unknown key, expected {example}:")


def note_on_unknown_keys(keys: Iterable[str], place: str) -> tuple[str, ...]:
    """Return a note on unknown keys of a place such as `packages:`; none if there are none."""
    names = ", ".join(sorted({key[:60] for key in keys}))
    return (f"{place} unknown keys are ignored: {names}",) if names else ()
