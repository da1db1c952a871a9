"""What a query asks of Spack's recipes: versions and variants that they do not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Set

from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.configurations import configurations_of_package
from spack_cache_db.query.stored.package_data import PackageData, read_package
from spack_cache_db.spack.facts import VARIANTS_WITHOUT_RECIPE
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.queries import SpecQuery
from spack_cache_db.spack.versions import VersionRanges, newest_version


def recipe_notes(lookups: Lookups, query: SpecQuery) -> tuple[str, ...]:
    """Return the versions and variants of a query that Spack does not have, or no
    binary has.

    There are no notes without package data: there is nothing to compare with.
    """
    if query.name is None:
        return ()
    data = read_package(lookups.conn, query.name)
    if data is None:
        return ()
    package = lookups.packages.get(data.status.name, 0)
    built = [
        record.configuration
        for record in configurations_of_package(lookups, package)
        if record.spec_count
    ]
    notes: list[str] = []
    if data.versions and query.versions is not None:
        notes.extend(_version_notes(data, query.versions, built))
    if data.variants:
        names = [variant.name for variant in query.variants]
        notes.extend(_variant_notes(data, names, built))
    return tuple(notes)


def _version_notes(
    data: PackageData, wanted: VersionRanges, built: list[Configuration]
) -> Iterator[str]:
    """Yield a note if Spack has no such version, or no binary has it."""
    package = data.status.name
    versions = [version.version for version in data.versions]
    fitting = [version for version in versions if wanted.contains(version)]
    if not fitting:
        newest = newest_version(versions)
        yield (
            f"Spack has no version {wanted.text} of {package}, its newest is {newest}"
        )
        return
    is_built = any(wanted.contains(binary.version) for binary in built)
    if built and not is_built:
        newest = newest_version(fitting)
        yield f"Spack has version {newest} of {package}, no binary has it"


def _variant_notes(
    data: PackageData, wanted: Iterable[str], built: list[Configuration]
) -> Iterator[str]:
    """Yield a note on each variant that Spack does not have, or no binary has."""
    package = data.status.name
    names = [variant.name for variant in data.variants]
    names_of_binaries = _variants_of(built)
    for name in wanted:
        if name not in names:
            if name not in VARIANTS_WITHOUT_RECIPE:
                close = difflib.get_close_matches(name, names, 3)
                near = f" (near: {', '.join(close)})" if close else ""
                yield f"Spack has no variant {name!r} of {package}{near}"
        elif built and name not in names_of_binaries:
            yield f"Spack has the variant {name!r} of {package}, no binary has it"


def _variants_of(configurations: Iterable[Configuration]) -> Set[str]:
    """Return the names of the variants of configurations."""
    texts: set[str] = set()
    for configuration in configurations:
        texts.update(configuration.variants)
    parsed = [readable_variant(text) for text in texts]
    return {variant.name for variant in parsed if variant is not None}
