"""The meaning of a name or a hash that a person typed, in a database.

`hdf5` may have 12 binaries, be known as a dependency only, or be a virtual package; for
`hfd5`, the meaning is `no package has this name (near: hdf5)`.
"""

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
from spack_cache_db.query.stored.binary import (
    configurations_beginning,
    specs_beginning,
)
from spack_cache_db.query.stored.gone import Gone, gone_of_package
from spack_cache_db.query.stored.graph import KNOWN_AS_DEPENDENCY
from spack_cache_db.spack.legacy import todays_spec

NAME = """
SELECT packages.spec_count, packages.release_count,
  EXISTS (SELECT 1 FROM known_packages WHERE known_packages.name = typed.name),
  CASE WHEN packages.spec_count = 0 THEN EXISTS (
    SELECT 1 FROM configurations JOIN specs ON specs.configuration_id = configurations.id
    WHERE configurations.package_id = packages.id AND specs.is_external) END
FROM (SELECT :name AS name) AS typed LEFT JOIN packages ON packages.name = typed.name
"""
"""What the database has about a typed name: how many binaries and releases the package
has, NULL if it has no spec; whether package data has it; and whether it has no binary,
but an external.
"""
Kind = Literal[
    "binary", "gone", "external", "dependency", "page", "recipe", "virtual", "unknown"
]
"""The kinds of `KnownName`."""
# What is said about packages without a binary.
NO_BINARY = "no binary of it is in this database"
NOT_INSTALLED = "it is not installed"
_TEXTS: dict[Kind, str] = {
    "external": "external",
    "dependency": KNOWN_AS_DEPENDENCY,
    "page": "named by a page",
    "recipe": "Spack has this package",
}
"""The texts for packages without a binary."""
MOST_HASHES = 5
"""Maximum of hashes that an error about an ambiguous prefix lists."""


class UnknownHashError(BuilderError):
    """No hash, or more than one, begins with a text."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """The meaning of a name in a database.

    Attributes:
        kind: `binary` if a binary has the name, and `gone` if mirrors have lost all
            binaries with the name. Otherwise `external` or `dependency` if an index has
            a record of such a spec, `page` if a page has the name, `recipe` if Spack
            has the package, `virtual` for a virtual package, or `unknown`.
        spec_count: the number of binaries.
        others: the providers of a virtual package, or the names near an unknown one.
        is_installed: whether the database has only installations, and no mirror.
        gone: the binaries that mirrors have lost; None unless the kind is `gone`.
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
            providers = ", ".join(self.others)
            return f"a virtual package, known to be provided by {providers}"
        if self.kind == "unknown":
            return unknown_text(self.others)
        lacks = NOT_INSTALLED if self.is_installed else NO_BINARY
        return f"{_TEXTS[self.kind]}, {lacks}"

    @property
    def sentence(self) -> str:
        """The name and its meaning, such as `hdf5: 12 binaries`."""
        return f"{self.name}: {self.text}"


def unknown_text(near: Sequence[str]) -> str:
    """Return the text for an unknown name, with the names near it."""
    text = "no package has this name"
    if near:
        text += f" (near: {', '.join(near)})"
    return text


def known_name(lookups: Lookups, name: str, *, with_near: bool = True) -> KnownName:
    """Return the meaning of a name in exactly this spelling.

    Without `with_near`, the names near an unknown one are not looked up.
    """
    # One row; the first two numbers are None for a package that only Spack has.
    (row,) = select(lookups.conn, NAME, name=name)
    spec_count, release_count, is_recipe, is_external = row
    if spec_count:
        return KnownName(name, "binary", spec_count)

    # A release lists it, but mirrors may have lost all binaries.
    if release_count:
        gone = gone_of_package(lookups.conn, name)
        if gone is not None:
            return KnownName(name, "gone", gone=gone)

    # Packages without a binary.
    kind: Kind | None = None
    if is_external:
        kind = "external"
    elif release_count:
        kind = "page"
    elif release_count is not None:
        kind = "dependency"
    elif is_recipe:
        kind = "recipe"
    if kind is not None:
        return KnownName(name, kind, is_installed=lookups.is_installed)

    # No package has this name.
    providers = lookups.providers.get(name, ())
    if providers:
        return KnownName(name, "virtual", others=providers)
    near = near_names(lookups, name) if with_near else ()
    return KnownName(name, "unknown", others=near)


def spec_of_hash(lookups: Lookups, text: str) -> int:
    """Return the id of the spec whose hash begins with a text: `2feova4`, `/2feova4` or
    `hdf5@1.14/2feova4`.

    Raises UnknownHashError if none begins so, if several do, or if the spec is of
    another package than the text.
    """
    # Read one more than an error lists, to see whether there are more.
    name, _, prefix = text.lower().rpartition("/")
    hashes: dict[int, str] = {}
    if prefix:
        hashes = specs_beginning(lookups.conn, prefix, MOST_HASHES + 1)
    if len(hashes) == 1:
        (spec,) = hashes
        _check_package(lookups, name.partition("@")[0], hashes[spec])
        return spec

    if not hashes:
        is_word = "/" not in text
        shown = text if is_word else f"/{prefix}"
        reason = f"no hash in this database begins with {shown!r};"
        # A word may be the name of a package, or a misspelled one.
        if is_word:
            reason += f" {known_name(lookups, text).sentence};"
        raise UnknownHashError(f"{reason} `find SPEC --hashes` lists hashes")

    shown = ", ".join(list(hashes.values())[:MOST_HASHES])
    if len(hashes) > MOST_HASHES:
        shown += ", and more"
    raise UnknownHashError(f"several hashes begin with {text!r}: {shown}; give one")


def _check_package(lookups: Lookups, name: str, dag_hash: str) -> None:
    """Raise UnknownHashError if a hash is that of another package than a name.

    An empty name stands for any package.
    """
    ((_, configuration),) = configurations_beginning(lookups, dag_hash, 1)
    if name not in ("", configuration.package):
        message = f"/{dag_hash} is {configuration.package}, not {name}"
        raise UnknownHashError(message)


def known_names(lookups: Lookups) -> KnownNames:
    """Return tests for the packages, virtual packages and hashes of a database, in any
    spelling.
    """
    spellings = read_spellings(lookups)

    def is_package(name: str) -> bool:
        return spellings.knows("package", name) or spellings.knows("virtual", name)

    def is_hash(prefix: str) -> bool:
        return bool(specs_beginning(lookups.conn, prefix, 1))

    return KnownNames(is_package, is_hash)


def spec_in(lookups: Lookups, text: str, version: str | None = None) -> PastedSpec:
    """Return the spec in a typed or pasted text, in the syntax of Spack 1.0.

    Raises UnknownSpackVersion if `version`, for which it is written, is not a version
    of Spack.
    """
    pasted = pasted_spec(text, known_names(lookups))
    return replace(pasted, spec=todays_spec(pasted.spec, version))
