"""Resolves names of packages, releases, stacks and machines in any spelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions.conditions import (
    Asked,
    Condition,
    Conditions,
    Verdict,
    Word,
)
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_ids
from spack_cache_db.spack.targets import is_known, known_targets

SCOPE = ("package", "target", "platform", "os", "host", "release", "stack")
"""The kinds of names in a scope, in the order of its conditions."""
_FEW = 5
"""Names in a message if none is similar to the unknown one."""


class UnknownNameError(BuilderError):
    """An unknown release, stack, package or machine; the message has the names that are
    close.
    """


def explicitly(lookups: Lookups) -> Conditions:
    """Return the condition that a spec was installed by name, not as a dependency."""
    verdict = Verdict(
        select_ids(lookups.conn, "SELECT spec FROM installs WHERE explicit")
    )
    return (Condition("specs", "asked for explicitly", verdict),)


def scope_of(
    lookups: Lookups, explicit: bool = False, /, **arguments: str | None
) -> Conditions:
    """Return the conditions of names by their kinds (`SCOPE`), in any spelling.

    Raises UnknownNameError for names that the database or archspec does not have.
    """
    canonical = read_spellings(lookups).canonical
    kinds = sorted(arguments, key=SCOPE.index)
    names = {
        kind: canonical(kind, name)
        for kind in kinds
        if (name := arguments[kind]) is not None
    }
    ids = {
        "release": {record.name: key for key, record in lookups.releases.items()},
        "stack": {record.name: key for key, record in lookups.stacks.items()},
        "target": {name: key for key, name in lookups.words["target"].items()},
    }
    for kind in ids:
        if kind in names and names[kind] not in ids[kind]:
            first = ", ".join(islice(ids[kind], _FEW)) + (
                ", …" if len(ids[kind]) > _FEW else ""
            )
            close = hint(
                names[kind], ids[kind], f"{kind}s in this database: {first or 'none'}"
            )
            raise UnknownNameError(f"no {kind} is called {names[kind]!r}; {close}")
    if "package" in names and names["package"] not in lookups.packages:
        raise UnknownNameError(known_name(lookups, names["package"]).sentence)
    if "host" in names and not (
        names["host"] in lookups.families or is_known(names["host"])
    ):
        close = hint(
            names["host"],
            known_targets(),
            "expected a name such as zen3 or neoverse_v2",
        )
        raise UnknownNameError(f"archspec knows no target {names['host']!r}; {close}")
    conditions = []
    for kind, name in names.items():
        text = f"{kind}={name}" if kind in ("platform", "os") else name
        value: Asked = ids[kind][name] if kind in ("release", "stack") else Word(name)
        conditions.append(Condition(kind, text, name if kind == "host" else value))
    return (*conditions, *(explicitly(lookups) if explicit else ()))


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the names that are close to an unknown one, or the text `otherwise`."""
    close = difflib.get_close_matches(name, [*known], cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise
