"""Spack's package data (descriptions, versions, variants, recipes), beside binaries."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from spack_cache_db.bounded_files import AnyPath
from spack_cache_db.errors import one_line, printable
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.gone import Gone, gone_of_package
from spack_cache_db.spack.normal_forms import readable_variant

_VERSIONS = """
SELECT version, deprecated, kind FROM known_versions WHERE package = :name
ORDER BY position DESC
"""
_VARIANTS = """
SELECT name, default_value, description FROM known_variants WHERE package = :name ORDER BY name
"""
_PROVIDED = (
    "SELECT virtual FROM providers WHERE known_package_id = :package ORDER BY virtual"
)
_MAINTAINERS = """
SELECT maintainer FROM package_maintainers
WHERE known_package_id = :package ORDER BY maintainer
"""
_LICENSES = """
SELECT license, condition FROM package_licenses WHERE known_package_id = :package ORDER BY id
"""
_TAGS = "SELECT tag FROM package_tags WHERE known_package_id = :package ORDER BY tag"
_DEPENDENTS = """
SELECT packages.name FROM known_dependencies
JOIN packages ON packages.name = known_dependencies.package AND packages.release_count > 0
WHERE known_dependencies.dependency = :name ORDER BY packages.name
"""
_KNOWN = """
SELECT name, latest_version, dependent_count, substr(description, 1, 400)
FROM known_packages ORDER BY name
"""
_SUMMARIZED = """
SELECT packages.name, substr(known_packages.description, 1, 400)
FROM packages LEFT JOIN known_packages ON known_packages.name = packages.name
WHERE packages.release_count > 0 ORDER BY packages.name
"""
_LISTED_VERSIONS = """
SELECT versions.name FROM versions JOIN packages ON packages.id = versions.package_id
WHERE packages.name = :name
"""
_TOTALS = """
SELECT id, name, spec_count, release_count, newest_version, last_seen
FROM packages WHERE name = :name
"""
_NEWEST = """
SELECT DISTINCT packages.newest_version, targets.family
FROM packages
JOIN versions ON versions.package_id = packages.id AND versions.name = packages.newest_version
JOIN configurations ON configurations.version_id = versions.id AND configurations.spec_count > 0
JOIN targets ON targets.id = configurations.target_id
WHERE packages.name = :name AND EXISTS (
  SELECT 1 FROM specs WHERE specs.configuration_id = configurations.id AND specs.is_binary)
ORDER BY targets.family
"""
PUBLIC_NAMESPACE = "builtin"
PUBLIC_RECIPES = "https://packages.spack.io/package.html?name={package}"
_NO_LONGER = "https://github.com/spack/spack/blob/develop/var/spack/"
"""The URL of recipes before they moved to their own repository (Spack 1.0)."""
NAMESPACES = """
SELECT DISTINCT nodes.namespace
FROM packages
JOIN configurations ON configurations.package_id = packages.id
JOIN specs ON specs.configuration_id = configurations.id
JOIN record_ranges AS records ON records.spec_id = specs.id
JOIN nodes ON nodes.id = records.node_id
WHERE packages.name = :package ORDER BY nodes.namespace
"""
RECIPES = "SELECT namespace, url FROM recipes"
_PACKAGE = """
SELECT known_packages.id, build_system, recipe, dependent_count, asked.name, description, homepage,
  latest_version, newest_version, versions_behind, coalesce(packages.spec_count, 0)
FROM (SELECT :name AS name) AS asked
LEFT JOIN known_packages ON known_packages.name = asked.name
LEFT JOIN packages ON packages.name = asked.name
LEFT JOIN versions ON versions.package_id = packages.id AND versions.name = packages.newest_version
WHERE known_packages.id IS NOT NULL OR packages.id IS NOT NULL
"""
MOST_OF_SENTENCE = 160
"""Characters of a summary."""
_SENTENCE_END = re.compile(r"[.!?] ")
_BEHIND = """
SELECT packages.name, versions.name, versions_behind, latest_version FROM versions
JOIN packages ON packages.id = versions.package_id
JOIN known_packages ON known_packages.name = packages.name WHERE versions_behind IS NOT NULL
"""


class PackageTotals(NamedTuple):
    """One package and its totals."""

    id: int
    name: str
    spec_count: int
    release_count: int
    newest_version: str | None
    last_seen: str | None


class PackageVersion(NamedTuple):
    """A version in Spack; `deprecated` is None if unknown."""

    version: str
    deprecated: bool | None
    kind: str


class VariantMeaning(NamedTuple):
    """A variant in Spack, with its default value and description."""

    name: str
    default: str
    description: str

    @property
    def default_text(self) -> str:
        """The default in spec syntax, such as `+mpi` and `build_type=Release`."""
        if self.default == "true":
            text = f"+{self.name}"
        elif self.default == "false":
            text = f"~{self.name}"
        else:
            text = f"{self.name}={','.join(self.default_values)}"
        return printable(text)

    @property
    def default_values(self) -> tuple[str, ...]:
        """The values of the default, sorted as specs have them."""
        return tuple(sorted(self.default.split(",")))

    @property
    def meaning(self) -> str:
        """The description as one printable line."""
        return printable(one_line(self.description))


class PackageLicense(NamedTuple):
    """A license as the recipe has it, and the spec of the binaries with it.

    The condition is a spec such as `@:2`; None for all binaries.
    """

    license: str
    condition: str | None


class VariantNote(NamedTuple):
    """Whether a variant has Spack's default, and a text with its meaning."""

    is_default: bool
    hint: str


@dataclass(frozen=True, slots=True)
class PackageData:
    """A package as package data describes it; without package data, only `status` is
    filled.

    Attributes:
        build_system: the class of its recipe.
        recipe: the address of its recipe, as in the data.
        dependent_count: how many packages depend on it; None without package data.
        versions: newest first.
        variants: by name.
        provides: the virtual packages that it provides.
        dependents: the packages with binaries that depend on it.
        maintainers: who maintains its recipe, by their accounts.
        licenses: its licenses.
        tags: the tags of its recipe, such as `e4s`.
        gone: the binaries that the mirror has lost, if there are any.
    """

    status: PackageStatus
    build_system: str | None
    recipe: str | None
    dependent_count: int | None
    versions: tuple[PackageVersion, ...]
    variants: tuple[VariantMeaning, ...]
    provides: tuple[str, ...]
    dependents: tuple[str, ...]
    maintainers: tuple[str, ...]
    licenses: tuple[PackageLicense, ...]
    tags: tuple[str, ...]
    gone: Gone | None = None

    @property
    def summary(self) -> str:
        """The description as one printable line."""
        return printable(one_line(self.status.description or ""))

    @property
    def homepage_url(self) -> str | None:
        """The homepage if it is a web address."""
        homepage = self.status.homepage
        return homepage if _is_of_the_web(homepage) else None

    @property
    def recipe_url(self) -> str | None:
        """The address of the recipe on the web; None if it is not known.

        Spack prints addresses in a folder that no longer exists.
        """
        if self.recipe is None:
            # Files of the packages site have a build system, but no address.
            is_public = self.build_system is not None
        elif self.recipe.startswith(_NO_LONGER):
            is_public = f"/{PUBLIC_NAMESPACE}/" in self.recipe
        else:
            return self.recipe if _is_of_the_web(self.recipe) else None
        if not is_public:
            return None
        return PUBLIC_RECIPES.format(package=quote(self.status.name, safe=""))

    @property
    def comparison(self) -> str:
        """A sentence that compares the newest binary with Spack's version."""
        newest = self.status.newest_version
        latest = printable(self.status.latest_version or "")
        count = self.status.versions_behind
        if not latest:
            return ""
        if newest is None:
            return f"Spack has {latest}."
        if not count:
            return f"The newest binary is {newest}; Spack has none that is newer."
        versions = "one version" if count == 1 else f"{count:,} versions"
        return f"The newest binary is {newest}, Spack has {latest}: {versions} behind."

    def variant_notes(self, texts: Iterable[str]) -> Mapping[str, VariantNote]:
        """Return notes on variants such as `+mpi`; variants unknown to Spack are left
        out.
        """
        by_name = {variant.name: variant for variant in self.variants}
        notes = {}
        for text in texts:
            parsed = readable_variant(text)
            if parsed is None or parsed.name not in by_name:
                continue
            variant = by_name[parsed.name]
            is_default = parsed.values == variant.default_values
            hint = "the default" if is_default else f"default {variant.default_text}"
            if variant.meaning:
                hint = f"{variant.meaning}; {hint}"
            notes[text] = VariantNote(is_default, hint)
        return notes

    def as_dict(self) -> dict[str, Any]:
        """Return the object of `/package/<name>.json`."""
        return {
            **self.status.as_dict(),
            "gone_count": 0 if self.gone is None else self.gone.count,
            "gone_last_listed": None if self.gone is None else self.gone.last_listed,
            "build_system": self.build_system,
            "recipe": self.recipe,
            "dependent_count": self.dependent_count,
            "versions": [version._asdict() for version in self.versions],
            "variants": [variant._asdict() for variant in self.variants],
            "provides": list(self.provides),
            "dependents": list(self.dependents),
            "maintainers": list(self.maintainers),
            "licenses": [known._asdict() for known in self.licenses],
            "tags": list(self.tags),
        }


def package_names(file: AnyPath) -> tuple[str, ...]:
    """Return the names of the packages in a database, sorted."""
    with opened(file) as lookups:
        return tuple(sorted(lookups.packages))


def read_package(conn: sqlite3.Connection, name: str) -> PackageData | None:
    """Return the package data and the binaries of a package; None if the database has
    neither.
    """
    row = next(select(conn, _PACKAGE, name=name), None)
    if row is None:
        return None
    key, build_system, recipe, dependent_count, *status = row
    provided = select(conn, _PROVIDED, package=key)
    dependents = select(conn, _DEPENDENTS, name=name)
    maintainers = select(conn, _MAINTAINERS, package=key)
    licenses = select(conn, _LICENSES, package=key)
    tags = select(conn, _TAGS, package=key)
    return PackageData(
        status=PackageStatus(*status),
        build_system=build_system,
        recipe=recipe,
        dependent_count=dependent_count,
        versions=_read_versions(conn, name),
        variants=tuple(
            VariantMeaning(*variant) for variant in select(conn, _VARIANTS, name=name)
        ),
        provides=tuple(virtual for (virtual,) in provided),
        dependents=tuple(dependent for (dependent,) in dependents),
        maintainers=tuple(maintainer for (maintainer,) in maintainers),
        licenses=tuple(PackageLicense(*row) for row in licenses),
        tags=tuple(tag for (tag,) in tags),
        gone=gone_of_package(conn, name),
    )


def _read_versions(conn: sqlite3.Connection, name: str) -> tuple[PackageVersion, ...]:
    versions = []
    for version, flag, kind in select(conn, _VERSIONS, name=name):
        deprecated = None if flag is None else bool(flag)
        versions.append(PackageVersion(version, deprecated, kind))
    return tuple(versions)


def _is_of_the_web(url: str | None) -> bool:
    if url is None or not url.isprintable():
        return False
    return url.startswith(("https://", "http://"))


def recipe_links(conn: sqlite3.Connection, package: str) -> dict[str, str]:
    """Return the known recipe addresses of a package, by namespace.

    A package that only pages list is one of Spack's own. The addresses of other
    namespaces come from `build --recipes`.
    """
    urls = {PUBLIC_NAMESPACE: PUBLIC_RECIPES}
    urls.update(select(conn, RECIPES))
    namespaces = [name for (name,) in select(conn, NAMESPACES, package=package)]
    if not namespaces:
        namespaces = [PUBLIC_NAMESPACE]
    links = {}
    for namespace in namespaces:
        if namespace in urls:
            url = urls[namespace]
            links[namespace] = url.replace("{package}", quote(package, safe=""))
    return links


def summary_of(description: str) -> str:
    """Return the first sentence of a description, shortened if it is long."""
    text = printable(one_line(description))
    end = _SENTENCE_END.search(text)
    sentence = text[: end.start() + 1] if end else text
    if len(sentence) <= MOST_OF_SENTENCE:
        return sentence
    return f"{sentence[: MOST_OF_SENTENCE - 3].rstrip()}..."


class PackageStatus(NamedTuple):
    """A package in Spack, compared with its binaries.

    Attributes:
        homepage: its address, as in the recipe, which may not be a URL.
        latest_version: the version that Spack prefers.
        newest_version: the newest version of a binary; None without a binary.
        versions_behind: how many numbered versions are newer than `newest_version` and
            not deprecated; None without a binary or package data.
        spec_count: the number of binaries.
    """

    name: str
    description: str | None
    homepage: str | None
    latest_version: str | None
    newest_version: str | None
    versions_behind: int | None
    spec_count: int

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `behind --json` prints for a package."""
        return self._asdict()


def package_totals(conn: sqlite3.Connection, name: str) -> PackageTotals | None:
    """Return the totals of a package; None if the database has no such package."""
    row = next(select(conn, _TOTALS, name=name), None)
    return PackageTotals(*row) if row else None


def listed_versions(conn: sqlite3.Connection, name: str) -> list[str]:
    """Return the versions of a package that sources list, in no order."""
    return [version for (version,) in select(conn, _LISTED_VERSIONS, name=name)]


def newest_binary(conn: sqlite3.Connection, name: str) -> str | None:
    """Return the newest version of a package's binaries, with its families of
    targets.
    """
    rows = list(select(conn, _NEWEST, name=name))
    if not rows:
        return None
    # Each row has the version, and one of its families.
    version = rows[0][0]
    families = ", ".join(family for _, family in rows)
    return f"{version} on {families}"


def known_packages(conn: sqlite3.Connection) -> Iterator[tuple[str, str, int, str]]:
    """Yield the packages of the package data: name, latest version, dependents,
    summary.
    """
    for name, latest, dependents, description in select(conn, _KNOWN):
        yield name, latest, dependents, summary_of(description or "")


def summarized_packages(conn: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield the packages that have a binary, with their summaries."""
    for name, description in select(conn, _SUMMARIZED):
        yield name, summary_of(description or "")


def versions_behind(conn: sqlite3.Connection) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the number of newer versions and the latest one in Spack, by package and
    version.
    """
    rows = select(conn, _BEHIND)
    return {(name, version): (behind, latest) for name, version, behind, latest in rows}
