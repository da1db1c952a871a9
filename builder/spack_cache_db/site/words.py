"""The words of pages that depend on what a site lists.

A site over build caches lists binaries, which people install. A site over installations
lists installed specs, which people load. Templates have the vocabulary as `words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spack_cache_db.errors import counted
from spack_cache_db.site.names_for_people import compiler_name, system_name

STABLE_ONLY = "stable versions only"
"""The words for the filter `stable`, which has no value."""


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


class ListOfRows(Protocol):
    """What a sentence about a list says: `list_page.ListPage`."""

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
