"""The part of a database in which an answer is sought, such as the release `develop`.

A `Scope` has names as a person wrote them. In a database, it becomes conditions on
binaries, or an error that lists the names that are close.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from spack_cache_db.arguments import optional_text, switch
from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions.conditions import (
    STABLE,
    Condition,
    Conditions,
    OneOf,
    Verdict,
    Word,
)
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_ids
from spack_cache_db.query.stored.recipe_facts import packages_with
from spack_cache_db.spack.targets import is_known, known_targets

MOST_LISTED = 5
"""Maximum of names that a message lists if none is similar to the unknown one."""
_EXPLICIT = "SELECT spec_id FROM installs WHERE explicit"
"""The specs that a user installed by name, in any installation."""


class UnknownNameError(BuilderError):
    """An unknown release, stack, package or machine; the message has the names that are
    close.
    """


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a database in which an answer is sought, by names as a person wrote
    them.

    Names may differ from those of the database in capitals, and in `_` for `-`. A name
    that is None does not narrow the answer. `find` and the other functions take these
    names as keyword arguments.

    Args:
        release: only binaries that this release lists, or that are in this
            installation.
        stack: only binaries in this stack; with `release`, in this stack of the
            release.
        host: only binaries that run on a machine of this CPU target, such as `zen3`,
            which can have their platform: for `m2`, those of macOS.
        os: only binaries built for this operating system, such as `ubuntu24.04`.
        platform: only binaries built for this platform, such as `linux`.
        explicit: only binaries that a user installed by name, without their
            dependencies.
        stable: only binaries of versions that do not move: not of branches such as
            `develop` and `main`, and not of git.

    Raises:
        ArgumentError: a name is not a text, or `explicit` or `stable` is not True or
            False.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    os: str | None = None
    platform: str | None = None
    explicit: bool = False
    stable: bool = False

    def __post_init__(self) -> None:
        """Raise `ArgumentError` for a field of a wrong type."""
        for name, text in self.names.items():
            optional_text(name, text)
        switch("explicit", self.explicit)
        switch("stable", self.stable)

    @property
    def names(self) -> dict[str, str | None]:
        """The five names by their kinds, which are the names of the fields."""
        return {
            "release": self.release,
            "stack": self.stack,
            "host": self.host,
            "os": self.os,
            "platform": self.platform,
        }

    def conditions(self, lookups: Lookups) -> Conditions:
        """Return the scope as conditions on the binaries of one database.

        Raises UnknownNameError if the database has no such release or stack, or
        archspec no such host.
        """
        conditions = named_conditions(lookups, **self.names)
        if self.stable:
            conditions = (*conditions, STABLE)
        if self.explicit:
            conditions = (*conditions, *explicitly(lookups))
        return conditions


def named_conditions(lookups: Lookups, **names: str | None) -> Conditions:
    """Return the conditions of names in any spelling, given by their kinds.

    `named_conditions(lookups, stack="E4S")` is the condition on the stack `e4s`. Kinds
    are the names in a `Scope`, `package` and `target`; a name that is None has no
    condition. Raises UnknownNameError for the first name that the database or archspec
    does not have.
    """
    spellings = read_spellings(lookups)
    # The order of the checks decides which of several errors is raised.
    conditions: dict[str, Condition] = {}
    for kind, condition_of_name in _CONDITION_OF_NAME.items():
        text = names.get(kind)
        if text is not None:
            name = spellings.canonical(kind, text)
            conditions[kind] = condition_of_name(lookups, kind, name)
    return tuple(conditions[kind] for kind in _ORDER if kind in conditions)


def unknown_name(lookups: Lookups, **names: str | None) -> str:
    """Return which of some names is not known, such as `no release is called 'devlop';
    close: develop`; empty if all are. The names are those of `named_conditions`.
    """
    try:
        named_conditions(lookups, **names)
    except UnknownNameError as error:
        return str(error)
    return ""


def explicitly(lookups: Lookups) -> Conditions:
    """Return the condition that a spec was installed by name, not as a dependency."""
    verdict = Verdict(select_ids(lookups.conn, _EXPLICIT))
    return (Condition("specs", "asked for explicitly", verdict),)


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the names that are close to an unknown one, such as `close: develop`, or
    the text `otherwise`.
    """
    close = difflib.get_close_matches(name, list(known), cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise


# The condition on a name of one kind; `kind` is the kind, and `name` is spelled as in
# the database. Each raises UnknownNameError if the name is not known.


def _of_release(lookups: Lookups, kind: str, name: str) -> Condition:
    release = lookups.release(name)
    if release is None:
        known = [record.name for record in lookups.releases.values()]
        raise _unknown_name(kind, name, known)
    return Condition(kind, name, release.id)


def _of_stack(lookups: Lookups, kind: str, name: str) -> Condition:
    stack = lookups.stack(name)
    if stack is None:
        known = [record.name for record in lookups.stacks.values()]
        raise _unknown_name(kind, name, known)
    return Condition(kind, name, stack.id)


def _of_target(lookups: Lookups, kind: str, name: str) -> Condition:
    targets = list(lookups.words["target"].values())
    if name not in targets:
        raise _unknown_name(kind, name, targets)
    return Condition(kind, name, Word(name))


def _of_package(lookups: Lookups, kind: str, name: str) -> Condition:
    if name not in lookups.packages:
        raise UnknownNameError(known_name(lookups, name).sentence)
    return Condition(kind, name, Word(name))


def _of_host(lookups: Lookups, kind: str, name: str) -> Condition:
    # A machine need not be one for which the database has binaries.
    if name not in lookups.families and not is_known(name):
        expected = "expected a name such as zen3 or neoverse_v2"
        close = hint(name, known_targets(), expected)
        raise UnknownNameError(f"archspec knows no target {name!r}; {close}")
    return Condition(kind, name, name)


def _of_system(lookups: Lookups, kind: str, name: str) -> Condition:
    # Not checked: a system without binaries is as right as any other name.
    return Condition(kind, f"{kind}={name}", Word(name))


def _of_recipe(lookups: Lookups, kind: str, name: str) -> Condition:
    packages = packages_with(lookups, kind)
    if not packages:
        source = "data/repology.json of the packages site"
        if kind == "maintainer":
            source = "the output of spack list --format version_json"
        raise UnknownNameError(
            f"the database has no {kind}s of packages; build it with {source} as well"
        )
    if name not in packages:
        raise _unknown_name(kind, name, list(packages))
    return Condition("package", f"{kind} {name}", OneOf(frozenset(packages[name])))


def _unknown_name(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Return the error for a name that the database does not have, with `known` names
    that are close, or else the first ones.
    """
    listed = ", ".join(islice(known, MOST_LISTED))
    if len(known) > MOST_LISTED:
        listed += ", …"
    close = hint(name, known, f"{kind}s in this database: {listed or 'none'}")
    return UnknownNameError(f"no {kind} is called {name!r}; {close}")


_CONDITION_OF_NAME: Mapping[str, Callable[[Lookups, str, str], Condition]] = {
    "release": _of_release,
    "stack": _of_stack,
    "target": _of_target,
    "package": _of_package,
    "host": _of_host,
    "os": _of_system,
    "platform": _of_system,
    "maintainer": _of_recipe,
    "license": _of_recipe,
    "tag": _of_recipe,
}
"""The function that makes the condition of each kind, in the order of the checks."""
_ORDER = (
    *("package", "maintainer", "license", "tag"),
    *("target", "platform", "os", "host", "release", "stack"),
)
"""The kinds in the order of the conditions: a release before its stack, as in
`develop:e4s`.
"""
