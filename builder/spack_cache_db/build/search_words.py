"""Configurations and packages → the words under which full-text search finds them.

The tokenizer divides at blanks alone (`schema.TOKENIZER`), so a word finds exactly what
it says: `+cuda` is not `~cuda`. To let a shorter word find a longer one, every form that a person
would type is written out here; docs/site.md says what each means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from spack_cache_db.records import Configuration
from spack_cache_db.spack.normal_forms import readable_variant, split_compiler
from spack_cache_db.spack.targets import family

_MOST_PARTS = 8
"""Parts of a version, divided by dots, that are searched for one by one: all of them together grow
as the square of their number."""


_LANGUAGES = {"py": "python"}
_QUOTES = re.compile("['\"]")
_PARTS = re.compile(r"[^\W_]+")
_AROUND = ".,;:!?()[]{}<>\"'`"


def configuration_tokens(each: Configuration) -> str:
    """Return the words of a configuration, separated by blanks, each once."""
    words = [
        *_package(each.package),
        *_version(each.package, each.version),
        *_compiler(each.compiler),
        each.os,
        f"os={each.os}",
        each.platform,
        f"platform={each.platform}",
        *_target(each.target),
        *_variants(each.variants),
    ]
    quoted = (part for word in words if _QUOTES.search(word) for part in _QUOTES.split(word))
    return " ".join(dict.fromkeys([*words, *filter(None, quoted)]))


def package_tokens(name: str) -> str:
    """Return every part of a name: `torch` has to find `py-torchvision`."""
    parts = {
        name[start:end] for start in range(len(name)) for end in range(start + 1, len(name) + 1)
    }
    return " ".join(sorted(parts))


def known_package_tokens(name: str, description: str) -> str:
    """Return the words of a name and of a description, and the parts of those with punctuation.

    With them goes the language that the prefix of a name stands for.
    """
    words = [name, *description.split(), _LANGUAGES.get(name.partition("-")[0], "")]
    odd = [each for each in words if not each.isalnum()]
    found = [*filter(str.isalnum, words), *(each.strip(_AROUND) for each in odd)]
    return " ".join(dict.fromkeys(found + _PARTS.findall(" ".join(odd))))


@lru_cache(maxsize=4096)
def _package(name: str) -> tuple[str, ...]:
    parts = [part for part in name.replace("_", "-").split("-") if part]
    return (name, *parts)


def _version(package: str, version: str) -> Iterator[str]:
    for prefix in _prefixes(version):
        yield prefix
        yield f"@{prefix}"
        yield f"{package}@{prefix}"


@lru_cache(maxsize=4096)
def _compiler(name: str) -> tuple[str, ...]:
    """Return words that name the compiler: its version alone would look like the package's."""
    compiler, version = split_compiler(name)
    words = [compiler, *(f"{compiler}@{prefix}" for prefix in _prefixes(version or ""))]
    return (*words, *(f"%{word}" for word in words))


@lru_cache(maxsize=4096)
def _target(name: str) -> tuple[str, ...]:
    return (name, f"target={name}", family(name))


@lru_cache(maxsize=65536)
def _variants(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for text in texts for word in _variant(text))


@lru_cache(maxsize=65536)
def _variant(text: str) -> tuple[str, ...]:
    variant = readable_variant(text)
    if variant is None:
        return (text,)
    if variant.kind == "bool":
        on = variant.values == ("True",)
        return (text, f"+{variant.name}", variant.name) if on else (text, f"~{variant.name}")
    members = (word for value in variant.values for word in (f"{variant.name}={value}", value))
    return (text, f"{variant.name}={variant.value}", *members)


@lru_cache(maxsize=65536)
def _prefixes(version: str) -> tuple[str, ...]:
    """Return `1`, `1.14` and `1.14.3` for `1.14.3`; no more than a person would type."""
    parts = version.split(".")
    prefixes = (".".join(parts[:end]) for end in range(1, min(len(parts), _MOST_PARTS)))
    return (*filter(None, prefixes), version) if version else ()
