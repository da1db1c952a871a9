"""The spellings of the names in a database."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.spack.facts import VIRTUALS
from spack_cache_db.spack.targets import known_targets

_DEPENDENCY = ("package", "virtual", "compiler")
_TARGET = re.compile(r"[^:,]+")
"""A target in a range or a list."""
MOST_NEAR = 5
"""Maximum of similar names in one answer."""
PACKAGE_COUNTS = """
SELECT name, spec_count FROM packages
UNION ALL SELECT name, 0 FROM known_packages WHERE name NOT IN (SELECT name FROM packages)
ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The names of a database, by kind and by their folded form.

    Kinds are the fields of a URL (`package`, `release`, `stack`, `host`, `target`,
    `os`, `platform`, `compiler`, `hash`), `dependency` for a package, compiler or
    virtual package, and `side` for a release, or a release and a stack (`develop:e4s`).
    """

    names: Mapping[str, Mapping[str, tuple[str, ...]]]

    def canonical(self, kind: str, text: str) -> str:
        """Return the name of a kind that a text spells; the text if it spells none or
        several.

        A target may be a range or a list, and a hash the beginning of one.
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
        names = {
            name
            for field in kinds
            for name in self.names.get(field, {}).get(_folded(text), ())
        }
        return text if text in names or len(names) != 1 else names.pop()

    def knows(self, kind: str, text: str) -> bool:
        """Return whether a text spells a name of this kind."""
        return _folded(text) in self.names[kind]

    def notes(self, names: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return a note on each pair of a kind and a text that is another spelling of a
        name.
        """
        pairs = ((text, self.canonical(kind, text)) for kind, text in names if text)
        return [f"{text} is read as {name}" for text, name in pairs if text != name]


def read_spellings(lookups: Lookups) -> Spellings:
    """Return the spellings of all names in a database; cached."""
    return lookups.once(Spellings, lambda: _read(lookups))


def _read(lookups: Lookups) -> Spellings:
    virtuals = "SELECT DISTINCT virtual FROM providers"
    targets = {*lookups.families, *lookups.families.values(), *known_targets()}
    names: dict[str, Iterable[str]] = {
        "package": package_counts(lookups),
        "virtual": VIRTUALS.union(row[0] for row in select(lookups.conn, virtuals)),
        "release": (record.name for record in lookups.releases.values()),
        "stack": (record.name for record in lookups.stacks.values()),
        "host": targets,
        "target": targets,
        "compiler": {*lookups.words["compiler"].values(), *lookups.compilers},
        "os": lookups.words["os"].values(),
        "platform": lookups.words["platform"].values(),
    }
    spellings: dict[str, dict[str, tuple[str, ...]]] = {kind: {} for kind in names}
    for kind, names_of_kind in names.items():
        for name in names_of_kind:
            spellings[kind][_folded(name)] = (
                *spellings[kind].get(_folded(name), ()),
                name,
            )
    return Spellings(spellings)


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-")


def package_counts(lookups: Lookups) -> dict[str, int]:
    """Return the number of binaries of each known package, by name; cached."""
    return lookups.once(
        PACKAGE_COUNTS, lambda: dict(select(lookups.conn, PACKAGE_COUNTS))
    )


def near_names(lookups: Lookups, name: str) -> tuple[str, ...]:
    """Return the names of packages near an unknown one, of those with binaries if
    possible.
    """
    counts = package_counts(lookups)
    return close_names(name, filter(counts.get, counts)) or close_names(name, counts)


def close_names(
    name: str, known: Iterable[str], similarity: float = 0.7
) -> tuple[str, ...]:
    """Return the known names that are similar to a name, then those that contain it or
    are in it.

    Case is ignored, and very short names are in too many others. `similarity` is the
    least ratio of `difflib`.
    """
    text, names = name.strip().lower(), {other.lower(): other for other in known}
    similar = difflib.get_close_matches(text, names, MOST_NEAR, similarity)
    longer = [other for other in names if text in other] if len(text) > 2 else []
    shorter = [other for other in names if len(other) > 3 and other in text]
    close = dict.fromkeys(
        (*similar, *sorted(longer, key=len), *sorted(shorter, key=len)[::-1])
    )
    return tuple(names[other] for other in close)[:MOST_NEAR]
