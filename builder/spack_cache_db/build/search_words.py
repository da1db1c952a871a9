"""Returns the words under which full-text search finds configurations and packages.

The tokenizer splits at blanks only (`schema.TOKENIZER`), so that `+cuda` does not find `~cuda`.
Every form that a person would type is a separate word; docs/site.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from spack_cache_db.records import Configuration
from spack_cache_db.spack.normal_forms import readable_variant, split_compiler
from spack_cache_db.spack.targets import family

_MOST_PARTS = 8
"""Maximum of prefixes of a version; their total length is the square of their number."""

_LANGUAGES = {"py": "python"}
_QUOTES = re.compile("['\"]")
_PARTS = re.compile(r"[^\W_]+")
_AROUND = ".,;:!?()[]{}<>\"'`"


def configuration_tokens(configuration: Configuration) -> str:
    """Return the distinct words of a configuration, separated by blanks."""
    words = [
        *_package(configuration.package),
        *_version(configuration.package, configuration.version),
        *_compiler(configuration.compiler),
        configuration.os,
        f"os={configuration.os}",
        configuration.platform,
        f"platform={configuration.platform}",
        *_target(configuration.target),
        *_variants(configuration.variants),
    ]
    quoted = (part for word in words if _QUOTES.search(word) for part in _QUOTES.split(word))
    return " ".join(dict.fromkeys([*words, *filter(None, quoted)]))


def package_tokens(name: str) -> str:
    """Return all substrings of a name: `torch` finds `py-torchvision`."""
    parts = {
        name[start:stop] for start in range(len(name)) for stop in range(start + 1, len(name) + 1)
    }
    return " ".join(sorted(parts))


def known_package_tokens(name: str, description: str) -> str:
    """Return the words of a name, its language and its description, split at punctuation."""
    words = [name, *description.split(), _LANGUAGES.get(name.partition("-")[0], "")]
    punctuated = [word for word in words if not word.isalnum()]
    tokens = [*filter(str.isalnum, words), *(word.strip(_AROUND) for word in punctuated)]
    return " ".join(dict.fromkeys(tokens + _PARTS.findall(" ".join(punctuated))))


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
    """Return the words of a compiler, each with its name: a version alone is the package's."""
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
        on = variant.values == ("true",)
        return (text, f"+{variant.name}", variant.name) if on else (text, f"~{variant.name}")
    members = (word for value in variant.values for word in (f"{variant.name}={value}", value))
    return (text, f"{variant.name}={variant.value}", *members)


@lru_cache(maxsize=65536)
def _prefixes(version: str) -> tuple[str, ...]:
    """Return `1`, `1.14` and `1.14.3` for `1.14.3`."""
    parts = version.split(".")
    prefixes = (".".join(parts[:stop]) for stop in range(1, min(len(parts), _MOST_PARTS)))
    return (*filter(None, prefixes), version) if version else ()
