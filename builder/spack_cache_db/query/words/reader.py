"""Reads plain words as a spec: `hdf5 with mpi zen3` is `hdf5 +mpi target=:zen3`.

A word is the name of a package, release, stack, operating system, target, compiler or
variant in the database. Words with a sign of Spack's syntax stay unchanged. Other words
become a full-text search for configurations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.query.words.reading import Meaning, Reading, full_text_query
from spack_cache_db.query.words.splitting import (
    name_and_version,
    number_in,
    plain_words,
)
from spack_cache_db.query.words.systems import newest_system
from spack_cache_db.query.words.vocabulary import (
    COMPILER_NAMES,
    NEGATIONS,
    PLATFORM_NAMES,
    TARGET_NAMES,
    VARIANT_NAMES,
    names_elsewhere,
    package_called,
)
from spack_cache_db.spack.facts import (
    GPU_ARCHITECTURES,
    GPU_SWITCHES,
    LEGACY_COMPILERS,
)
from spack_cache_db.spack.targets import family, is_known

PACKAGES = "SELECT name, release_count FROM packages"
"""The packages, and how many releases list a binary of each."""
SWITCH = """
SELECT 1 FROM variants WHERE name = :name AND value IN ('true', 'false') AND (
  :package = '' OR EXISTS (
    SELECT 1 FROM packages JOIN configurations ON configurations.package_id = packages.id
    JOIN variant_set_members AS member ON member.variant_set_id = configurations.variant_set_id
    WHERE packages.name = :package AND member.variant_id = variants.id))
LIMIT 1
"""
"""Whether the package, or any package if its name is empty, has a boolean variant."""
VARIANT = """
SELECT 1 FROM variants WHERE name = :name AND (
  :package = '' OR EXISTS (
    SELECT 1 FROM packages JOIN configurations ON configurations.package_id = packages.id
    JOIN variant_set_members AS member ON member.variant_set_id = configurations.variant_set_id
    WHERE packages.name = :package AND member.variant_id = variants.id))
LIMIT 1
"""
"""The same for a variant with any values."""
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
JOINTS = ("-", "_", "")
"""The signs that may join the words of a name."""
SPACK_SYNTAX = re.compile(r"[@+~%^/]|[\w-]+:?==?\S")
"""The beginning of a word in Spack's syntax: `@1.14`, `+mpi`, `os=rhel8`."""
_KINDS = frozenset(
    ("package", "compiler", "os", "platform", "target", "release", "stack")
)
"""The kinds of parts; a part on anything else is on a dependency or a variant."""
_HASH = re.compile(r"/?([a-z2-7]{4,32})")
"""The beginning of a hash, in the characters of base 32."""
GPU = re.compile(r"(?P<name>[a-z]+\d+[a-z]?)(?:-(?:\d+gb|sxm\d?|pcie))*")
"""A graphics processor: `a100`, `a100-80gb`, `h100-sxm5`."""
GPU_ARCHITECTURE = re.compile(r"(?:sm_?(?P<cuda>\d{2,3}a?)|(?P<amd>gfx[0-9a-f]{3,4}))")
"""The architecture of one, as compilers name it: `sm_80`, `gfx90a`."""
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
    package = _Reader(lookups, words).package()
    reader = _Reader(lookups, words, package)
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


class _Reader:
    """Reads the words of one text, one after the other, into the parts of a spec.

    The methods `_read_…` return whether a word has the meaning of their name, and then
    keep it. A second package, release, stack or compiler is not read.

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
        self._conn = lookups.conn
        self._words = words
        self._expected_package = package
        self._has_binaries = lookups.once(PACKAGES, lambda: _packages(lookups))

        # The parts of the spec, each with its sign: `@1.14`, `%gcc@13`, `^zlib`.
        self._name = ""
        self._version = ""
        self._compiler = ""
        self._dependencies: list[str] = []
        # Conditions by what they are on, `os`, `target` or the name of a variant:
        # `{"os": "os=rhel8", "mpi": "+mpi"}`.
        self._conditions: dict[str, str] = {}
        # The names of a release and a stack: `{"release": "develop"}`.
        self._scope: dict[str, str] = {}

        # The words that switched variants on, and those that chose the scope and the
        # target.
        self._switches: list[str] = []
        self._scope_words: set[str] = set()
        self._target_words: set[str] = set()
        # The words of each part of the spec (`_parts`), and what the words ask for and
        # the database does not record.
        self._words_of_part: dict[str, list[str]] = {}
        self._unrecorded: list[str] = []

        # What the meaning of the next word depends on: the variant that the last word
        # named, and the family of the target.
        self._variant_before = ""
        self._target_family = ""

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
            if not self._name or self._needs(name, self._name):
                return name
        return self._name

    def _needs(self, package: str, dependency: str) -> bool:
        """Return whether a package depends on another one."""
        names = {"package": package, "dependency": dependency}
        return any(select(self._conn, NEEDS, **names))

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

            # What is known before the word shows what the word has changed.
            parts_before = self._parts()
            scope_size = len(self._scope)
            target_before = self._conditions.get("target")
            # Several words may be one name: `netcdf fortran`.
            ahead = self._words[position : position + MOST_JOINED]
            length = 0 if negation else self._read_joined(ahead)
            if negation:
                length, is_read = self._read_negated(ahead)
            elif length:
                is_read = True
            elif is_behind_unread and number_in(word) is not None:
                # It is the version of the unread word.
                is_read = False
                self._add_version_of_unrecorded(number_in(word) or "")
            else:
                is_read = self._read_word(word)

            # Remember which words stand for a part, and which ones chose a release, a
            # stack or a target.
            next_position = position + max(length, 1)
            words_of_name = self._words[position:next_position]
            words_of_part = [negation, *words_of_name] if negation else words_of_name
            self._keep_words(parts_before, words_of_part)
            if self._conditions.get("target") != target_before:
                self._target_words.update(words_of_name)
            elif len(self._scope) != scope_size:
                self._scope_words.update(words_of_name)

            if not is_read:
                name = " ".join(words_of_name)
                unread.append(f"without {name}" if negation else name)
            is_behind_unread = not is_read
            negation = ""
            position = next_position
        return unread

    def reading(self, searched: tuple[str, ...], left_out: tuple[str, ...]) -> Reading:
        """Return the reading of the words, with the spec in Spack's order.

        Args:
            searched: the unread words for a full-text search.
            left_out: the other unread words.
        """
        # `target=:zen3` is a machine: it stands beside the spec, and its words are not
        # in the rest. A family (`target=aarch64:`) is a part of the spec.
        meanings = self._meanings()
        host = None
        scope_words = self._scope_words
        machine = _MACHINE.fullmatch(self._conditions.get("target", ""))
        if machine is not None:
            host = machine[1]
            del self._conditions["target"]
            scope_words = scope_words | self._target_words

        parts = [
            self._name + self._version,
            *self._conditions.values(),
            self._compiler,
            *self._dependencies,
        ]
        return Reading(
            " ".join(part for part in parts if part),
            release=self._scope.get("release"),
            stack=self._scope.get("stack"),
            host=host,
            words=searched,
            left_out=left_out,
            package=self._name,
            rest=tuple(word for word in self._words if word not in scope_words),
            switches=tuple(self._switches),
            unrecorded=tuple(self._unrecorded),
            meanings=meanings,
        )

    def _parts(self) -> dict[str, str]:
        """Return the parts of the spec, and the scope, by what they are on.

        For example `{"package": "hdf5@1.14", "^zlib": "^zlib@1.3", "mpi": "+mpi"}`.
        """
        parts = {"package": self._name + self._version, "compiler": self._compiler}
        for dependency in self._dependencies:
            name = dependency.partition("@")[0]
            parts[name] = dependency
        parts |= self._conditions
        parts |= self._scope
        return {key: text for key, text in parts.items() if text}

    def _keep_words(self, before: dict[str, str], words: Sequence[str]) -> None:
        """Remember the words of the parts that have changed since `before`."""
        for key, text in self._parts().items():
            if before.get(key) == text:
                continue
            self._words_of_part.setdefault(key, []).extend(words)

    def _meanings(self) -> tuple[Meaning, ...]:
        """Return the parts of the reading with their words."""
        meanings = []
        for key, text in self._parts().items():
            kind = key
            if key.startswith("^"):
                kind = "dependency"
            elif key not in _KINDS:
                kind = "variant"
            words = tuple(self._words_of_part.get(key, ()))
            meanings.append(Meaning(kind, text, words))
        return tuple(meanings)

    def _add_version_of_unrecorded(self, version: str) -> None:
        """Add the version behind a dependency that the database does not record."""
        if self._unrecorded and "@" not in self._unrecorded[-1]:
            self._unrecorded[-1] += f"@{version}"

    def _read_joined(self, words: Sequence[str]) -> int:
        """Read the longest name of two or more words at the beginning of the words;
        return the number of its words, 0 for none.
        """
        for length in range(len(words), 1, -1):
            for joint in JOINTS:
                if self._read_name(joint.join(words[:length])):
                    return length
        return 0

    def _read_negated(self, words: Sequence[str]) -> tuple[int, bool]:
        """Read the variant behind a negation; return the number of words that belong to
        the negation, and whether they were read.

        A package cannot be left out of a spec: its name stays unread, as a whole.
        """
        for length in range(len(words), 0, -1):
            for joint in JOINTS:
                name = joint.join(words[:length])
                if self._read_variant(name, "~"):
                    return length, True
                if name in self._has_binaries:
                    return length, False
        return 1, False

    def _read_name(self, name: str) -> bool:
        """Read a name that may have several words: `ml-linux-x86_64-cuda`, `rhel-8`."""
        return (
            self._read_scope(name)
            or self._read_system(name)
            or self._read_gpu(name)
            or self._read_package(name, "")
        )

    def _read_word(self, word: str) -> bool:
        """Read a word by the first meaning that it has; return whether it has one."""
        variant_before = self._variant_before
        self._variant_before = ""
        name, version = name_and_version(word)
        # The version of a package may have a sign of another program: `hdf5==1.14`.
        is_package = bool(version) and self._has_binaries.get(name, False)
        if SPACK_SYNTAX.match(word) and not is_package:
            return self._read_syntax(word)
        return (
            # develop, rhel8, zen3, hdf5
            self._read_name(word)
            # hdf5-1.14
            or self._read_package(name, version)
            # gcc13
            or self._read_compiler(name, version)
            # 1.14
            or self._read_number(word, variant_before)
            # mpi
            or self._read_switch(word, word)
            # zlib, behind another package
            or self._read_dependency(name, version)
            # gpu, which means +cuda
            or self._read_switch(word, VARIANT_NAMES.get(name, ""))
            # lapack
            or self._read_virtual(name)
        )

    def _read_syntax(self, word: str) -> bool:
        """Read a word of Spack's syntax: `@1.14`, `%gcc`, `^zlib`, `+mpi`,
        `os=rhel8`.
        """
        if word[0] == "@":
            self._version = word
        elif word[0] == "%":
            self._compiler = word
        elif word[0] == "^":
            self._dependencies.append(word)
        else:
            # The name is `mpi` in `+mpi`, and `libs` in `libs:=static`. A hash (`/abc`)
            # is a condition of its own name.
            name = word.lstrip("+~").partition("=")[0].rstrip(":")
            return self._add(name, word)
        return True

    def _add(self, name: str, condition: str) -> bool:
        """Add a condition; return False if it contradicts an earlier one of this
        name.
        """
        return self._conditions.setdefault(name, condition) == condition

    def _read_scope(self, word: str) -> bool:
        """Read the name of a release or a stack."""
        for release in self._lookups.releases.values():
            if release.name.lower() == word.lower():
                return self._add_to_scope("release", release.name)
        for stack in self._lookups.stacks.values():
            if stack.name.lower() == word.lower():
                return self._add_to_scope("stack", stack.name)
        return False

    def _add_to_scope(self, kind: str, name: str) -> bool:
        """Add a release or a stack; return False if the words name another one."""
        return self._scope.setdefault(kind, name) == name

    def _read_system(self, word: str) -> bool:
        """Read an operating system, a platform, a target, or all three
        (`linux-rhel8-zen3`).
        """
        name = word.lower()
        platforms = self._lookups.words["platform"].values()
        parts = name.split("-")
        if len(parts) == 3 and parts[0] in platforms:
            return self._read_architecture(parts)
        system = newest_system(name, set(self._lookups.words["os"].values()))
        if system is not None:
            return self._add("os", f"os={system}")
        if name in PLATFORM_NAMES or name in platforms:
            return self._add("platform", f"platform={PLATFORM_NAMES.get(name, name)}")
        return self._read_target(name)

    def _read_architecture(self, parts: Sequence[str]) -> bool:
        """Read a platform, an operating system and a target: all of them, or
        nothing.
        """
        conditions_before = dict(self._conditions)
        family_before = self._target_family
        for part in parts:
            if not self._read_system(part):
                self._conditions = conditions_before
                self._target_family = family_before
                return False
        return True

    def _read_target(self, name: str) -> bool:
        """Read a target (`target=:zen3`) or a family of targets
        (`target=x86_64:`).
        """
        # A target of the database that archspec does not know runs on itself only.
        if not is_known(name) and name in self._lookups.words["target"].values():
            return self._add("target", f"target={name}")
        target = TARGET_NAMES.get(name, name)
        if not is_known(target):
            # `x86-64-v3` is `x86_64_v3`.
            target = target.replace("-", "_")
        if not is_known(target):
            return False

        # A target is more exact than its family, which may be before or behind it. The
        # family behind a target adds nothing (`zen3 x86_64`).
        family_of_target = family(target)
        is_family = target == family_of_target
        if is_family and self._target_family == family_of_target:
            return True
        # The family before a target is replaced (`x86_64 zen3`).
        of_family = f"target={family_of_target}:"
        if self._conditions.get("target") == of_family:
            del self._conditions["target"]
        self._target_family = family_of_target
        return self._add("target", of_family if is_family else f"target=:{target}")

    def _read_gpu(self, name: str) -> bool:
        """Read a graphics processor (`a100`) or its architecture (`sm_80`, `gfx90a`).

        It is the variant of architectures, or the switch for GPUs if the database does
        not record architectures (of the package).
        """
        condition = _gpu_condition(name.lower())
        if condition is None:
            return False
        variant = condition.partition("=")[0]
        names = {"name": variant, "package": self._expected_package}
        if any(select(self._conn, VARIANT, **names)):
            return self._add(variant, condition)
        if not self._read_variant(GPU_SWITCHES[variant], "+"):
            return False
        self._unrecorded.append(condition)
        return True

    def _read_package(self, name: str, version: str) -> bool:
        """Read the name of a package that has binaries, with the version behind it."""
        if self._name:
            return False
        name = name.lower()
        # The name may be that of another package manager, such as `libhdf5-dev`. But a
        # single word may be a part of many names: only its own is read.
        names = [name] if len(self._words) == 1 else names_elsewhere(name)
        for package in names:
            if self._expected_package:
                is_package = package == self._expected_package
            else:
                is_package = self._has_binaries.get(package, False)
            if is_package:
                self._name = package
                if version:
                    self._version = f"@{version}"
                return True
        return False

    def _read_compiler(self, name: str, version: str) -> bool:
        """Read the name of a compiler in the database, today's or an old one."""
        if self._compiler:
            return False
        compilers = self._lookups.compilers
        names = [
            name,
            LEGACY_COMPILERS.get(name, name),
            COMPILER_NAMES.get(name, name),
        ]
        # `intel` is `intel-oneapi-compilers`.
        names += [other for other in sorted(compilers) if other.startswith(f"{name}-")]
        for compiler in names:
            if compiler in compilers:
                self._compiler = _with_version(f"%{compiler}", version)
                return True
        return False

    def _read_number(self, word: str, variant: str) -> bool:
        """Read a number as the version of what stands before it.

        This is the variant of the last word, which is a package then; or else the
        compiler, the last dependency or the package, if it has no version.
        """
        version = number_in(word)
        if version is None:
            return False
        if variant:
            # `kokkos cuda 12.4` is `kokkos +cuda ^cuda@12.4`.
            return self._read_dependency(variant, version)
        if self._compiler and "@" not in self._compiler:
            self._compiler += f"@{version}"
        elif self._dependencies and "@" not in self._dependencies[-1]:
            self._dependencies[-1] += f"@{version}"
        elif self._name and not self._version:
            self._version = f"@{version}"
        else:
            return False
        return True

    def _read_switch(self, word: str, variant: str) -> bool:
        """Read a word that switches a variant on."""
        is_variant = self._read_variant(variant, "+")
        if is_variant:
            self._switches.append(word)
        return is_variant

    def _read_variant(self, word: str, sign: str) -> bool:
        """Read the name of a boolean variant of the package, or of any package."""
        # Most names are in lower case, but not all.
        for name in dict.fromkeys((word, word.lower())):
            names = {"name": name, "package": self._expected_package}
            if any(select(self._conn, SWITCH, **names)):
                self._variant_before = name
                return self._add(name, f"{sign}{name}")
        return False

    def _read_dependency(self, name: str, version: str) -> bool:
        """Read another package as a dependency of the first, if the database has
        dependencies.
        """
        if not self._name or name not in self._has_binaries:
            return False
        # The word stays unread, and `unrecorded` says why.
        if not has_records(self._conn):
            self._unrecorded.append(_with_version(name, version))
            return False
        self._dependencies.append(_with_version(f"^{name}", version))
        return True

    def _read_virtual(self, name: str) -> bool:
        """Read a virtual package with known providers, if no package was read."""
        if self._expected_package or self._name:
            return False
        if not self._lookups.providers.get(name):
            return False
        self._name = name
        return True


def _gpu_condition(name: str) -> str | None:
    """Return the variant of a graphics processor, such as `cuda_arch=80` for `a100`;
    None for any other name.
    """
    architecture = GPU_ARCHITECTURE.fullmatch(name)
    if architecture is not None and architecture["cuda"]:
        return f"cuda_arch={architecture['cuda']}"
    if architecture is not None:
        return f"amdgpu_target={name}"
    gpu = GPU.fullmatch(name)
    return None if gpu is None else GPU_ARCHITECTURES.get(gpu["name"])


def _packages(lookups: Lookups) -> dict[str, bool]:
    """Return whether each package of the database has binaries in a release."""
    has_binaries = {}
    for name, release_count in select(lookups.conn, PACKAGES):
        has_binaries[name] = bool(release_count)
    return has_binaries


def _with_version(name: str, version: str) -> str:
    """Return `gcc@13` for `gcc` and `13`; the name alone for an empty version."""
    return f"{name}@{version}" if version else name
