"""Plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word means what the file has under that name: a package, a release, a stack, an operating system,
a target, a compiler, a variant. Words with a sign of Spack's syntax stay as they are. What is none
of these is looked for among the words under which full-text search finds configurations.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.query.conditions import Condition
from spack_cache_db.query.connection import select
from spack_cache_db.query.index_records import has_records
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.spack.compilers import LEGACY_COMPILERS
from spack_cache_db.spack.targets import family, is_known

PACKAGES = "SELECT name, release_count FROM packages"
SWITCH = """
SELECT 1 FROM variants WHERE name = :name AND value IN ('True', 'False') AND (
  :package = '' OR EXISTS (
    SELECT 1 FROM packages JOIN configurations ON configurations.package = packages.id
    JOIN variant_set_members AS member ON member.variant_set = configurations.variants
    WHERE packages.name = :package AND member.variant = variants.id))
LIMIT 1
"""
WITH_WORDS = """
SELECT 1 FROM configurations_fts
JOIN configurations ON configurations.id = configurations_fts.rowid
WHERE configurations_fts MATCH :match AND spec_count > 0 LIMIT 1
"""
_FILLERS = """
a all an and any are available best binaries binary build buildcache built by cache cluster
compiled compiler compilers computer current do does find for from get give has have how i in
install installed is it latest list load look me module my need new newest of on os package
packages please platform prebuilt release runs search show spack spec stack support target that
the there to use using variant version versions want what which with
"""
FILLERS = frozenset(_FILLERS.split())
"""Words that say nothing of what is looked for."""
NEGATIONS = frozenset(("no", "not", "without"))
"""Words before a variant that is to be off."""
OTHER_NAMES = {
    "amd64": "x86_64",
    "arm": "aarch64",
    "arm64": "aarch64",
    "clang": "llvm",
    "mac": "darwin",
    "macos": "darwin",
    "osx": "darwin",
    "x64": "x86_64",
}
"""What people call something that the file may have under another name."""
MOST_WORDS = 12
MOST_JOINED = 4
"""So many words may be one name: `ml linux x86_64 cuda` is `ml-linux-x86_64-cuda`."""
PREFIXES = ("", "py-", "r-", "perl-")
"""What stands before a name of which people leave it out."""

_SIGNED = re.compile(r"[@+~%^/]|[\w-]+:?==?\S")
_NUMBER = re.compile(r"v?(\d[\w.:-]*?)(\.x)?")
_NAME_AND_VERSION = re.compile(r"(.+)@(.+)|(.+?)(?:[/-]|(?<=[a-z_]))v?(\d[\w.:]*)")
_HASH = re.compile(r"/?([a-z2-7]{4,32})")


@dataclass(frozen=True, slots=True)
class Reading:
    """What words ask for.

    Attributes:
        spec: what they are in Spack's syntax; empty for any spec.
        release: the release that they name.
        stack: the stack that they name.
        words: those that are looked for as they are.
        left_out: those that nothing here has, together with the others.
    """

    spec: str
    release: str | None = None
    stack: str | None = None
    words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def conditions(self) -> tuple[Condition, ...]:
        """Return what is asked beside the spec, the release and the stack."""
        text = " ".join(self.words)
        return (Condition("words", text, match_of(self.words)),) if self.words else ()


def plain_words(text: str) -> list[str]:
    """Return the words of a text that say something."""
    words = re.split(r"[\s,;?!]+", text.strip())
    return [each for each in words if each and each.lower() not in FILLERS]


def match_of(words: Sequence[str]) -> str:
    """Return the full-text query for what has all of some words."""
    return " ".join('"' + each.replace('"', '""') + '"' for each in words)


def read_words(conn: sqlite3.Connection, lookups: Lookups, text: str) -> Reading | None:
    """Return what plain words ask for; None where none of them means anything in this file."""
    words = plain_words(text)
    if not 0 < len(words) <= MOST_WORDS:
        return None
    # Alone, a part of a name may be many packages.
    prefixes = PREFIXES if len(words) > 1 else PREFIXES[:1]
    # A variant may stand before the package whose variant it is.
    package = _Reader(conn, lookups, prefixes).package_of(words)
    reader = _Reader(conn, lookups, prefixes, package)
    rest = [*reader.unread(words)]
    found: list[str] = []
    named = [package] if package else []
    for word in rest:
        # A number alone is in very many versions.
        is_number = _NUMBER.fullmatch(word.lower()) is not None
        if not is_number and any(select(conn, WITH_WORDS, match=match_of([*named, *found, word]))):
            found.append(word)
    if len(rest) == len(words) and not found:
        return _of_hash(conn, words)
    return reader.reading(tuple(found), tuple(each for each in rest if each not in found))


def _of_hash(conn: sqlite3.Connection, words: list[str]) -> Reading | None:
    """Return the specs whose hash begins with the only word."""
    found = _HASH.fullmatch(words[0].lower()) if len(words) == 1 else None
    if found is None or not hashes_beginning(conn, found[1], 1):
        return None
    return Reading(f"/{found[1]}")


class _Reader:
    """Reads words one after the other; the first that is a package's name is the package.

    `package` is the one whose variants count, empty for any.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        lookups: Lookups,
        prefixes: Sequence[str],
        package: str = "",
    ) -> None:
        self._conn = conn
        self._prefixes = prefixes
        self._lookups = lookups
        self._package_of_variants = package
        # What only others depend on has no binary of its own.
        self._packages = {name: bool(count) for name, count in select(conn, PACKAGES)}
        self._has_records = has_records(conn)
        self._compilers = lookups.compilers
        self._name = self._version = self._built_with = ""
        self._conditions: dict[str, str] = {}
        self._dependencies: list[str] = []
        self._places: dict[str, str] = {}
        self._variant_before = ""

    def package_of(self, words: Sequence[str]) -> str:
        """Return the package that words name; empty where they name none."""
        for _ in self.unread(words):
            pass
        return self._name

    def reading(self, words: tuple[str, ...], left_out: tuple[str, ...]) -> Reading:
        """Return what all words ask for, in the order in which Spack reads it."""
        parts = (
            self._name + self._version,
            *self._conditions.values(),
            self._built_with,
            *self._dependencies,
        )
        spec = " ".join(filter(None, parts))
        return Reading(spec, **self._places, words=words, left_out=left_out)

    def unread(self, words: Sequence[str]) -> Iterator[str]:
        """Read all words, of which several may be one name; yield those without a meaning."""
        place, is_off = 0, False
        while place < len(words):
            if words[place].lower() in NEGATIONS:
                place, is_off = place + 1, True
                continue
            length = self._joined(words[place : place + MOST_JOINED])
            word = words[place]
            if not length and not (self._variant(word, "~") if is_off else self.read(word)):
                yield f"without {word}" if is_off else word
            place, is_off = place + (length or 1), False

    def _joined(self, words: Sequence[str]) -> int:
        """Read the most of these words that are one name together; return how many they are."""
        for length in range(len(words), 1, -1):
            for joint in ("-", "_", ""):
                name = joint.join(words[:length])
                if self._place(name) or self._system(name) or self._package(name, ""):
                    return length
        return 0

    def read(self, word: str) -> bool:
        """Add a word to the reading; return whether it means something."""
        variant, self._variant_before = self._variant_before, ""
        if _SIGNED.match(word):
            return self._signed(word)
        found = _NAME_AND_VERSION.fullmatch(word.lower())
        name, version = filter(None, found.groups()) if found else (word.lower(), "")
        return (
            self._place(word)
            or self._system(word)
            or self._package(word, "")
            or self._package(name, version)
            or self._compiler(name, version)
            or self._number(word, variant)
            or self._variant(word, "+")
            or self._dependency(name, version)
        )

    def _signed(self, word: str) -> bool:
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
                    return self._places.setdefault(kind, each.name) == each.name
        return False

    def _system(self, word: str) -> bool:
        """Read an operating system, a platform or a target: what is of a family or runs on it."""
        name = word.lower()
        for kind in ("os", "platform"):
            for text in (name, OTHER_NAMES.get(name, name)):
                if text in self._lookups.words[kind].values():
                    return self._asks(kind, f"{kind}={text}")
        name = OTHER_NAMES.get(name, name)
        name = name if is_known(name) else name.replace("-", "_")
        if not is_known(name):
            return False
        target = f"{name}:" if name == family(name) else f":{name}"
        return self._asks("target", f"target={target}")

    def _package(self, name: str, version: str) -> bool:
        """Read the name of a package that has binaries, with the version that stands behind it."""
        name = name.lower()
        names = [each + name for each in self._prefixes] if name else []
        if name.startswith("python-"):
            names.append(name.replace("python-", "py-", 1))
        found = next((each for each in names if self._packages.get(each)), None)
        if self._name or found is None:
            return False
        self._name, self._version = found, f"@{version}" if version else self._version
        return True

    def _compiler(self, name: str, version: str) -> bool:
        known = [name, LEGACY_COMPILERS.get(name, name), OTHER_NAMES.get(name, name)]
        known += [each for each in sorted(self._compilers) if each.startswith(f"{name}-")]
        found = next((each for each in known if each in self._compilers), None)
        if self._built_with or found is None:
            return False
        self._built_with = f"%{found}" + (f"@{version}" if version else "")
        return True

    def _number(self, word: str, variant: str) -> bool:
        """Read a version: of the dependency that a variant before it names, or of what has none."""
        found = _NUMBER.fullmatch(word.lower())
        if found is None:
            return False
        if variant:
            return self._dependency(variant, found[1])
        if self._built_with and "@" not in self._built_with:
            self._built_with += f"@{found[1]}"
        elif self._dependencies and "@" not in self._dependencies[-1]:
            self._dependencies[-1] += f"@{found[1]}"
        elif self._name and not self._version:
            self._version = f"@{found[1]}"
        else:
            return False
        return True

    def _variant(self, word: str, sign: str) -> bool:
        """Read the name of a variant that can be on and off, as this file writes it."""
        for name in dict.fromkeys((word, word.lower())):
            if any(select(self._conn, SWITCH, name=name, package=self._package_of_variants)):
                self._variant_before = name
                return self._asks(name, f"{sign}{name}")
        return False

    def _dependency(self, name: str, version: str) -> bool:
        """Read another package beside the first, where the file knows what depends on what."""
        if not self._has_records or not self._name or name not in self._packages:
            return False
        self._dependencies.append(f"^{name}" + (f"@{version}" if version else ""))
        return True
