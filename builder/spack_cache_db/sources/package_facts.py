"""What package data says of one package: the form in which both kinds of such files meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spack_cache_db.records import Problem

PUBLISHED, LISTED, NAMED = "site", "list", "names"
"""The forms, the richest first: a file of the packages site, a member of the list that Spack
prints, and a name of which nothing else is said."""

FORMS = (PUBLISHED, LISTED, NAMED)


class KnownVersion(NamedTuple):
    """A version of a package.

    `is_deprecated` is None where the source does not say it; `is_branch` says that a branch is
    named for it; `rest` has what else the source says of it, such as its checksum.
    """

    is_deprecated: bool | None
    is_branch: bool
    rest: Mapping[str, Any]


class KnownVariant(NamedTuple):
    """A variant of a package: its default, a text or whether it is on, and what it means."""

    default: str | bool
    description: str


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """What one file says of a package.

    Attributes:
        location: the file's path as the user would type it.
        path: its name within the input.
        form: one of `FORMS`.
        name: that of the package.
        texts: texts by the column of `known_packages` that has them.
        versions: versions by name.
        variants: variants by name.
        dependencies: the types of each dependency by its name, empty where they are not told.
        dependents: the names of the packages that depend on this one.
        descriptions: what is said of other packages, by name.
        absent: the keys that a file of this form has and this one does not.
        keys: the values of whole keys that the fields above cannot give back.
        problems: what does not add up in it.
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
    absent: tuple[str, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
