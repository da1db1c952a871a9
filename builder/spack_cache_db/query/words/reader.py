"""Reads plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word is the name of a package, release, stack, operating system, target, compiler or
variant in the database. Words with a sign of Spack's syntax stay unchanged. Other words
become a full-text search for configurations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.query.words.reading import Meaning, Reading, full_text_query
from spack_cache_db.query.words.splitting import (
    name_and_version,
    number_in,
    plain_words,
)
from spack_cache_db.query.words.vocabulary import NEGATIONS, package_called
from spack_cache_db.query.words.word_reader import WordReader

WITH_WORDS = """
SELECT 1 FROM configurations_fts
JOIN configurations ON configurations.id = configurations_fts.rowid
WHERE configurations_fts MATCH :match AND spec_count > 0
  AND (:package = '' OR package_id = (SELECT id FROM packages WHERE name = :package))
LIMIT 1
"""
"""Whether a configuration with a binary, of the package or of any, has some words."""
NEEDS = """
SELECT 1 FROM known_dependencies WHERE dependency = :dependency AND package = :package
"""
"""Whether a package depends on another one, by package data."""
MOST_WORDS = 12
"""Maximum of words in a text; a longer text is not read."""
MOST_JOINED = 4
"""Maximum of words in one name: `ml linux x86_64 cuda` is `ml-linux-x86_64-cuda`."""
_SCOPE_KINDS = ("release", "stack")
"""The kinds of parts that choose a scope."""
_KINDS = frozenset(("package", "compiler", "os", "platform", "target", *_SCOPE_KINDS))
"""The kinds of parts; a part on anything else is on a dependency or a variant."""
_HASH = re.compile(r"/?([a-z2-7]{4,32})")
"""The beginning of a hash, in the characters of base 32."""
_MACHINE = re.compile(r"target=:([\w.-]+)")
"""The condition that a binary runs on machines with a CPU target: `target=:zen3`."""


def read_words(lookups: Lookups, text: str) -> Reading | None:
    """Return the reading of plain words; None if no word has a meaning in this
    database.
    """
    words = plain_words(text)
    if not 0 < len(words) <= MOST_WORDS:
        return None

    # Read the words twice: a variant may come before its package (`mpi hdf5`), so the
    # package must be known first.
    package = _TextReader(lookups, words).package()
    reader = _TextReader(lookups, words, package)
    is_single = len(words) == 1
    if is_single and not package and package_called(lookups, words[0]):
        # The name of a package without binaries is not read as a variant or a compiler.
        unread = words
    else:
        unread = reader.read_all()

    # Search for the words without a meaning. A negated word is one unread text of two
    # words, so a text such as `without abc` has a reading, in which it is left out.
    searched = _searched_words(lookups, unread, package)
    has_meaning = len(unread) < len(words)
    if not has_meaning and not searched:
        return _reading_of_hash(lookups, words[0]) if is_single else None
    left_out = tuple(word for word in unread if word not in searched)
    return reader.reading(tuple(searched), left_out)


def _searched_words(lookups: Lookups, unread: Sequence[str], package: str) -> list[str]:
    """Return the words that a full-text search finds together.

    Each word must be found together with those before it, in a configuration of the
    package, if there is one.
    """
    found: list[str] = []
    for word in unread:
        # A number is in very many versions, and no word of the index has a blank
        # (`without mpi`).
        if " " in word or number_in(word) is not None:
            continue
        query = full_text_query([*found, word])
        if any(select(lookups.conn, WITH_WORDS, match=query, package=package)):
            found.append(word)
    return found


def _reading_of_hash(lookups: Lookups, word: str) -> Reading | None:
    """Return the reading of a word that is the beginning of a hash; None if it is
    not.
    """
    match = _HASH.fullmatch(word.lower())
    if match is None or not specs_beginning(lookups.conn, match[1], 1):
        return None
    return Reading(f"/{match[1]}")


class _TextReader:
    """Reads the words of one text into a spec, and keeps which words mean which part.

    Args:
        lookups: the database.
        words: the words (`plain_words`).
        package: the package that the words name; empty if it is not known yet, or if
            they name none.
    """

    def __init__(
        self, lookups: Lookups, words: Sequence[str], package: str = ""
    ) -> None:
        self._lookups = lookups
        self._words = words
        self._spec = WordReader(lookups, package, is_single=len(words) == 1)

        # The words of each part of the spec (`WordReader.parts`).
        self._words_of_part: dict[str, list[str]] = {}
        # The words that chose a release or a stack, and those that chose the target.
        self._scope_words: set[str] = set()
        self._target_words: set[str] = set()

    def package(self) -> str:
        """Return the package that the words name, or ""."""
        known_packages = package_counts(self._lookups)
        # `read_all` finds a package with binaries, and leaves packages without a binary
        # unread. One of these is the package if the words name no other, or if it
        # depends on the other.
        for word in self.read_all():
            name = name_and_version(word).name
            if name not in known_packages:
                continue
            if not self._spec.name or self._needs(name, self._spec.name):
                return name
        return self._spec.name

    def _needs(self, package: str, dependency: str) -> bool:
        """Return whether a package depends on another one."""
        names = {"package": package, "dependency": dependency}
        return any(select(self._lookups.conn, NEEDS, **names))

    def read_all(self) -> list[str]:
        """Read all words; return those without a meaning, and numbers behind them.

        A negated word is returned with its negation: `without mpi`.
        """
        unread: list[str] = []
        # The word before, if it negates the next one, such as `without`.
        negation = ""
        is_behind_unread = False
        position = 0
        while position < len(self._words):
            word = self._words[position]
            if word.lower() in NEGATIONS:
                negation = word
                position += 1
                continue

            # What is known before the words shows what they have changed.
            parts_before = self._spec.parts()
            ahead = self._words[position : position + MOST_JOINED]
            if negation:
                length, is_read = self._spec.read_negated(ahead)
            else:
                length, is_read = self._read_next(ahead, is_behind_unread)
            words_read = self._words[position : position + length]
            self._keep_words(parts_before, negation, words_read)

            if not is_read:
                name = " ".join(words_read)
                unread.append(f"without {name}" if negation else name)
            is_behind_unread = not is_read
            negation = ""
            position += length
        return unread

    def _read_next(
        self, ahead: Sequence[str], is_behind_unread: bool
    ) -> tuple[int, bool]:
        """Read the next words; return how many belong together, and whether they were
        read.

        Args:
            ahead: the next words; several of them may be one name: `netcdf fortran`.
            is_behind_unread: whether the word before them has no meaning.
        """
        length = self._spec.read_joined(ahead)
        if length > 0:
            return length, True
        word = ahead[0]
        number = number_in(word)
        if is_behind_unread and number is not None:
            # It is the version of the unread word.
            self._spec.add_version_of_unrecorded(number)
            return 1, False
        return 1, self._spec.read_word(word)

    def _keep_words(
        self, before: Mapping[str, str], negation: str, words: Sequence[str]
    ) -> None:
        """Remember which parts some words have changed.

        Args:
            before: the parts before the words were read.
            negation: the word that negates them; empty for none.
            words: the words.
        """
        changed = set()
        for key, text in self._spec.parts().items():
            if before.get(key) != text:
                changed.add(key)
        for key in changed:
            words_of_part = self._words_of_part.setdefault(key, [])
            if negation:
                words_of_part.append(negation)
            words_of_part.extend(words)

        # Words of a machine, a release or a stack are not in the rest of a reading.
        if "target" in changed:
            self._target_words.update(words)
        elif not changed.isdisjoint(_SCOPE_KINDS):
            self._scope_words.update(words)

    def reading(self, searched: tuple[str, ...], left_out: tuple[str, ...]) -> Reading:
        """Return the reading of the words, with the spec in Spack's order.

        Args:
            searched: the unread words for a full-text search.
            left_out: the other unread words.
        """
        spec = self._spec
        # `target=:zen3` is a machine: it stands beside the spec, and its words are not
        # in the rest. A family (`target=aarch64:`) is a part of the spec.
        meanings = self._meanings()
        conditions = dict(spec.conditions)
        host = None
        scope_words = self._scope_words
        machine = _MACHINE.fullmatch(conditions.get("target", ""))
        if machine is not None:
            host = machine[1]
            del conditions["target"]
            scope_words = scope_words | self._target_words

        parts = [
            spec.name + spec.version,
            *conditions.values(),
            spec.compiler,
            *spec.dependencies,
        ]
        return Reading(
            " ".join(part for part in parts if part),
            release=spec.scope.get("release"),
            stack=spec.scope.get("stack"),
            host=host,
            words=searched,
            left_out=left_out,
            package=spec.name,
            rest=tuple(word for word in self._words if word not in scope_words),
            switches=tuple(spec.switches),
            unrecorded=tuple(spec.unrecorded),
            meanings=meanings,
        )

    def _meanings(self) -> tuple[Meaning, ...]:
        """Return the parts of the reading with their words."""
        meanings = []
        for key, text in self._spec.parts().items():
            kind = key
            if key.startswith("^"):
                kind = "dependency"
            elif key not in _KINDS:
                kind = "variant"
            words = tuple(self._words_of_part.get(key, ()))
            meanings.append(Meaning(kind, text, words))
        return tuple(meanings)
