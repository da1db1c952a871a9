"""Configurations and packages → the words under which full-text search finds them.

The tokenizer keeps Spack's punctuation inside words (`schema.TOKENIZER`), so a word finds exactly
what it says: `+cuda` is not `~cuda`. To let a shorter word find a longer one, every form that a
person would type is written out here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from spack_cache_db.records import Configuration
from spack_cache_db.spack.targets import family
from spack_cache_db.spack.variants import split_compiler, variant_row


def configuration_tokens(each: Configuration) -> str:
    """Return the words of a configuration, separated by blanks, each once."""
    words = [
        *_package(each.package),
        *_versioned(each.package, each.version),
        *_prefixes(each.version),
        *_compiler(each.compiler),
        each.os,
        f"os={each.os}",
        each.platform,
        f"platform={each.platform}",
        *_target(each.target),
        *_variants(each.variants),
    ]
    return " ".join(dict.fromkeys(words))


def package_tokens(name: str) -> str:
    """Return every part of a name: `torch` has to find `py-torchvision`."""
    parts = {
        name[start:end] for start in range(len(name)) for end in range(start + 1, len(name) + 1)
    }
    return " ".join(sorted(parts))


@lru_cache(maxsize=4096)
def _package(name: str) -> tuple[str, ...]:
    parts = [part for part in name.replace("_", "-").split("-") if part]
    return (name, *parts)


@lru_cache(maxsize=4096)
def _compiler(name: str) -> tuple[str, ...]:
    compiler, version = split_compiler(name)
    words = [compiler, *_versioned(compiler, version or "")]
    return (*words, *(f"%{word}" for word in words))


@lru_cache(maxsize=4096)
def _target(name: str) -> tuple[str, ...]:
    return (name, f"target={name}", family(name))


@lru_cache(maxsize=65536)
def _variants(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for text in texts for word in _variant(text))


@lru_cache(maxsize=65536)
def _variant(text: str) -> tuple[str, ...]:
    row = variant_row(text)
    if row is None:
        return (text,)
    if text.startswith(("+", "~", "-")):
        return (text, row.name) if text.startswith("+") else (text,)
    members = (member for value in row.values for member in (f"{row.name}={value}", value))
    return (text, *members)


def _versioned(name: str, version: str) -> Iterator[str]:
    for prefix in _prefixes(version):
        yield f"{name}@{prefix}"
        yield f"@{prefix}"


@lru_cache(maxsize=65536)
def _prefixes(version: str) -> Iterable[str]:
    """Return `1`, `1.14` and `1.14.3` for `1.14.3`."""
    parts = version.split(".")
    return tuple(".".join(parts[:end]) for end in range(1, len(parts) + 1)) if version else ()
