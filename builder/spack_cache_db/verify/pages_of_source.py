"""A page as its source says it, in normal form: lists are sorted, for their order says nothing."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from spack_cache_db.sources.pages.consistency import declared_meta
from spack_cache_db.sources.pages.normal import as_set, normal_configuration
from spack_cache_db.sources.pages.reader import detail_fault
from spack_cache_db.sources.pages.records import Page, SpecDetail


def said_by_source(page: Page) -> dict[str, Any]:
    """Return the `meta` of a page, and its `spec_details` by hash.

    Raises:
        InputError: a detail has no normal form.
    """
    return {
        "meta": declared_meta(page.meta),
        "spec_details": {each.hash: _detail(page, each) for each in page.details},
    }


def _detail(page: Page, detail: SpecDetail) -> dict[str, Any]:
    """Return every field of a detail; those that have a normal form in theirs."""
    values = {
        name: value
        for name in SpecDetail.__struct_fields__
        if (value := getattr(detail, name)) is not UNSET
    }
    try:
        configuration = normal_configuration(page.package, detail)
        stacks = as_set("stack", detail.stacks)
    except ValueError as error:
        raise detail_fault(page, detail, error) from None
    return values | {
        "compiler": configuration.compiler,
        "versions": [configuration.version],
        "variants": [*configuration.variants],
        "stacks": [*stacks],
    }
