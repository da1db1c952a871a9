"""Plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word means what the file has under that name: a package, a release, a stack, an operating system,
a target, a compiler, a variant. Words with a sign of Spack's syntax stay as they are. What is none
of these is looked for among the words under which full-text search finds configurations.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from spack_cache_db.query.conditions import Condition
from spack_cache_db.query.configurations import providers_of, specs_beginning
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.records import has_records
from spack_cache_db.spack.constraints import LEGACY_COMPILERS
from spack_cache_db.spack.targets import family, is_known
from spack_cache_db.spack.versions import version_key

PACKAGES = "SELECT name, release_count FROM packages"
KNOWN_PACKAGE = "SELECT 1 FROM known_packages WHERE name = :name"
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
WHERE configurations_fts MATCH :match AND spec_count > 0
  AND (:package = '' OR package = (SELECT id FROM packages WHERE name = :package))
LIMIT 1
"""
DEPENDS_ON = """
SELECT 1 FROM known_dependencies WHERE dependency = :dependency AND package = :name LIMIT 1
"""
MOST_WORDS = 12
MOST_JOINED = 4
"""Most words that may be one name: `ml linux x86_64 cuda` is `ml-linux-x86_64-cuda`."""
PREFIXES = ("", "py-", "r-", "perl-")
"""Prefixes of names that people leave out."""
PACKAGE_COUNTS = """
SELECT name, spec_count FROM packages
UNION ALL SELECT name, 0 FROM known_packages WHERE name NOT IN (SELECT name FROM packages)
ORDER BY name
"""

_WORDS = tomllib.loads(files("spack_cache_db.query").joinpath("words.toml").read_text("utf-8"))
FILLERS, NEGATIONS, _SYSTEMS_OF_SPACK = (
    frozenset(_WORDS[name].split()) for name in ("fillers", "negations", "systems_of_spack")
)
_TARGETS: Mapping[str, str] = _WORDS["targets"]
_PLATFORMS: Mapping[str, str] = _WORDS["platforms"]
_SYSTEMS: Mapping[str, str] = _WORDS["systems"]
_COMPILERS: Mapping[str, str] = _WORDS["compilers"]
_VARIANTS: Mapping[str, str] = _WORDS["variants"]
_LANGUAGES: Mapping[str, str] = _WORDS["languages"]
_PACKAGES: Mapping[str, str] = _WORDS["packages"]
_FORMS = [(re.compile(form), name) for form, name in _WORDS["forms"].items()]
_PROVIDERS: Mapping[str, str] = _WORDS["providers"]

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
"""The address of a repository, or `owner/name`: the groups are host, owner, name and the rest."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of words.

    Attributes:
        spec: what they are in Spack's syntax; empty for any spec.
        release: the release that they name.
        stack: the stack that they name.
        host: the machine that they name.
        words: those that are looked for as they are.
        left_out: those that nothing here has, together with the others.
        package: the package that they name; empty for none.
        rest: the words that name no machine, release or stack.
        switches: those that are the names of variants.
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
        """Whether all words are read; variants without a package may describe one instead."""
        return not (self.words or self.left_out or (self.switches and not self.package))

    @property
    def nouns(self) -> tuple[str, ...]:
        """The words that may be names of packages, or describe one."""
        unread = {*self.words, *self.left_out}
        names = (self.package,) if self.package else ()
        return (*names, *(word for word in self.rest if word in unread)) or self.switches

    def conditions(self) -> tuple[Condition, ...]:
        """Return what is asked beside the spec, the release and the stack."""
        text = " ".join(self.words)
        return (Condition("words", text, match_of(self.words)),) if self.words else ()


def plain_words(text: str) -> list[str]:
    """Return the words of a text that say something."""
    text = _OTHER_COMMAND.sub("", _COMPARED.sub(r"\1", text.strip()))
    words = re.split(r"[\s,;?!()]+", text)
    return [each for each in words if each and each.lower() not in FILLERS]


def match_of(words: Sequence[str]) -> str:
    """Return the full-text query for what has all of some words."""
    return " ".join('"' + each.replace('"', '""') + '"' for each in words)


def names_elsewhere(text: str) -> list[str]:
    """Return the names that a package may have in Spack, given its name there or elsewhere."""
    names = [text.lower().replace("_", "-")]
    for name in names:
        found = [_PACKAGES[name]] if name in _PACKAGES else []
        fitting = ((form.fullmatch(name), wanted) for form, wanted in _FORMS)
        found += [wanted.format(form[1]) for form, wanted in fitting if form is not None]
        names += [each for each in found if each not in names]
    return [*names, *(prefix + name for prefix in PREFIXES[1:] for name in names)]


def package_counts(lookups: Lookups) -> dict[str, int]:
    """Return the number of binaries of each package that a database knows, by name."""
    return lookups.once(PACKAGE_COUNTS, lambda: dict(select(lookups.conn, PACKAGE_COUNTS)))


def package_called(lookups: Lookups, text: str) -> str | None:
    """Return the package with a name, in Spack or elsewhere; one with a binary if any is."""
    counts = package_counts(lookups)
    names = [each for each in names_elsewhere(text) if each in counts]
    return next((each for each in names if counts[each] or each == text), next(iter(names), None))


def packages_providing(lookups: Lookups, virtual: str) -> list[str]:
    """Return the known packages that provide a virtual package, those with most binaries first."""
    counts = package_counts(lookups)
    name = _LANGUAGES.get(virtual.lower(), virtual.lower())
    names = {*providers_of(lookups.conn, name), *_PROVIDERS.get(name, "").split()}
    return sorted(names & counts.keys(), key=lambda each: (-counts[each], each))


def repository_name(lookups: Lookups, text: str) -> str | None:
    """Return the name of the repository in an address, or in `owner/name` if a package has it."""
    found = _REPOSITORY.fullmatch(text.strip())
    if found is None:
        return None
    host, owner, name, more = found.groups()
    if host is not None:
        return name
    is_spec = owner in package_counts(lookups) and specs_beginning(lookups.conn, name, 1)
    is_known = more is None and not is_spec and package_called(lookups, name) is not None
    return name if is_known else None


def read_words(lookups: Lookups, text: str) -> Reading | None:
    """Return what plain words ask for; None where none of them means anything in this file."""
    words = plain_words(text)
    if not 0 < len(words) <= MOST_WORDS:
        return None
    # Alone, a part of a name may be many packages.
    is_alone = len(words) == 1
    # A variant may stand before the package whose variant it is.
    package = _Reader(lookups, is_alone).package_of(words)
    reader = _Reader(lookups, is_alone, package)
    is_part = is_alone and not package and package_called(lookups, words[0]) is not None
    rest = words if is_part else [*reader.unread(words)]
    found: list[str] = []
    for word in rest:
        # A number alone is in very many versions, and no word of the index has a blank.
        is_ignored = " " in word or _NUMBER.fullmatch(word.lower()) is not None
        match = match_of([*found, word])
        if not is_ignored and any(select(lookups.conn, WITH_WORDS, match=match, package=package)):
            found.append(word)
    if len(rest) == len(words) and not found:
        # The only word may be the beginning of a hash.
        prefix = _HASH.fullmatch(words[0].lower()) if len(words) == 1 else None
        is_hash = prefix is not None and specs_beginning(lookups.conn, prefix[1], 1)
        return Reading(f"/{prefix[1]}") if prefix is not None and is_hash else None
    return reader.reading(words, tuple(found), tuple(each for each in rest if each not in found))


class _Reader:
    """Reads words one after the other.

    `package` is the one that is meant; empty for the first whose name is read, and any variants.
    """

    def __init__(self, lookups: Lookups, is_alone: bool, package: str = "") -> None:
        self._conn = lookups.conn
        self._is_alone = is_alone
        self._lookups = lookups
        self._package_meant = package
        # What only others depend on has no binary of its own.
        self._packages: dict[str, bool] = lookups.once(
            PACKAGES, lambda: {name: bool(count) for name, count in select(lookups.conn, PACKAGES)}
        )
        self._has_records = has_records(lookups.conn)
        self._compilers = lookups.compilers
        self._name = self._version = self._built_with = ""
        self._conditions: dict[str, str] = {}
        self._dependencies: list[str] = []
        self._places: dict[str, str] = {}
        self._variant_before = self._target_family = ""
        self._of_address: dict[str, bool] = {}
        self._switches: list[str] = []

    def package_of(self, words: Sequence[str]) -> str:
        """Return the package that words name; empty where they name none."""
        unread = (_split(each)[0] for each in [*self.unread(words)])
        # One without a binary is meant where there is no other, or where it needs the other.
        for name in unread:
            if not self._is_known(name):
                continue
            needs = select(self._conn, DEPENDS_ON, name=name, dependency=self._name)
            if not self._name or any(needs):
                return name
        return self._name

    def _is_known(self, name: str) -> bool:
        return name in self._packages or any(select(self._conn, KNOWN_PACKAGE, name=name))

    def reading(
        self, every: Sequence[str], words: tuple[str, ...], left_out: tuple[str, ...]
    ) -> Reading:
        """Return what all words ask for, in the order in which Spack reads it."""
        machine = _MACHINE.fullmatch(self._conditions.get("target", ""))
        host = machine and machine[1]
        if host is not None:
            del self._conditions["target"]
        # A family of targets is not a machine, so its words stay in the text.
        kept = {word for word, is_target in self._of_address.items() if is_target and not host}
        rest = tuple(word for word in every if word in kept or word not in self._of_address)
        parts = (
            self._name + self._version,
            *self._conditions.values(),
            self._built_with,
            *self._dependencies,
        )
        spec = " ".join(filter(None, parts))
        return Reading(
            spec,
            **self._places,
            host=host,
            words=words,
            left_out=left_out,
            package=self._name,
            rest=rest,
            switches=tuple(self._switches),
        )

    def unread(self, words: Sequence[str]) -> Iterator[str]:
        """Read all words, of which several may be one name; yield those without a meaning.

        A number behind such a word is not read either.
        """
        place, is_off, is_unread = 0, False, False
        while place < len(words):
            if words[place].lower() in NEGATIONS:
                place, is_off = place + 1, True
                continue
            target, places = self._conditions.get("target"), len(self._places)
            length = self._joined(words[place : place + MOST_JOINED])
            word = words[place]
            is_of_unread = is_unread and _NUMBER.fullmatch(word.lower()) is not None
            is_unread = not length and (
                is_of_unread or not (self._variant(word, "~") if is_off else self.read(word))
            )
            is_target = self._conditions.get("target") != target
            if is_target or len(self._places) != places:
                read = words[place : place + (length or 1)]
                self._of_address |= dict.fromkeys(read, is_target)
            if is_unread:
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
        name, version = _split(word)
        if _SIGNED.match(word) and not (version and self._packages.get(name)):
            return self._signed(word)
        return (
            self._place(word)
            or self._system(word)
            or self._package(word, "")
            or self._package(name, version)
            or self._compiler(name, version)
            or self._number(word, variant)
            or self._switch(word, word)
            or self._dependency(name, version)
            or self._switch(word, _VARIANTS.get(name, ""))
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
        platforms = self._lookups.words["platform"].values()
        parts = name.split("-")
        if len(parts) == 3 and parts[0] in platforms:
            return all(map(self._system, parts))
        if system := self._system_called(name):
            return self._asks("os", f"os={system}")
        if name in _PLATFORMS or name in platforms:
            return self._asks("platform", f"platform={_PLATFORMS.get(name, name)}")
        return self._target(name)

    def _target(self, name: str) -> bool:
        if not is_known(name) and name in self._lookups.words["target"].values():
            return self._asks("target", f"target={name}")
        name = _TARGETS.get(name, name)
        name = name if is_known(name) else name.replace("-", "_")
        if not is_known(name):
            return False
        of_family = f"target={family(name)}:"
        if name == family(name) and self._target_family == name:
            return True
        if self._conditions.get("target") == of_family:
            del self._conditions["target"]
        self._target_family = family(name)
        return self._asks("target", of_family if name == family(name) else f"target=:{name}")

    def _system_called(self, name: str) -> str | None:
        """Return the operating system of a name, with or without its version, newest first.

        One that Spack knows may be none of this file.
        """
        known: set[str] = {*self._lookups.words["os"].values()}
        found = _SYSTEM.fullmatch(re.sub("linux|[-_]", "", name))
        if name in known or found is None:
            return name if name in known else None
        wanted = _SYSTEMS.get(found[1], found[1]) + found[2]
        same = [each for each in known if each.replace(".", "") == wanted.replace(".", "")]
        close = [each for each in known if _is_part(wanted, each) or _is_part(each, wanted)]
        is_known = wanted.rstrip("0123456789.") in _SYSTEMS_OF_SPACK
        return max(same or close, key=version_key, default=wanted if is_known else None)

    def _package(self, name: str, version: str) -> bool:
        """Read the name of a package that has binaries, with the version that stands behind it."""
        name = name.lower()
        names = [name] if self._is_alone else names_elsewhere(name)
        meant = self._package_meant
        fitting = (each for each in names if (each == meant if meant else self._packages.get(each)))
        found = next(fitting, None)
        if self._name or found is None:
            return False
        self._name, self._version = found, f"@{version}" if version else self._version
        return True

    def _compiler(self, name: str, version: str) -> bool:
        known = [name, LEGACY_COMPILERS.get(name, name), _COMPILERS.get(name, name)]
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

    def _switch(self, word: str, name: str) -> bool:
        is_read = self._variant(name, "+")
        self._switches += [word] * is_read
        return is_read

    def _variant(self, word: str, sign: str) -> bool:
        """Read the name of a variant that can be on and off, as this file writes it."""
        for name in dict.fromkeys((word, word.lower())):
            if any(select(self._conn, SWITCH, name=name, package=self._package_meant)):
                self._variant_before = name
                return self._asks(name, f"{sign}{name}")
        return False

    def _dependency(self, name: str, version: str) -> bool:
        """Read another package beside the first, where the file knows what depends on what."""
        if not self._has_records or not self._name or name not in self._packages:
            return False
        self._dependencies.append(f"^{name}" + (f"@{version}" if version else ""))
        return True

    def _virtual(self, name: str) -> bool:
        """Read a virtual package of which package data says what provides it, beside no other."""
        if self._package_meant or self._name or not providers_of(self._conn, name):
            return False
        self._name = name
        return True


def _is_part(system: str, other: str) -> bool:
    """Return whether an operating system is another one with less of its version, or none."""
    rest = other.removeprefix(system) if other.startswith(system) else ""
    return re.fullmatch(r"\.[\d.]+" if system[-1:].isdigit() else r"[\d.]+", rest) is not None


def _split(word: str) -> tuple[str, str]:
    """Return the name in a word, and the version or the range of them that stands behind it."""
    for form in _NAMES_AND_VERSIONS:
        if found := form.fullmatch(word.lower()):
            name, sign, version = found.groups()
            return name, _RANGES.get(sign, "{}").format(version)
    return word.lower(), ""
