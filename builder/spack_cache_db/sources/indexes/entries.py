"""Reads one record of an index: a concrete spec, and how it is installed.

{"spec": {"name": "zlib", ...}, "in_buildcache": true}            in a mirror
{"spec": {"name": "zlib", ...}, "installed": true, "path": "/…"}  in an installation
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spack_cache_db.sources.facts import Install
from spack_cache_db.spack.nodes import Node, read_node, require_known

FORMAT_OF_1_0 = 5
"""The spec format of Spack 1.0, the first that has compilers as dependencies."""

_RECORD_KEYS = {
    "spec", "ref_count", "in_buildcache", "path", "installed", "explicit", "installation_time",
    "deprecated_for", "origin",
}  # fmt: skip
"""The known keys of a record (Spack 1.2 `database.py`, `InstallRecord`)."""


class Entry(NamedTuple):
    """One record of an index.

    Attributes:
        node: its concrete spec.
        is_binary: whether the mirror has a binary of it, or Spack installed it.
        install: how it is installed; None if it is not.
        unknown: its unknown keys, such as `spec.dependencies[].odd`.
        spec_format: the format in which Spack first wrote the spec, from 1 to 5.
        numbers: the keys with a number where Spack writes a text, which are read as
            texts.
        parameters: the parameters of the node as JSON with sorted keys; None if they
            have not been encoded yet.
    """

    node: Node
    is_binary: bool
    install: Install | None = None
    unknown: frozenset[str] = frozenset()
    spec_format: int = FORMAT_OF_1_0
    numbers: frozenset[str] = frozenset()
    parameters: str | None = None


def read_entry(record: Any, spec_format: int = FORMAT_OF_1_0) -> Entry:
    """Return a record from its decoded JSON.

    Args:
        record: the JSON.
        spec_format: the format of the spec, unless it records its original one.

    Raises:
        ValueError: it is not a record of Spack's.
    """
    unknown: set[str] = set()
    require_known(record, _RECORD_KEYS, "", unknown)
    node = read_node(record.get("spec"), unknown)
    for key in ("in_buildcache", "installed", "explicit"):
        if not isinstance(record.get(key), bool | None):
            raise ValueError(f"has {key} {record[key]!r:.60}, expected true or false")

    # Old mirrors and installations have no `in_buildcache`. There, each package that
    # Spack built counts, unless the record says that it is gone.
    is_binary = record.get("in_buildcache")
    is_installed = record.get("installed")
    if is_binary is None:
        is_binary = node.external is None and is_installed is not False
    install = _read_install(record) if is_installed else None
    if node.spec_format is not None:
        spec_format = node.spec_format
    return Entry(node, is_binary, install, frozenset(unknown), spec_format)


def _read_install(record: Mapping[str, Any]) -> Install:
    """Return how a record's spec is installed."""
    prefix = record.get("path")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    # Old databases write "None" for an external without a path (Spack `database.py`).
    if prefix == "None":
        prefix = None
    return Install(
        prefix, record.get("explicit"), _time_of(record.get("installation_time"))
    )


def _time_of(seconds: Any) -> str | None:
    """Return the time so many seconds after 1970, as `2025-01-31 12:00:00` in UTC.

    None for a value that is not a time, because the rest of the record is of use.
    """
    if seconds is None:
        return None
    try:
        time = datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    # Cut before fractions of seconds and the time zone.
    return str(time)[:19]
