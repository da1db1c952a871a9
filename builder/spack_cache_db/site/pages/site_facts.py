"""Facts about the database that every page shows: title, owner, license, age, form options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from spack_cache_db.query.database import Lookups, filled_tables
from spack_cache_db.query.installation import Origin, read_origin
from spack_cache_db.query.totals import newest_snapshot
from spack_cache_db.site.pages.filters import hosts_of, value_of

LICENSE = {"license": "Apache-2.0", "license_url": "https://www.apache.org/licenses/LICENSE-2.0"}
"""The license of Spack's public build cache."""
Groups = Mapping[str, tuple[str, ...]]


class Noun(NamedTuple):
    """The word for a listed spec, and whether all specs are installed."""

    one: str
    many: str
    is_installed: bool


BINARY = Noun("binary", "binaries", is_installed=False)
INSTALLED_SPEC = Noun("spec", "specs", is_installed=True)
BINARY_OR_INSTALLED = Noun("spec", "specs", is_installed=False)


class FormChoices(NamedTuple):
    """The options of the forms on all pages.

    Targets of binaries are grouped by family, and machines that can run a binary by maker.
    """

    releases: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    targets: Groups = MappingProxyType({})
    compilers: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    hosts: Groups = MappingProxyType({})
    has_trees: bool = False
    has_package_data: bool = False


def read_choices(lookups: Lookups) -> FormChoices:
    """Return the options of the forms."""
    compilers = {value_of("compiler", word) for word in lookups.words["compiler"].values()}
    targets: dict[str, tuple[str, ...]] = {}
    for name, family in sorted(lookups.families.items(), key=lambda item: (item[1], item[0])):
        targets[family] = (*targets.get(family, ()), name)
    return FormChoices(
        releases=tuple(release.name for release in lookups.releases.values()),
        stacks=tuple(stack.name for stack in lookups.stacks.values()),
        targets=targets,
        compilers=tuple(sorted(compilers)),
        systems=tuple(sorted(lookups.words["os"].values())),
        hosts=hosts_of(lookups.families),
        has_trees=bool(lookups.trees()),
        has_package_data="known_packages" in filled_tables(lookups.conn),
    )


class SiteFacts(NamedTuple):
    """The facts about the database that every page shows.

    `newest` is the day of the newest snapshot, YYYY-MM-DD.
    """

    origin: Origin
    title: str
    newest: str | None = None
    noun: Noun = BINARY
    choices: FormChoices = FormChoices()

    @property
    def words(self) -> dict[str, object]:
        """The facts by their names in templates."""
        return {
            "choices": self.choices,
            "newest_snapshot": self.newest,
            "noun": self.noun,
            "site_title": self.title,
        }

    @property
    def described(self) -> dict[str, str]:
        """Title, description, source and license, by the keys of Datasette's metadata."""
        origin = self.origin
        verb = "has" if self.noun.is_installed else "lists"
        metadata = {
            "title": self.title,
            "description": (
                f"Every {self.noun.one} that {origin.owner} {verb}, release by release: search,"
                " filter, run SQL queries, or download the whole database."
            ),
            "source": origin.owner,
            "source_url": origin.url or "",
            **(LICENSE if origin.is_public else {}),
        }
        return {key: value for key, value in metadata.items() if value}


NO_FACTS = SiteFacts(
    Origin("Spack build cache", "", url=None, is_public=False), "Spack build cache"
)
"""The facts of a site without a catalogue."""


def read_site_facts(lookups: Lookups, metadata: Mapping[str, object]) -> SiteFacts:
    """Return the facts that every page shows; a title in the metadata takes precedence."""
    origin = read_origin(lookups.conn)
    noun = BINARY_OR_INSTALLED if lookups.trees() else BINARY
    noun = INSTALLED_SPEC if lookups.is_installed else noun
    title = str(metadata.get("title") or origin.title)
    return SiteFacts(origin, title, newest_snapshot(lookups), noun, read_choices(lookups))
