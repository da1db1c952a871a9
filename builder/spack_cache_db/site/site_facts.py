"""Facts about the database that every page shows: title, owner, license, age, form
options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from spack_cache_db.data_source import LICENSE_ROW, LICENSE_URLS
from spack_cache_db.query.open.lookups import Lookups, filled_tables, has_records
from spack_cache_db.query.rows import grouped
from spack_cache_db.query.stored.origin import origin_facts, read_origin
from spack_cache_db.query.stored.recipe_facts import packages_with
from spack_cache_db.query.stored.totals import (
    newest_snapshot,
    packages_with_binaries,
)
from spack_cache_db.site.filters import LABELS, value_of
from spack_cache_db.site.words import BINARIES, vocabulary_of
from spack_cache_db.spack.targets import hosts_of


class SiteFacts(NamedTuple):
    """The facts that every page shows.

    Attributes:
        variables: values by their names in templates, such as `site_title`.
        metadata: what the database says of itself, by Datasette's keys for metadata,
            such as `license_url`.
    """

    variables: Mapping[str, object]
    metadata: Mapping[str, str]


NO_FACTS = SiteFacts(
    variables={
        # The search form of every page has the machines.
        "choices": {"hosts": {}},
        "labels": LABELS,
        "site_title": "Spack build cache",
        # The vocabulary: what is listed are binaries.
        "words": BINARIES,
    },
    metadata={},
)
"""The facts of a site without a database that can be read."""


def read_site_facts(lookups: Lookups, metadata: Mapping[str, object]) -> SiteFacts:
    """Return the facts that every page shows.

    Args:
        lookups: the small tables of the database.
        metadata: the owner's metadata of the whole site, whose title takes precedence.
    """
    origin = read_origin(lookups.conn)
    title = str(metadata.get("title") or origin.title)

    # If all releases are installations, pages have the words of installations. If only
    # some are, pages have those of build caches, but speak of specs: an installed spec
    # need not have a binary.
    words = vocabulary_of(lookups.is_installed)
    if lookups.trees():
        words = replace(words, one="spec", many="specs")
    verb = "has" if words.is_installed else "lists"

    # What the templates use.
    variables = {
        "choices": read_choices(lookups),
        "labels": {**LABELS, "release": words.place.capitalize()},
        "newest_snapshot": newest_snapshot(lookups),
        "package_count": f"{packages_with_binaries(lookups.conn):,}",
        "site_title": title,
        "words": words,
    }
    # What Datasette uses. Only the license of Spack's public build cache is known.
    license = origin_facts(lookups.conn).get(LICENSE_ROW, "")
    described = {
        "title": title,
        "description": (
            f"Every {words.one} that {origin.owner} {verb}, "
            f"{words.place} by {words.place}: search, filter, run SQL queries, "
            "or download the whole database."
        ),
        "source": origin.owner,
        "source_url": origin.url or "",
        "license": license,
        "license_url": LICENSE_URLS.get(license, ""),
    }
    # Datasette shows a link for an empty address.
    filled = {key: value for key, value in described.items() if value}
    return SiteFacts(variables, filled)


def read_choices(lookups: Lookups) -> dict[str, object]:
    """Return the options of the forms on all pages, by their names in templates.

    Targets of binaries are grouped by family, such as `{"x86_64": ["zen2", "zen3"]}`,
    and machines that can run a binary (`hosts`) by maker.
    """
    # The texts of a column, by id. A compiler without a version is `gcc@` in the form,
    # because the filter `gcc` means all versions.
    compiler_names = lookups.words["compiler"].values()
    compilers = {value_of("compiler", name) for name in compiler_names}
    systems = lookups.words["os"].values()
    family_and_target = [
        (family, target) for target, family in lookups.families.items()
    ]
    return {
        "releases": [release.name for release in lookups.releases.values()],
        "stacks": [stack.name for stack in lookups.stacks.values()],
        "targets": grouped(sorted(family_and_target)),
        "compilers": sorted(compilers),
        "systems": sorted(systems),
        "hosts": hosts_of(lookups.builds),
        "has_trees": bool(lookups.trees()),
        "has_records": has_records(lookups.conn),
        "licenses": list(packages_with(lookups, "license")),
        "tags": list(packages_with(lookups, "tag")),
        "has_maintainers": bool(packages_with(lookups, "maintainer")),
        "has_package_data": "known_packages" in filled_tables(lookups.conn),
    }
