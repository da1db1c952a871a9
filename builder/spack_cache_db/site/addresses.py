"""Names in addresses: other spellings are redirected, unknown fields are refused."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import quote, unquote

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.configurations import specs_beginning
from spack_cache_db.query.names import hint, read_spellings, scope_of, spec_of_hash
from spack_cache_db.site.answers import Answer, BadAddress, Request, Site, data, refused

Pairs = Sequence[tuple[str, str]]
Kinds = Mapping[str, tuple[str, ...]]
Spans = Mapping[str, tuple[int, int]]

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
KINDS: Kinds = {
    **{kind: (kind,) for kind in (*NAMES.values(), "host", "hash")},
    "dependency_package": ("package",),
    "dependency_hash": ("hash",),
    "has": ("target", "release"),
    "lacks": ("target", "release"),
    "reference": ("release", "target", "stack"),
    "old": ("side",),
    "new": ("side",),
}
"""Fields and columns that contain names, and the kinds of these (see `Spellings`)."""

_TYPO = 0.65
"""Similarity from which an unknown field counts as a misspelled one (`difflib`)."""


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint: the names closest to this one, or all names."""
    return hint(name, names, f"known: {', '.join(names) or 'none'}")


def check_fields(request: Request, fields: Collection[str]) -> None:
    """Raise `BadAddress` for an unknown field in the address of one of our own pages.

    Other sites add fields to their links (`utm_source`). Pages ignore these unless they look like
    a misspelled field. JSON, CSV and feeds, which programs read, refuse them.
    """
    for name, _ in request.pairs:
        if name in fields or name.startswith("_"):
            continue
        if request.is_data or difflib.get_close_matches(name, fields, cutoff=_TYPO):
            raise BadAddress(f"this address has no field {name!r}; {near(name, fields)}")


NOT_MOVED = data("", "text")


def respelled(site: Site, path: str, spans: Spans, pairs: Pairs, kinds: Kinds = KINDS) -> Answer:
    """Return a redirect to the usual spelling of all names, or `NOT_MOVED`.

    Args:
        spans: start and end of each name in the path, by keys of `kinds`.
        kinds: the kinds of names that each field may contain.
    """
    if kinds.keys().isdisjoint((*spans, *(name.removesuffix("__exact") for name, _ in pairs))):
        return NOT_MOVED
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
        return NOT_MOVED
    return site.redirect(renamed_path, renamed, 301)


def answer_query(
    site: Site, request: Request, parameters: Collection[str], is_ours: bool
) -> Answer:
    """Return the answer to a canned query's address that is not as it should be, or `NOT_MOVED`.

    Unknown fields are refused. If the query is ours, so are unknown names, and other spellings and
    beginnings of hashes are redirected.
    """
    try:
        for field, _ in request.pairs:
            if field not in parameters and not field.startswith("_"):
                message = f"this query has no field {field!r}; {near(field, parameters)}"
                raise BadAddress(message)
        return _respelled_query(site, request) if is_ours else NOT_MOVED
    except (BadAddress, BuilderError) as error:
        if request.is_data:
            return refused(str(error), request.path.rpartition(".")[2])
        return site.page(request, "error.html", 400, error=str(error), path=request.path)


def _respelled_query(site: Site, request: Request) -> Answer:
    lookups, renamed = site.lookups, []
    for field, text in ((field, text.strip()) for field, text in request.pairs):
        kind = "release" if field in ("old", "new") else field
        if text and kind == "hash":
            prefix = text.removeprefix("/").lower()
            text = specs_beginning(lookups.conn, prefix)[spec_of_hash(lookups, text)]
        elif text and kind in ("package", "release"):
            scope_of(lookups, **{kind: text})
        renamed.append((field, text))
    answer = respelled(site, request.path, {}, renamed)
    if answer is NOT_MOVED and renamed != request.pairs:
        return site.redirect(request.path, renamed, 301)
    return answer
