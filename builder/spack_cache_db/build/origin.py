"""How a file was made: with which programs, and what its maker had it leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from spack_cache_db.build import Input
from spack_cache_db.schema import LEFT_OUT, PATHS
from spack_cache_db.sources.columns import Texts
from spack_cache_db.sources.strict_json import as_json

_PROGRAMS = ("archspec", "spack-cache-db")
"""Whose versions decide what a file holds."""

_EXTERNAL_PATHS = ("path", "extra_attributes")
"""The keys of an external that have paths; the second those of a compiler's programs."""


def origin_rows(given: Input) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table `origin`."""
    if given.first:
        yield "first", given.first
    if given.without_paths:
        yield PATHS, LEFT_OUT
    for program in _PROGRAMS:
        yield program, metadata.version(program)


def leave_out_paths(texts: Texts) -> None:
    """Leave out of what indexes say where on the disks of a machine something lies."""
    texts.rests.things[:] = [as_json(without_path(json.loads(each))) for each in texts.rests.things]
    texts.nodes.things[:] = [
        each
        if each.external is None
        else each._replace(external=as_json(external_without_paths(json.loads(each.external))))
        for each in texts.nodes.things
    ]


def without_path(record: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a record without its prefix."""
    return {key: value for key, value in record.items() if key != "path"}


def external_without_paths(external: dict[str, Any]) -> dict[str, Any]:
    """Return an external without its prefix and the paths of its programs."""
    return {key: value for key, value in external.items() if key not in _EXTERNAL_PATHS}
