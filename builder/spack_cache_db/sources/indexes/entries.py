"""Reads one record of an index: a concrete spec, and how it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spack_cache_db.sources.facts import Install
from spack_cache_db.spack.nodes import Node, read_node, require_known

FORMAT_OF_1_0 = 5
"""The spec format of Spack 1.0, the first that has compilers as dependencies."""

_RECORD = {
    "spec", "ref_count", "in_buildcache", "path", "installed", "explicit", "installation_time",
    "deprecated_for", "origin",
}  # fmt: skip
"""The known keys of a record (Spack 1.2 `database.py`, `InstallRecord`)."""


class Entry(NamedTuple):
    """One record of an index.

    Attributes:
        is_binary: whether the mirror has a binary of it, or Spack installed it.
        unknown: its unknown keys, such as `spec.dependencies[].odd`.
        spec_format: the format in which Spack first wrote the spec.
        numbers: the keys whose numbers are read as texts, as Spack writes them.
    """

    node: Node
    is_binary: bool
    install: Install | None = None
    unknown: frozenset[str] = frozenset()
    spec_format: int = FORMAT_OF_1_0
    numbers: frozenset[str] = frozenset()


def read_entry(record: Any, spec_format: int = FORMAT_OF_1_0) -> Entry:
    """Return a record from its decoded JSON; `ValueError` if it is not one of Spack's.

    `spec_format` is that of a node that does not record its original format.
    """
    unknown: set[str] = set()
    require_known(record, _RECORD, "", unknown)
    node = read_node(record.get("spec"), unknown)
    for key in ("in_buildcache", "installed", "explicit"):
        if not isinstance(record.get(key), bool | None):
            raise ValueError(f"has {key} {record[key]!r:.60}, expected true or false")

    # Only some versions of indexes have `in_buildcache`.
    is_binary = record.get("in_buildcache")
    is_installed = record.get("installed")
    if is_binary is None:
        is_binary = node.external is None and is_installed is not False
    install = _read_install(record) if is_installed else None
    if node.spec_format is not None:
        spec_format = node.spec_format
    return Entry(node, is_binary, install, frozenset(unknown), spec_format)


def _read_install(record: Mapping[str, Any]) -> Install:
    """Return how a record's spec is installed; a time that is no time is left out."""
    prefix = record.get("path")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    # Old databases write "None" for an external without a path (Spack `database.py`).
    if prefix == "None":
        prefix = None
    installed_at = None
    seconds = record.get("installation_time")
    if seconds is not None:
        try:
            time = datetime.fromtimestamp(seconds, UTC)
        except (TypeError, ValueError, OverflowError, OSError):
            pass
        else:
            # Without fractions of seconds and time zone: 2025-01-31 12:00:00.
            installed_at = str(time)[:19]
    return Install(prefix, record.get("explicit"), installed_at)
