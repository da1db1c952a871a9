"""A query held against one configuration, predicate by predicate: what answers are held against."""

from __future__ import annotations

from spack_cache_db.query.conditions import check_answerable, compiler_of_pages
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import (
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.targets import target_matches
from tests.configurations import configuration

SPEC = configuration(
    package="hdf5",
    version="1.14.3",
    compiler="gcc@13.2.0",
    os="debian12",
    platform="linux",
    target="zen3",
    variants=("+mpi", "~java", "api=default", "libs=shared,static", "patches=0abcdef,f7d58d3"),
)
"""A spec to ask."""

HASH = "abcdefghijklmnopqrstuvwxyz234567"


def name_matches(asked: str | None, name: str) -> bool:
    """Return whether a name is the one asked for, or any will do; also for os and platform."""
    return asked is None or asked == name


def variant_text_matches(constraint: VariantConstraint, text: str) -> bool:
    """Return whether one printed variant is as asked.

    Raises:
        ValueError: the text is no variant.
    """
    return variant_matches(constraint, parse_variant(text))


def variants_match(constraints: tuple[VariantConstraint, ...], texts: tuple[str, ...]) -> bool:
    """Return whether each constraint has a printed variant that is as asked."""
    return all(
        any(variant_text_matches(constraint, text) for text in texts) for constraint in constraints
    )


def matches(query: SpecQuery, spec: Configuration, dag_hash: str) -> bool:
    """Return whether a spec, as far as a page shows it, satisfies a query.

    Args:
        query: what is asked.
        spec: what the page shows; the texts are those of any era.
        dag_hash: the spec's hash.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
        ValueError: a text of the page is no variant or compiler.
    """
    check_answerable(query)
    compilers = map(compiler_of_pages, query.dependencies)
    return (
        name_matches(query.name, spec.package)
        and dag_hash.startswith(query.hash or "")
        and name_matches(query.os, spec.os)
        and name_matches(query.platform, spec.platform)
        and target_matches(query.target, spec.target)
        and version_matches(query.versions, spec.version)
        and all(compiler_matches(compiler, spec.compiler) for compiler in compilers)
        and variants_match(query.variants, spec.variants)
    )
