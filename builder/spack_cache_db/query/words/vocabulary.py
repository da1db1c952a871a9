"""What people call things, and what Spack calls them (`words.toml`).

For example `libhdf5-dev` of a distribution is `hdf5`, and `milan` is `zen3`.
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
FILLERS = frozenset(_WORDS["fillers"].split())
"""Words that say nothing about a package, such as `with`."""
NEGATIONS = frozenset(_WORDS["negations"].split())
"""Words before a variant that should be off, such as `without`."""
SYSTEMS_OF_SPACK = frozenset(_WORDS["systems_of_spack"].split())
"""Operating systems as Spack calls them, without versions."""
TARGET_NAMES: Mapping[str, str] = _WORDS["targets"]
PLATFORM_NAMES: Mapping[str, str] = _WORDS["platforms"]
SYSTEM_NAMES: Mapping[str, str] = _WORDS["systems"]
COMPILER_NAMES: Mapping[str, str] = _WORDS["compilers"]
VARIANT_NAMES: Mapping[str, str] = _WORDS["variants"]
_LANGUAGE_NAMES: Mapping[str, str] = _WORDS["languages"]
_PACKAGE_NAMES: Mapping[str, str] = _WORDS["packages"]
_PACKAGE_FORMS = [(re.compile(form), name) for form, name in _WORDS["forms"].items()]
_PROVIDERS: Mapping[str, str] = _WORDS["providers"]
PREFIXES = ("py-", "r-", "perl-")
"""Prefixes of names that people leave out."""
_REPOSITORY = re.compile(
    r"((?:\w+://|git@)?(?:[\w-]+\.)+\w+[/:])?([\w.-]+)/([\w.-]+?)(?:\.git)?([/?#].*)?"
)
"""The URL of a repository, or `owner/name`: the groups are host, owner, name and the
rest.
"""


def package_called(lookups: Lookups, text: str) -> str | None:
    """Return the package of a name in any package manager; those with binaries
    first.
    """
    counts = package_counts(lookups)
    names = [name for name in names_elsewhere(text) if name in counts]
    for name in names:
        if counts[name] or name == text:
            return name
    # No package of these names has a binary.
    return names[0] if names else None


def names_elsewhere(text: str) -> list[str]:
    """Return possible names in Spack of a package, given a name in any package manager.

    names_elsewhere("libfftw3-dev") -> ["libfftw3-dev", "libfftw3", "fftw3-dev", …]
    """
    names: list[str] = []
    waiting = [text.lower().replace("_", "-")]
    while waiting:
        name = waiting.pop(0)
        if name not in names:
            names.append(name)
            # A name without its ending may have a prefix too.
            waiting += _names_in_spack(name)
    with_prefixes = [prefix + name for prefix in PREFIXES for name in names]
    return names + with_prefixes


def _names_in_spack(name: str) -> Iterator[str]:
    """Yield what `words.toml` has for a name, then what its forms make of it."""
    known_name = _PACKAGE_NAMES.get(name)
    if known_name:
        yield known_name
    for form, pattern in _PACKAGE_FORMS:
        match = form.fullmatch(name)
        if match is not None:
            yield pattern.format(match[1])


def packages_providing(lookups: Lookups, virtual: str) -> list[str]:
    """Return the known providers of a virtual package, those with most binaries
    first.
    """
    counts = package_counts(lookups)
    name = _LANGUAGE_NAMES.get(virtual.lower(), virtual.lower())
    providers = {*lookups.providers.get(name, ()), *_PROVIDERS.get(name, "").split()}
    known_providers = providers & counts.keys()
    return sorted(known_providers, key=lambda package: (-counts[package], package))


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
    # `owner/name/issues` without a host is not an address.
    if more is not None:
        return None
    # `hdf5/abc` may be a package and the beginning of a hash.
    if owner in package_counts(lookups) and specs_beginning(lookups.conn, name, 1):
        return None
    return name if package_called(lookups, name) is not None else None
