"""Names of packages and prefixes of hashes: what a database knows about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.query.catalogue import MOST_HASHES, specs_beginning
from spack_cache_db.query.connection import Lookups, select
from spack_cache_db.query.dependency_graph import KNOWN_AS_DEPENDENCY
from spack_cache_db.query.selection import providers_of
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.spack.pasted_specs import KnownNames

MOST_NEAR = 5
"""Similar names in one answer."""

NAME = """
SELECT packages.spec_count, packages.release_count,
  EXISTS (SELECT 1 FROM known_packages WHERE known_packages.name = asked.name),
  coalesce(packages.spec_count, 1) = 0 AND EXISTS (
    SELECT 1 FROM configurations JOIN specs ON specs.configuration = configurations.id
    WHERE configurations.package = packages.id AND specs.is_external)
FROM (SELECT :name AS name) AS asked LEFT JOIN packages ON packages.name = asked.name
"""
NAMES = """
SELECT name, spec_count > 0 FROM packages UNION ALL SELECT name, 0 FROM known_packages
"""

Kind = Literal["binary", "external", "dependency", "page", "recipe", "virtual", "unknown"]

NO_BINARY = "no binary of it is in this database"
NOT_INSTALLED = "no spec of it is installed"
_TEXTS: dict[Kind, str] = {
    "external": "external",
    "dependency": KNOWN_AS_DEPENDENCY,
    "page": "named by a page",
    "recipe": "Spack has this package",
}


class UnknownHashError(BuilderError):
    """No binary, or more than one, has a hash that begins so; the message says what to type."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """Knowledge of a database about a name.

    Attributes:
        name: the name.
        kind: `binary` if a binary has the name. Otherwise `external` or `dependency` if an index
            has a record of such a spec, `page` if a page names it, `recipe` if Spack has the
            package, `virtual` for a virtual package, and `unknown`.
        spec_count: the number of binaries.
        others: the packages that provide a virtual package, or the names near an unknown one.
        is_installed: whether the database has installations only.
    """

    name: str
    kind: Kind
    spec_count: int = 0
    others: tuple[str, ...] = ()
    is_installed: bool = False

    @property
    def text(self) -> str:
        """The knowledge in words, without the name."""
        others = ", ".join(self.others)
        if self.kind == "binary":
            return counted(self.spec_count, "binary", "binaries")
        if self.kind == "virtual":
            return f"a virtual package, known to be provided by {others}"
        if self.kind == "unknown":
            return unknown_text(self.others)
        return f"{_TEXTS[self.kind]}, {NOT_INSTALLED if self.is_installed else NO_BINARY}"

    @property
    def sentence(self) -> str:
        """The name and what is known of it."""
        return f"{self.name}: {self.text}"


def unknown_text(near: Sequence[str]) -> str:
    """Return what to say of a name that nothing has, given what is near."""
    return "no package has this name" + (f" (near: {', '.join(near)})" if near else "")


def known_name(lookups: Lookups, name: str, *, with_near: bool = True) -> KnownName:
    """Return what a database knows of a name, as it is spelled.

    Args:
        lookups: the small tables of the database.
        name: the name.
        with_near: whether to look for names near an unknown one, which takes some milliseconds.
    """
    ((specs, releases, is_recipe, is_external),) = select(lookups.conn, NAME, name=name)
    if specs:
        return KnownName(name, "binary", specs)
    if releases is not None or is_recipe:
        kind: Kind = "recipe" if releases is None else "page" if releases else "dependency"
        kind = "external" if is_external else kind
        return KnownName(name, kind, is_installed=lookups.is_installed)
    if providers := providers_of(lookups.conn, name):
        return KnownName(name, "virtual", others=providers)
    return KnownName(name, "unknown", others=near_names(lookups, name) if with_near else ())


def near_names(lookups: Lookups, name: str) -> tuple[str, ...]:
    """Return the names of packages like one that is not known: those with binaries, if any are."""
    names = lookups.once(NAMES, lambda: dict(sorted(select(lookups.conn, NAMES))))
    return close_names(name, filter(names.get, names)) or close_names(name, names)


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that are similar to a name, then those that contain it."""
    names = [*known]
    parts = [each for each in names if name in each] if len(name) > 2 else []
    similar = difflib.get_close_matches(name, names, MOST_NEAR, cutoff=0.7)
    return tuple(dict.fromkeys((*similar, *sorted(parts, key=len))))[:MOST_NEAR]


def spec_of_hash(lookups: Lookups, text: str) -> int:
    """Return the id of the one spec whose hash begins so; a `/` may stand before it.

    Raises:
        UnknownHashError: no hash begins so, or several do.
    """
    prefix = text.lower().removeprefix("/")
    found = specs_beginning(lookups.conn, prefix, MOST_HASHES + 1) if prefix else {}
    if not found:
        known = known_name(lookups, text)
        advice = "`find SPEC --hashes` lists hashes"
        named = f" {known.sentence};" if known.kind != "unknown" else ""
        raise UnknownHashError(f"no hash in this database begins with {text!r};{named} {advice}")
    if len(found) > 1:
        shown = ", ".join([*found.values()][:MOST_HASHES])
        more = ", and more" if len(found) > MOST_HASHES else ""
        raise UnknownHashError(f"several hashes begin with {text!r}: {shown}{more}; give one")
    return next(iter(found))


def known_names(lookups: Lookups) -> KnownNames:
    """Return the packages and hashes of a database.

    A package is known if the database has a binary of it, if it is a dependency of one, or if the
    package data of the database names it; so are virtual packages. Names may have any spelling.
    """
    spellings = read_spellings(lookups)

    def is_package(name: str) -> bool:
        return spellings.knows("package", name) or spellings.knows("virtual", name)

    def is_hash(prefix: str) -> bool:
        return bool(specs_beginning(lookups.conn, prefix, 1))

    return KnownNames(is_package, is_hash)
