"""What people call things, and what Spack calls them, from `words.toml`.

For example `libhdf5-dev` of a distribution is the package `hdf5`, `milan` is the target
`zen3`, and `mpi` is a virtual package, provided by `openmpi` and others.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files

from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import specs_beginning

_WORDS = tomllib.loads(
    files("spack_cache_db.query").joinpath("words.toml").read_text("utf-8")
)
"""The content of the file, which has a table for each kind of names."""
FILLERS = frozenset(_WORDS["fillers"].split())
"""Words that say nothing about a package, such as `with`."""
NEGATIONS = frozenset(_WORDS["negations"].split())
"""Words before a variant that should be off, such as `without`."""
SYSTEMS_OF_SPACK = frozenset(_WORDS["systems_of_spack"].split())
"""Operating systems as Spack calls them, without versions."""

PROCESSORS_OF_LINUX = frozenset(_WORDS["processors_of_linux"].split())
"""Names of processors that no Mac has, and that stand for a family of targets."""

# What people call something, and its name in Spack.
TARGET_NAMES: Mapping[str, str] = _WORDS["targets"]
"""Targets and their families: `milan` is `zen3`, `arm` is `aarch64`."""
GENERATIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(targets.split()) for name, targets in _WORDS["generations"].items()
}
"""Names of several processors: `graviton` is `neoverse_n1` and others."""
PLATFORM_NAMES: Mapping[str, str] = _WORDS["platforms"]
"""Platforms: `mac` is `darwin`."""
SYSTEM_NAMES: Mapping[str, str] = _WORDS["systems"]
"""Operating systems: `redhat` is `rhel`, `jammy` is `ubuntu22.04`."""
COMPILER_NAMES: Mapping[str, str] = _WORDS["compilers"]
"""Compilers: `clang` is `llvm`."""
VARIANT_NAMES: Mapping[str, str] = _WORDS["variants"]
"""Variants: `gpu` is `cuda`, and `parallel` is `mpi`."""
LANGUAGE_NAMES: Mapping[str, str] = _WORDS["languages"]
"""Programming languages, which are virtual packages: `c++` is `cxx`."""
PACKAGE_NAMES: Mapping[str, str] = _WORDS["packages"]
"""Packages: `pytorch` is `py-torch`."""
PACKAGE_FORMS = [(re.compile(form), name) for form, name in _WORDS["forms"].items()]
"""Forms of package names: `(.+?)-dev` is `{}`, and `python3-(.+)` is `py-{}`."""
PROVIDERS: Mapping[str, str] = _WORDS["providers"]
"""The providers of virtual packages, separated by blanks."""

PREFIXES = ("py-", "r-", "perl-")
"""Prefixes of package names that people leave out."""
_REPOSITORY = re.compile(
    r"""
    (?P<host>(?:\w+://|git@)?(?:[\w-]+\.)+\w+[/:])?  # https://github.com/
    (?P<owner>[\w.-]+)/
    (?P<name>[\w.-]+?)(?:\.git)?
    (?P<rest>[/?#].*)?                               # /issues
    """,
    re.VERBOSE,
)
"""The URL of a repository, or `owner/name`."""


def package_called(lookups: Lookups, text: str) -> str | None:
    """Return the package that any package manager calls by this name; None if the
    database knows none.

    The text itself, and packages with binaries, come before packages without.
    """
    counts = package_counts(lookups)
    known_names = [name for name in names_elsewhere(text) if name in counts]
    for name in known_names:
        if counts[name] or name == text:
            return name
    return known_names[0] if known_names else None


def names_elsewhere(text: str) -> list[str]:
    """Return possible names in Spack of a package, given a name in any package manager.

    names_elsewhere("libfftw3-dev") -> ["libfftw3-dev", "libfftw3", "fftw3-dev", "fftw",
        "fftw3", "py-libfftw3-dev", …]
    """
    names: list[str] = []
    # Each name may have other names in turn: `libfftw3-dev`, `fftw3-dev`, `fftw3`.
    unread = [text.lower().replace("_", "-")]
    while unread:
        name = unread.pop(0)
        if name not in names:
            names.append(name)
            unread += _names_in_spack(name)
    with_prefixes = []
    for prefix in PREFIXES:
        with_prefixes += [prefix + name for name in names]
    return names + with_prefixes


def _names_in_spack(name: str) -> Iterator[str]:
    """Yield the other name of a package, and what the forms make of its name."""
    known_name = PACKAGE_NAMES.get(name)
    if known_name:
        yield known_name
    for form, pattern in PACKAGE_FORMS:
        match = form.fullmatch(name)
        if match is not None:
            yield pattern.format(match[1])


def packages_providing(lookups: Lookups, virtual: str) -> list[str]:
    """Return the packages of the database that provide a virtual package, those with
    most binaries first.
    """
    counts = package_counts(lookups)
    lower = virtual.lower()
    name = LANGUAGE_NAMES.get(lower, lower)
    listed = lookups.providers.get(name, ())
    providers = {*listed, *PROVIDERS.get(name, "").split()}
    # By name, and then by the number of binaries: the sort is stable.
    known_providers = sorted(providers & counts.keys())
    return sorted(known_providers, key=lambda package: -counts[package])


def repository_name(lookups: Lookups, text: str) -> str | None:
    """Return the name of the repository that a text is the address of, such as `hdf5`
    for `https://github.com/HDFGroup/hdf5`; None if the text is not an address.

    `HDFGroup/hdf5` is an address too, if a package is called by the second name.
    """
    match = _REPOSITORY.fullmatch(text.strip())
    if match is None:
        return None
    name = match["name"]
    if match["host"] is not None:
        return name
    # `owner/name/issues` without a host is not an address.
    if match["rest"] is not None:
        return None
    # `hdf5/abc` may be a package and the beginning of a hash.
    is_package = match["owner"] in package_counts(lookups)
    if is_package and specs_beginning(lookups.conn, name, 1):
        return None
    return name if package_called(lookups, name) is not None else None
