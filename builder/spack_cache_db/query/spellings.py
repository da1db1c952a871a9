"""Other spellings of names: capitals, and `_` in place of `-` or the reverse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spack_cache_db.query.conditions import VIRTUALS
from spack_cache_db.query.connection import Lookups, select
from spack_cache_db.spack.targets import known_targets

KNOWN_PACKAGES = "SELECT name FROM known_packages"
PROVIDED = "SELECT DISTINCT virtual FROM providers"

_DEPENDENCY = ("package", "virtual", "compiler")
_TARGET = re.compile(r"[^:,]+")
"""A target in a range or a list of them."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The names of a database, by kind and by what is equal in all spellings of a name.

    Kinds are the fields of an address (`package`, `release`, `stack`, `host`, `target`, `os`,
    `platform`, `compiler`, `hash`), `dependency` for what a spec may name (a package, a compiler or
    a virtual package), and `side` for what is compared.
    """

    names: Mapping[str, Mapping[str, tuple[str, ...]]]

    def canonical(self, kind: str, text: str) -> str:
        """Return the only name of a kind that a text spells; the text if none or several do.

        A target may be a range or a list, and a hash the beginning of one. A side of a comparison
        is a release, or a release and a stack (`develop:e4s`).
        """
        if kind == "hash":
            return text.lower()
        if kind == "side":
            release, colon, stack = text.rpartition(":")
            if not colon or self._name("release", text) != text:
                return self._name("release", text)
            return f"{self._name('release', release)}:{self._name('stack', stack)}"
        if kind == "target":
            return _TARGET.sub(lambda part: self._name(kind, part[0]), text)
        return self._name(kind, text)

    def _name(self, kind: str, text: str) -> str:
        kinds = _DEPENDENCY if kind == "dependency" else (kind,)
        names = {name for each in kinds for name in self.names.get(each, {}).get(_folded(text), ())}
        return text if text in names or len(names) != 1 else names.pop()

    def knows(self, kind: str, text: str) -> bool:
        """Return whether a text spells a name of a kind."""
        return _folded(text) in self.names[kind]

    def notes(self, names: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return a note on each name, with its kind before it, that is spelled otherwise."""
        given = ((text, self.canonical(kind, text)) for kind, text in names if text)
        return [f"{text} is read as {name}" for text, name in given if text != name]


def read_spellings(lookups: Lookups) -> Spellings:
    """Return the spellings of all names in a database, which are read once."""
    return lookups.once(Spellings, lambda: _read(lookups))


def _read(lookups: Lookups) -> Spellings:
    packages = {*lookups.packages, *(name for (name,) in select(lookups.conn, KNOWN_PACKAGES))}
    virtuals = VIRTUALS.union(name for (name,) in select(lookups.conn, PROVIDED))
    targets = {*lookups.families, *lookups.families.values(), *known_targets()}
    compilers = {*lookups.words["compiler"].values(), *lookups.compilers}
    names: dict[str, Iterable[str]] = {
        "package": packages,
        "virtual": virtuals,
        "release": (each.name for each in lookups.releases.values()),
        "stack": (each.name for each in lookups.stacks.values()),
        "host": targets,
        "target": targets,
        "compiler": compilers,
        "os": lookups.words["os"].values(),
        "platform": lookups.words["platform"].values(),
    }
    return Spellings({kind: _by_folded(some) for kind, some in names.items()})


def _by_folded(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        found[_folded(name)] = (*found.get(_folded(name), ()), name)
    return found


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-")
