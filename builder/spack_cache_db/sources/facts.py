"""The records into which all sources are read.

A source is a page, an index of a mirror or an installation, a list of environment
modules, package data, or a database of an earlier build. Its reader makes these records
and fills a `Writer` (`sources.writer`), which stores repeated ones once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spack_cache_db.errors import Fault
from spack_cache_db.model import Problem

Stacks = tuple[str, ...]
"""A set of stacks: sorted, each once."""


# Documents.


class PageFacts(NamedTuple):
    """A document that is a page: its package, and the era of its format."""

    package: str
    format: str


class IndexFacts(NamedTuple):
    """A document that is an index.

    Attributes:
        stack: the stack whose binaries it lists.
        format: the version of its database, such as "8"; or `spec file 4` for a single
            spec file, and `spec files, layout 3` for a mirror of them.
        url: the URL of the mirror; None if unknown.
        whole: the location of the mirror or index with all binaries of the release and
            stack; None for a single spec file.
        is_installed: whether it is the index of an installation.
        is_named: whether the release of an installation was given by name.
        is_signed: whether the binaries of a mirror are signed; None if they differ or
            nothing shows it.
        settings: the properties of a mirror in `mirrors.yaml` that its users need, as
            JSON (`indexes.addresses.settings_of`); None without any.
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


class Document(NamedTuple):
    """A piece of the input about one release: a page, or the index of a mirror.

    Attributes:
        location: the path as the user would type it, for messages.
        path: the path within the input, which goes into the database.
        sha256: the checksum of its content.
        release: the release.
        problems: inconsistencies in it.
        page: the facts of a page; None for an index.
        index_facts: the facts of an index; None for a page.
        is_copy: true in a snapshot that `build --snapshot` made; its binaries are in
            the mirror of the release that it copies.
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
    """A document, or a file of package data, that is left out of a build because it
    contradicts another one.

    The message about it is the path of `known`, the other one, between `before` and
    `after`.
    """

    refused: Document | PackageFacts
    known: Document | PackageFacts
    before: str
    after: str

    @property
    def fault(self) -> Fault:
        """The fault, with paths as the user would type them."""
        message = f"{self.before} {self.known.location}{self.after}"
        return Fault(self.refused.location, 0, message)

    @property
    def recorded(self) -> tuple[str, str]:
        """The path and the message for the database.

        Both have paths within the input, so that they are the same wherever it is.
        """
        message = f"{self.before} {self.known.path}{self.after}"
        return self.refused.path, message


class Origin(NamedTuple):
    """The options with which a database was built, for a source that is a database.

    Attributes:
        location: the path of the database, for messages.
        first: the release that stands before all others; None if none was chosen.
        recipes: the URLs of recipes, by namespace.
        without_paths: whether the paths of installations were left out.
    """

    location: str
    first: str | None
    recipes: Mapping[str, str]
    without_paths: bool


# Specs of indexes.


class NodeFacts(NamedTuple):
    """The facts in a record of an index beyond configuration and dependencies.

    Many specs have the same.

    Attributes:
        namespace: the repository of the recipe.
        package_hash: the hash of the recipe.
        parameters: variants and compiler flags, as JSON with sorted keys.
        external: the path and the modules of an external, as JSON with sorted keys;
            None for a package that Spack built.
        has_compiler: whether the record names its compiler, instead of having it as a
            dependency.
        is_before_1_0: whether Spack before 1.0 concretized it (spec format below 5).
    """

    namespace: str
    package_hash: str | None
    parameters: str
    external: str | None
    has_compiler: bool
    is_before_1_0: bool


class Install(NamedTuple):
    """How a spec is installed.

    Attributes:
        prefix: the folder of the installed package.
        explicit: whether somebody asked for it, and not only another package.
        installed_at: the time in UTC, such as `2025-01-31 12:00:00`.
    """

    prefix: str | None
    explicit: bool | None
    installed_at: str | None


class Tarball(NamedTuple):
    """The stored part of a tarball's URL: all of it, or only the mirror's prefix."""

    url: str
    is_whole: bool


# Environment modules.


class ModuleFacts(NamedTuple):
    """An environment module.

    Attributes:
        path: the path of the file that lists it, within the input.
        release: that of its installation; None if there is only one.
        name: the name that `module load` takes.
        compiler: the compiler in the name of its folder, such as `gcc@13.2.0`.
        tree: the folder of modules that contains it.
        hash: the hash of its spec; None if the list does not have it.
        package: the package, for a module without a hash.
        version: the version, for a module without a hash.
        is_hidden: whether `module avail` leaves it out.
        parents: a JSON list of alternatives, each a list of the modules that must be
            loaded first; None if there are none.
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


# Package data: what recipes say about packages.

PUBLISHED = "site"
CATALOGUED = "repology"
LISTED = "list"
NAMED = "names"
FORMS = (PUBLISHED, CATALOGUED, LISTED, NAMED)
"""Forms of package data, the richest first: a file of the packages site, an entry of
the file that the site publishes for Repology, one of the list that Spack prints, and a
name alone.
"""


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


class KnownLicense(NamedTuple):
    """A license of a package, such as `MIT`, and the spec of the binaries that have it.

    The condition is the `when` of the recipe, such as `@:2`; None for all binaries.
    """

    license: str
    condition: str | None


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """The content of one file about a package.

    Attributes:
        location: as in `Document`.
        path: as in `Document`.
        form: one of `FORMS`.
        name: the name of the package.
        texts: its description, homepage and so on, by column of `known_packages`.
        versions: its versions, by name.
        variants: its variants, by name.
        dependencies: the types of its dependencies, by name; empty if unknown.
        dependents: the packages that depend on it.
        descriptions: the descriptions of other packages that the file has.
        maintainers: the accounts of the people who maintain the recipe, sorted.
        licenses: its licenses, sorted.
        tags: the tags of the recipe, such as `e4s`, sorted.
        problems: inconsistencies in it.
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
    maintainers: tuple[str, ...] = ()
    licenses: tuple[KnownLicense, ...] = ()
    tags: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def content(self) -> PackageFacts:
        """The facts without the fields that depend on the file.

        The same package in two files has equal content. Problems are left out, because
        a file reports an unknown key only once, for its first package.
        """
        return replace(self, location="", path="", problems=())
