"""The words of a search: its answer in sentences, and what it left out of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spack_cache_db.errors import counted
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.query.words.splitting import fillers_in
from spack_cache_db.site.words import STABLE_ONLY, Vocabulary
from spack_cache_db.spack.facts import GPU_SWITCHES


class Part(Protocol):
    """A part of a search, such as the machine `zen3`: a token of its page."""

    @property
    def label(self) -> str:
        """What it is: a key of `PHRASES`, or `package`."""

    @property
    def text(self) -> str:
        """The part for people."""


class Names(Protocol):
    """The names that narrow an answer: `filters.Narrowing`."""

    @property
    def host(self) -> str | None:
        """The machine."""

    @property
    def stack(self) -> str | None:
        """The stack."""

    @property
    def release(self) -> str | None:
        """The release."""

    @property
    def stable(self) -> str | None:
        """Whether only stable versions count; None if all do."""


CORRECTED = (
    "in Spack, options after a compiler are options of the compiler: this is the answer "
    "for {}"
)

MACHINE_REPLACED = "you typed a machine, so your {} is not used"
PHRASES = {
    "option": "with",
    "compiler": "built with",
    "dependency": "with",
    "system": "on",
    "machine": "for",
    "stack": "in",
    "release": "in",
}
"""The words before a token in a sentence, by its label."""
OF_ANY_PACKAGE = ("compiler", "system", "machine", "stack", "release")
"""The labels of conditions that do not depend on the package."""


def quoted(words: Sequence[str]) -> str:
    """Return words in quotation marks, such as `“for” and “the”`."""
    texts = [f"“{word}”" for word in words]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def notes_on_words(text: str, reading: Reading, one: str) -> tuple[str, ...]:
    """Return what was left out of plain words, and why.

    Args:
        text: the words.
        reading: their meaning.
        one: the word for what the site lists, such as `binary`.
    """
    notes = []
    fillers = fillers_in(text)
    if fillers:
        notes.append(f"not used: {quoted(fillers)}")
    for meaning in reading.meanings:
        name = meaning.text.partition("=")[0]
        if name in GPU_SWITCHES:
            notes.append(f"{quoted([' '.join(meaning.words)])} is {meaning.text}")
    dependencies = []
    for condition in reading.unrecorded:
        name = condition.partition("=")[0]
        if name in GPU_SWITCHES:
            notes.append(
                f"this database does not record {name}: "
                f"+{GPU_SWITCHES[name]} stands for {condition}"
            )
        else:
            dependencies.append(condition.replace("@", " "))
    if dependencies:
        notes.append(
            f"this database does not record dependencies, so {quoted(dependencies)} "
            f"is not checked"
        )
    # The words of dependencies have been named.
    named = {word for text in dependencies for word in text.split()}
    unknown = [word for word in reading.left_out if word.lower() not in named]
    if unknown:
        notes.append(f"left out, because no {one} matches: {quoted(unknown)}")
    return tuple(notes)


def phrases_of(parts: Sequence[Part], labels: Sequence[str]) -> str:
    """Return what an answer is limited to, such as ` built with gcc 13 for zen3`, by
    the parts with some labels.
    """
    phrases = []
    for label in labels:
        for part in parts:
            if part.label == label:
                phrases.append(f" {PHRASES[label]} {part.text}")
    return "".join(phrases)


def phrases_of_names(names: Names) -> str:
    """Return the names that narrow an answer, such as ` on zen3 in e4s in develop`."""
    texts = []
    if names.host:
        texts.append(f" on {names.host}")
    for place in (names.stack, names.release):
        if place:
            texts.append(f" in {place}")
    if names.stable:
        texts.append(f", {STABLE_ONLY}")
    return "".join(texts)


def packages_heading(
    count: int, asked: int, phrases: str, vocabulary: Vocabulary
) -> str:
    """Return how many packages have a binary: `2 of 3 packages have a binary for zen3`.

    Args:
        count: the number of packages with one.
        asked: the number of packages that the search is about.
        phrases: what it is limited to; see `phrases_of`.
        vocabulary: the words of the site.
    """
    packages = counted(asked, "package")
    if asked != count:
        packages = f"{count:,} of {packages}"
    is_singular = count == 1 or asked == 1
    have = vocabulary.has if is_singular else vocabulary.have
    # `have a binary built with gcc`, but `are installed, built with gcc`.
    comma = "," if vocabulary.is_installed and phrases else ""
    return f"{packages} {have}{comma}{phrases}"
