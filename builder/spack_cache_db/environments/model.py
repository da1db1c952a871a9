"""The records of an environment, and what it is read with.

`read_environment` returns an `Environment`: the specs of a `spack.yaml` or of a list
(`UserSpec`), or the nodes of a `spack.lock` (`LockedSpec`). `Limits` bounds its size,
and `Surroundings` has the files and values that it may refer to.
"""

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
    """The limits of an environment.

    Attributes:
        specs: maximum of specs in a `spack.yaml` or a list, matrices written out.
        nodes: maximum of nodes in a `spack.lock`, and of lines that are not specs.
        length: maximum length of a spec, in characters.
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
"""The files that are read in a folder of configuration, which Spack calls a scope."""

Opener = Callable[[str], bytes | Mapping[str, bytes] | None]
"""Opens an included path: returns the bytes of a file, those of the `SCOPE_FILES` in a
folder by name, or None if the path is missing.
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files and values that an environment may refer to.

    Attributes:
        open: opens included files.
        names: values for conditions (`when:`), such as `platform` and `os`; a value
            that is None or missing is unknown.
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
"""No files and no values: only the text of the environment is read."""


@dataclass(frozen=True, slots=True)
class UserSpec:
    """A spec of an environment, which Spack calls a user spec.

    Attributes:
        text: the spec as it is written; a combination of a matrix is one spec.
        line: its line, or that of its matrix, counted from 1; 0 if it is unknown.
        query: the spec as it was parsed; None if the text is not a spec.
        legacy: the query as Spack before 1.0 reads it; None if it reads the same, or
            cannot.
        rules: the requirements of `packages:` on its binaries and their dependencies.
        reuse: what the environment sets about the reuse of binaries.
        error: why the text is not a spec; None if it is one.
        group: its group in `specs:`; empty for none. The requirements and externals of
            a `packages.yaml` are in the groups `require` and `externals`.
        external: the external (a package that the system provides) of `packages:` that
            satisfies it; empty for none.
        is_buildable: whether Spack may build its package, or use a binary of it.
        count: 1, as a matrix in the same list has the number of its combinations.
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
    """A node of a lockfile's graph.

    Attributes:
        hash: its hash.
        configuration: its package, version, compiler, target and variants.
        is_root: whether the environment itself has the spec.
        needs: the hashes of the nodes that it links or runs, without externals.
        externals: names and versions of the externals that it links or runs.
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
        specs: the specs of a `spack.yaml` or a list, in order.
        notes: the parts that were ignored, and why.
        locked: the nodes of a lockfile, or of included lockfiles: the roots of each in
            its order, then the other nodes by name; without externals.
        is_lock: whether it has nodes only, as a `spack.lock`.
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
    """Collects the faults of one environment while it is read.

    A reader continues after a fault, so that all faults are reported together:

        faults = Faults("spack.yaml")
        with faults.collected():
            …  # raises LineFault
        with faults.collected():
            …
        faults.raise_any()
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[Fault] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a `LineFault` of the context instead of raising it."""
        try:
            yield
        except LineFault as fault:
            self._found.append(self._located(fault))

    def add(self, faults: Iterable[LineFault]) -> None:
        """Add faults at lines that have none yet; the others may follow from these."""
        lines = {(fault.path, fault.line) for fault in self._found}
        for fault in faults:
            located = self._located(fault)
            if (located.path, located.line) not in lines:
                self._found.append(located)

    def raise_any(self) -> None:
        """Raise `UnreadableEnvironment` if there are faults."""
        if self._found:
            raise UnreadableEnvironment(self._found)

    def _located(self, fault: LineFault) -> Fault:
        """Return a fault with its path, which only those of included files have."""
        return Fault(fault.path or self._path, fault.line, fault.message)
