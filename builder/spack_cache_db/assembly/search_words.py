"""The words of full-text search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.known_packages import PackageCatalogue
from spack_cache_db.model import Configuration
from spack_cache_db.spack import targets
from spack_cache_db.spack.normal_forms import readable_variant, split_compiler

_MOST_PARTS = 8
"""Maximum of prefixes of a version; their total length is the square of their
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
    words = [package, *filter(None, package.replace("_", "-").split("-"))]
    for prefix in _prefixes(version):
        words += (prefix, f"@{prefix}", f"{package}@{prefix}")
    words += (*_compiler(compiler), os, f"os={os}", platform, f"platform={platform}")
    words += (
        target,
        f"target={target}",
        targets.family(target),
        *chain.from_iterable(map(_variant, variants)),
    )
    quoted = (
        part
        for word in words
        if "'" in word or '"' in word
        for part in _QUOTE.split(word)
    )
    return " ".join(dict.fromkeys([*words, *filter(None, quoted)]))


_QUOTE = re.compile("['\"]")


@lru_cache(maxsize=4096)
def _compiler(name: str) -> tuple[str, ...]:
    """Return the words of a compiler, each with its name: a version alone is the
    package's.
    """
    compiler, version = split_compiler(name)
    words = [compiler, *(f"{compiler}@{prefix}" for prefix in _prefixes(version or ""))]
    return (*words, *(f"%{word}" for word in words))


@lru_cache(maxsize=65536)
def _variant(text: str) -> tuple[str, ...]:
    variant = readable_variant(text)
    if variant is None:
        return (text,)
    if variant.kind == "bool":
        on = variant.values == ("true",)
        return (
            (text, f"+{variant.name}", variant.name)
            if on
            else (text, f"~{variant.name}")
        )
    members = (
        word for value in variant.values for word in (f"{variant.name}={value}", value)
    )
    return (text, f"{variant.name}={variant.value}", *members)


@lru_cache(maxsize=65536)
def _prefixes(version: str) -> tuple[str, ...]:
    """Return `1`, `1.14` and `1.14.3` for `1.14.3`."""
    parts = version.split(".")
    prefixes = (
        ".".join(parts[:stop]) for stop in range(1, min(len(parts), _MOST_PARTS))
    )
    return (*filter(None, prefixes), version) if version else ()


def _package_tokens(name: str) -> str:
    """Return all substrings of a name: `torch` finds `py-torchvision`."""
    parts = {
        name[start:stop]
        for start in range(len(name))
        for stop in range(start + 1, len(name) + 1)
    }
    return " ".join(sorted(parts))


def _known_package_tokens(name: str, description: str) -> str:
    """Return the words of a name, its language and its description, split at
    punctuation.
    """
    words = [
        name,
        *description.split(),
        *(["python"] if name.partition("-")[0] == "py" else []),
    ]
    punctuated = [word for word in words if not word.isalnum()]
    tokens = [
        *filter(str.isalnum, words),
        *(word.strip(_AROUND) for word in punctuated),
    ]
    return " ".join(dict.fromkeys(tokens + _PARTS.findall(" ".join(punctuated))))


_PARTS = re.compile(r"[^\W_]+")
_AROUND = ".,;:!?()[]{}<>\"'`"
