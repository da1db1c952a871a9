"""Reads one word, or a name of several words, as a part of a spec.

For example `rhel8` is `os=rhel8`, `mpi` is `+mpi`, and `gcc13` is `%gcc@13`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.words.splitting import name_and_version, number_in
from spack_cache_db.query.words.systems import newest_system
from spack_cache_db.query.words.vocabulary import (
    COMPILER_NAMES,
    PLATFORM_NAMES,
    PROCESSORS_OF_LINUX,
    TARGET_NAMES,
    VARIANT_NAMES,
    names_elsewhere,
)
from spack_cache_db.spack.facts import (
    GPU_ARCHITECTURES,
    GPU_SWITCHES,
    LEGACY_COMPILERS,
)
from spack_cache_db.spack.processors import LINUX
from spack_cache_db.spack.targets import MAC, family, is_known

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
JOINTS = ("-", "_", "")
"""The signs that may join the words of a name."""
SPACK_SYNTAX = re.compile(r"[@+~%^/]|[\w-]+:?==?\S")
"""The beginning of a word in Spack's syntax: `@1.14`, `+mpi`, `os=rhel8`."""
GPU = re.compile(r"(?P<name>[a-z]+\d+[a-z]?)(?:-(?:\d+gb|sxm\d?|pcie))*")
"""A graphics processor: `a100`, `a100-80gb`, `h100-sxm5`."""
GPU_ARCHITECTURE = re.compile(r"(?:sm_?(?P<cuda>\d{2,3}a?)|(?P<amd>gfx[0-9a-f]{3,4}))")
"""The architecture of one, as compilers name it: `sm_80`, `gfx90a`."""


class WordReader:
    """Reads words, one after the other, into the parts of a spec.

    The methods `read_…` return whether a word has the meaning of their name, and then
    keep it. A second package, release, stack or compiler is not read.

    Args:
        lookups: the database.
        package: the package that the text names; empty if it is not known yet, or if
            it names none.
        is_single: whether the text is a single word.

    Attributes:
        name: the package, such as `hdf5`; empty for none.
        version: its version with its sign, such as `@1.14`; empty for none.
        compiler: the compiler with its sign, such as `%gcc@13`; empty for none.
        dependencies: the dependencies with their sign, such as `^zlib`.
        conditions: other conditions by what they are on, `os`, `target` or the name of
            a variant: `{"os": "os=rhel8", "mpi": "+mpi"}`.
        scope: the names of a release and a stack: `{"release": "develop"}`.
        switches: the words that switched variants on.
        unrecorded: what the words ask for and the database does not record.
    """

    def __init__(self, lookups: Lookups, package: str, *, is_single: bool) -> None:
        self._lookups = lookups
        self._conn = lookups.conn
        self._expected_package = package
        self._is_single = is_single
        self._has_binaries = lookups.once(PACKAGES, lambda: _packages(lookups))

        self.name = ""
        self.version = ""
        self.compiler = ""
        self.dependencies: list[str] = []
        self.conditions: dict[str, str] = {}
        self.scope: dict[str, str] = {}
        self.switches: list[str] = []
        self.unrecorded: list[str] = []

        # What the meaning of the next word depends on: the variant that the last word
        # named, the family of the target, and whether its name meant the platform too.
        self._variant_before = ""
        self._target_family = ""
        self._has_implied_platform = False

    def parts(self) -> dict[str, str]:
        """Return the parts of the spec, and the scope, by what they are on.

        For example `{"package": "hdf5@1.14", "^zlib": "^zlib@1.3", "mpi": "+mpi"}`.
        """
        parts = {"package": self.name + self.version, "compiler": self.compiler}
        for dependency in self.dependencies:
            name = dependency.partition("@")[0]
            parts[name] = dependency
        parts |= self.conditions
        parts |= self.scope
        return {key: text for key, text in parts.items() if text}

    def read_joined(self, words: Sequence[str]) -> int:
        """Read the longest name of two or more words at the beginning of the words;
        return the number of its words, 0 for none.
        """
        for length in range(len(words), 1, -1):
            for joint in JOINTS:
                if self._read_name(joint.join(words[:length])):
                    return length
        return 0

    def read_negated(self, words: Sequence[str]) -> tuple[int, bool]:
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

    def add_version_of_unrecorded(self, version: str) -> None:
        """Add the version behind a dependency that the database does not record."""
        if self.unrecorded and "@" not in self.unrecorded[-1]:
            self.unrecorded[-1] += f"@{version}"

    def read_word(self, word: str) -> bool:
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

    def _read_name(self, name: str) -> bool:
        """Read a name that may have several words: `ml-linux-x86_64-cuda`, `rhel-8`."""
        return (
            self._read_scope(name)
            or self._read_system(name)
            or self._read_gpu(name)
            or self._read_package(name, "")
        )

    def _read_syntax(self, word: str) -> bool:
        """Read a word of Spack's syntax: `@1.14`, `%gcc`, `^zlib`, `+mpi`,
        `os=rhel8`.
        """
        if word[0] == "@":
            self.version = word
        elif word[0] == "%":
            self.compiler = word
        elif word[0] == "^":
            self.dependencies.append(word)
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
        return self.conditions.setdefault(name, condition) == condition

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
        return self.scope.setdefault(kind, name) == name

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
        conditions_before = dict(self.conditions)
        family_before = self._target_family
        for part in parts:
            if not self._read_system(part):
                self.conditions = conditions_before
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
        # The family before a target is replaced (`x86_64 zen3`), with the platform that
        # its name meant (`epyc zen3`).
        of_family = f"target={family_of_target}:"
        if self.conditions.get("target") == of_family:
            del self.conditions["target"]
            if self._has_implied_platform:
                self.conditions.pop("platform", None)
        self._target_family = family_of_target
        is_read = self._add("target", of_family if is_family else f"target=:{target}")
        if is_read and name in PROCESSORS_OF_LINUX:
            self._add_platform_of_linux()
        return is_read

    def _add_platform_of_linux(self) -> None:
        """Add the platform of a family of processors that no Mac has: `graviton`.

        Without it, `target=aarch64:` would mean binaries of macOS too. In a database
        without these, the platform says nothing.
        """
        platforms = set(self._lookups.words["platform"].values())
        if {LINUX, MAC} <= platforms and "platform" not in self.conditions:
            self.conditions["platform"] = f"platform={LINUX}"
            self._has_implied_platform = True

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
        self.unrecorded.append(condition)
        return True

    def _read_package(self, name: str, version: str) -> bool:
        """Read the name of a package that has binaries, with the version behind it."""
        if self.name:
            return False
        name = name.lower()
        # The name may be that of another package manager, such as `libhdf5-dev`. But a
        # single word may be a part of many names: only its own is read.
        names = [name] if self._is_single else names_elsewhere(name)
        for package in names:
            if self._expected_package:
                is_package = package == self._expected_package
            else:
                is_package = self._has_binaries.get(package, False)
            if is_package:
                self.name = package
                if version:
                    self.version = f"@{version}"
                return True
        return False

    def _read_compiler(self, name: str, version: str) -> bool:
        """Read the name of a compiler in the database, today's or an old one."""
        if self.compiler:
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
                self.compiler = _with_version(f"%{compiler}", version)
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
        if self.compiler and "@" not in self.compiler:
            self.compiler += f"@{version}"
        elif self.dependencies and "@" not in self.dependencies[-1]:
            self.dependencies[-1] += f"@{version}"
        elif self.name and not self.version:
            self.version = f"@{version}"
        else:
            return False
        return True

    def _read_switch(self, word: str, variant: str) -> bool:
        """Read a word that switches a variant on."""
        is_variant = self._read_variant(variant, "+")
        if is_variant:
            self.switches.append(word)
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
        if not self.name or name not in self._has_binaries:
            return False
        # The word stays unread, and `unrecorded` says why.
        if not has_records(self._conn):
            self.unrecorded.append(_with_version(name, version))
            return False
        self.dependencies.append(_with_version(f"^{name}", version))
        return True

    def _read_virtual(self, name: str) -> bool:
        """Read a virtual package with known providers, if no package was read."""
        if self._expected_package or self.name:
            return False
        if not self._lookups.providers.get(name):
            return False
        self.name = name
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
