"""The build cache in a database, and how to use it: commands for a shell, example queries."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from urllib.parse import urlsplit

from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.configurations import HASHES_AT_ONCE, IN_STACK
from spack_cache_db.query.database import json_pieces, select
from spack_cache_db.query.totals import largest_packages
from spack_cache_db.records import INSTALLED
from spack_cache_db.releases import PUBLIC_SITE, is_public_mirror, public_mirror
from spack_cache_db.schema import TARBALL_PATH

TRUST_KEYS = "spack buildcache keys --install --trust"
INSTALL = ("spack", "install", "--cache-only")
"""Users who look for a binary do not want Spack to build one."""
SHORTEST_HASH = 7
MOST_TRIED = 50
"""Binaries that are tried for one whose mirror has a known address."""
EXAMPLES = ("hdf5", "py-numpy", "zlib-ng", "zlib", "cmake")
"""Packages for a new user to install: the first that a release has."""
PLACEHOLDER = "URL-of-your-mirror"
NO_ADDRESS = f"The address of the mirror is not known: put it in place of {PLACEHOLDER}."

# Several mirrors of a release: first one that has the spec, then one with a known address, then
# that of all stacks, then the one with most specs.
MIRROR = """
SELECT mirrors.url, records.spec IS NOT NULL FROM mirrors
JOIN releases ON releases.id = mirrors.release
JOIN stacks ON stacks.id = mirrors.stack
LEFT JOIN specs ON specs.hash = :hash
LEFT JOIN records ON records.spec = specs.id AND records.mirror = mirrors.id
  AND records.is_listed
WHERE releases.name = :release
ORDER BY records.spec IS NULL, mirrors.url IS NULL, NOT stacks.is_root, mirrors.spec_count DESC,
  mirrors.id
LIMIT 1
"""
LOST = """
SELECT specs.last_seen FROM specs
WHERE specs.hash = :hash AND NOT specs.is_current AND EXISTS (
  SELECT 1 FROM mirrors JOIN releases ON releases.id = mirrors.release
  WHERE releases.date IS NULL AND mirrors.url = :url)
"""
TARBALL = """
SELECT tarball FROM build_listings WHERE release = :release AND hash = :hash
"""
PREFIX = """
SELECT tarball_prefixes.url FROM releases
CROSS JOIN listings ON listings.release = releases.id
CROSS JOIN tarball_prefixes
  ON tarball_prefixes.id = listings.tarball AND NOT tarball_prefixes.is_whole
WHERE releases.name = :release LIMIT 1
"""
EXAMPLE = """
SELECT packages.name FROM releases
JOIN release_packages ON release_packages.release = releases.id
JOIN packages ON packages.id = release_packages.package
LEFT JOIN json_each(:names) AS wanted ON wanted.value = packages.name
WHERE releases.name = :release
ORDER BY wanted.key IS NULL, wanted.key, release_packages.configuration_count DESC, packages.name
LIMIT 1
"""
LISTED = """
SELECT releases.name FROM releases
JOIN specs ON specs.hash = :hash
JOIN listings ON listings.release = releases.id AND listings.spec = specs.id
WHERE :release IS NULL OR releases.name = :release
ORDER BY releases.position
"""
INSTALLATIONS = """
SELECT release, prefix, explicit, installed_at, is_external, module, module_tree FROM installations
JOIN releases ON releases.name = installations.release
WHERE hash = :hash ORDER BY releases.position, prefix
"""
_FIRST = f"""
SELECT releases.id FROM releases
CROSS JOIN listings ON listings.release = releases.id AND listings.spec = specs.id
WHERE (:release IS NULL OR releases.id = :release) AND {IN_STACK.format("listings")}
  AND {{}} ORDER BY releases.id LIMIT 1
"""
# The ids of releases are in order, and one of the first releases lists most specs.
FIRST_RELEASE = f"""
SELECT specs.hash, releases.name, releases.kind
FROM json_each(:hashes) AS wanted
CROSS JOIN specs ON specs.hash = wanted.value
JOIN releases ON releases.id = coalesce(
  ({_FIRST.format(f"releases.kind = '{INSTALLED}'")}), ({_FIRST.format(1)}))
"""
NEIGHBOURS = """
SELECT max(hash) FROM specs WHERE hash < :hash
UNION ALL
SELECT min(hash) FROM specs WHERE hash > :hash
"""
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
SELECT packages.name, wanted.value ->> 1, EXISTS (
  SELECT 1 FROM configurations
  JOIN variant_set_members AS member ON member.variant_set = configurations.variants
  JOIN variants ON variants.id = member.variant
  WHERE configurations.package = packages.id AND configurations.spec_count > 0
    AND variants.text = wanted.value ->> 1)
FROM json_each(:examples) AS wanted
JOIN packages ON packages.name = wanted.value ->> 0 AND packages.spec_count > 0
ORDER BY wanted.key
"""


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that install binaries from a mirror, or load installed specs, of Spack or a module.

    Attributes:
        release: the release with the mirror, or the installation; empty for several.
        note: why they may fail as they are, or that the system provides the spec.
        is_known: whether the mirror's address is known; otherwise they have `PLACEHOLDER`.
        load: the command of Spack that loads an installed spec.
        prefix: the folder in which it is installed, if it is known.
        is_explicit: whether it was installed explicitly, and not as a dependency only.
        installed_at: the time in UTC.
        is_external: whether the system provides it.
    """

    commands: tuple[str, ...]
    release: str = ""
    note: str | None = None
    is_known: bool = True
    load: str | None = None
    prefix: str | None = None
    is_explicit: bool = False
    installed_at: str | None = None
    is_external: bool = False

    @property
    def text(self) -> str:
        """The commands as lines, to be copied."""
        return "\n".join(self.commands)

    @property
    def alternative(self) -> str | None:
        """The command of Spack that does the same as those of a module; None without a module."""
        return None if self.load in self.commands else self.load


def installations_of(conn: sqlite3.Connection, package: str, dag_hash: str) -> tuple[Commands, ...]:
    """Return the commands that load a spec, for each installation that has it."""
    rows = [*select(conn, INSTALLATIONS, hash=dag_hash)]
    load = shlex.join(["spack", "load", short_spec(conn, package, dag_hash)]) if rows else ""
    return tuple(
        Commands(
            _module_commands(module, folder) if module else (load,),
            release,
            note="provided by the system" if is_external else None,
            load=load,
            prefix=prefix,
            is_explicit=bool(is_explicit),
            installed_at=installed_at,
            is_external=bool(is_external),
        )
        for release, prefix, is_explicit, installed_at, is_external, module, folder in rows
    )


def _module_commands(module: str, folder: str | None) -> tuple[str, ...]:
    """Return the commands that load modules; the folder is known if several have the module."""
    use = (shlex.join(["module", "use", folder]),) if folder else ()
    return (*use, shlex.join(["module", "load", *module.split()]))


def install_first(
    conn: sqlite3.Connection, package: str, hashes: Iterable[str], release: str | None = None
) -> Commands | None:
    """Return the commands for the first binary whose mirror has a known address.

    If no address is known, the first binary's; None if no release, or not the one named, lists any.
    """
    tried = islice(hashes, MOST_TRIED)
    return _first_known(install_binary(conn, package, dag_hash, release) for dag_hash in tried)


def install_binary(
    conn: sqlite3.Connection, package: str, dag_hash: str, release: str | None = None
) -> Commands | None:
    """Return the commands for a binary; None if no release, or not the one named, lists it.

    Releases are tried in the database's order, because mirrors of old snapshots may be gone.
    """
    releases = [name for (name,) in select(conn, LISTED, hash=dag_hash, release=release)]
    return install_listed(conn, package, dag_hash, releases)


def install_listed(
    conn: sqlite3.Connection, package: str, dag_hash: str, releases: Iterable[str]
) -> Commands | None:
    """Return the commands for a binary, from the first release whose mirror has a known address."""
    return _first_known(install_spec(conn, package, dag_hash, release) for release in releases)


def _first_known(ways: Iterable[Commands | None]) -> Commands | None:
    """Return the first commands with a known address, or else the first commands."""
    first = None
    for commands in filter(None, ways):
        if commands.is_known:
            return commands
        first = first or commands
    return first


def install_spec(conn: sqlite3.Connection, package: str, dag_hash: str, release: str) -> Commands:
    """Return the commands that install a binary from a release, or load it from an installation."""
    if _is_installation(conn, release):
        installed = installations_of(conn, package, dag_hash)
        return next(way for way in installed if way.release == release)
    url = mirror_url(conn, release, dag_hash)
    (last_seen,) = next(select(conn, LOST, hash=dag_hash, url=url), (None,))
    return _commands(release, url, short_spec(conn, package, dag_hash), last_seen)


def _is_installation(conn: sqlite3.Connection, release: str) -> bool:
    kinds = select(conn, "SELECT kind FROM releases WHERE name = :release", release=release)
    return next(kinds, None) == (INSTALLED,)


def commands_of(conn: sqlite3.Connection, package: str, dag_hash: str) -> Commands:
    """Return the commands that load a binary from an installation, or install it from a mirror."""
    for installed in installations_of(conn, package, dag_hash):
        return installed
    return Commands((shlex.join([*INSTALL, short_spec(conn, package, dag_hash)]),))


def short_spec(conn: sqlite3.Connection, package: str, dag_hash: str) -> str:
    """Return the shortest text for a spec: its package, and at least 7 characters of its hash."""
    neighbours = [near for (near,) in select(conn, NEIGHBOURS, hash=dag_hash) if near is not None]
    length = SHORTEST_HASH
    while length < len(dag_hash) and any(near.startswith(dag_hash[:length]) for near in neighbours):
        length += 1
    return f"{package}/{dag_hash[:length]}"


def first_places(
    conn: sqlite3.Connection, hashes: Sequence[str], scope: Conditions
) -> dict[str, tuple[str, str | None]]:
    """Return the first release in a scope that lists each hash, and the URL of its mirror.

    An installation comes before all other releases, and has no mirror.
    """
    names = {kind: asked(scope, kind) for kind in ("release", "stack")}
    pieces = json_pieces(hashes, HASHES_AT_ONCE)
    rows = (select(conn, FIRST_RELEASE, hashes=piece, **names) for piece in pieces)
    return {
        dag_hash: (release, None if kind == INSTALLED else mirror_url(conn, release, dag_hash))
        for dag_hash, release, kind in chain.from_iterable(rows)
    }


def explicit_count(conn: sqlite3.Connection, release: str) -> int:
    """Return how many specs of an installation were asked for by name."""
    sql = "SELECT count(*) FROM installations WHERE release = :release AND explicit = 1"
    return int(next(select(conn, sql, release=release))[0])


def install_example(conn: sqlite3.Connection, release: str) -> Commands:
    """Return the commands for a new user of a release."""
    names = json.dumps(EXAMPLES)
    (name,) = next(select(conn, EXAMPLE, release=release, names=names), EXAMPLES[:1])
    if _is_installation(conn, release):
        load = shlex.join(["spack", "load", name])
        return Commands((load,), release, load=load)
    return _commands(release, mirror_url(conn, release), name)


def mirror_url(conn: sqlite3.Connection, release: str, dag_hash: str | None = None) -> str | None:
    """Return the address of the mirror of a release; None if no source has it.

    In this order: the mirror that has the binary, the address of its tarball, another mirror of the
    release, and Spack's public cache for a release that was read from pages.
    """
    mirrors: Iterator[tuple[str | None, bool | None]]
    mirrors = select(conn, MIRROR, release=release, hash=dag_hash)
    url, has_spec = next(mirrors, (public_mirror(release), None))
    if dag_hash is None:
        prefixes = () if has_spec is not None else select(conn, PREFIX, release=release)
        return next((prefix for (prefix,) in prefixes), None) or url
    if has_spec:
        return url
    (tarball,) = next(select(conn, TARBALL, release=release, hash=dag_hash), ("",))
    prefix, path, _ = (tarball or "").partition(TARBALL_PATH[0])
    return (prefix if path else None) or url


def _commands(release: str, url: str | None, spec: str, last_seen: str | None = None) -> Commands:
    """Return the commands that install a spec; `last_seen` if the mirror lists it no longer."""
    mirror = shlex.join(["spack", "mirror", "add", release, url or PLACEHOLDER])
    note = None if url else NO_ADDRESS
    if last_seen:
        note = f"the mirror no longer lists this binary; it was last listed on {last_seen}"
    return Commands(
        (mirror, TRUST_KEYS, shlex.join([*INSTALL, spec])), release, note, is_known=bool(url)
    )


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
