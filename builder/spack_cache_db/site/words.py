"""The words of pages: texts that depend on what a site lists, and how texts are joined.

A site over build caches lists binaries, which people install. A site over installations
lists installed specs, which people load. Templates have the vocabulary as `words`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from markupsafe import Markup

from spack_cache_db.errors import bytes_text, counted
from spack_cache_db.model import NO_COMPILER

STABLE_ONLY = "stable versions only"
"""The words for the filter `stable`, which has no value."""

MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
"""The names of months. Those of `strftime` depend on the locale."""


class ListOfRows(Protocol):
    """What a sentence about a list says: `lists.ListPage`."""

    @property
    def kind(self) -> str:
        """`packages`, `releases` or `stacks`."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows that match the filters."""

    @property
    def total(self) -> int:
        """The number of rows without filters."""

    @property
    def is_missing(self) -> bool:
        """Whether the list is of Spack's packages without a binary."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words for what a site lists.

    Attributes:
        one: the word for one listed spec.
        many: its plural.
        place: the word for a release.
        compare: the words of the link to the comparison of two releases.
        is_installed: whether all releases are installations, not build caches.
        verb: what people do with it, as in `the commands that install it`.
        have: the end of `packages that …`.
        has: the same for one package.
        lacking: the same behind `packages`.
        kind: the adjective of packages that a search engine reads.
        question: the title of the first page.
        gaps: the words of the link from a release to its gaps.
        in_release: what the numbers beside the packages of a release count.
        source: what an index is of.
        release: what a release is, up to an example.
        kinds_of_release: the end of that sentence.
        about_link: the words of the link to the page about the site.
    """

    one: str
    many: str
    place: str
    compare: str
    is_installed: bool
    verb: str
    have: str
    has: str
    lacking: str
    kind: str
    question: str
    gaps: str
    in_release: str
    source: str
    release: str
    kinds_of_release: str
    about_link: str

    def places(self, number: int) -> str:
        """Return a number of releases, such as `2 releases` or `1 installation`."""
        return counted(number, self.place)

    def none(self, filters: Iterable[tuple[str, str]]) -> str:
        """Return that nothing satisfies some filters, given as pairs of name and value.

        >>> BINARIES.none([("host", "zen3"), ("variant", "+cuda")])
        'none for zen3 with +cuda'
        >>> BINARIES.none([])
        'no binary'
        """
        phrases = []
        for name, value in filters:
            preposition = _PREPOSITIONS.get(name, "with")
            value_name = _VALUE_NAMES.get(name, str)
            phrases.append(f"{preposition} {value_name(value)}")
        return f"none {' '.join(phrases)}" if phrases else f"no {self.one}"

    @property
    def prepositions(self) -> Mapping[str, str]:
        """What stands before the value of a filter in `none`; `with` for any other."""
        return _PREPOSITIONS

    def counted(self, number: int) -> str:
        """Return a number of listed specs, such as `1 binary` or `2,000 binaries`."""
        return counted(number, self.one, self.many)

    @property
    def map_help(self) -> str:
        """What the table of versions and processors shows."""
        return (
            f"{self.many.capitalize()} by version and processor. "
            "A stronger colour is more. Choose a cell to pick it above."
        )

    def package_description(self, name: str) -> str:
        """Return the description of a package's page for search engines."""
        return (
            f"{self.kind} {self.many} of {name} for Spack: versions, compilers, "
            f"targets, variants, and the commands that {self.verb} them."
        )

    @property
    def description(self) -> str:
        """The description of pages that have none of their own."""
        return (
            f"{self.kind} Spack packages, by version, compiler, target and variant, "
            f"with the commands that {self.verb} them."
        )

    def home_title(self, site_title: str) -> str:
        """Return the title of the first page in a browser's tab."""
        if self.is_installed:
            return site_title
        return f"{site_title}: {self.question[0].lower()}{self.question[1:]}"

    @property
    def cover_question(self) -> str:
        """The title of the page that checks an environment."""
        return f"Which specs of my environment {self.have}?"

    def lead(self, packages: int, targets: int, owner: str) -> str:
        """Return the sentence below the title of the first page.

        Args:
            packages: the number of packages.
            targets: the number of targets that they were built for.
            owner: whose packages they are, such as `the installation site`.
        """
        if self.is_installed:
            return (
                f"{counted(packages, 'package')} of {owner}. "
                "Find one, and copy the command that loads it."
            )
        return (
            f"{counted(packages, 'Spack package')}, prebuilt for "
            f"{counted(targets, 'kind of processor', 'kinds of processor')}. "
            "Install in seconds instead of compiling for hours."
        )

    def having_heading(self, count: int, has_installed: bool) -> str:
        """Return the heading of an environment's specs that need not be built.

        Args:
            count: their number.
            has_installed: whether some of them are installed already.
        """
        if self.is_installed:
            return f"{count:,} installed"
        if has_installed:
            return f"{count:,} installed or with a binary"
        return f"{count:,} with a binary"

    def lacking_heading(self, count: int, has_unusable: bool) -> str:
        """Return the heading of an environment's specs that must be built.

        Args:
            count: their number.
            has_unusable: whether some have a binary that Spack does not take, or not
                with all that it needs.
        """
        if self.is_installed:
            return f"{count:,} not installed"
        if has_unusable:
            return f"{count:,} without a usable binary"
        return f"{count:,} without a binary"

    def install_heading(self, count: int) -> str:
        """Return the heading of the commands for some specs: `Install these 9`."""
        objects = "it" if count == 1 else f"these {count:,}"
        return f"{self.verb.capitalize()} {objects}"

    @property
    def check_button(self) -> str:
        """The button that checks a pasted environment."""
        return f"Find {self.many}"

    def filter(self, name: str, value: str) -> str:
        """Return a filter of a list for people: `built with gcc@13`."""
        phrases = {
            "q": "name contains",
            "release": "in",
            "stack": "in",
            "target": "for",
            "compiler": "built with",
            "has": f"has a {self.one} for",
            "lacks": f"has no {self.one} for",
            "maintainer": "maintained by",
            "license": "under",
            "tag": "tagged",
        }
        # The values of `kind`, `host` and `os` say what they are.
        return f"{phrases.get(name, '')} {value}".strip()

    def flag(self, name: str) -> str | None:
        """Return a filter of a list that has no value, for people; None for others."""
        flags = {
            "behind": "older than in Spack",
            "missing": f"packages {self.lacking}",
            "stable": STABLE_ONLY,
        }
        return flags.get(name)

    def row(self, kind: str) -> str:
        """Return the word for a row of the list of packages, releases or stacks."""
        return self.place if kind == "releases" else kind.removesuffix("s")

    def list_answer(self, page: ListOfRows) -> str:
        """Return how many rows a list has: `12 of 281 packages, 40 binaries.`."""
        shown = len(page.rows)
        if page.is_missing:
            return f"{shown:,} of Spack's {page.total:,} packages have no {self.one}."
        some = "" if shown == page.total else f"{shown:,} of "
        text = some + counted(page.total, self.row(page.kind))
        if page.kind == "packages":
            specs = sum(row["specs"] for row in page.rows)
            text += f", {self.counted(specs)}"
        return f"{text}."

    def release_description(self, name: str, specs: int) -> str:
        """Return the description of a release's page for search engines."""
        if self.is_installed:
            place = f"that Spack has installed in {name}"
        else:
            place = f"of {name} in a Spack build cache"
        number = self.counted(specs)
        return f"The {number} {place}: packages, targets, compilers, stacks."


BINARIES = Vocabulary(
    one="binary",
    many="binaries",
    place="release",
    compare="What changed",
    is_installed=False,
    verb="install",
    have="have a binary",
    has="has a binary",
    lacking="without a binary",
    kind="Prebuilt",
    question="Is there a binary for my machine?",
    gaps="Packages without a binary for a target or a stack",
    in_release="binaries in this release",
    source="mirror",
    release="A state of the build cache with its own mirror",
    kinds_of_release=(
        ": a branch, which changes from day to day; a snapshot, the branch on one day; "
        "or a release of Spack."
    ),
    about_link="New to Spack? What this is",
)
INSTALLED = Vocabulary(
    one="spec",
    many="specs",
    place="installation",
    compare="Differences",
    is_installed=True,
    verb="load",
    have="are installed",
    has="is installed",
    lacking="that are not installed",
    kind="Installed",
    question="What is installed?",
    gaps="Packages not installed for a target",
    in_release="installed specs",
    source="installation",
    release="One installation",
    kinds_of_release=".",
    about_link="What this is",
)


def vocabulary_of(is_installed: bool) -> Vocabulary:
    """Return the words for a site over installations, or over build caches."""
    return INSTALLED if is_installed else BINARIES


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


MOST_NAMED = 3
"""Limit of names in a sentence."""


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
        new_names = f": {_first(numbers.new_packages)}"
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


def newest_and_others(versions: Sequence[str]) -> str:
    """Return the newest of some versions, which is the last, and the number of others.

    >>> newest_and_others(["1.0", "1.1", "2.0"])
    '2.0 and 2 more'
    """
    others = len(versions) - 1
    return f"{versions[-1]} and {others:,} more" if others > 0 else versions[-1]


MOST_PROCESSORS = 4
"""Limit of processors that are named."""


def names_of_processors(names: Sequence[str]) -> str:
    """Return the names of some processors, or their number if they are many.

    >>> names_of_processors(["x86-64-v3", "aarch64"])
    'x86-64-v3, aarch64'
    """
    if len(names) > MOST_PROCESSORS:
        return f"{len(names)} kinds of processor"
    return ", ".join(names)


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
            parts.append(f"{_first(list(self.new))}: new")
        if self.gone:
            parts.append(f"{_first(list(self.gone))}: gone")
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


def _first(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    text = ", ".join(names[:MOST_NAMED])
    others = len(names) - MOST_NAMED
    return f"{text} and {others:,} more" if others > 0 else text


def numbers_title(day: date, added: int, removed: int) -> str:
    """Return the title of an entry about everything.

    >>> numbers_title(date(2026, 11, 22), 186, 187)
    '22 Nov 2026: 186 configurations new, 187 gone'
    """
    return f"{day_words(day)}: {counted(added, 'configuration')} new, {removed:,} gone"


def sentence(text: str) -> str:
    """Return a text that begins with a capital, unless it begins with a spec or a hash.

    >>> sentence("gone from its mirror")
    'Gone from its mirror'
    >>> sentence("hdf5@1.14 has no binary")
    'hdf5@1.14 has no binary'
    """
    first = text.split(" ")[0]
    if "@" in first or "/" in first:
        return text
    return text[:1].upper() + text[1:]


def day_words(day: date) -> str:
    """Return a day for people: `4 Oct 2026`."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def date_words(text: str | None) -> str:
    """Return a date of the database for people; any other text as it is.

    >>> date_words("2026-10-04"), date_words("tomorrow")
    ('4 Oct 2026', 'tomorrow')
    """
    try:
        return day_words(date.fromisoformat(text or ""))
    except (TypeError, ValueError):
        return text or ""


def listed(names: Iterable[object], link: Callable[[object], str]) -> Markup:
    """Return the links of names, with commas between them."""
    return Markup(", ").join(link(name) for name in names)


_SYSTEMS = {
    "almalinux": "AlmaLinux",
    "amzn": "Amazon Linux",
    "centos": "CentOS",
    "debian": "Debian",
    "fedora": "Fedora",
    "opensuse-leap": "openSUSE Leap",
    "rhel": "RHEL",
    "rocky": "Rocky Linux",
    "sles": "SLES",
    "ubuntu": "Ubuntu",
}
"""The names of operating systems for people, by Spack's names without a version."""
_SYSTEM = re.compile(r"([a-z-]+?)(\d[\d.]*)")


def system_name(text: str) -> str:
    """Return the name of an operating system for people; others as Spack has them.

    >>> system_name("ubuntu24.04"), system_name("amzn2"), system_name("sequoia")
    ('Ubuntu 24.04', 'Amazon Linux 2', 'sequoia')
    """
    match = _SYSTEM.fullmatch(text)
    if match is None or match[1] not in _SYSTEMS:
        return text
    return f"{_SYSTEMS[match[1]]} {match[2]}"


_COMPILERS = {
    "intel-oneapi-compilers": "oneAPI",
    "intel-oneapi-compilers-classic": "Intel classic",
    "oneapi": "oneAPI",
}
"""The names of compilers for people, where they are much shorter than Spack's."""


def compiler_name(text: str) -> str:
    """Return the name of a compiler for people.

    >>> compiler_name("gcc@13.2.0"), compiler_name("none")
    ('gcc 13.2.0', 'no compiler')
    """
    if text == NO_COMPILER:
        return "no compiler"
    name, _, version = text.partition("@")
    return f"{_COMPILERS.get(name, name)} {version}".rstrip()


_PREPOSITIONS = {
    "host": "for",
    "os": "on",
    "platform": "for",
    "release": "in",
    "stack": "in",
    "target": "for",
    "version": "of",
}
"""What stands before the value of a filter; `with` before that of any other."""
_VALUE_NAMES: dict[str, Callable[[str], str]] = {
    "compiler": compiler_name,
    "os": system_name,
}


TEXT_FUNCTIONS = {
    "bytes_text": bytes_text,
    "compiler_name": compiler_name,
    "counted": counted,
    "date_words": date_words,
    "day_words": day_words,
    "listed": listed,
    "number": "{:,}".format,
    "sentence": sentence,
    "system_name": system_name,
}
"""What templates call for texts, by their names there."""
