"""An environment as frozen records, and the limits and files with which it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.environments.rules import NO_RULES, PackageRules
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.model import Configuration
from spack_cache_db.spack.lexer import MAX_LENGTH
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.queries import SpecQuery


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an environment: specs of a `spack.yaml` or list, nodes, characters of a
    spec.
    """

    specs: int = 10_000
    nodes: int = 50_000
    length: int = MAX_LENGTH


SCOPE_FILES = (
    "packages.yaml",
    "definitions.yaml",
    "toolchains.yaml",
    "concretizer.yaml",
    "mirrors.yaml",
    "include.yaml",
)
"""The files of a configuration folder that are read."""

Opener = Callable[[str], bytes | Mapping[str, bytes] | None]
"""Returns the bytes of a file, or those of a folder's `SCOPE_FILES` by name; None if
missing.
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files and values that an environment may refer to.

    Attributes:
        open: opens included files.
        names: `platform`, `os`, `target` and others for conditions; None or missing is
            unknown.
        env: environment variables for conditions, None if they are unknown.
        variables: the values of variables in paths, such as `HOME` and `spack`.
        is_strict: missing includes are faults.
        parse: reads a spec in the syntax of the environment's Spack version.
        known: the known packages and hashes, by which lines of a list are read.
    """

    open: Opener = lambda path: None
    names: Mapping[str, str | None] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    is_strict: bool = False
    parse: Parser = parse_query
    known: KnownNames = ANY_NAME


NOWHERE = Surroundings()
"""The text of the environment alone."""


@dataclass(frozen=True, slots=True)
class UserSpec:
    """A spec of an environment, which Spack calls a user spec.

    Attributes:
        text: the spec as it is written; a row of a matrix as one spec.
        line: the line of the spec, or of its matrix, counted from 1.
        legacy: the query as Spack before 1.0 reads it, if that differs.
        rules: the requirements of `packages:` on its binaries and their dependencies.
        reuse: what the environment sets about the reuse of binaries.
        error: why the text is not a spec; it has no query then.
        external: the external of `packages:` that satisfies it.
        is_buildable: whether Spack may build its package, or use a binary of it.
    """

    text: str
    line: int
    query: SpecQuery | None = None
    legacy: SpecQuery | None = None
    rules: PackageRules = NO_RULES
    reuse: ReuseRules = REUSE_ALL
    error: str | None = None
    group: str = ""
    external: str = ""
    is_buildable: bool = True
    count: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class LockedSpec:
    """A node of a lockfile's graph: `needs` are the hashes of the nodes that it links
    or runs.

    `externals` are the names and versions of the externals that it links or runs.
    """

    hash: str
    configuration: Configuration
    is_root: bool
    needs: tuple[str, ...] = ()
    externals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """The content of a `spack.yaml`, a `spack.lock` or a list of specs.

    Attributes:
        notes: the parts that were ignored, and why.
        locked: the nodes of a lockfile, or of included lockfiles: the roots of each in
            its order, then the other nodes by name; without externals.
        others: the lines of a list that are not specs.
    """

    specs: tuple[UserSpec, ...] = ()
    notes: tuple[str, ...] = ()
    locked: tuple[LockedSpec, ...] = ()
    is_lock: bool = False
    others: tuple[str, ...] = ()


class UnreadableEnvironment(InputError):
    """An environment that cannot be read, with all its faults, sorted."""


class Faults:
    """Collects the faults of one environment while it is read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[Fault] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a fault that is raised in the context, and continue after it."""
        try:
            yield
        except LineFault as fault:
            self._found.append(
                Fault(fault.path or self._path, fault.line, fault.message)
            )

    def add(self, faults: Iterable[LineFault]) -> None:
        """Add faults that may follow from others: those at lines that have none yet."""
        lines = {(fault.path, fault.line) for fault in self._found}
        for fault in faults:
            path = fault.path or self._path
            if (path, fault.line) not in lines:
                self._found.append(Fault(path, fault.line, fault.message))

    def raise_any(self) -> None:
        """Raise `UnreadableEnvironment` if there are faults."""
        if self._found:
            raise UnreadableEnvironment(self._found)
