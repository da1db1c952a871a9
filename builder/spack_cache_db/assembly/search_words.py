"""The words of full-text search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.known_packages import PackageCatalogue
from spack_cache_db.model import Configuration
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import readable_variant, split_compiler

_MOST_PARTS = 8
"""Maximum of prefixes of a version; their total length grows with the square of their
number.
"""


def full_text(
    numbered: Numbered, packages: PackageCatalogue
) -> dict[str, Iterable[str]]:
    """Return the words by which full-text search finds each row, by table.

    The tokenizer splits at blanks only (`schema.TOKENIZER`), so that `+cuda` does not
    find `~cuda`. Every form that a person would type is a separate word; docs/site.md
    lists them.
    """
    return {
        "configurations": map(configuration_tokens, numbered.ids["configurations"]),
        "packages": map(_package_tokens, numbered.ids["packages"]),
        "known_packages": (
            _known_package_tokens(name, package.texts.get("description", ""))
            for name, package in packages.packages.items()
        ),
    }


def configuration_tokens(configuration: Configuration) -> str:
    """Return the distinct words of a configuration, separated by blanks."""
    package, version, compiler, os, platform, target, variants = configuration

    # The package and its parts: `py-numpy`, `py`, `numpy`.
    words = [package]
    words += [part for part in package.replace("_", "-").split("-") if part]

    # The version: `1.14`, `@1.14`, `hdf5@1.14`.
    for prefix in _prefixes(version):
        words += (prefix, f"@{prefix}", f"{package}@{prefix}")

    # Everything else, alone and as a part of a spec.
    words += _compiler_words(compiler)
    words += (os, f"os={os}", platform, f"platform={platform}")
    words += (target, f"target={target}", targets.family(target))
    for variant in variants:
        words += _variant_words(variant)

    # The parts of words with quotes, because visitors do not type the quotes.
    for word in list(words):
        if "'" in word or '"' in word:
            words += [part for part in _QUOTE.split(word) if part]
    return " ".join(dict.fromkeys(words))


_QUOTE = re.compile("['\"]")


@lru_cache(maxsize=4096)
def _compiler_words(text: str) -> tuple[str, ...]:
    """Return the words of a compiler: `gcc`, `gcc@13`, `gcc@13.2`, `%gcc`, ….

    A version alone is that of the package, so each word has the compiler's name.
    """
    compiler, version = split_compiler(text)
    words = [compiler]
    for prefix in _prefixes(version or ""):
        words.append(f"{compiler}@{prefix}")
    return (*words, *(f"%{word}" for word in words))


@lru_cache(maxsize=65536)
def _variant_words(text: str) -> tuple[str, ...]:
    """Return the words of a variant.

    `+mpi` has the words `+mpi` and `mpi`; `~mpi` only itself; `libs=shared,static` also
    has `libs=shared`, `shared`, `libs=static` and `static`.
    """
    variant = readable_variant(text)
    if variant is None:
        return (text,)
    if variant.kind == "bool":
        # A switch that is off is not found by its name alone.
        if variant.values == ("true",):
            return (text, f"+{variant.name}", variant.name)
        return (text, f"~{variant.name}")
    words = [text, f"{variant.name}={variant.value}"]
    for value in variant.values:
        words += (f"{variant.name}={value}", value)
    return tuple(words)


@lru_cache(maxsize=65536)
def _prefixes(version: str) -> tuple[str, ...]:
    """Return `1`, `1.14` and `1.14.3` for `1.14.3`."""
    if not version:
        return ()
    parts = version.split(".")
    prefixes = []
    for count in range(1, min(len(parts), _MOST_PARTS)):
        prefix = ".".join(parts[:count])
        # A version may begin with a dot.
        if prefix:
            prefixes.append(prefix)
    return (*prefixes, version)


def _package_tokens(name: str) -> str:
    """Return all substrings of a name: `torch` finds `py-torchvision`."""
    parts = set()
    for start in range(len(name)):
        for stop in range(start + 1, len(name) + 1):
            parts.add(name[start:stop])
    return " ".join(sorted(parts))


def _known_package_tokens(name: str, description: str) -> str:
    """Return the words of a name, its language and its description, split at
    punctuation.
    """
    words = [name, *description.split()]
    if name.partition("-")[0] == "py":
        words.append("python")
    # Most words are letters only, and need no splitting.
    tokens = [word for word in words if word.isalnum()]
    punctuated = [word for word in words if not word.isalnum()]
    # `(MPI-3),` is found as `MPI-3`, as `MPI` and as `3`.
    tokens += [word.strip(_AROUND) for word in punctuated]
    tokens += _PARTS.findall(" ".join(punctuated))
    return " ".join(dict.fromkeys(tokens))


_PARTS = re.compile(r"[^\W_]+")
_AROUND = ".,;:!?()[]{}<>\"'`"
"""Punctuation around words."""
