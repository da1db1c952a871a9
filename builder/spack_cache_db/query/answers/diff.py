"""Compares two releases or stacks of a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spack_cache_db.arguments import checked
from spack_cache_db.query.answers.changes import Changes, changes_of
from spack_cache_db.query.answers.diff_result import Diff
from spack_cache_db.query.answers.diff_sides import listed_in
from spack_cache_db.query.answers.rebuilds import Numbering
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.names.scope import Scope, UnknownNameError, named_conditions
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Database, Lookups, opened


@checked
def diff(
    db: Database,
    old: str,
    new: str,
    *,
    stack: str | None = None,
    package: str | None = None,
    target: str | None = None,
    host: str | None = None,
) -> Diff:
    """Compare two releases of a database, or two stacks.

    `stack` and `host` narrow both sides: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        old: the name of a release, or of a release and a stack: `develop:e4s`.
        new: the name of the release, or release and stack, that is compared with `old`.
        package: only this package.
        target: only specs built for this CPU target.

    Returns:
        The difference: "added" is in `new` only, "removed" is in `old` only.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the database has no such release, stack, package or target.
        DatabaseError: the database was not made by this builder.
    """
    narrowing = {"stack": stack, "package": package, "target": target, "host": host}
    with opened(db) as lookups:
        return compare(lookups, old, new, **narrowing).in_words()


def compare(
    lookups: Lookups,
    old: str,
    new: str,
    stack: str | None = None,
    **narrowing: str | None,
) -> Changes:
    """Return the changes from one side to the other; the arguments are those of `diff`.

    Raises:
        UnknownNameError: a name does not exist, or a side and `stack` name two stacks.
    """
    old_side = _side(lookups, old, stack)
    new_side = _side(lookups, new, stack)
    conditions = named_conditions(lookups, **narrowing)
    before = listed_in(lookups, old_side, conditions)
    after = listed_in(lookups, new_side, conditions)
    names = [_name_of_side(side) for side in (old_side, new_side)]
    changes = changes_of(Numbering(lookups), names, before, after)
    return replace(changes, place=_place(lookups, names))


def _name_of_side(side: Conditions) -> str:
    """Return a side as the database writes it: `develop` or `develop:e4s`."""
    return ":".join(condition.text for condition in side)


def _place(lookups: Lookups, sides: Sequence[str]) -> str:
    """Return the word before sides that exist beside each other; empty for an older and
    a newer.

    Nothing is removed between two machines, or between two stacks of one release.
    """
    kinds = {release.name: release.kind for release in lookups.releases.values()}
    old, new = sides
    old_release = old if old in kinds else old.rpartition(":")[0]
    new_release = new if new in kinds else new.rpartition(":")[0]
    if old_release == new_release:
        return "" if old == new else "in"
    kinds_of_sides = (kinds.get(old_release), kinds.get(new_release))
    if "installed" not in kinds_of_sides:
        return ""
    # One side may be a mirror, which is not a machine.
    are_machines = kinds_of_sides == ("installed", "installed")
    return "on" if are_machines else "in"


def _side(lookups: Lookups, text: str, stack: str | None) -> Conditions:
    """Return the side that a text names: a release, or a release and a stack
    (`develop:e4s`).
    """
    text = read_spellings(lookups).canonical("side", text)
    release, colon, stack_name = text.rpartition(":")
    if not colon or lookups.release(text):
        release, stack_name = text, ""
    if stack_name and stack:
        raise UnknownNameError(
            f"{text!r} names a stack, and so does {stack!r}; give one of them"
        )
    scope = Scope(release=release, stack=stack_name or stack)
    return scope.conditions(lookups)
