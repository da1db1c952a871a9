"""Whose build cache a file holds, in words: its mirrors', or Spack's public one for pages."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from urllib.parse import urlsplit

from spack_cache_db.query.open import select
from spack_cache_db.releases import PUBLIC_SITE, is_public_mirror

HAS_PAGES = "SELECT EXISTS (SELECT 1 FROM pages)"
URLS = "SELECT DISTINCT url FROM mirrors ORDER BY url"

PUBLIC = "Spack's public build cache"
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose build cache a file holds.

    Attributes:
        title: what to call a site that shows it.
        owner: who lists its binaries, as the subject of a sentence.
        url: the address of all of it on the web; None where there is none, or several.
        is_public: whether all of it is Spack's public build cache.
    """

    title: str
    owner: str
    url: str | None
    is_public: bool


def read_origin(conn: sqlite3.Connection) -> Origin:
    """Return whose build cache a file holds."""
    has_pages = bool(next(select(conn, HAS_PAGES))[0])
    urls = [url for (url,) in select(conn, URLS)]
    has_public = has_pages or any(url and is_public_mirror(url) for url in urls)
    own = [url for url in urls if not (url and is_public_mirror(url))]
    if not own:
        return Origin("Spack build cache", PUBLIC, PUBLIC_SITE, is_public=True)
    names = sorted({_name(url) for url in own if url})
    known = _listed(names) if names else None
    title = (
        f"Build {'cache' if len(names) == 1 else 'caches'} of {known}" if known else "Build cache"
    )
    owners = [PUBLIC] if has_public else []
    owners += [f"{'the mirror' if len(names) == 1 else 'mirrors'} at {known}"] if known else []
    owners += ["a mirror"] if None in own else []
    web = own[0] if len(own) == 1 and not has_public else None
    url = web if web and web.startswith(("http://", "https://")) else None
    return Origin(title, " and ".join(owners), url, is_public=False)


def _name(url: str) -> str:
    """Return the host in an address, or all of an address that has none."""
    return urlsplit(url).netloc or url


def _listed(names: list[str]) -> str:
    """Return names as one text; of many the first ones, and how many more there are."""
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
