"""Reads Spack's environments: `spack.yaml`, `spack.lock` and lists of specs.

Text in, frozen records out: no database and no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import ClassVar

from spack_cache_db.environments.pasted.model import ANY_NAME, KnownNames
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.errors import Fault, InputError, LineFault, foreign_fault
from spack_cache_db.model import Configuration
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.queries import SpecQuery


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an environment: specs of a `spack.yaml` or list, nodes, characters of a spec."""

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
"""Returns the bytes of a file, or those of a folder's `SCOPE_FILES` by name; None if missing."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files and values that an environment may refer to.

    Attributes:
        open: opens included files.
        names: `platform`, `os`, `target` and others for conditions; None or missing is unknown.
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

TOP_KEYS = ("spack", "env")
"""The top-level key of a `spack.yaml`; `env` in old files."""

_MAX_CACHED_LENGTH = 200
"""Longest spec whose query is cached, in characters."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A `require`, `conflict` or `prefer` of `packages:`, which a binary meets or not.

    One of the options must be met: exactly one if it `is_single` (`one_of`), none if it
    `is_conflict`. It applies under the condition `when`, or always. One that `is_preferred` does
    not apply to specs that contradict it, because Spack drops it for these.
    """

    options: tuple[SpecQuery, ...]
    line: int
    when: SpecQuery | None = None
    is_single: bool = False
    is_conflict: bool = False
    is_preferred: bool = False


# Compared by identity, because an environment has few of these and many specs.
@dataclass(frozen=True, slots=True, eq=False)
class PackageRules:
    """Requirements of `packages:` by kind, each by package, virtual package or `all`."""

    required: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    preferred: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)


NO_RULES = PackageRules()
ALL = "all"
"""The name in `packages:` for all packages without an entry."""

MOST_WAYS = 64
"""Maximum of combinations of options that are tried for a package or virtual package."""


def ways(query: SpecQuery, rules: PackageRules) -> list[SpecQuery]:
    """Return a query combined with one option of each requirement on its package, in all ways.

    An option of a virtual package may name a provider. Options that contradict the query are left
    out; `MOST_WAYS` limits the result.
    """
    queries = [query]
    for requirement in rules.required.get(query.name or "", ()):
        combined = (way for earlier in queries for way in _ways(earlier, requirement, query.name))
        queries = [*islice(dict.fromkeys(combined), MOST_WAYS)]
    return queries


def _ways(query: SpecQuery, requirement: Requirement, owner: str | None) -> Iterator[SpecQuery]:
    """Yield a query with each option, and the query itself if the requirement may not apply."""
    when = requirement.when or SpecQuery()
    if not implies(query, replace(when, name=None)):
        yield query
    limited = query if requirement.when is None else _with_option(query, when, owner)
    for option in requirement.options:
        if limited is not None and (combined := _with_option(limited, option, owner)):
            yield combined


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with the requirements on its package that one query can express.

    Requirements with several options or a `when` are left out. Variants that `all` requires are
    left out as well: they apply only to packages that have these variants.
    """
    package_rules = rules.required.get(query.name or "")
    for requirement in package_rules or rules.required.get(ALL, ()):
        (option, *alternatives) = requirement.options or (SpecQuery(),)
        if not alternatives and requirement.when is None and (package_rules or not option.variants):
            query = _with_option(query, option, query.name) or query
    return query


def _with_option(query: SpecQuery, option: SpecQuery, owner: str | None) -> SpecQuery | None:
    """Return a query with an option, None if they contradict; an owner may be a virtual package."""
    if option.name is not None and query.name == owner:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None


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


def read_spec(
    text: str, line: int, longest: int = MAX_LENGTH, parse: Parser = parse_query
) -> UserSpec:
    """Read the spec on a line; one of more than `longest` characters has an error."""
    if len(text) > longest:
        return UserSpec(f"{text[:40]}…", line, error=too_long(len(text), longest))
    try:
        query = _parsed(text, parse) if len(text) <= _MAX_CACHED_LENGTH else parse(text)
        return UserSpec(text, line, query)
    except QuerySyntaxError as error:
        problem = f"{error.found}: " if error.found else ""
        message = f"is not a spec: at column {error.column + 1}, {problem}expected {error.expected}"
        return UserSpec(text, line, error=message)


def read_user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line with its older reading, or with its error if it is not one."""
    spec = read_spec(text, line, limits.length, parse)
    legacy = legacy_reading(spec.query) if spec.query is not None else None
    return replace(spec, text=text, legacy=legacy)


def too_long(length: int, longest: int) -> str:
    """Return the error of a spec with too many characters."""
    return f"has {length:,} characters, expected at most {longest:,}"


_parsed = lru_cache(maxsize=4096)(lambda text, parse: parse(text))


def legacy_notes(specs: Iterable[UserSpec]) -> Iterator[str]:
    """Yield a note if Spack before 1.0 reads some of the specs differently."""
    legacy = [spec for spec in specs if spec.legacy]
    if legacy:
        many = f"{len(legacy):,} specs constrain" if len(legacy) > 1 else "one spec constrains"
        yield (
            f"{many} a compiler where Spack before 1.0 constrains the package, such as"
            f" {legacy[0].text!r}: choose Spack 0.23 (--spack 0.23), or rewrite them with"
            " 'spack style --spec-strings --fix FILE'"
        )


@dataclass(frozen=True, slots=True)
class LockedSpec:
    """A node of a lockfile's graph: `needs` are the hashes of the nodes that it links or runs.

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
        locked: the nodes of a lockfile, or of included lockfiles: the roots of each in its order,
            then the other nodes by name; without externals.
        others: the lines of a list that are not specs.
    """

    specs: tuple[UserSpec, ...] = ()
    notes: tuple[str, ...] = ()
    locked: tuple[LockedSpec, ...] = ()
    is_lock: bool = False
    others: tuple[str, ...] = ()


def decoded(data: bytes, path: str = "") -> str:
    """Return the text of a file; `LineFault` if it is not UTF-8, has NUL bytes or is a web page."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LineFault(line, "is not UTF-8 text, expected an environment", path) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LineFault(line, "has a NUL byte, expected text", path)
    if fault := foreign_fault(text):
        raise LineFault(fault.line, fault.message, path)
    return text


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
            self._found.append(Fault(fault.path or self._path, fault.line, fault.message))

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
