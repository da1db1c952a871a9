"""The words of comparisons: pages of what changed, and entries of feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from spack_cache_db.errors import counted
from spack_cache_db.site.names_for_people import day_words, first_of
from spack_cache_db.site.words import Vocabulary


@dataclass(frozen=True, slots=True)
class PartWords:
    """The heading of a part of a comparison, and what its configurations are."""

    title: str
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """The words of a comparison.

    Nothing is lost or new between two sides that exist beside each other, such as two
    installations.

    Attributes:
        title: the title of the page.
        numbers: the name of the list of numbers, for screen readers.
        parts: the headings by change, and of `lost`, `upgraded` and `new`.
        kept: the heading of the counts that both sides have.
        added: that of counts that only the new side has.
        removed: that of counts that only the old side has.
        causes: what comes before the reasons of rebuilds.
        too_many: what takes their place if they would take too long to find.
    """

    title: str
    numbers: str
    parts: Mapping[str, PartWords]
    kept: str
    added: str
    removed: str
    causes: str
    too_many: str


def change_words(old: str, new: str, place: str, vocabulary: Vocabulary) -> ChangeWords:
    """Return the words of the comparison of two sides.

    Args:
        old: the name of the old side, such as `v1.1.0` or `develop:e4s`.
        new: the name of the new side.
        place: the word before sides that exist beside each other, `on` or `in`; empty
            if one is older.
        vocabulary: the words for what is compared.
    """
    many = vocabulary.many
    if place:
        only_old = f"Only {place} {old}"
        only_new = f"Only {place} {new}"
        return ChangeWords(
            title="Differences",
            numbers="Packages that differ",
            parts={
                "lost": PartWords(only_old),
                "upgraded": PartWords("Other versions"),
                "new": PartWords(only_new),
                "added": PartWords(only_new),
                "removed": PartWords(only_old),
                "rebuilt": PartWords("Other hashes", f"{place} both"),
                "grown": PartWords(f"More {many}", f"{place} {new}"),
                "shrunk": PartWords(f"Fewer {many}", f"{place} {new}"),
            },
            kept="Both",
            added=only_new,
            removed=only_old,
            causes="Dependencies that differ:",
            too_many="Too many differ to say why: choose a stack or a package.",
        )
    return ChangeWords(
        title="What changed",
        numbers="Changed packages",
        parts={
            "lost": PartWords("Lost", f"No {vocabulary.one} in {new} any more."),
            "upgraded": PartWords("Upgraded"),
            "new": PartWords("New packages", f"No {vocabulary.one} in {old}."),
            "added": PartWords("New", f"that only {new} has"),
            "removed": PartWords("Removed", f"that only {old} has"),
            "rebuilt": PartWords("Rebuilt at the same version", "with other hashes"),
            "grown": PartWords("Grown", f"with more {many} than before"),
            "shrunk": PartWords("Shrunk", f"with fewer {many} than before"),
        },
        kept="Kept",
        added="New",
        removed="Removed",
        causes="Why:",
        too_many="Too many were rebuilt to say why: choose a stack or a package.",
    )


@dataclass(frozen=True, slots=True)
class ChangedNumbers:
    """How many packages a comparison found: lost, upgraded, new and rebuilt.

    `major` counts the upgrades by a major version; `new_packages` are names.
    """

    lost: int
    upgraded: int
    major: int
    new_packages: Sequence[str]
    rebuilt: int

    @property
    def counts(self) -> dict[str, int]:
        """The numbers, by the parts of the page that list them."""
        return {
            "lost": self.lost,
            "upgraded": self.upgraded,
            "new": len(self.new_packages),
            "rebuilt": self.rebuilt,
        }


def number_notes(
    numbers: ChangedNumbers, old: str, new: str, place: str, vocabulary: Vocabulary
) -> dict[str, str]:
    """Return what each number counts, by its part.

    The arguments `old`, `new`, `place` and `vocabulary` are those of `change_words`.

    >>> from spack_cache_db.site.words import BINARIES
    >>> numbers = ChangedNumbers(1, 2, 1, ["z3"], 0)
    >>> number_notes(numbers, "v1", "v2", "", BINARIES)["new"]
    'package new: z3'
    """
    nouns = {
        part: "package" if count == 1 else "packages"
        for part, count in numbers.counts.items()
    }
    new_names = ""
    if numbers.new_packages:
        new_names = f": {first_of(numbers.new_packages)}"
    if place:
        return {
            "lost": f"{nouns['lost']} only {place} {old}",
            "upgraded": f"{nouns['upgraded']} with other versions",
            "new": f"{nouns['new']} only {place} {new}{new_names}",
            "rebuilt": f"{nouns['rebuilt']} with other hashes at the same version",
        }
    whose = "its" if numbers.lost == 1 else "their"
    major = ""
    if numbers.major:
        major = f", {numbers.major:,} of them by a major version"
    return {
        "lost": f"{nouns['lost']} lost {whose} last {vocabulary.one}",
        "upgraded": f"{nouns['upgraded']} upgraded{major}",
        "new": f"{nouns['new']} new{new_names}",
        "rebuilt": f"{nouns['rebuilt']} rebuilt at the same version",
    }


def package_on_one_side(change: str, place: str) -> str:
    """Return what a package is that only one side has: `change` is `added` or
    `removed`.

    >>> package_on_one_side("removed", "")
    'last package'
    """
    if place:
        return "package"
    return "new package" if change == "added" else "last package"


@dataclass(frozen=True, slots=True)
class News:
    """What a snapshot changed of the packages that a feed is about.

    Attributes:
        package: the one package of the feed; None if it is about several.
        new: the new versions, such as `hdf5 2.1.0`, with their processors.
        gone: the versions that are not there any more, with their processors.
        appeared: the number of new configurations.
        disappeared: the number of configurations that are not there any more.
    """

    package: str | None
    new: Mapping[str, Sequence[str]]
    gone: Mapping[str, Sequence[str]]
    appeared: int
    disappeared: int

    @property
    def title(self) -> str:
        """The title of an entry: `hdf5 2.1.0: new on 5 processors`.

        Without a new version, configurations are counted.
        """
        parts = []
        if len(self.new) == 1:
            ((version, processors),) = self.new.items()
            parts.append(f"{version}: new on {_processors(processors)}")
        elif self.new:
            parts.append(f"{first_of(list(self.new))}: new")
        if self.gone:
            parts.append(f"{first_of(list(self.gone))}: gone")
        if not parts:
            counts = []
            if self.appeared:
                counts.append(f"{counted(self.appeared, 'new configuration')}")
            if self.disappeared:
                counts.append(f"{counted(self.disappeared, 'configuration')} gone")
            start = f"{self.package}: " if self.package else ""
            parts.append(start + ", ".join(counts))
        return "; ".join(parts)


def _processors(names: Sequence[str]) -> str:
    """Return the one processor, or the number of processors."""
    return names[0] if len(names) == 1 else counted(len(names), "processor")


def numbers_title(day: date, added: int, removed: int) -> str:
    """Return the title of an entry about everything.

    >>> numbers_title(date(2026, 11, 22), 186, 187)
    '22 Nov 2026: 186 configurations new, 187 gone'
    """
    return f"{day_words(day)}: {counted(added, 'configuration')} new, {removed:,} gone"
