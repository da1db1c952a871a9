"""Plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word means what the file has under that name: a package, a release, a stack, an operating system,
a target, a compiler, a variant. Words with a sign of Spack's syntax stay as they are.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.query.connection import select
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.spack.targets import family, is_known

PACKAGES = "SELECT name FROM packages WHERE release_count > 0"
BOOL_VARIANT = "SELECT 1 FROM variants WHERE name = :name AND value IN ('True', 'False') LIMIT 1"
_FILLERS = """
a an and binaries binary build buildcache built cache find for from i in install me my need of on
package packages please prebuilt release runs spack spec stack target that the to using version want
with
"""
FILLERS = frozenset(_FILLERS.split())
"""Words that say nothing of what is looked for."""
MOST_WORDS = 12
PREFIXES = ("", "py-", "r-", "perl-")
"""What stands before a name of which people leave it out."""

_SIGNED = re.compile(r"[@+~%^/]|[\w-]+:?==?\S")
_NUMBER = re.compile(r"v?(\d[\w.:-]*)")
_NAME_AND_NUMBER = re.compile(r"([a-z][a-z-]*?)[@-]?(\d[\w.]*)?")
_HASH = re.compile(r"/?([a-z2-7]{3,32})")


@dataclass(frozen=True, slots=True)
class Reading:
    """What words ask for: a spec, empty for any, in a release and a stack if they name one."""

    spec: str
    release: str | None = None
    stack: str | None = None


def read_words(conn: sqlite3.Connection, lookups: Lookups, text: str) -> Reading | None:
    """Return what plain words ask for; None where one of them means nothing in this file."""
    words = [each for each in re.split(r"[\s,;]+", text.strip()) if each.lower() not in FILLERS]
    if not 0 < len(words) <= MOST_WORDS:
        return None
    # Alone, a part of a name may be many packages.
    reader = _Reader(conn, lookups, PREFIXES if len(words) > 1 else PREFIXES[:1])
    return reader.reading() if all(map(reader.read, words)) else _of_hash(conn, words)


def _of_hash(conn: sqlite3.Connection, words: list[str]) -> Reading | None:
    """Return the specs whose hash begins with the only word."""
    found = _HASH.fullmatch(words[0].lower()) if len(words) == 1 else None
    if found is None or not hashes_beginning(conn, found[1], 1):
        return None
    return Reading(f"/{found[1]}")


class _Reader:
    """Reads words one after the other; the first that is a package's name is the package."""

    def __init__(self, conn: sqlite3.Connection, lookups: Lookups, prefixes: Sequence[str]) -> None:
        self._conn = conn
        self._prefixes = prefixes
        self._lookups = lookups
        self._packages = {row[0] for row in select(conn, PACKAGES)}
        self._compilers = {name.partition("@")[0] for name in lookups.words["compiler"].values()}
        self._name = self._version = self._built_with = ""
        self._conditions: dict[str, str] = {}
        self._dependencies: list[str] = []
        self._places: dict[str, str] = {}

    def reading(self) -> Reading:
        """Return what all words ask for, in the order in which Spack reads it."""
        parts = (
            self._name + self._version,
            *self._conditions.values(),
            self._built_with,
            *self._dependencies,
        )
        return Reading(" ".join(filter(None, parts)), **self._places)

    def read(self, word: str) -> bool:
        """Add a word to the reading; return whether it means something."""
        meanings = (self._signed, self._place, self._system, self._package, self._compiler)
        return any(meaning(word) for meaning in (*meanings, self._number, self._variant))

    def _signed(self, word: str) -> bool:
        if not _SIGNED.match(word):
            return False
        if word[0] == "@":
            self._version = word
        elif word[0] == "%":
            self._built_with = word
        elif word[0] == "^":
            self._dependencies.append(word)
        else:
            return self._asks(word.lstrip("+~").partition("=")[0].rstrip(":"), word)
        return True

    def _asks(self, name: str, condition: str) -> bool:
        """Add what is asked of a variant or a system; return whether nothing contradicts it."""
        return self._conditions.setdefault(name, condition) == condition

    def _place(self, word: str) -> bool:
        for kind, known in (("release", self._lookups.releases), ("stack", self._lookups.stacks)):
            for each in known.values():
                if each.name.lower() == word.lower():
                    self._places[kind] = each.name
                    return True
        return False

    def _system(self, word: str) -> bool:
        """Read an operating system, a platform or a target: what is of a family or runs on it."""
        name = word.lower()
        for kind in ("os", "platform"):
            if name in self._lookups.words[kind].values():
                return self._asks(kind, f"{kind}={name}")
        if not is_known(name):
            return False
        target = f"{name}:" if name == family(name) else f":{name}"
        return self._asks("target", f"target={target}")

    def _package(self, word: str) -> bool:
        name, at, version = word.lower().partition("@")
        found = next(
            (each + name for each in self._prefixes if each + name in self._packages), None
        )
        if self._name or found is None:
            return False
        self._name, self._version = found, at + version
        return True

    def _compiler(self, word: str) -> bool:
        found = _NAME_AND_NUMBER.fullmatch(word.lower())
        if self._built_with or found is None or found[1] not in self._compilers:
            return False
        self._built_with = f"%{found[1]}" + (f"@{found[2]}" if found[2] else "")
        return True

    def _number(self, word: str) -> bool:
        """Read a version: of a compiler that has none yet, else of the package."""
        found = _NUMBER.fullmatch(word.lower())
        if found is None:
            return False
        if self._built_with and "@" not in self._built_with:
            self._built_with += f"@{found[1]}"
            return True
        if not self._name or self._version:
            return False
        self._version = f"@{found[1]}"
        return True

    def _variant(self, word: str) -> bool:
        """Read the name of a variant that can be on."""
        if next(select(self._conn, BOOL_VARIANT, name=word.lower()), None) is None:
            return False
        return self._asks(word.lower(), f"+{word.lower()}")
