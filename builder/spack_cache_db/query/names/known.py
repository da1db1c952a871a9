"""What a database knows of a name that a person typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.pasted.lines import pasted_spec
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.errors import BuilderError, counted
from spack_cache_db.query.names.spellings import near_names, read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.query.stored.gone import Gone, gone_of_package
from spack_cache_db.query.stored.graph import KNOWN_AS_DEPENDENCY
from spack_cache_db.spack.legacy import todays_spec

NAME = """
SELECT packages.spec_count, packages.release_count,
  EXISTS (SELECT 1 FROM known_packages WHERE known_packages.name = asked.name),
  coalesce(packages.spec_count, 1) = 0 AND EXISTS (
    SELECT 1 FROM configurations JOIN specs ON specs.configuration = configurations.id
    WHERE configurations.package = packages.id AND specs.is_external)
FROM (SELECT :name AS name) AS asked LEFT JOIN packages ON packages.name = asked.name
"""
Kind = Literal[
    "binary", "gone", "external", "dependency", "page", "recipe", "virtual", "unknown"
]
NO_BINARY = "no binary of it is in this database"
NOT_INSTALLED = "it is not installed"
_TEXTS: dict[Kind, str] = {
    "external": "external",
    "dependency": KNOWN_AS_DEPENDENCY,
    "page": "named by a page",
    "recipe": "Spack has this package",
}
MOST_HASHES = 5
"""Number of hashes in an error about an ambiguous prefix."""


class UnknownHashError(BuilderError):
    """No hash, or more than one, begins with a text."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """The meaning of a name in a database.

    The kind is `binary` if a binary has the name, and `gone` if its mirror has lost all
    binaries with the name, which `gone` counts. Otherwise it is `external` or
    `dependency` if an index has a record of such a spec, `page` if a page has the name,
    `recipe` if Spack has the package, `virtual`, or `unknown`. `others` are the
    providers of a virtual package, or the names near an unknown one.
    """

    name: str
    kind: Kind
    spec_count: int = 0
    others: tuple[str, ...] = ()
    is_installed: bool = False
    gone: Gone | None = None

    @property
    def text(self) -> str:
        """The meaning as text, without the name."""
        if self.kind == "binary":
            return counted(self.spec_count, "binary", "binaries")
        if self.gone is not None:
            return self.gone.of_package
        if self.kind == "virtual":
            return (
                f"a virtual package, known to be provided by {', '.join(self.others)}"
            )
        if self.kind == "unknown":
            return unknown_text(self.others)
        return (
            f"{_TEXTS[self.kind]}, {NOT_INSTALLED if self.is_installed else NO_BINARY}"
        )

    @property
    def sentence(self) -> str:
        """The name and its meaning."""
        return f"{self.name}: {self.text}"


def unknown_text(near: Sequence[str]) -> str:
    """Return the text for an unknown name, with the names near it."""
    return "no package has this name" + (f" (near: {', '.join(near)})" if near else "")


def known_name(lookups: Lookups, name: str, *, with_near: bool = True) -> KnownName:
    """Return the meaning of a name in exactly this spelling."""
    ((specs, releases, is_recipe, is_external),) = select(lookups.conn, NAME, name=name)
    if specs:
        return KnownName(name, "binary", specs)
    gone = gone_of_package(lookups.conn, name) if releases else None
    if gone is not None:
        return KnownName(name, "gone", gone=gone)
    if releases is not None or is_recipe:
        kind: Kind = (
            "recipe" if releases is None else "page" if releases else "dependency"
        )
        kind = "external" if is_external else kind
        return KnownName(name, kind, is_installed=lookups.is_installed)
    if providers := lookups.providers.get(name, ()):
        return KnownName(name, "virtual", others=providers)
    return KnownName(
        name, "unknown", others=near_names(lookups, name) if with_near else ()
    )


def spec_of_hash(lookups: Lookups, text: str) -> int:
    """Return the id of the spec whose hash begins with a text, which may have a `/`
    before it.

    Raises UnknownHashError if none begins so, or several do.
    """
    prefix = text.lower().removeprefix("/")
    specs = specs_beginning(lookups.conn, prefix, MOST_HASHES + 1) if prefix else {}
    if not specs:
        meaning = known_name(lookups, text)
        advice = "`find SPEC --hashes` lists hashes"
        sentence = f" {meaning.sentence};" if meaning.kind != "unknown" else ""
        raise UnknownHashError(
            f"no hash in this database begins with {text!r};{sentence} {advice}"
        )
    if len(specs) > 1:
        hashes = ", ".join([*specs.values()][:MOST_HASHES])
        more = ", and more" if len(specs) > MOST_HASHES else ""
        raise UnknownHashError(
            f"several hashes begin with {text!r}: {hashes}{more}; give one"
        )
    return next(iter(specs))


def known_names(lookups: Lookups) -> KnownNames:
    """Return tests for the packages, virtual packages and hashes of a database, in any
    spelling.
    """
    knows = read_spellings(lookups).knows
    return KnownNames(
        lambda name: knows("package", name) or knows("virtual", name),
        lambda prefix: bool(specs_beginning(lookups.conn, prefix, 1)),
    )


def spec_in(lookups: Lookups, text: str, version: str | None = None) -> PastedSpec:
    """Return the spec in a typed or pasted text, in the syntax of Spack 1.0.

    Raises UnknownSpackVersion if `version`, for which it is written, is not a version
    of Spack.
    """
    pasted = pasted_spec(text, known_names(lookups))
    return replace(pasted, spec=todays_spec(pasted.spec, version))
