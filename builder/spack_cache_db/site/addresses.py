"""Names and fields in the addresses of our own pages: other spellings of a name are
redirected, unknown fields are refused.

`table_addresses` does the same for Datasette's tables and queries.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import quote, unquote

from spack_cache_db.query.names.scope import hint
from spack_cache_db.query.names.spellings import Spellings, read_spellings
from spack_cache_db.query.stored.recipe_facts import RECIPE_KINDS
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.refusals import BadAddress
from spack_cache_db.site.site import Site

Pairs = Sequence[tuple[str, str]]
"""The fields of an address: names and values."""
Kinds = Mapping[str, tuple[str, ...]]
"""Fields or columns that contain names, and the kinds that each name may have."""

NAMES = {
    "packages": "package",
    "known_packages": "package",
    "package_status": "package",
    "releases": "release",
    "stacks": "stack",
    "targets": "target",
    "compilers": "compiler",
    "operating_systems": "os",
    "platforms": "platform",
}
"""Tables and views with a column `name`, and the kind of that name."""

# Fields that are called like the kind of their names.
_FIELDS_OF_KINDS = (*dict.fromkeys(NAMES.values()), "host", "hash")
KINDS: Kinds = {
    **{field: (field,) for field in _FIELDS_OF_KINDS},
    "dependency_package": ("package",),
    "dependency_hash": ("hash",),
    "previous": ("release",),
    # The comparison of `/packages`: it has a binary for one, and lacks one for another.
    "has": ("target", "release"),
    "lacks": ("target", "release"),
    # What package data says of packages.
    **{kind: (kind,) for kind in RECIPE_KINDS},
    # What `/coverage` compares a release with.
    "reference": ("release", "target", "stack"),
    # The two sides of `/diff`.
    "old": ("side",),
    "new": ("side",),
}
"""The fields and columns of all addresses; `Spellings` describes the kinds."""

_TYPO = 0.65
"""Similarity from which an unknown field counts as a misspelled one (`difflib`)."""


def check_fields(request: PageRequest, fields: Collection[str]) -> None:
    """Raise `BadAddress` for an unknown field in the address of one of our own pages.

    Other sites add fields to their links (`utm_source`), and plugins of Datasette read
    fields that begin with `_`. Pages ignore both, unless one of another site looks like
    a misspelled field. JSON, CSV and feeds, which programs read, refuse all.
    """
    for name, _value in request.pairs:
        if name in fields:
            continue
        if request.is_data or _is_misspelled(name, fields):
            raise BadAddress(
                f"this address has no field {name!r}; {near(name, fields)}"
            )


def _is_misspelled(name: str, fields: Collection[str]) -> bool:
    """Return whether an unknown field of a page looks like one that the page has."""
    if name.startswith("_"):
        return False
    return bool(difflib.get_close_matches(name, fields, cutoff=_TYPO))


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint: the names closest to this one, or all names."""
    return hint(name, names, f"known: {', '.join(names) or 'none'}")


def respelled(
    site: Site,
    request: PageRequest,
    pairs: Pairs,
    match: re.Match[str] | None,
    kinds: Kinds = KINDS,
) -> PageResponse | None:
    """Return a redirect to the usual spelling of all names; None if the request has
    that.

    For example, `/package/HDF5?stack=E4S` leads to `/package/hdf5?stack=e4s`.

    Args:
        site: the site.
        request: the request.
        pairs: the fields of the address to redirect to.
        match: names in the path, as groups that are called like fields.
        kinds: the kinds of names that each field may contain.
    """
    spellings = read_spellings(site.lookups)

    # Replace names in the path, the last one first: then the places of those before it
    # stay the same.
    path = request.path
    if match is not None:
        for field, quoted in reversed(match.groupdict("").items()):
            text = unquote(quoted)
            name = _usual_name(spellings, kinds, field, text)
            if name != text:
                start, end = match.span(field)
                path = f"{path[:start]}{quote(name, safe='/:')}{path[end:]}"

    # Replace names in the fields.
    renamed = [
        (field, _usual_name(spellings, kinds, field, text)) for field, text in pairs
    ]
    if path == request.path and renamed == request.pairs:
        return None
    return site.redirect(path, renamed, 301)


def _usual_name(spellings: Spellings, kinds: Kinds, field: str, text: str) -> str:
    """Return the name that a text spells, of the first kind that has one; the text
    itself if no kind has another name for it.
    """
    # `package__exact` is Datasette's longer name of the field `package`.
    for kind in kinds.get(field.removesuffix("__exact"), ()):
        name = spellings.canonical(kind, text)
        if name != text:
            return name
    return text
