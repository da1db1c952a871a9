"""The build cache in a database, and how to use it: commands for a shell, example queries."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, ClassVar
from urllib.parse import urlsplit

from spack_cache_db.query.answers import Found
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.configurations import HASHES_AT_ONCE, IN_STACK
from spack_cache_db.query.database import json_pieces, select
from spack_cache_db.records import INSTALLED
from spack_cache_db.releases import PUBLIC_SITE, is_public_mirror, public_mirror
from spack_cache_db.schema import TARBALL_PATH

TRUST_KEYS = "spack buildcache keys --install --trust"
INSTALL = ("spack", "install", "--cache-only")
"""Users who look for a binary do not want Spack to build one."""
SHORTEST_HASH = 7
MOST_TRIED = 50
"""Binaries, or releases, that are tried for one whose mirror has a known address."""
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
EXPLICIT = "SELECT count(*) FROM installations WHERE release = :release AND explicit = 1"
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
KIND = "SELECT kind FROM releases WHERE name = :release"
NEIGHBOURS = """
SELECT max(hash) FROM specs WHERE hash < :hash
UNION ALL
SELECT min(hash) FROM specs WHERE hash > :hash
"""
HAS_PAGES = "SELECT EXISTS (SELECT 1 FROM pages)"
URLS = """
SELECT DISTINCT url FROM mirrors JOIN releases ON releases.id = mirrors.release
WHERE releases.kind <> 'installed' ORDER BY url
"""
TREES = "SELECT name FROM releases WHERE kind = 'installed' ORDER BY position"
PUBLIC = "Spack's public build cache"
MOST_NAMED = 3
VARIANTS = ("+mpi", "+cuda", "+shared")
"""Well-known variants, the best known first."""
SEARCHES = (
    ("py-torch", "+cuda"),
    ("hdf5", "+mpi"),
    ("openmpi", ""),
    ("petsc", ""),
    ("py-numpy", ""),
    ("cmake", ""),
    ("gcc", ""),
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
LARGEST = """
SELECT name FROM packages WHERE spec_count > 0 ORDER BY spec_count DESC, name LIMIT 4
"""


@dataclass(frozen=True, slots=True)
class Install:
    """The three commands that install a binary, and the release whose mirror they use.

    Attributes:
        is_known: whether the mirror's address is known; otherwise the commands have `PLACEHOLDER`.
        last_seen: the last day on which the mirror listed the binary, if it lists it no longer.
    """

    release: str
    mirror: str
    trust: str
    install: str
    is_known: bool
    last_seen: str | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """All three, in their order."""
        return self.mirror, self.trust, self.install

    @property
    def note(self) -> str | None:
        """The reason why the commands may fail as they are; None if they are ready."""
        if self.last_seen:
            return f"the mirror no longer lists this binary; it was last listed on {self.last_seen}"
        return None if self.is_known else NO_ADDRESS


@dataclass(frozen=True, slots=True)
class Installation:
    """A spec, or a package, of an installation.

    Attributes:
        release: the installation.
        load: the command of Spack that makes it usable in a shell.
        prefix: the folder in which it is installed; None if it is not known, or for a package.
        is_explicit: whether it was installed explicitly, and not as a dependency only.
        installed_at: the time in UTC.
        is_external: whether the system provides it.
        module: the modules to load for it, with blanks between several.
        module_tree: the folder of modules to use first, where several have one of this name.
    """

    release: str
    load: str
    prefix: str | None = None
    is_explicit: bool = False
    installed_at: str | None = None
    is_external: bool = False
    module: str | None = None
    module_tree: str | None = None

    is_known: ClassVar[bool] = True

    @property
    def note(self) -> str | None:
        """The origin of an external; None for what Spack installed."""
        return "provided by the system" if self.is_external else None

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands to use: of a module if it has one, and otherwise of Spack."""
        if not self.module:
            return (self.load,)
        use = (shlex.join(["module", "use", self.module_tree]),) if self.module_tree else ()
        return (*use, shlex.join(["module", "load", *self.module.split()]))

    @property
    def alternative(self) -> str | None:
        """The command of Spack that does the same as the module; None without a module."""
        return self.load if self.module else None


def installations_of(
    conn: sqlite3.Connection, package: str, dag_hash: str
) -> tuple[Installation, ...]:
    """Return the installations that have a spec, in their order."""
    rows = [*select(conn, INSTALLATIONS, hash=dag_hash)]
    load = shlex.join(["spack", "load", short_spec(conn, package, dag_hash)]) if rows else ""
    return tuple(
        Installation(release, load, prefix, bool(is_explicit), when, bool(is_external), *module)
        for release, prefix, is_explicit, when, is_external, *module in rows
    )


def install_found(
    conn: sqlite3.Connection, found: Sequence[Found], release: str | None
) -> Install | Installation | None:
    """Return the commands for the first binary found whose mirror has a known address.

    Every answer that names a release to install from goes by the order of releases: the one of
    `build --first`, installations, branches, releases, and snapshots last, because mirrors of old
    snapshots may be gone.

    Args:
        conn: a connection to the database.
        found: configurations with their hashes, in the order of `find`; those of other packages
            than the first are ignored.
        release: the release to install from; None for the first that lists the binary.

    Returns:
        The commands for the first binary if no mirror has a known address; None if no release
        lists a binary.
    """
    package = found[0].package
    of_package = (each.hashes or () for each in found if each.package == package)
    ways = (
        install
        for dag_hash in islice(chain.from_iterable(of_package), MOST_TRIED)
        if (install := install_binary(conn, package, dag_hash, release)) is not None
    )
    return _first_known(ways)


def install_binary(
    conn: sqlite3.Connection, package: str, dag_hash: str, release: str | None = None
) -> Install | Installation | None:
    """Return the commands for a binary; None if no release, or not the one named, lists it."""
    listed = [row[0] for row in select(conn, LISTED, hash=dag_hash)]
    releases = [each for each in listed if release in (None, each)]
    return install_listed(conn, package, dag_hash, releases) if releases else None


def install_listed(
    conn: sqlite3.Connection, package: str, dag_hash: str, releases: Sequence[str]
) -> Install | Installation:
    """Return the commands for a binary, from the first release whose mirror has a known address."""
    ways = (install_spec(conn, package, dag_hash, each) for each in releases)
    return _first_known(ways) or install_spec(conn, package, dag_hash, releases[0])


def _first_known(ways: Iterable[Install | Installation]) -> Install | Installation | None:
    """Return the first way with a known address, or else the first one."""
    first = None
    for way in ways:
        if way.is_known:
            return way
        first = first or way
    return first


def install_spec(
    conn: sqlite3.Connection, package: str, dag_hash: str, release: str
) -> Install | Installation:
    """Return the commands that install a binary from a release, or load it from an installation."""
    if _is_tree(conn, release):
        known = installations_of(conn, package, dag_hash)
        return next(each for each in known if each.release == release)
    spec = short_spec(conn, package, dag_hash)
    url = mirror_url(conn, release, dag_hash)
    (last_seen,) = next(select(conn, LOST, hash=dag_hash, url=url), (None,))
    return replace(_commands(release, url, spec), last_seen=last_seen)


def _is_tree(conn: sqlite3.Connection, release: str) -> bool:
    return next(select(conn, KIND, release=release), None) == (INSTALLED,)


def command_of(conn: sqlite3.Connection, package: str, dag_hash: str, *, is_installed: bool) -> str:
    """Return the command that installs a binary from a mirror, or loads it from an installation."""
    if is_installed:
        return "\n".join(installations_of(conn, package, dag_hash)[0].commands)
    return shlex.join([*INSTALL, short_spec(conn, package, dag_hash)])


def short_spec(conn: sqlite3.Connection, package: str, dag_hash: str) -> str:
    """Return the shortest text for a spec: its package, and the beginning of its hash."""
    near = tuple(row[0] for row in select(conn, NEIGHBOURS, hash=dag_hash) if row[0] is not None)
    return f"{package}/{shortest_prefix(dag_hash, near)}"


def foremost_places(
    conn: sqlite3.Connection, hashes: Sequence[str], scope: Conditions
) -> dict[str, tuple[str, str | None]]:
    """Return the first release in a scope that lists each hash, and the URL of its mirror.

    An installation comes before all other releases, and has no mirror.
    """
    given = {"release": asked(scope, "release"), "stack": asked(scope, "stack")}
    pieces = json_pieces(hashes, HASHES_AT_ONCE)
    rows = (select(conn, FIRST_RELEASE, hashes=piece, **given) for piece in pieces)
    return {
        dag_hash: (release, None if kind == INSTALLED else mirror_url(conn, release, dag_hash))
        for dag_hash, release, kind in chain.from_iterable(rows)
    }


def explicit_count(conn: sqlite3.Connection, release: str) -> int:
    """Return how many specs of an installation were asked for by name."""
    return int(next(select(conn, EXPLICIT, release=release))[0])


def install_example(conn: sqlite3.Connection, release: str) -> Install | Installation:
    """Return the commands for a new user of a release."""
    names = json.dumps(EXAMPLES)
    (name,) = next(select(conn, EXAMPLE, release=release, names=names), EXAMPLES[:1])
    if _is_tree(conn, release):
        return Installation(release, shlex.join(["spack", "load", name]))
    return _commands(release, mirror_url(conn, release), name)


def mirror_url(conn: sqlite3.Connection, release: str, dag_hash: str | None = None) -> str | None:
    """Return the address of the mirror of a release; None if no source has it.

    It is the address of the mirror that has the binary; otherwise that of the binary's tarball, as
    pages list it; otherwise that of a mirror of the release; and that of Spack's public cache for
    a release without mirrors, because it was read from pages.
    """
    mirrors: Iterator[Any] = select(conn, MIRROR, release=release, hash=dag_hash)
    url: str | None
    url, has_spec = next(mirrors, (public_mirror(release), None))
    if has_spec or (has_spec is not None and dag_hash is None):
        return url
    if dag_hash is None:
        return next((row[0] for row in select(conn, PREFIX, release=release)), None) or url
    tarballs = select(conn, TARBALL, release=release, hash=dag_hash)
    prefix, path, _ = (next(tarballs, (None,))[0] or "").partition(TARBALL_PATH[0])
    return (prefix if path else None) or url


def _commands(release: str, url: str | None, spec: str) -> Install:
    mirror = shlex.join(["spack", "mirror", "add", release, url or PLACEHOLDER])
    install = shlex.join([*INSTALL, spec])
    return Install(release, mirror, TRUST_KEYS, install, url is not None)


def shortest_prefix(dag_hash: str, neighbours: tuple[str, ...]) -> str:
    """Return the shortest prefix of at least 7 characters that no neighbouring hash has."""
    length = SHORTEST_HASH
    while length < len(dag_hash) and any(each.startswith(dag_hash[:length]) for each in neighbours):
        length += 1
    return dag_hash[:length]


@dataclass(frozen=True, slots=True)
class Origin:
    """The build cache in a database.

    Attributes:
        title: the title of a site that shows it.
        owner: its owner, as the subject of a sentence.
        url: the only address of all of it on the web; None otherwise.
        is_public: whether all of it is Spack's public build cache.
    """

    title: str
    owner: str
    url: str | None
    is_public: bool


def read_origin(conn: sqlite3.Connection) -> Origin:
    """Return which build cache a database contains."""
    has_pages = bool(next(select(conn, HAS_PAGES))[0])
    urls = [url for (url,) in select(conn, URLS)]
    has_public = has_pages or any(url and is_public_mirror(url) for url in urls)
    own = [url for url in urls if not (url and is_public_mirror(url))]
    trees = [name for (name,) in select(conn, TREES)]
    owners = [f"the installation{'s' * (len(trees) > 1)} {_listed(trees)}"] if trees else []
    if trees and not (has_pages or urls):
        return Origin("Installed software", owners[0], None, is_public=False)
    if not own:
        owners.append(PUBLIC)
        url = None if trees else PUBLIC_SITE
        return Origin("Spack build cache", " and ".join(owners), url, is_public=not trees)
    # The host in an address, or all of an address that has none.
    names = sorted({urlsplit(url).netloc or url for url in own if url})
    known = _listed(names) if names else None
    title = (
        f"Build {'cache' if len(names) == 1 else 'caches'} of {known}" if known else "Build cache"
    )
    owners += [PUBLIC] if has_public else []
    owners += [f"{'the mirror' if len(names) == 1 else 'mirrors'} at {known}"] if known else []
    owners += ["a mirror"] if None in own else []
    web = own[0] if len(own) == 1 and not (has_public or trees) else None
    url = web if web and web.startswith(("http://", "https://")) else None
    return Origin(title, " and ".join(owners), url, is_public=False)


def _listed(names: list[str]) -> str:
    """Return names as one text: the first ones, and the number of the others."""
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def read_examples(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Return specs that find something, the best known first; none if there is no binary."""
    known = [*select(conn, KNOWN_EXAMPLES, examples=json.dumps(SEARCHES))]
    found = [
        f"{name} {variant}".strip() if has_variant else name for name, variant, has_variant in known
    ]
    largest = [name for (name,) in select(conn, LARGEST)]
    named = {each[0] for each in known}
    return (*found, *(name for name in largest if name not in named))[:MOST_EXAMPLES]
