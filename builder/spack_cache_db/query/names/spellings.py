"""The spellings of the names in a database: `E4S` is the stack `e4s`.

Two texts spell the same name if they differ only in capitals, in `_` for `-`, and in
blanks around them. Then they have the same folded form: that of ` My_Stack ` is
`my-stack`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import grouped
from spack_cache_db.query.stored.recipe_facts import RECIPE_KINDS, packages_with
from spack_cache_db.spack.facts import VIRTUALS
from spack_cache_db.spack.targets import known_targets

_KINDS_OF_DEPENDENCY = ("package", "virtual", "compiler")
"""The kinds of names that a dependency may have."""
_TARGET = re.compile(r"[^:,]+")
"""A target in a range or a list, such as `zen2:zen4`."""
MOST_NEAR = 5
"""Maximum of similar names in one answer."""
SIMILARITY = 0.7
"""The least ratio of `difflib` of similar names, 1 for equal ones."""
PACKAGE_COUNTS = """
SELECT name, spec_count FROM packages
UNION ALL SELECT name, 0 FROM known_packages WHERE name NOT IN (SELECT name FROM packages)
ORDER BY name
"""
"""All packages with binaries or in package data, and the number of their binaries."""
_VIRTUALS = "SELECT DISTINCT virtual FROM providers"
NamesBySpelling = Mapping[str, tuple[str, ...]]
"""The names of one kind by their folded form, such as `{"a-b": ("a_b", "a-b")}`."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The names of a database, by kind and by their folded form.

    Kinds are the fields of a URL (`package`, `release`, `stack`, `host`, `target`,
    `os`, `platform`, `compiler`, `hash`, `maintainer`, `license`, `tag`), `virtual` for
    a virtual package, `dependency`
    for a package, compiler or virtual package, and `side` for a release, or a release
    and a stack (`develop:e4s`).

    Attributes:
        names: the names of each kind; `hash`, `dependency` and `side` have no names of
            their own.
    """

    names: Mapping[str, NamesBySpelling]

    def canonical(self, kind: str, text: str) -> str:
        """Return the name of a kind that a text spells; the text if it spells none or
        several.

        A target may be a range or a list, and a hash the beginning of one.
        """
        if kind == "hash":
            return text.lower()
        if kind == "side":
            return self._side(text)
        if kind == "target":
            # Each target of a range or a list is a name.
            return _TARGET.sub(lambda match: self._name(kind, match[0]), text)
        return self._name(kind, text)

    def _side(self, text: str) -> str:
        """Return a release, or a release and a stack, such as `develop:e4s`."""
        release, colon, stack = text.rpartition(":")
        name = self._name("release", text)
        # A release may have a colon in its name.
        if not colon or name != text:
            return name
        return f"{self._name('release', release)}:{self._name('stack', stack)}"

    def _name(self, kind: str, text: str) -> str:
        """Return the one name of a kind that a text spells, or the text itself."""
        kinds = _KINDS_OF_DEPENDENCY if kind == "dependency" else (kind,)
        folded = _folded(text)
        names: set[str] = set()
        for name_kind in kinds:
            names_of_kind = self.names.get(name_kind, {})
            names.update(names_of_kind.get(folded, ()))
        # The text itself may be one of several names of this spelling.
        is_name = text in names
        if is_name or len(names) != 1:
            return text
        (name,) = names
        return name

    def knows(self, kind: str, text: str) -> bool:
        """Return whether a text spells a name of this kind."""
        return _folded(text) in self.names[kind]

    def notes(self, names: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return a note on each text that is another spelling of a name, such as `E4S
        is read as e4s`.

        Args:
            names: pairs of a kind and a text; a text of None is passed over.
        """
        notes = []
        for kind, text in names:
            if text:
                name = self.canonical(kind, text)
                if name != text:
                    notes.append(f"{text} is read as {name}")
        return notes


def read_spellings(lookups: Lookups) -> Spellings:
    """Return the spellings of all names in a database; cached."""
    return lookups.once(Spellings, lambda: _read_spellings(lookups))


def _read_spellings(lookups: Lookups) -> Spellings:
    # Collect the names of each kind.
    words = lookups.words
    listed_virtuals = {virtual for (virtual,) in select(lookups.conn, _VIRTUALS)}
    targets = {*lookups.families, *lookups.families.values(), *known_targets()}
    names_of_kinds: dict[str, Iterable[str]] = {
        "package": package_counts(lookups),
        "virtual": VIRTUALS | listed_virtuals,
        "release": [release.name for release in lookups.releases.values()],
        "stack": [stack.name for stack in lookups.stacks.values()],
        "host": targets,
        "target": targets,
        "compiler": {*words["compiler"].values(), *lookups.compilers},
        "os": words["os"].values(),
        "platform": words["platform"].values(),
        **{kind: packages_with(lookups, kind) for kind in RECIPE_KINDS},
    }
    # Group them by their folded form.
    spellings: dict[str, NamesBySpelling] = {}
    for kind, names in names_of_kinds.items():
        pairs = [(_folded(name), name) for name in names]
        spellings[kind] = grouped(pairs)
    return Spellings(spellings)


def _folded(text: str) -> str:
    """Return the folded form of a text, which all spellings of a name share."""
    return text.strip().lower().replace("_", "-")


def package_counts(lookups: Lookups) -> dict[str, int]:
    """Return the number of binaries of each package by its name, 0 for packages of
    package data without one; cached.
    """
    return lookups.once(
        PACKAGE_COUNTS, lambda: dict(select(lookups.conn, PACKAGE_COUNTS))
    )


def near_names(lookups: Lookups, name: str) -> tuple[str, ...]:
    """Return the names of packages near an unknown one, of those with binaries if
    possible.
    """
    counts = package_counts(lookups)
    with_binaries = [package for package, count in counts.items() if count]
    return close_names(name, with_binaries) or close_names(name, counts)


def close_names(
    name: str, known: Iterable[str], similarity: float = SIMILARITY
) -> tuple[str, ...]:
    """Return the known names that are similar to a name, then those that contain it or
    are in it.

    Case is ignored. `similarity` is the least ratio of `difflib`, 1 for equal names.

    >>> close_names("torch", ["zlib", "py-torchvision", "py-torch", "tor"])
    ('py-torch', 'tor', 'py-torchvision')
    """
    text = name.strip().lower()
    names = {known_name.lower(): known_name for known_name in known}
    similar = difflib.get_close_matches(text, names, MOST_NEAR, similarity)

    # Longer names that contain the text: the shortest first. One or two letters are in
    # too many names.
    longer: list[str] = []
    if len(text) > 2:
        longer = [other for other in names if text in other]
        longer.sort(key=len)

    # Shorter names that are in the text: the longest first. Names of up to three
    # letters are in too many texts.
    shorter = [other for other in names if len(other) > 3 and other in text]
    shorter.sort(key=len)
    shorter.reverse()

    close = dict.fromkeys([*similar, *longer, *shorter])
    return tuple(names[other] for other in close)[:MOST_NEAR]
