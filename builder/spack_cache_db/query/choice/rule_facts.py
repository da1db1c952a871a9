"""Reads from a database the facts that the rule uses: what is installed, common and
preferred by recipes.

Most of them are cached with the database, because the next question needs them again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spack_cache_db.model import INSTALLED
from spack_cache_db.query.choice.ranks import Facts, Uses
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    condition_value,
    only,
)
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.match.order import chosen_machine
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.queries import VariantConstraint
from spack_cache_db.spack.versions import is_stable

_USES = """
SELECT facet, value, release_id IS NOT NULL, package_count FROM facet_values
WHERE (release_id IS NULL OR release_id = :release) AND facet <> 'stack'
"""
"""How many packages use each value of each kind (facet), in a release (1) and in all
releases (0).
"""
_OPTION_USES = """
SELECT variant_set_id, sum(spec_count) FROM configurations
WHERE version_id = :version GROUP BY variant_set_id
"""
"""How many binaries of a version have each set of variants."""
# What the recipe of a package prefers, from package data.
_LATEST = "SELECT latest_version FROM known_packages WHERE name = :name"
_DEPRECATED = "SELECT version FROM known_versions WHERE package = :name AND deprecated"
_DEFAULTS = "SELECT name, default_value FROM known_variants WHERE package = :name"
_INSTALLED = """
SELECT specs.id, specs.configuration_id, max(installations.explicit IS 1)
FROM installations JOIN specs ON specs.hash = installations.hash
WHERE :release IS NULL OR installations.release = :release GROUP BY specs.id
"""
"""The installed specs, in one installation or in all, and whether a user asked for each
by name.
"""


def read_facts(
    lookups: Lookups, rows: Sequence[Candidate], conditions: Conditions
) -> Facts:
    """Return what the rule knows about matches.

    Args:
        lookups: the database.
        rows: the configurations that match.
        conditions: those of the question.
    """
    conn = lookups.conn
    packages = {row.key("package") for row in rows}

    # Read what the recipe of the package prefers.
    recipe = _Recipe()
    if len(packages) == 1:
        (package,) = packages
        name = lookups.words["package"][package]
        recipe = lookups.once(("recipe", name), lambda: _read_recipe(conn, name))

    # Collect the versions that are not deprecated.
    version_ids = {row.key("version") for row in rows}
    versions = {lookups.words["version"][key] for key in version_ids}
    supported = versions - recipe.deprecated

    # Read what is common in the release of the question, or else in the first one.
    release = condition_value(conditions, "release")
    usual_release = _first_release(lookups) if release is None else release
    uses = lookups.once(
        ("uses", usual_release), lambda: _read_uses(lookups, usual_release)
    )

    # Read how common sets of variants are when a version is compared.
    def read_option_uses(version: int) -> Mapping[int, int]:
        return dict(select(conn, _OPTION_USES, version=version))

    def option_uses(version: int) -> Mapping[int, int]:
        key = ("option uses", version)
        return lookups.once(key, lambda: read_option_uses(version))

    return Facts(
        words=lookups.words,
        families=lookups.families,
        uses=uses,
        option_uses=option_uses,
        package_counts=package_counts(lookups) if len(packages) > 1 else {},
        host=chosen_machine(conditions),
        latest=recipe.latest,
        deprecated=recipe.deprecated,
        has_stable=any(is_stable(version) for version in supported),
        defaults=recipe.defaults,
        named_variants=_named_variants(conditions),
        installed=installed_specs(lookups, release).configurations,
    )


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What package data has about a package; `Facts` describes the fields."""

    latest: str | None = None
    deprecated: frozenset[str] = frozenset()
    defaults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _read_recipe(conn: sqlite3.Connection, name: str) -> _Recipe:
    """Return what package data has about a package; nothing if it is not in there."""
    # One row, or none for a package that package data does not have.
    latest = None
    for (version,) in select(conn, _LATEST, name=name):
        latest = version
    deprecated = [version for (version,) in select(conn, _DEPRECATED, name=name)]
    defaults = {}
    for variant, value in select(conn, _DEFAULTS, name=name):
        # The values in the order in which `readable_variant` returns them.
        defaults[variant] = tuple(sorted(value.split(",")))
    return _Recipe(latest, frozenset(deprecated), defaults)


def _first_release(lookups: Lookups) -> int | None:
    """Return the id of the first release that is not an installation; None if there is
    none.
    """
    for release in lookups.releases.values():
        if release.kind != INSTALLED:
            return release.id
    return None


def _read_uses(
    lookups: Lookups, release: int | None
) -> Mapping[str, Mapping[str, Uses]]:
    """Return how many packages use words, by kinds of words; see `Facts.uses`."""
    uses: dict[str, dict[str, Uses]] = defaultdict(dict)
    rows = select(lookups.conn, _USES, release=release)
    for facet, value, is_in_release, count in rows:
        # A compiler counts by its commonest version, and a family by its commonest
        # target: most packages have several, so sums would count packages twice.
        kind = facet
        word = value
        if facet == "compiler":
            word = value.partition("@")[0]
        elif facet == "target":
            kind = "family"
            word = lookups.families.get(value, value)
        before = uses[kind].get(word, Uses())
        if is_in_release:
            after = before._replace(in_release=max(before.in_release, count))
        else:
            after = before._replace(anywhere=max(before.anywhere, count))
        uses[kind][word] = after
    return uses


def _named_variants(conditions: Conditions) -> frozenset[str]:
    """Return the names of the variants that conditions are on."""
    names = set()
    for condition in only(conditions, "variant"):
        # A filter of the site has the text of a variant, which is not parsed.
        if isinstance(condition.value, VariantConstraint):
            names.add(condition.value.name)
            continue
        variant = readable_variant(condition.text)
        if variant is not None:
            names.add(variant.name)
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class InstalledSpecs:
    """Installed specs and their configurations, by id.

    The value of an id is 2 if a user asked for the spec by name, or for one of the
    configuration; it is 1 if they are installed as dependencies only.
    """

    specs: Mapping[int, int]
    configurations: Mapping[int, int]

    def best_of(self, specs: Sequence[Spec]) -> Sequence[Spec]:
        """Return the specs that were installed explicitly, or else installed, or else
        all.
        """
        best = max(self.specs.get(spec.id, 0) for spec in specs)
        return [spec for spec in specs if self.specs.get(spec.id, 0) == best]


_NONE_INSTALLED = InstalledSpecs(specs={}, configurations={})


def installed_specs(lookups: Lookups, release: int | None) -> InstalledSpecs:
    """Return the specs of installations; none if the question is about a mirror's
    release.
    """
    if not lookups.trees(release):
        return _NONE_INSTALLED
    return lookups.once(
        ("installed", release), lambda: _read_installed(lookups, release)
    )


def _read_installed(lookups: Lookups, release: int | None) -> InstalledSpecs:
    """Return the specs of one installation, or of all."""
    name = None if release is None else lookups.releases[release].name
    specs: dict[int, int] = {}
    configurations: dict[int, int] = {}
    rows = select(lookups.conn, _INSTALLED, release=name)
    for spec, configuration, is_explicit in rows:
        rank = 2 if is_explicit else 1
        specs[spec] = rank
        rank_before = configurations.get(configuration, 0)
        configurations[configuration] = max(rank, rank_before)
    return InstalledSpecs(specs, configurations)
