"""What Spack says of one package: what it is for, its versions and variants, who depends on it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.errors import printable
from spack_cache_db.query.connection import select
from spack_cache_db.query.package_status import PackageStatus
from spack_cache_db.spack.variants import variant_row

_PACKAGE = """
SELECT known_packages.id, build_system, recipe, dependent_count,
  package_status.name, package_status.description, package_status.homepage,
  package_status.latest_version, newest_version, package_status.versions_behind, spec_count
FROM known_packages JOIN package_status ON package_status.name = known_packages.name
WHERE known_packages.name = :name
"""
_VERSIONS = """
SELECT version, deprecated, kind FROM known_versions WHERE package = :package
ORDER BY position DESC
"""
_VARIANTS = """
SELECT name, default_value, variant_descriptions.description
FROM known_variants
JOIN variant_descriptions ON variant_descriptions.id = known_variants.description
WHERE package = :package ORDER BY name
"""
_PROVIDED = "SELECT virtual FROM providers WHERE package = :package ORDER BY virtual"
# The key of the table begins with the dependency, so the packages without a binary cost little.
_DEPENDENTS = """
SELECT packages.name FROM known_dependencies
JOIN known_packages ON known_packages.id = known_dependencies.package
JOIN packages ON packages.name = known_packages.name AND packages.release_count > 0
WHERE known_dependencies.dependency = :name ORDER BY packages.name
"""


class PackageVersion(NamedTuple):
    """A version of Spack's; `deprecated` is None where the data does not say it."""

    version: str
    deprecated: bool | None
    kind: str


class VariantMeaning(NamedTuple):
    """A variant of Spack's: what it is if nothing else is asked, and what it means."""

    name: str
    default: str
    description: str

    @property
    def default_text(self) -> str:
        """The default as a spec says it, such as `+mpi` and `build_type=Release`."""
        switch = {"True": "+", "False": "~"}.get(self.default)
        values = ",".join(self.default_values)
        return printable(f"{self.name}={values}" if switch is None else switch + self.name)

    @property
    def default_values(self) -> tuple[str, ...]:
        """The values of the default, sorted as specs have them."""
        return tuple(sorted(self.default.split(",")))

    @property
    def meaning(self) -> str:
        """The description as one printable line."""
        return _line(self.description)


class VariantNote(NamedTuple):
    """What to say beside a variant: whether it is Spack's default, and what it means."""

    is_default: bool
    hint: str


@dataclass(frozen=True, slots=True)
class PackageData:
    """What package data says of a package.

    Attributes:
        status: the package, and how its binaries compare with Spack's versions.
        build_system: the class of its recipe.
        recipe: the address of its recipe, as the data has it.
        dependent_count: how many packages depend on it.
        versions: newest first.
        variants: by name.
        provides: the virtual packages that it is known to provide.
        dependents: the packages with binaries that depend on it.
    """

    status: PackageStatus
    build_system: str | None
    recipe: str | None
    dependent_count: int
    versions: tuple[PackageVersion, ...]
    variants: tuple[VariantMeaning, ...]
    provides: tuple[str, ...]
    dependents: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The description as one printable line."""
        return _line(self.status.description or "")

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """The homepage and the recipe, each with its address; nothing but addresses of the web."""
        named = (("Homepage", self.status.homepage), ("Recipe", self.recipe))
        return tuple((word, url) for word, url in named if url and _is_of_the_web(url))

    @property
    def comparison(self) -> str:
        """The newest binary beside Spack's version, as a sentence."""
        status, latest = self.status, printable(self.status.latest_version or "")
        if status.newest_version is None or not latest:
            return f"Spack has {latest}." if latest else ""
        if not status.versions_behind:
            return f"The newest binary is {status.newest_version}; Spack has none that is newer."
        newest = f"The newest binary is {status.newest_version}, Spack has {latest}"
        if status.versions_behind == 1:
            return f"{newest}: one version behind."
        return f"{newest}: {status.versions_behind:,} versions behind."

    def variant_notes(self, texts: Iterable[str]) -> Mapping[str, VariantNote]:
        """Return what to say beside variants, such as `+mpi`; nothing of those Spack has not."""
        known = {each.name: each for each in self.variants}
        found = {}
        for text in texts:
            row = variant_row(text)
            variant = known.get(row.name) if row is not None else None
            if row is not None and variant is not None:
                is_default = row.values == variant.default_values
                default = "the default" if is_default else f"default {variant.default_text}"
                hint = "; ".join(filter(None, (variant.meaning, default)))
                found[text] = VariantNote(is_default, hint)
        return found

    def as_json(self) -> str:
        """Return what `/package/<name>.json` answers."""
        said = {
            **self.status.as_dict(),
            "build_system": self.build_system,
            "recipe": self.recipe,
            "dependent_count": self.dependent_count,
            "versions": [each._asdict() for each in self.versions],
            "variants": [each._asdict() for each in self.variants],
            "provides": self.provides,
            "dependents": self.dependents,
        }
        return json.dumps(said, indent=2, ensure_ascii=False)


def read_package_data(conn: sqlite3.Connection, name: str) -> PackageData | None:
    """Return what package data says of a package; None if the file has none of it."""
    found = next(select(conn, _PACKAGE, name=name), None)
    if found is None:
        return None
    key, build_system, recipe, dependent_count, *status = found
    return PackageData(
        status=PackageStatus(*status),
        build_system=build_system,
        recipe=recipe,
        dependent_count=dependent_count,
        versions=tuple(
            PackageVersion(version, None if deprecated is None else bool(deprecated), kind)
            for version, deprecated, kind in select(conn, _VERSIONS, package=key)
        ),
        variants=tuple(VariantMeaning(*row) for row in select(conn, _VARIANTS, package=key)),
        provides=tuple(virtual for (virtual,) in select(conn, _PROVIDED, package=key)),
        dependents=tuple(dependent for (dependent,) in select(conn, _DEPENDENTS, name=name)),
    )


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _is_of_the_web(url: str) -> bool:
    return url.startswith(("https://", "http://")) and url.isprintable()
