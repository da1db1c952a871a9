"""Reads plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word is the name of a package, release, stack, operating system, target, compiler or
variant in the database. Words with a sign of Spack's syntax stay unchanged. Other words
become a full-text search for configurations.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.spack.facts import LEGACY_COMPILERS
from spack_cache_db.spack.targets import family, is_known
from spack_cache_db.spack.versions import version_key

PACKAGES = "SELECT name, release_count FROM packages"
SWITCH = """
SELECT 1 FROM variants WHERE name = :name AND value IN ('true', 'false') AND (
  :package = '' OR EXISTS (
    SELECT 1 FROM packages JOIN configurations ON configurations.package = packages.id
    JOIN variant_set_members AS member ON member.variant_set = configurations.variants
    WHERE packages.name = :package AND member.variant = variants.id))
LIMIT 1
"""
WITH_WORDS = """
SELECT 1 FROM configurations_fts
JOIN configurations ON configurations.id = configurations_fts.rowid
WHERE configurations_fts MATCH :match AND spec_count > 0
  AND (:package = '' OR package = (SELECT id FROM packages WHERE name = :package))
LIMIT 1
"""
MOST_WORDS = 12
MOST_JOINED = 4
"""Maximum of words in one name: `ml linux x86_64 cuda` is `ml-linux-x86_64-cuda`."""
PREFIXES = ("py-", "r-", "perl-")
"""Prefixes of names that people leave out."""
_WORDS = tomllib.loads(
    files("spack_cache_db.query").joinpath("words.toml").read_text("utf-8")
)
FILLERS, NEGATIONS, _SYSTEMS_OF_SPACK = (
    frozenset(_WORDS[name].split())
    for name in ("fillers", "negations", "systems_of_spack")
)
_FORMS = [(re.compile(form), name) for form, name in _WORDS["forms"].items()]

_SIGNED = re.compile(r"[@+~%^/]|[\w-]+:?==?\S")
_NUMBER = re.compile(r"v?(\d[\w.:-]*?)(\.x)?")
_NAMES_AND_VERSIONS = (
    re.compile(r"(.+?)(@|==?|>=|<=|[/:_-])v?(\d[\w.:]*)"),
    re.compile(r"(.*?[a-z])()v?(\d[\w.:]*)"),
    re.compile(r"(.+)(@)(.+)"),
)
_RANGES = {">=": "{}:", "<=": ":{}"}
_COMPARED = re.compile(r" ?(==|>=|<=) ?")
_OTHER_COMMAND = re.compile(
    r"^(sudo\s+)?(apt|apt-get|brew|conda|dnf|mamba|pip3?|yum)\s+(install|add|search)\s"
)
_SYSTEM = re.compile(r"([a-z]+)([\d.]*)")
_HASH = re.compile(r"/?([a-z2-7]{4,32})")
_MACHINE = re.compile(r"target=:([\w.-]+)")
_REPOSITORY = re.compile(
    r"((?:\w+://|git@)?(?:[\w-]+\.)+\w+[/:])?([\w.-]+)/([\w.-]+?)(?:\.git)?([/?#].*)?"
)
"""The URL of a repository, or `owner/name`: the groups are host, owner, name and the
rest.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of words: a spec in Spack's syntax, a release, a stack and a machine.

    Attributes:
        words: the words for a full-text search.
        left_out: the words that no configuration has together with the others.
        package: the package that they name; empty for none.
        rest: the words that name no machine, release or stack.
        switches: the words that are names of variants.
    """

    spec: str
    release: str | None = None
    stack: str | None = None
    host: str | None = None
    words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    package: str = ""
    rest: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all words are read; variants without a package may be a description
        of one.
        """
        return not (self.words or self.left_out or (self.switches and not self.package))

    @property
    def search(self) -> str:
        """The text without machine, release and stack: a spec, or else the words."""
        # A single word is not a spec: it may name a package of other software, or
        # describe several.
        is_word = len(self.rest) == 1 and self.spec in (
            self.package,
            f"+{self.rest[0]}",
        )
        is_own = self.package in map(str.lower, self.rest)
        is_spec = not (self.words or self.left_out) and (is_own or not is_word)
        return self.spec if is_spec else " ".join(self.rest)

    @property
    def nouns(self) -> tuple[str, ...]:
        """The words that may be the name or the description of a package."""
        unread = {*self.words, *self.left_out}
        names = (self.package,) if self.package else ()
        return (
            *names,
            *(word for word in self.rest if word in unread),
        ) or self.switches

    def conditions(self) -> tuple[Condition, ...]:
        """Return the condition of the full-text search."""
        text = " ".join(self.words)
        return (Condition("words", text, match_of(self.words)),) if self.words else ()


def plain_words(text: str) -> list[str]:
    """Return the words of a text, without commands and fillers such as `with`.

    A text of fillers alone keeps them: it may be a name.
    """
    text = _OTHER_COMMAND.sub("", _COMPARED.sub(r"\1", text.strip()))
    words = [word for word in re.split(r"[\s,;?!()]+", text) if word]
    meaningful = [word for word in words if word.lower() not in FILLERS]
    return meaningful or words


def match_of(words: Sequence[str]) -> str:
    """Return the full-text query for all words."""
    return " ".join('"' + word.replace('"', '""') + '"' for word in words)


def names_elsewhere(text: str) -> list[str]:
    """Return possible names in Spack of a package, given a name in any package
    manager.
    """
    names = [text.lower().replace("_", "-")]
    for name in names:
        matches = ((form.fullmatch(name), pattern) for form, pattern in _FORMS)
        candidates = [
            pattern.format(form[1]) for form, pattern in matches if form is not None
        ]
        candidates = [*filter(None, [_WORDS["packages"].get(name)]), *candidates]
        names += [candidate for candidate in candidates if candidate not in names]
    return [*names, *(prefix + name for prefix in PREFIXES for name in names)]


def package_called(lookups: Lookups, text: str) -> str | None:
    """Return the package of a name in any package manager; those with binaries
    first.
    """
    counts = package_counts(lookups)
    names = [name for name in names_elsewhere(text) if name in counts]
    return next(
        (name for name in names if counts[name] or name == text),
        next(iter(names), None),
    )


def packages_providing(lookups: Lookups, virtual: str) -> list[str]:
    """Return the known providers of a virtual package, those with most binaries
    first.
    """
    counts = package_counts(lookups)
    name = _WORDS["languages"].get(virtual.lower(), virtual.lower())
    names = {
        *lookups.providers.get(name, ()),
        *_WORDS["providers"].get(name, "").split(),
    }
    return sorted(
        names & counts.keys(), key=lambda package: (-counts[package], package)
    )


def repository_name(lookups: Lookups, text: str) -> str | None:
    """Return the repository's name in a URL, or in `owner/name` if a package has this
    name.
    """
    match = _REPOSITORY.fullmatch(text.strip())
    if match is None:
        return None
    host, owner, name, more = match.groups()
    if host is not None:
        return name
    is_spec = owner in package_counts(lookups) and specs_beginning(
        lookups.conn, name, 1
    )
    is_known = (
        more is None and not is_spec and package_called(lookups, name) is not None
    )
    return name if is_known else None


def read_words(lookups: Lookups, text: str) -> Reading | None:
    """Return the reading of plain words; None if no word has a meaning in this
    database.
    """
    words = plain_words(text)
    if not 0 < len(words) <= MOST_WORDS:
        return None
    # A single word may be a part of many names.
    is_alone = len(words) == 1
    # Read first, because a variant may come before its package.
    package = _Reader(lookups, is_alone).package_of(words)
    reader = _Reader(lookups, is_alone, package)
    is_part = is_alone and not package and package_called(lookups, words[0]) is not None
    unread = words if is_part else [*reader.unread(words)]
    matching: list[str] = []
    for word in unread:
        # A number is in very many versions, and no word of the index has a blank.
        is_ignored = " " in word or _NUMBER.fullmatch(word.lower()) is not None
        match = match_of([*matching, word])
        if not is_ignored and any(
            select(lookups.conn, WITH_WORDS, match=match, package=package)
        ):
            matching.append(word)
    if len(unread) == len(words) and not matching:
        # A single word may be the beginning of a hash.
        prefix = _HASH.fullmatch(words[0].lower()) if len(words) == 1 else None
        is_hash = prefix is not None and specs_beginning(lookups.conn, prefix[1], 1)
        return Reading(f"/{prefix[1]}") if prefix is not None and is_hash else None
    return reader.reading(
        words, tuple(matching), tuple(word for word in unread if word not in matching)
    )


class _Reader:
    """Reads words one after the other; `package` is the result of `package_of`, if it
    is known.
    """

    def __init__(self, lookups: Lookups, is_alone: bool, package: str = "") -> None:
        self._lookups, self._conn = lookups, lookups.conn
        self._is_alone = is_alone
        self._expected_package = package
        # Whether each package has binaries in a release.
        self._packages: dict[str, bool] = lookups.once(
            PACKAGES,
            lambda: {
                name: bool(count) for name, count in select(lookups.conn, PACKAGES)
            },
        )
        self._name = self._version = self._built_with = ""
        self._variant_before = self._target_family = ""
        self._conditions: dict[str, str] = {}
        self._dependencies: list[str] = []
        self._scope: dict[str, str] = {}
        self._scope_words: dict[str, bool] = {}
        self._switches: list[str] = []

    def package_of(self, words: Sequence[str]) -> str:
        """Return the package that words name, or ""."""
        counts = package_counts(self._lookups)
        needed = "SELECT 1 FROM known_dependencies WHERE dependency = :other AND package = :name"
        # A package without binaries counts if there is no other, or if it depends on
        # the other.
        for word in [*self.unread(words)]:
            name, _ = _split(word)
            needs = {"name": name, "other": self._name}
            if name in counts and (
                not self._name or any(select(self._conn, needed, **needs))
            ):
                return name
        return self._name

    def reading(
        self,
        all_words: Sequence[str],
        words: tuple[str, ...],
        left_out: tuple[str, ...],
    ) -> Reading:
        """Return the reading of all words, with the spec in Spack's order."""
        machine = _MACHINE.fullmatch(self._conditions.get("target", ""))
        host = machine and machine[1]
        if host is not None:
            del self._conditions["target"]
        # A family of targets is not a machine: its words stay in the text.
        scope = {
            word
            for word, is_target in self._scope_words.items()
            if host or not is_target
        }
        name = self._name + self._version
        parts = (
            name,
            *self._conditions.values(),
            self._built_with,
            *self._dependencies,
        )
        return Reading(
            " ".join(filter(None, parts)),
            **self._scope,
            host=host,
            words=words,
            left_out=left_out,
            package=self._name,
            rest=tuple(word for word in all_words if word not in scope),
            switches=tuple(self._switches),
        )

    def unread(self, words: Sequence[str]) -> Iterator[str]:
        """Read all words; yield those without a meaning, and numbers behind them."""
        index, is_off, is_unread = 0, False, False
        while index < len(words):
            if words[index].lower() in NEGATIONS:
                index, is_off = index + 1, True
                continue
            target, scope_size = self._conditions.get("target"), len(self._scope)
            length = self._joined(words[index : index + MOST_JOINED])
            word = words[index]
            is_of_unread = is_unread and _NUMBER.fullmatch(word.lower()) is not None
            is_unread = not length and (
                is_of_unread
                or not (self._variant(word, "~") if is_off else self.read(word))
            )
            is_target = self._conditions.get("target") != target
            if is_target or len(self._scope) != scope_size:
                words_read = words[index : index + (length or 1)]
                self._scope_words |= dict.fromkeys(words_read, is_target)
            if is_unread:
                yield f"without {word}" if is_off else word
            index, is_off = index + (length or 1), False

    def _joined(self, words: Sequence[str]) -> int:
        """Read the longest name at the beginning of the words; return its number of
        words.
        """
        for length in range(len(words), 1, -1):
            for joint in ("-", "_", ""):
                name = joint.join(words[:length])
                if (
                    self._scope_name(name)
                    or self._system(name)
                    or self._package(name, "")
                ):
                    return length
        return 0

    def read(self, word: str) -> bool:
        """Add a word to the reading; return whether it has a meaning."""
        variant, self._variant_before = self._variant_before, ""
        name, version = _split(word)
        if _SIGNED.match(word) and not (version and self._packages.get(name)):
            return self._signed(word)
        return (
            self._scope_name(word)
            or self._system(word)
            or self._package(word, "")
            or self._package(name, version)
            or self._compiler(name, version)
            or self._number(word, variant)
            or self._switch(word, word)
            or self._dependency(name, version)
            or self._switch(word, _WORDS["variants"].get(name, ""))
            or self._virtual(name)
        )

    def _signed(self, word: str) -> bool:
        if word[0] == "@":
            self._version = word
        elif word[0] == "%":
            self._built_with = word
        elif word[0] == "^":
            self._dependencies.append(word)
        else:
            return self._add(word.lstrip("+~").partition("=")[0].rstrip(":"), word)
        return True

    def _add(self, name: str, condition: str) -> bool:
        """Add a condition; return False if it contradicts an earlier one of this
        name.
        """
        return self._conditions.setdefault(name, condition) == condition

    def _scope_name(self, word: str) -> bool:
        """Read the name of a release or a stack."""
        lookups = self._lookups
        for kind, records in (("release", lookups.releases), ("stack", lookups.stacks)):
            for record in records.values():
                if record.name.lower() == word.lower():
                    return self._scope.setdefault(kind, record.name) == record.name
        return False

    def _system(self, word: str) -> bool:
        """Read an operating system, a platform or a target."""
        name = word.lower()
        platforms = self._lookups.words["platform"].values()
        parts = name.split("-")
        if len(parts) == 3 and parts[0] in platforms:
            return self._architecture(parts)
        if system := self._system_called(name):
            return self._add("os", f"os={system}")
        if name in _WORDS["platforms"] or name in platforms:
            return self._add(
                "platform", f"platform={_WORDS['platforms'].get(name, name)}"
            )
        return self._target(name)

    def _architecture(self, parts: Sequence[str]) -> bool:
        """Read a platform, an operating system and a target: all of them, or
        nothing.
        """
        conditions = dict(self._conditions)
        target_family = self._target_family
        for part in parts:
            if not self._system(part):
                self._conditions = conditions
                self._target_family = target_family
                return False
        return True

    def _target(self, name: str) -> bool:
        if not is_known(name) and name in self._lookups.words["target"].values():
            return self._add("target", f"target={name}")
        name = _WORDS["targets"].get(name, name)
        name = name if is_known(name) else name.replace("-", "_")
        if not is_known(name):
            return False
        of_family = f"target={family(name)}:"
        if name == family(name) and self._target_family == name:
            return True
        if self._conditions.get("target") == of_family:
            del self._conditions["target"]
        self._target_family = family(name)
        return self._add(
            "target", of_family if name == family(name) else f"target=:{name}"
        )

    def _system_called(self, name: str) -> str | None:
        """Return the newest operating system of a name, which may lack its version.

        A name that Spack knows is returned even if the database does not have it.
        """
        names: set[str] = {*self._lookups.words["os"].values()}
        match = _SYSTEM.fullmatch(re.sub("linux|[-_]", "", name))
        if name in names or match is None:
            return name if name in names else None
        system = _WORDS["systems"].get(match[1], match[1]) + match[2]
        same = [
            other
            for other in names
            if other.replace(".", "") == system.replace(".", "")
        ]
        close = [
            other
            for other in names
            if _is_part(system, other) or _is_part(other, system)
        ]
        is_known = system.rstrip("0123456789.") in _SYSTEMS_OF_SPACK
        return max(same or close, key=version_key, default=system if is_known else None)

    def _package(self, name: str, version: str) -> bool:
        """Read the name of a package that has binaries, with the version behind it."""
        name = name.lower()
        names = [name] if self._is_alone else names_elsewhere(name)
        if self._expected_package:
            names = [name for name in names if name == self._expected_package]
        else:
            names = [name for name in names if self._packages.get(name)]
        package = next(iter(names), None)
        if self._name or package is None:
            return False
        self._name, self._version = package, f"@{version}" if version else self._version
        return True

    def _compiler(self, name: str, version: str) -> bool:
        names = [
            name,
            LEGACY_COMPILERS.get(name, name),
            _WORDS["compilers"].get(name, name),
        ]
        names += [
            other
            for other in sorted(self._lookups.compilers)
            if other.startswith(f"{name}-")
        ]
        compiler = next(
            (compiler for compiler in names if compiler in self._lookups.compilers),
            None,
        )
        if self._built_with or compiler is None:
            return False
        self._built_with = f"%{compiler}" + (f"@{version}" if version else "")
        return True

    def _number(self, word: str, variant: str) -> bool:
        """Read a version: of the variant before it as a dependency, or of a name
        without one.
        """
        number = _NUMBER.fullmatch(word.lower())
        if number is None:
            return False
        if variant:
            return self._dependency(variant, number[1])
        if self._built_with and "@" not in self._built_with:
            self._built_with += f"@{number[1]}"
        elif self._dependencies and "@" not in self._dependencies[-1]:
            self._dependencies[-1] += f"@{number[1]}"
        elif self._name and not self._version:
            self._version = f"@{number[1]}"
        else:
            return False
        return True

    def _switch(self, word: str, name: str) -> bool:
        is_read = self._variant(name, "+")
        self._switches += [word] * is_read
        return is_read

    def _variant(self, word: str, sign: str) -> bool:
        """Read the name of a boolean variant in the database."""
        for name in dict.fromkeys((word, word.lower())):
            if any(
                select(self._conn, SWITCH, name=name, package=self._expected_package)
            ):
                self._variant_before = name
                return self._add(name, f"{sign}{name}")
        return False

    def _dependency(self, name: str, version: str) -> bool:
        """Read another package as a dependency of the first, if the database has
        dependencies.
        """
        if not self._name or name not in self._packages or not has_records(self._conn):
            return False
        self._dependencies.append(f"^{name}" + (f"@{version}" if version else ""))
        return True

    def _virtual(self, name: str) -> bool:
        """Read a virtual package with known providers, if no package was read."""
        if (
            self._expected_package
            or self._name
            or not self._lookups.providers.get(name)
        ):
            return False
        self._name = name
        return True


def _is_part(system: str, other: str) -> bool:
    """Return whether an operating system is another one with a shorter or no
    version.
    """
    suffix = other.removeprefix(system) if other.startswith(system) else ""
    return (
        re.fullmatch(r"\.[\d.]+" if system[-1:].isdigit() else r"[\d.]+", suffix)
        is not None
    )


def _split(word: str) -> tuple[str, str]:
    """Return the name in a word, and the version or range behind it."""
    for form in _NAMES_AND_VERSIONS:
        if match := form.fullmatch(word.lower()):
            name, sign, version = match.groups()
            return name, _RANGES.get(sign, "{}").format(version)
    return word.lower(), ""
