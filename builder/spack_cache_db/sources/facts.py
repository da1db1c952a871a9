"""Columns: the common form of all sources.

Repeated texts and records are stored once (`Texts`), and tables of numbers refer to
them (`TABLES`). A reader fills a `Writer`; worker processes send its `Columns` to their
parent. Numbers count from 1; 0 means that the source does not give the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spack_cache_db.errors import Fault
from spack_cache_db.model import Problem

Stacks = tuple[str, ...]
"""A set of stacks: sorted, each once."""

FORMS = PUBLISHED, LISTED, NAMED = "site", "list", "names"
"""Forms of package data, the richest first: a file of the packages site, an entry of
the list that Spack prints, and a name alone.
"""


class PageFacts(NamedTuple):
    """The package of a page, and the era of its format."""

    package: str
    format: str


class IndexFacts(NamedTuple):
    """The facts of an index as a document.

    `format` is the version of its database, or the layout of a mirror's spec files.
    `whole` is the location of the mirror or index with all binaries of the release and
    stack; None for a single spec file. `is_named` is true if the release of an
    installation was given by name. `is_signed` is true for a mirror whose binaries are
    signed, false for one without signatures, and None if they differ or nothing shows
    it. `settings` are the properties of a mirror in `mirrors.yaml` that its users need
    (`indexes.settings_of`), as JSON; None without any.
    """

    stack: str
    format: str
    url: str | None
    whole: str | None
    is_installed: bool = False
    is_named: bool = False
    is_signed: bool | None = None
    settings: str | None = None


SPEC_FILE = "spec file "
"""Start of the format of an index that is one spec file; its version follows."""


class Origin(NamedTuple):
    """The options with which the database at a location was built; `recipes` are
    URLs.
    """

    location: str
    first: str | None
    recipes: Mapping[str, str]
    without_paths: bool


class Document(NamedTuple):
    """A piece of the input about one release: a page, or the index of a mirror.

    `location` is the path as the user would type it, for messages; `path` is the path
    within the input, which goes into the database. A page has `page`, and an index has
    `index_facts`. `is_copy` is true in a snapshot that `build --snapshot` made: its
    binaries are in the mirror of the release that it copies.
    """

    location: str
    path: str
    sha256: str
    release: str
    problems: tuple[Problem, ...] = ()
    page: PageFacts | None = None
    index_facts: IndexFacts | None = None
    is_copy: bool = False


class Refusal(NamedTuple):
    """A document, or a file of package data, that contradicts another one and is left
    out.

    The message is the path of `known` between `before` and `after`.
    """

    refused: Document | PackageFacts
    known: Document | PackageFacts
    before: str
    after: str

    @property
    def fault(self) -> Fault:
        """The fault, with paths as the user would type them."""
        return Fault(
            self.refused.location, 0, f"{self.before} {self.known.location}{self.after}"
        )

    @property
    def recorded(self) -> tuple[str, str]:
        """The path within the input and the message; neither depends on the input's
        location.
        """
        return self.refused.path, f"{self.before} {self.known.path}{self.after}"


class NodeFacts(NamedTuple):
    """The facts of a node beyond its configuration and its dependencies; many specs
    share one.

    `parameters` (variants and compiler flags) and `external` (its path and modules) are
    JSON with sorted keys. `has_compiler` is true for nodes that name their compiler
    instead of depending on it, and `is_before_1_0` for all that Spack before 1.0
    concretized (spec format below 5).
    """

    namespace: str
    package_hash: str | None
    parameters: str
    external: str | None
    has_compiler: bool
    is_before_1_0: bool


class Install(NamedTuple):
    """An installed spec: its prefix, whether it was installed explicitly, and the time
    in UTC.
    """

    prefix: str | None
    explicit: bool | None
    installed_at: str | None


class ModuleFacts(NamedTuple):
    """An environment module, with the path of the file that lists it.

    `release` is that of its installation, None if there is only one; `compiler` is in
    the name of its folder, and `tree` is the folder of modules that contains it. A list
    without the hash of the spec has its package and version. `module avail` leaves out
    hidden modules. `parents` is a JSON list of alternatives, each a list of the modules
    that must be loaded first; None if none.
    """

    path: str
    release: str | None
    name: str
    compiler: str | None
    tree: str | None
    hash: str | None = None
    package: str = ""
    version: str = ""
    is_hidden: bool = False
    parents: str | None = None


class Tarball(NamedTuple):
    """The stored part of a URL: all of it, or only the mirror's prefix."""

    url: str
    is_whole: bool


class KnownVersion(NamedTuple):
    """A version of a package; `is_deprecated` is None if unknown."""

    is_deprecated: bool | None
    is_branch: bool


class KnownVariant(NamedTuple):
    """A variant of a package: its default (a text, or whether it is on) and its
    description.
    """

    default: str | bool
    description: str


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """The content of one file about a package; `path` and `location` as in `Document`.

    `texts` are by column of `known_packages`, `dependencies` have their types, which
    are empty if unknown, and `descriptions` are those of other packages.
    """

    location: str
    path: str
    form: str
    name: str
    texts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, KnownVersion] = field(default_factory=dict)
    variants: Mapping[str, KnownVariant] = field(default_factory=dict)
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dependents: tuple[str, ...] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def content(self) -> PackageFacts:
        """The facts without the fields that depend on the file's path or on other
        files.
        """
        return replace(self, location="", path="", problems=())
