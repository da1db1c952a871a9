"""What every page needs to know of the file: title, owner, license, age, and what forms offer.

It is read once, when the server starts. A metadata file takes precedence over the file's own title
and license.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from spack_cache_db.query.connection import Lookups, read_lookups
from spack_cache_db.query.installation import Origin, read_origin
from spack_cache_db.site.catalogues import NoCatalogue, published
from spack_cache_db.site.pages.filters import hosts_of, value_of
from spack_cache_db.site.pages.home import newest_snapshot
from spack_cache_db.site.pages.lag import has_package_data

LICENSE = {"license": "Apache-2.0", "license_url": "https://www.apache.org/licenses/LICENSE-2.0"}
"""The license of Spack's public build cache."""


@dataclass(frozen=True, slots=True)
class Noun:
    """What pages call a spec that is listed, and several.

    Attributes:
        is_installed: whether all of them are installed, and nothing comes from a build cache.
    """

    one: str
    many: str
    is_installed: bool


BINARY = Noun("binary", "binaries", is_installed=False)
INSTALLED_SPEC = Noun("spec", "specs", is_installed=True)


@dataclass(frozen=True, slots=True)
class FormChoices:
    """What the forms of all pages offer.

    Attributes:
        releases: the names of all releases, in the file's order.
        targets: the targets of binaries, by family.
        compilers: compilers as filters ask for them.
        hosts: the CPU targets of machines on which something runs, by family.
        has_trees: whether the file has installed trees.
        has_package_data: whether packages can be compared with Spack's.
    """

    releases: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compilers: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_trees: bool = False
    has_package_data: bool = False


def read_choices(lookups: Lookups) -> FormChoices:
    """Return what forms offer."""
    compilers = {value_of("compiler", each) for each in lookups.words["compiler"].values()}
    targets: dict[str, list[str]] = {}
    for name, family in sorted(lookups.families.items()):
        targets.setdefault(family, []).append(name)
    return FormChoices(
        releases=tuple(each.name for each in lookups.releases.values()),
        stacks=tuple(each.name for each in lookups.stacks.values()),
        targets={family: tuple(targets[family]) for family in sorted(targets)},
        compilers=tuple(sorted(compilers)),
        systems=tuple(sorted(lookups.words["os"].values())),
        hosts=hosts_of(lookups.families),
        has_trees=bool(lookups.trees()),
        has_package_data=has_package_data(lookups.conn),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """What every page shows of the file.

    Attributes:
        origin: whose build cache it is.
        newest: the day of the newest snapshot, YYYY-MM-DD.
        noun: what it lists.
        choices: what forms offer.
    """

    origin: Origin
    newest: str | None
    noun: Noun
    choices: FormChoices = field(hash=False)


NOTHING = Identity(
    Origin("Spack build cache", "", url=None, is_public=False), None, BINARY, FormChoices()
)
"""What a site shows that has no file."""

_identities: WeakKeyDictionary[Any, Identity] = WeakKeyDictionary()


def read_identity(conn: sqlite3.Connection) -> Identity:
    """Return what every page shows of a file."""
    lookups = read_lookups(conn)
    noun = INSTALLED_SPEC if lookups.is_installed else BINARY
    return Identity(read_origin(conn), newest_snapshot(lookups), noun, read_choices(lookups))


async def learn(datasette: Any) -> None:
    """Read the identity of the published file, and give Datasette 1.0 its metadata.

    Datasette 0.65 asks for its metadata by a hook.
    """
    try:
        found = await published(datasette).execute_fn(read_identity)
    except (NoCatalogue, sqlite3.Error):
        # It shows no file, or none of ours: then Datasette shows its tables, and our pages say what
        # is wrong.
        return
    is_told = hasattr(datasette, "set_instance_metadata")
    said = await datasette.get_instance_metadata() if is_told else datasette.metadata()
    title = str(said.get("title") or found.origin.title)
    _identities[datasette] = replace(found, origin=replace(found.origin, title=title))
    if is_told:
        await _tell(datasette, published(datasette).name, described(identity_of(datasette)))


async def _tell(datasette: Any, database: str, told: dict[str, str]) -> None:
    """Tell Datasette 1.0, whose databases take nothing over from what is said of the whole site."""
    known = await datasette.get_instance_metadata()
    known |= await datasette.get_database_metadata(database)
    for key, value in told.items():
        if key in known:
            continue
        await datasette.set_instance_metadata(key, value)
        if key not in ("title", "description"):
            await datasette.set_database_metadata(database, key, value)


def identity_of(datasette: Any) -> Identity:
    """Return what every page of a site shows; `NOTHING` without a file."""
    return _identities.get(datasette, NOTHING)


@lru_cache(maxsize=8)
def described(found: Identity) -> dict[str, str]:
    """Return title, description, source and license of a site, by the keys of Datasette's metadata.

    Datasette asks for them some 400 times for its list of tables.
    """
    if found is NOTHING:
        return {}
    origin = found.origin
    verb = "has" if found.noun.is_installed else "lists"
    listed = f"Every {found.noun.one} that {origin.owner} {verb}"
    told = {
        "title": origin.title,
        "description": (
            f"{listed}, release by release: search it, filter it, "
            "ask it in SQL, or download the whole file."
        ),
        "source": origin.owner,
        "source_url": origin.url or "",
        **(LICENSE if origin.is_public else {}),
    }
    return {key: value for key, value in told.items() if value}
