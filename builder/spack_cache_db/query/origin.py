"""Which build cache a database contains, and specs that find something in it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from urllib.parse import urlsplit

from spack_cache_db.query.database import select
from spack_cache_db.query.totals import largest_packages
from spack_cache_db.releases import PUBLIC_SITE, is_public_mirror

URLS = """
SELECT DISTINCT url FROM mirrors JOIN releases ON releases.id = mirrors.release
WHERE releases.kind <> 'installed' ORDER BY url
"""
TREES = "SELECT name FROM releases WHERE kind = 'installed' ORDER BY position"
PUBLIC = "Spack's public build cache"
MOST_NAMED = 3
SEARCHES = {"py-torch": "+cuda", "hdf5": "+mpi"} | dict.fromkeys(
    ("openmpi", "petsc", "py-numpy", "cmake", "gcc"), ""
)
"""Packages, each with a variant, that a first visitor may search for."""
MOST_EXAMPLES = 4
KNOWN_EXAMPLES = """
SELECT packages.name, json_extract(wanted.value, '$[1]'), EXISTS (
  SELECT 1 FROM configurations
  JOIN variant_set_members AS member ON member.variant_set = configurations.variants
  JOIN variants ON variants.id = member.variant
  WHERE configurations.package = packages.id AND configurations.spec_count > 0
    AND variants.text = json_extract(wanted.value, '$[1]'))
FROM json_each(:examples) AS wanted
JOIN packages ON packages.name = json_extract(wanted.value, '$[0]') AND packages.spec_count > 0
ORDER BY wanted.key
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The build cache in a database.

    Attributes:
        title: the title of a site that shows it.
        owner: its owner, as the subject of a sentence.
        url: the only address of all of it on the web, if there is one.
        is_public: whether all of it is Spack's public build cache.
    """

    title: str
    owner: str
    url: str | None
    is_public: bool


def read_origin(conn: sqlite3.Connection) -> Origin:
    """Return which build cache a database contains."""
    ((has_pages,),) = select(conn, "SELECT EXISTS (SELECT 1 FROM pages)")
    urls = [url for (url,) in select(conn, URLS)]
    private = [url for url in urls if not (url and is_public_mirror(url))]
    has_public = has_pages or len(private) < len(urls)
    trees = [name for (name,) in select(conn, TREES)]
    owners = [f"the installation{'s' * (len(trees) > 1)} {_listed(trees)}"] if trees else []
    if trees and not (has_pages or urls):
        return Origin("Installed software", owners[0], None, is_public=False)
    if not private:
        url = None if trees else PUBLIC_SITE
        owner = " and ".join([*owners, PUBLIC])
        return Origin("Spack build cache", owner, url, is_public=not trees)
    # The host in an address, or all of an address that has none.
    names = sorted({urlsplit(url).netloc or url for url in private if url})
    title = "Build cache"
    owners += [PUBLIC] if has_public else []
    if names:
        caches, mirrors = ("cache", "the mirror") if len(names) == 1 else ("caches", "mirrors")
        title = f"Build {caches} of {_listed(names)}"
        owners.append(f"{mirrors} at {_listed(names)}")
    owners += ["a mirror"] if None in private else []
    is_of_web = len(private) == 1 and not (has_public or trees) and private[0] is not None
    url = private[0] if is_of_web and private[0].startswith(("http://", "https://")) else None
    return Origin(title, " and ".join(owners), url, is_public=False)


def _listed(names: list[str]) -> str:
    """Return names as one text: the first ones, and the number of the others."""
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def read_examples(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Return specs that find something, the best known first; none if there is no binary."""
    examples = {
        name: f"{name} {variant}" if has_variant else name
        for name, variant, has_variant in select(
            conn, KNOWN_EXAMPLES, examples=json.dumps([*SEARCHES.items()])
        )
    }
    largest = {name: name for name, *_ in largest_packages(conn, MOST_EXAMPLES)}
    return tuple((examples | largest | examples).values())[:MOST_EXAMPLES]
