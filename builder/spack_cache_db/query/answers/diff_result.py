"""The difference between two releases or stacks, in words."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.rebuilds import Cause
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.schema.changes import CHANGE_WORDS

T = TypeVar("T")


class Delta(NamedTuple, Generic[T]):
    """Members that only the new release has, and members that only the old one has;
    sorted.
    """

    added: tuple[T, ...]
    removed: tuple[T, ...]


class Amount(NamedTuple):
    """The number of hashes in both releases, only in the new one, and only in the old
    one.
    """

    kept: int
    added: int
    removed: int


class ChangedConfiguration(NamedTuple):
    """A configuration whose hashes are not the same in both releases; `specs` counts
    them.
    """

    configuration: Configuration
    specs: Amount


@dataclass(frozen=True, slots=True)
class Diff(NotebookTable):
    """The difference between two releases, or two stacks.

    Attributes:
        old: the name of the old release, as typed (`develop` or `develop:e4s`).
        versions: pairs of package and version, in Spack's order of versions.
        configurations: the configurations that only one side has.
        grown: configurations of both sides with added hashes only.
        shrunk: configurations of both sides with removed hashes only.
        rebuilt: configurations with removed and added hashes.
        specs: all hashes, counted.
        causes: why configurations were rebuilt, as far as dependencies are recorded;
            None if there were too many to compare.
        place: the word before a side that exists beside the other, `on` for
            installations and `in` for stacks; empty if `new` follows `old`, so that
            something was removed and added.
    """

    old: str
    new: str
    packages: Delta[str]
    versions: Delta[tuple[str, str]]
    configurations: Delta[ChangedConfiguration]
    grown: tuple[ChangedConfiguration, ...]
    shrunk: tuple[ChangedConfiguration, ...]
    rebuilt: tuple[ChangedConfiguration, ...]
    stacks: Delta[str]
    specs: Amount
    causes: tuple[Cause, ...] | None
    place: str = ""

    @property
    def words(self) -> dict[str, str]:
        """The words for people for each change: `removed`, or `only on derecho`."""
        if not self.place:
            return {change: change for change in CHANGE_WORDS}
        return {
            "removed": f"only {self.place} {self.old}",
            "added": f"only {self.place} {self.new}",
            "grown": f"with more {self.place} {self.new}",
            "shrunk": f"with fewer {self.place} {self.new}",
            "rebuilt": "with other hashes",
        }

    @property
    def is_empty(self) -> bool:
        """Whether both sides have the same hashes, configurations and stacks."""
        return not any((*self.stacks, *self.by_change.values()))

    @property
    def by_change(self) -> dict[str, tuple[ChangedConfiguration, ...]]:
        """The changed configurations, by the word for their change
        (`schema.CHANGE_WORDS`).
        """
        added, removed = self.configurations
        both = {"grown": self.grown, "shrunk": self.shrunk, "rebuilt": self.rebuilt}
        return {"removed": removed, "added": added, **both}

    @property
    def sentence(self) -> str:
        """The totals as one sentence."""
        kept, added, removed = self.specs
        if self.is_empty:
            return f"{self.new} has the same {kept:,} binaries as {self.old}."
        removed_count = counted(removed, "binary", "binaries")
        grown = len(self.grown)
        shrunk = len(self.shrunk)
        rebuilt = len(self.rebuilt)
        if self.place:
            both = f"{self.place} both"
            words = self.words
            return (
                f"{removed_count} {words['removed']}, {added:,} {words['added']}, "
                f"{kept:,} {both}; of the configurations {both}, "
                f"{grown:,} {words['grown']}, {shrunk:,} {words['shrunk']} and "
                f"{rebuilt:,} {words['rebuilt']}."
            )
        was = "was" if removed == 1 else "were"
        return (
            f"From {self.old} to {self.new}, {removed_count} {was} removed, "
            f"{added:,} added and {kept:,} kept; of the configurations in both, "
            f"{grown:,} grown, {shrunk:,} shrunk and {rebuilt:,} rebuilt."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `diff --json` prints."""
        configurations = {}
        for change, members in self.by_change.items():
            configurations[change] = [_words(change, member) for member in members]
        causes = None
        if self.causes is not None:
            causes = [cause._asdict() for cause in self.causes]
        return {
            "old": self.old,
            "new": self.new,
            "packages": self.packages._asdict(),
            "versions": self.versions._asdict(),
            "configurations": configurations,
            "stacks": self.stacks._asdict(),
            "specs": self.specs._asdict(),
            "causes": causes,
        }

    @property
    def rows(self) -> Rows:
        """A row for each changed configuration, as `diff --csv` prints it."""
        records = []
        for change, configurations in self.by_change.items():
            for changed in configurations:
                record = {"change": change}
                record |= changed.configuration._asdict()
                record |= changed.specs._asdict()
                records.append(record)
        return Rows(("change", *Configuration._fields, *Amount._fields), records)


def _words(change: str, changed: ChangedConfiguration) -> dict[str, Any]:
    """Return a configuration for JSON, with one count if only one side has it."""
    specs = changed.specs
    counts = specs._asdict()
    if change in Delta._fields:
        counts = {"specs": specs.added + specs.removed}
    return changed.configuration._asdict() | counts


def delta_of(
    old: Set[Any], new: Set[Any], *, order: Callable[[Any], Any] | None = None
) -> Delta[Any]:
    """Return what only the new side has, and what only the old side has, both
    sorted.
    """
    added = sorted(new - old, key=order)
    removed = sorted(old - new, key=order)
    return Delta(tuple(added), tuple(removed))
