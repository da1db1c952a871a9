"""Which build cache a database contains, and specs that find something in it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from urllib.parse import urlsplit

from spack_cache_db.data_source import data_source
from spack_cache_db.errors import series
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.totals import largest_packages
from spack_cache_db.releases import is_public_mirror

URLS = """
SELECT DISTINCT url FROM mirrors JOIN releases ON releases.id = mirrors.release_id
WHERE releases.kind <> 'installed' ORDER BY url
"""
INSTALLATIONS = "SELECT name FROM releases WHERE kind = 'installed' ORDER BY position"
PUBLIC = "Spack's public build cache"
MOST_NAMED = 3
"""Maximum of installations or hosts that the title and the owner name."""
SEARCHES = {
    "py-torch": "+cuda",
    "hdf5": "+mpi",
    "openmpi": "",
    "petsc": "",
    "py-numpy": "",
    "cmake": "",
    "gcc": "",
}
"""Packages that a first visitor may search for, some with a variant."""
MOST_EXAMPLES = 4
KNOWN_EXAMPLES = """
SELECT packages.name, json_extract(wanted.value, '$[1]'), EXISTS (
  SELECT 1 FROM configurations
  JOIN variant_set_members AS member ON member.variant_set_id = configurations.variant_set_id
  JOIN variants ON variants.id = member.variant_id
  WHERE configurations.package_id = packages.id AND configurations.spec_count > 0
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
    # Read the three kinds of sources. Only Spack's public build cache has pages.
    ((has_pages,),) = select(conn, "SELECT EXISTS (SELECT 1 FROM pages)")
    installations = [name for (name,) in select(conn, INSTALLATIONS)]
    urls: list[str | None] = [url for (url,) in select(conn, URLS)]
    private = [url for url in urls if url is None or not is_public_mirror(url)]
    has_public = bool(has_pages) or len(private) < len(urls)
    source = data_source(
        has_pages=bool(has_pages), has_installations=bool(installations), urls=urls
    )

    def origin(title: str, owner: str) -> Origin:
        return Origin(title, owner, source.url, source.is_public)

    owners = []
    if installations:
        noun = "installation" if len(installations) == 1 else "installations"
        owners.append(f"the {noun} {series(installations, MOST_NAMED)}")

    # A database of installations alone has no build cache.
    if installations and not has_pages and not urls:
        return origin("Installed software", owners[0])

    # Without a private mirror, it is the public build cache, perhaps beside
    # installations.
    if not private:
        owners.append(PUBLIC)
        return origin("Spack build cache", " and ".join(owners))

    # Private mirrors are named by their hosts, or by the whole address if it has no
    # host.
    hosts = sorted({urlsplit(url).netloc or url for url in private if url})
    title = "Build cache"
    if has_public:
        owners.append(PUBLIC)
    if len(hosts) == 1:
        title = f"Build cache of {hosts[0]}"
        owners.append(f"the mirror at {hosts[0]}")
    elif hosts:
        names = series(hosts, MOST_NAMED)
        title = f"Build caches of {names}"
        owners.append(f"mirrors at {names}")
    if None in private:
        owners.append("a mirror")
    return origin(title, " and ".join(owners))


def origin_facts(conn: sqlite3.Connection) -> dict[str, str]:
    """Return the rows of the table `origin`: the values by their names."""
    return dict(select(conn, "SELECT name, value FROM origin"))


def read_examples(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Return specs that find something, the best known first; empty without a
    binary.
    """
    searches = json.dumps(list(SEARCHES.items()))
    examples = {}
    for name, variant, has_variant in select(conn, KNOWN_EXAMPLES, examples=searches):
        examples[name] = f"{name} {variant}" if has_variant else name
    # If there are too few of them, packages with most binaries follow.
    for name, _, _ in largest_packages(conn, MOST_EXAMPLES):
        examples.setdefault(name, name)
    return tuple(examples.values())[:MOST_EXAMPLES]
