"""What an environment asks for, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import MAX_LENGTH


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an environment may ask for.

    Attributes:
        specs: specs of a `spack.yaml` or a list.
        nodes: nodes of a lockfile.
        length: characters of one spec.
    """

    specs: int = 10_000
    nodes: int = 50_000
    length: int = MAX_LENGTH


TOP_KEYS = ("spack", "env")
"""The key of a `spack.yaml` under which all stands; `env` in old files."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a spec: what satisfies `query` and none of `without`."""

    query: SpecQuery
    without: tuple[SpecQuery, ...] = ()


@dataclass(frozen=True, slots=True)
class UserSpec:
    """A spec that somebody asks for, which Spack calls a user spec.

    Attributes:
        text: the spec as it stands in the environment; a row of a matrix as one spec.
        line: the line on which it, or its matrix, stands, counted from 1.
        alternatives: what satisfies it, with what `packages:` requires; one of them is enough.
        error: why it asks for nothing that could be looked for, in place of alternatives.
    """

    text: str
    line: int
    alternatives: tuple[Alternative, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LockedSpec:
    """A node of a lockfile's graph; `is_root` if it was asked for and is no dependency alone."""

    hash: str
    configuration: Configuration
    is_root: bool


@dataclass(frozen=True, slots=True)
class UserSpecs:
    """A `spack.yaml` or a list of specs; `notes` say what of it was left aside, and why."""

    specs: tuple[UserSpec, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """A `spack.lock`: roots in its order, then the other nodes by name; externals are left out."""

    specs: tuple[LockedSpec, ...]
    notes: tuple[str, ...] = ()


Environment = UserSpecs | Lock
