"""Reads Spack's environments: `spack.yaml`, `spack.lock` and lists of specs.

Text in, frozen records out: no database and no network. Here are the records, the bounds of an
environment, and what is wrong with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import ClassVar

from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.foreign_files import foreign_fault
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.pasted_specs import ANY_NAME, KnownNames


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


SCOPE_FILES = ("packages.yaml", "definitions.yaml", "toolchains.yaml", "include.yaml")
"""What counts of a folder with configuration."""

Opener = Callable[[str], bytes | Mapping[str, bytes] | None]
"""Returns a file's bytes; of a folder those of its `SCOPE_FILES`, by name; None for what is not
there, or not here."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an environment may refer to beside its own text.

    Attributes:
        open: opens what it includes.
        names: `platform`, `os`, `target` and others for its conditions; what is missing, or
            None, is not known.
        env: the environment's variables, None if they are not known.
        variables: the values of variables in paths, such as `HOME` and `spack`.
        is_strict: includes that are not here are faults.
        parse: reads a spec, as the Spack does for which the environment was written.
        known: the packages and hashes that a line of a list may mean.
    """

    open: Opener = lambda path: None
    names: Mapping[str, str | None] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    is_strict: bool = False
    parse: Parser = parse_query
    known: KnownNames = ANY_NAME


NOWHERE = Surroundings()
"""Nothing but the text of the environment."""

TOP_KEYS = ("spack", "env")
"""The key of a `spack.yaml` under which all stands; `env` in old files."""


LONGEST_KEPT = 200
"""Characters of a spec that is remembered once it is parsed."""


@dataclass(frozen=True, slots=True)
class SpecLine:
    """One spec of an environment: its text and line, and what it asks, or why it is no spec.

    Neither is known of one that was not read yet. `count` is that of the specs of a matrix.
    """

    text: str
    line: int
    query: SpecQuery | None = None
    error: str | None = None
    count: ClassVar[int] = 1


def read_spec(
    text: str, line: int, longest: int = MAX_LENGTH, parse: Parser = parse_query
) -> SpecLine:
    """Return a spec that stands on a line; one of more than `longest` characters is none."""
    if len(text) > longest:
        return SpecLine(f"{text[:40]}…", line, error=too_long(len(text), longest))
    try:
        query = _parsed(text, parse) if len(text) <= LONGEST_KEPT else parse(text)
        return SpecLine(text, line, query)
    except QuerySyntaxError as error:
        found = f"{error.found}: " if error.found else ""
        said = f"is no spec: at column {error.column + 1}, {found}expected {error.expected}"
        return SpecLine(text, line, error=said)


def too_long(length: int, longest: int) -> str:
    """Return why a spec is none that has too many characters."""
    return f"has {length:,} characters, expected at most {longest:,}"


@lru_cache(maxsize=4096)
def _parsed(text: str, parse: Parser) -> SpecQuery:
    return parse(text)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A `require` or `conflict` of `packages:`, which holds or fails for each binary.

    Attributes:
        options: what it names.
        line: where it is written.
        when: the condition under which it counts; None for always.
        is_single: exactly one of the options must hold (`one_of`), not at least one.
        is_conflict: none of the options may hold.
    """

    options: tuple[SpecQuery, ...]
    line: int
    when: SpecQuery | None = None
    is_single: bool = False
    is_conflict: bool = False


# Compared by identity, because an environment has few of these and many specs.
@dataclass(frozen=True, slots=True, eq=False)
class PackageRules:
    """What `packages:` requires and excludes, by the name under which it is written.

    The names are those of packages and virtual packages, and `all`.
    """

    required: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)

    def of(self, package: str | None) -> Iterator[Requirement]:
        """Yield what counts for a package: its own of each kind, or else those of `all`."""
        for rules in (self.required, self.conflicts):
            yield from rules.get(package or "") or rules.get(ALL, ())


NO_RULES = PackageRules()
ALL = "all"
"""The name in `packages:` that stands for all packages without an entry of their own."""


MOST_WAYS = 64
"""Ways to satisfy a spec of a virtual package, or what is required of a package, that are tried."""


def ways(query: SpecQuery, rules: PackageRules) -> list[SpecQuery]:
    """Return the queries that ask for one option of each requirement on a query's package.

    What is required of a virtual package by the name of a provider is asked of that provider.
    Options that contradict the query are left out; of very many ways, the first are returned.
    """
    found = [query]
    for requirement in rules.required.get(query.name or "", ()):
        made = (way for each in found for way in _ways(each, requirement, query.name))
        found = [*islice(dict.fromkeys(made), MOST_WAYS)]
    return found


def _ways(query: SpecQuery, requirement: Requirement, owner: str | None) -> Iterator[SpecQuery]:
    """Yield a query with each option, and the query itself if the requirement may not count."""
    when = requirement.when or SpecQuery()
    if not implies(query, replace(when, name=None)):
        yield query
    begun = query if requirement.when is None else _with_option(query, when, owner)
    for option in requirement.options:
        if begun is not None and (found := _with_option(begun, option, owner)):
            yield found


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with what is required of its package, as far as one query can say it.

    Requirements with several options or a `when` are left out, and so are variants that `all`
    requires: they count only for packages that have these variants.
    """
    own = rules.required.get(query.name or "")
    for requirement in own or rules.required.get(ALL, ()):
        (option, *others) = requirement.options or (SpecQuery(),)
        if not others and requirement.when is None and (own or not option.variants):
            query = _with_option(query, option, query.name) or query
    return query


def _with_option(query: SpecQuery, option: SpecQuery, owner: str | None) -> SpecQuery | None:
    """Return what both ask, where `owner` may stand for a provider; None if nothing can be both."""
    if option.name is not None and query.name == owner:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None


@dataclass(frozen=True, slots=True)
class UserSpec:
    """A spec that an environment asks for, which Spack calls a user spec.

    Attributes:
        text: the spec as it is written in the environment; a row of a matrix as one spec.
        line: the line of the spec, or of its matrix, counted from 1.
        query: what it asks.
        legacy: what it asks as Spack before 1.0 reads it, if that is something else.
        rules: what `packages:` requires of binaries that satisfy it, and of their dependencies.
        error: why the text is not a spec, in place of a query.
        group: the name of its group of specs.
        external: the external of `packages:` that satisfies it.
        is_buildable: whether Spack may build its package, or use a binary of it.
    """

    text: str
    line: int
    query: SpecQuery | None = None
    legacy: SpecQuery | None = None
    rules: PackageRules = NO_RULES
    error: str | None = None
    group: str = ""
    external: str = ""
    is_buildable: bool = True


def legacy_notes(specs: Iterable[UserSpec]) -> Iterator[str]:
    """Yield a note on specs that Spack before 1.0 reads otherwise, if there are any."""
    found = [each for each in specs if each.legacy]
    if found:
        many = f"{len(found):,} specs ask" if len(found) > 1 else "one spec asks"
        yield (
            f"{many} something of a compiler that Spack before 1.0 asks of the package, such as"
            f" {found[0].text!r}: choose Spack 0.23 to read them so (--spack 0.23), or rewrite them"
            " with 'spack style --spec-strings --fix FILE'"
        )


@dataclass(frozen=True, slots=True)
class LockedSpec:
    """A node of a lockfile's graph.

    Attributes:
        hash: the hash under which its binary is known.
        configuration: what the lockfile says of it.
        is_root: True for a root of the lockfile, False for a mere dependency.
        needs: the hashes of the nodes that it links or runs.
        externals: the names and versions of the externals that it links or runs.
    """

    hash: str
    configuration: Configuration
    is_root: bool
    needs: tuple[str, ...] = ()
    externals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """What a `spack.yaml`, a `spack.lock` or a list of specs asks for.

    Attributes:
        specs: the specs of a `spack.yaml` or a list.
        notes: what of it was left aside, and why.
        locked: the nodes of a lockfile, or of those that a `spack.yaml` includes: of each the roots
            in its order, then the other nodes by name; externals are left out.
        is_lock: whether it is a lockfile.
        others: the lines of a list that are not specs.
    """

    specs: tuple[UserSpec, ...] = ()
    notes: tuple[str, ...] = ()
    locked: tuple[LockedSpec, ...] = ()
    is_lock: bool = False
    others: tuple[str, ...] = ()


def decoded(data: bytes, path: str = "") -> str:
    """Return the text of a file.

    Raises:
        LineFault: it is not UTF-8, has NUL bytes, or is another file by mistake.
    """
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
    """An environment that cannot be read. `faults` holds all that is wrong, sorted, each once."""


class Faults:
    """The faults of one environment, collected while the rest is read."""

    def __init__(self, path: str) -> None:
        """Begin without any; `path` is what the environment is called."""
        self._path = path
        self._found: list[Fault] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the fault that is raised in the context, and go on after it."""
        try:
            yield
        except LineFault as fault:
            self._found.append(Fault(fault.path or self._path, fault.line, fault.message))

    def raise_any(self) -> None:
        """Raise `UnreadableEnvironment` if there is any fault."""
        if self._found:
            raise UnreadableEnvironment(self._found)
