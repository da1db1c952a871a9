"""Names in addresses: those in another spelling are redirected, unknown fields are refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import quote, unquote, urlencode

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.configurations import specs_beginning
from spack_cache_db.query.names import hint, read_spellings, scope_of, spec_of_hash
from spack_cache_db.site.answers import Answer, BadAddress, Request, Site, data, moved

Pairs = Sequence[tuple[str, str]]
Kinds = Mapping[str, tuple[str, ...]]
Spans = Mapping[str, tuple[int, int]]

KINDS: Kinds = {
    **{
        name: (name,)
        for name in ("package", "release", "stack", "host", "target", "compiler", "os", "platform")
    },
    "hash": ("hash",),
    "dependency_package": ("package",),
    "dependency_hash": ("hash",),
    "has": ("target", "release"),
    "lacks": ("target", "release"),
    "reference": ("release", "target", "stack"),
    "old": ("side",),
    "new": ("side",),
}
"""Fields of an address, and columns, whose values are names: of which kinds (`Spellings`)."""
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
"""Tables and views with a column `name`, and its kind."""

_TYPO = 0.65
"""How similar a field is to the one that is meant, by `difflib`."""


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is meant, or at all of them."""
    return hint(name, known, f"known: {', '.join(known) or 'none'}")


def check_fields(request: Request, fields: Collection[str]) -> None:
    """Check the fields in the address of one of our own pages.

    Other sites add fields to their links (`utm_source`). Pages ignore these unless they are near a
    known one. JSON, CSV and feeds, which programs ask for, refuse them.

    Raises:
        BadAddress: a field is not known.
    """
    for name, _ in request.pairs:
        if name in fields or name.startswith("_"):
            continue
        if request.is_data or difflib.get_close_matches(name, fields, cutoff=_TYPO):
            raise BadAddress(f"this address has no field {name!r}; {near(name, fields)}")


def spans_of(found: re.Match[str]) -> dict[str, tuple[int, int]]:
    """Return where in a path the names of a page are."""
    return {name: found.span(name) for name in found.groupdict() if found[name]}


def respelled(
    site: Site, path: str, spans: Spans, pairs: Pairs, kinds: Kinds = KINDS
) -> Answer | None:
    """Return an answer that leads to the names themselves; None where they stand in an address.

    Args:
        site: the site.
        path: the path.
        spans: where in the path names are, by keys of `kinds`.
        pairs: the pairs of the query string.
        kinds: the kinds of names in each field.
    """
    if kinds.keys().isdisjoint((*spans, *(name.removesuffix("__exact") for name, _ in pairs))):
        return None
    spellings = read_spellings(site.lookups)

    def canonical(field: str, text: str) -> str:
        for kind in kinds.get(field.removesuffix("__exact"), ()):
            if (name := spellings.canonical(kind, text)) != text:
                return name
        return text

    renamed_path = path
    for field, (start, end) in reversed([*spans.items()]):
        text = unquote(path[start:end])
        if (name := canonical(field, text)) != text:
            renamed_path = f"{renamed_path[:start]}{quote(name, safe='/:')}{renamed_path[end:]}"
    renamed = [(field, canonical(field, text)) for field, text in pairs]
    if (renamed_path, renamed) == (path, [*pairs]):
        return None
    query = f"?{urlencode(renamed)}" if renamed else ""
    return moved(f"{site.urls.path(renamed_path)}{query}")


def respelled_table(site: Site, path: str, pairs: Pairs, kinds: Kinds) -> Answer:
    """Return what `respelled` does for the address of a table; an empty answer for None."""
    return respelled(site, path, {}, pairs, kinds) or data("", "text")


def respelled_query(site: Site, path: str, pairs: Pairs) -> Answer:
    """Return an answer that leads to the names themselves; an empty one where they stand there.

    Args:
        site: the site.
        path: the path of a canned query.
        pairs: its parameters. The beginning of a hash becomes the whole.

    Raises:
        BadAddress: the database has no such name.
    """
    lookups, named = site.lookups, []
    try:
        for field, text in ((field, text.strip()) for field, text in pairs):
            kind = "release" if field in ("old", "new") else field
            if text and kind == "hash":
                prefix = text.removeprefix("/").lower()
                text = specs_beginning(lookups.conn, prefix)[spec_of_hash(lookups, text)]
            elif text and kind in ("package", "release"):
                scope_of(lookups, **{kind: text})
            named.append((field, text))
    except BuilderError as error:
        raise BadAddress(str(error)) from None
    address = f"{site.urls.path(path)}?{urlencode(named)}"
    return respelled(site, path, {}, named) or (
        moved(address) if named != [*pairs] else data("", "text")
    )
