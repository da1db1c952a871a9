"""Package data of Spack (descriptions, versions, variants, recipes) beside the binaries."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from math import log1p
from typing import Any, NamedTuple
from urllib.parse import quote

from spack_cache_db.arguments import AnyPath, checked_file
from spack_cache_db.errors import DatabaseError, printable
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.configurations import counted_part, matching
from spack_cache_db.query.database import Database, Lookups, connected, opened, select, select_in
from spack_cache_db.query.names import read_spellings, scope_of
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.versions import newest_version

_BINARIES = "SELECT name, newest_version, spec_count FROM packages WHERE name = :name"
_VERSIONS = """
SELECT version, deprecated, kind FROM known_versions WHERE package = :name
ORDER BY position DESC
"""
_VARIANTS = """
SELECT name, default_value, description FROM known_variants WHERE package = :name ORDER BY name
"""
_PROVIDED = "SELECT virtual FROM providers WHERE package = :package ORDER BY virtual"
_DEPENDENTS = """
SELECT packages.name FROM known_dependencies
JOIN packages ON packages.name = known_dependencies.package AND packages.release_count > 0
WHERE known_dependencies.dependency = :name ORDER BY packages.name
"""
_WITH_BINARY = """
SELECT DISTINCT versions.name FROM packages
JOIN configurations ON configurations.package = packages.id AND configurations.spec_count > 0
JOIN versions ON versions.id = configurations.version
WHERE packages.name = :name
"""
_VARIANTS_WITH_BINARY = """
SELECT DISTINCT variants.name FROM packages
JOIN configurations ON configurations.package = packages.id AND configurations.spec_count > 0
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
WHERE packages.name = :name
"""
_HAS_DATA = "SELECT EXISTS (SELECT 1 FROM known_packages)"
_LATEST = """
SELECT packages.name, latest_version
FROM packages JOIN known_packages ON known_packages.name = packages.name
"""
_KNOWN = """
SELECT name, latest_version, dependent_count, substr(description, 1, 400)
FROM known_packages ORDER BY name
"""
_SUMMARIZED = """
SELECT packages.name, packages.spec_count, substr(known_packages.description, 1, 400)
FROM packages LEFT JOIN known_packages ON known_packages.name = packages.name
WHERE packages.release_count > 0 ORDER BY packages.name
"""
_UNBUILT = "SELECT name FROM package_status WHERE spec_count = 0 ORDER BY name"
_EVERYWHERE = frozenset(("commit", "dev_path", "patches"))
"""Variants that Spack 1.1 accepts for any package (`variant.py`, `RESERVED_NAMES`)."""
PUBLIC_NAMESPACE = "builtin"
PUBLIC_RECIPES = "https://packages.spack.io/package.html?name={package}"
_NO_LONGER = "https://github.com/spack/spack/blob/develop/var/spack/"
"""The place of recipes before they had a repository of their own (Spack 1.0)."""
NAMESPACES = """
SELECT DISTINCT nodes.namespace
FROM packages
JOIN configurations ON configurations.package = packages.id
JOIN specs ON specs.configuration = configurations.id
JOIN records ON records.spec = specs.id
JOIN nodes ON nodes.id = records.node
WHERE packages.name = :package ORDER BY nodes.namespace
"""
RECIPES = "SELECT namespace, url FROM recipes"
_WITH_WORD = """
SELECT known_packages.id, known_packages.name, coalesce(description, ''), dependent_count
FROM known_packages_fts JOIN known_packages ON known_packages.id = known_packages_fts.rowid
WHERE known_packages_fts MATCH :match
"""
_COUNT = "SELECT coalesce(max(id), 0) FROM known_packages"
_STATUS_COLUMNS = """
package_status.name, package_status.description, package_status.homepage,
package_status.latest_version, newest_version, package_status.versions_behind, spec_count
"""
_PACKAGE = f"""
SELECT id, build_system, recipe, dependent_count, {_STATUS_COLUMNS}
FROM known_packages JOIN package_status ON package_status.name = known_packages.name
WHERE known_packages.name = :name
"""
_FOUND = f"""
SELECT id, {_STATUS_COLUMNS}
FROM known_packages JOIN package_status ON package_status.name = known_packages.name
WHERE known_packages.id IN (SELECT value FROM json_each(:ids))
"""
_EVERY_WORD = 8.0
"""The score for all words together: as much as for a rare one."""
_IN_NAME = 4.0
"""A word of the name counts as much as several of the description."""
_NAME = 20.0
"""The score for a word that is the whole name."""
_USUAL_LENGTH = 170
"""Characters of the average description of Spack's."""
_USE = 1.2
"""The score for the logarithm of the number of dependents: people look for what many use."""
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?] ")
_SMALL = frozenset(("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
MOST_WORDS = 12
_STATUS = f"SELECT {_STATUS_COLUMNS} FROM package_status ORDER BY name"
_BEHIND = """
SELECT packages.name, versions.name, versions_behind FROM versions
JOIN packages ON packages.id = versions.package WHERE versions_behind IS NOT NULL
"""


class PackageVersion(NamedTuple):
    """A version of Spack's; `deprecated` is None where the data does not say it."""

    version: str
    deprecated: bool | None
    kind: str


class VariantMeaning(NamedTuple):
    """A variant of Spack's: what it is if nothing else is asked, and what it means."""

    name: str
    default: str
    description: str

    @property
    def default_text(self) -> str:
        """The default as a spec says it, such as `+mpi` and `build_type=Release`."""
        switch = {"true": "+", "false": "~"}.get(self.default, "")
        values = "" if switch else f"={','.join(self.default_values)}"
        return printable(f"{switch}{self.name}{values}")

    @property
    def default_values(self) -> tuple[str, ...]:
        """The values of the default, sorted as specs have them."""
        return tuple(sorted(self.default.split(",")))

    @property
    def meaning(self) -> str:
        """The description as one printable line."""
        return one_line(self.description)


class VariantNote(NamedTuple):
    """A note about a variant: whether it is Spack's default, and what it means."""

    is_default: bool
    hint: str


@dataclass(frozen=True, slots=True)
class PackageData:
    """A package as package data describes it.

    Attributes:
        status: the package, and how its binaries compare with Spack's versions.
        build_system: the class of its recipe.
        recipe: the address of its recipe, as the data has it.
        dependent_count: how many packages depend on it; None where the database has no package data
            of it, and with it nothing else but `status`.
        versions: newest first.
        variants: by name.
        provides: the virtual packages that it is known to provide.
        dependents: the packages with binaries that depend on it.
    """

    status: PackageStatus
    build_system: str | None
    recipe: str | None
    dependent_count: int | None
    versions: tuple[PackageVersion, ...]
    variants: tuple[VariantMeaning, ...]
    provides: tuple[str, ...]
    dependents: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The description as one printable line."""
        return one_line(self.status.description or "")

    @property
    def homepage_url(self) -> str | None:
        """The address of the homepage, if it is one of the web."""
        return self.status.homepage if _is_of_the_web(self.status.homepage) else None

    @property
    def recipe_url(self) -> str | None:
        """The address of the recipe on the web.

        Spack prints the addresses of all recipes as those of a folder that it no longer has; of its
        own packages, the site that publishes their data shows the recipes.
        """
        if self.recipe is None:
            is_public = self.build_system is not None
        elif self.recipe.startswith(_NO_LONGER):
            is_public = f"/{PUBLIC_NAMESPACE}/" in self.recipe
        else:
            return self.recipe if _is_of_the_web(self.recipe) else None
        name = quote(self.status.name, safe="")
        return PUBLIC_RECIPES.format(package=name) if is_public else None

    @property
    def comparison(self) -> str:
        """The newest binary beside Spack's version, as a sentence."""
        status, latest = self.status, printable(self.status.latest_version or "")
        if status.newest_version is None or not latest:
            return f"Spack has {latest}." if latest else ""
        if not status.versions_behind:
            return f"The newest binary is {status.newest_version}; Spack has none that is newer."
        newest = f"The newest binary is {status.newest_version}, Spack has {latest}"
        if status.versions_behind == 1:
            return f"{newest}: one version behind."
        return f"{newest}: {status.versions_behind:,} versions behind."

    def variant_notes(self, texts: Iterable[str]) -> Mapping[str, VariantNote]:
        """Return what to say beside variants, such as `+mpi`; nothing of those Spack has not."""
        known = {each.name: each for each in self.variants}
        found = {}
        for text in texts:
            shown = readable_variant(text)
            if shown is not None and (variant := known.get(shown.name)):
                is_default = shown.values == variant.default_values
                default = "the default" if is_default else f"default {variant.default_text}"
                found[text] = VariantNote(
                    is_default, "; ".join(filter(None, (variant.meaning, default)))
                )
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return what `/package/<name>.json` answers."""
        return {
            **self.status.as_dict(),
            **{key: getattr(self, key) for key in ("build_system", "recipe", "dependent_count")},
            "versions": [each._asdict() for each in self.versions],
            "variants": [each._asdict() for each in self.variants],
            "provides": [*self.provides],
            "dependents": [*self.dependents],
        }


def package_data(db: Database, name: str) -> PackageData | None:
    """Return what package data says of a package, and how many binaries it has.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        name: the package, in any spelling (`spellings`).

    Returns:
        None if the database has neither a binary nor package data of it.

    Raises:
        ArgumentError: a path or limit has a wrong type.
        DatabaseError: the file is not one of this builder.
    """
    with opened(db) as lookups:
        name = read_spellings(lookups).canonical("package", name)
        return read_package_data(lookups.conn, name) or read_binaries(lookups.conn, name)


def read_binaries(conn: sqlite3.Connection, name: str) -> PackageData | None:
    """Return what is known of a package without package data; None if the package is unknown."""
    found = next(select(conn, _BINARIES, name=name), None)
    if found is None:
        return None
    name, newest, count = found
    status = PackageStatus(name, None, None, None, newest, None, count)
    return PackageData(status, None, None, None, (), (), (), ())


def package_names(file: AnyPath) -> tuple[str, ...]:
    """Return the names of the packages in a database, sorted.

    Raises:
        ArgumentError: the file is not a path.
        DatabaseError: see `open_database`.
    """
    with connected(checked_file("file", file)) as conn:
        return tuple(name for (name,) in select(conn, "SELECT name FROM packages ORDER BY name"))


def read_package_data(conn: sqlite3.Connection, name: str) -> PackageData | None:
    """Return what package data says of a package; None if the file has none of it."""
    found = next(select(conn, _PACKAGE, name=name), None)
    if found is None:
        return None
    key, build_system, recipe, dependent_count, *status = found
    return PackageData(
        status=PackageStatus(*status),
        build_system=build_system,
        recipe=recipe,
        dependent_count=dependent_count,
        versions=tuple(
            PackageVersion(version, None if deprecated is None else bool(deprecated), kind)
            for version, deprecated, kind in select(conn, _VERSIONS, name=name)
        ),
        variants=tuple(VariantMeaning(*row) for row in select(conn, _VARIANTS, name=name)),
        provides=tuple(virtual for (virtual,) in select(conn, _PROVIDED, package=key)),
        dependents=tuple(dependent for (dependent,) in select(conn, _DEPENDENTS, name=name)),
    )


def one_line(text: str) -> str:
    """Return a text as one printable line."""
    return printable(" ".join(text.split()))


def _is_of_the_web(url: str | None) -> bool:
    return url is not None and url.startswith(("https://", "http://")) and url.isprintable()


def recipe_notes(lookups: Lookups, query: SpecQuery) -> tuple[str, ...]:
    """Return the versions and variants of a query that Spack does not have, or no binary has.

    Empty if the database has no package data of the package.
    """
    name = query.name
    if name is None:
        return ()
    data = read_package_data(lookups.conn, name)
    if data is None:
        return ()

    def built(sql: str) -> Collection[str]:
        return {text for (text,) in select(lookups.conn, sql, name=name)}

    notes, built_versions = list[str](), built(_WITH_BINARY)
    known = [each.version for each in data.versions]
    if known and query.versions is not None:
        fitting, text = [*filter(query.versions.contains, known)], query.versions.text
        if not fitting:
            newest = newest_version(known)
            notes.append(f"Spack has no version {text} of {name}, its newest is {newest}")
        elif built_versions and not any(map(query.versions.contains, built_versions)):
            newest = newest_version(fitting)
            notes.append(f"Spack has version {newest} of {name}, no binary has it")
    variants = [each.name for each in data.variants]
    built_variants = built(_VARIANTS_WITH_BINARY) if built_versions else variants
    for each in query.variants if variants else ():
        if each.name not in variants and each.name not in _EVERYWHERE:
            close = difflib.get_close_matches(each.name, variants, 3)
            near = f" (near: {', '.join(close)})" if close else ""
            notes.append(f"Spack has no variant {each.name!r} of {name}{near}")
        elif each.name in variants and each.name not in built_variants:
            notes.append(f"Spack has the variant {each.name!r} of {name}, no binary has it")
    return tuple(notes)


def recipe_links(conn: sqlite3.Connection, package: str) -> dict[str, str]:
    """Return the address of the recipe in each namespace of a package where it is known.

    A package that pages alone tell of is one of Spack's own. Of another namespace nothing is known
    but what whoever built the file said of it.
    """
    known = {PUBLIC_NAMESPACE: PUBLIC_RECIPES, **dict(select(conn, RECIPES))}
    names = [name for (name,) in select(conn, NAMESPACES, package=package)] or [PUBLIC_NAMESPACE]
    return {
        name: known[name].replace("{package}", quote(package, safe=""))
        for name in names
        if name in known
    }


def described_packages(
    conn: sqlite3.Connection, text: str, limit: int, *, every_word: bool = False
) -> list[PackageStatus]:
    """Return the packages whose name or description has most words of a text, the best first.

    Only package data has descriptions: without it, nothing is found.

    Args:
        conn: a connection to the database.
        text: the words.
        limit: the most packages to return.
        every_word: only packages with all of the words.
    """
    words = [*dict.fromkeys(_WORD.findall(text.lower()))]
    words = [each for each in words if each not in _SMALL][:MOST_WORDS]
    ((count,),) = select(conn, _COUNT)
    scores: dict[int, float] = {}
    found_words: Counter[int] = Counter()
    for word in words:
        rows = [*select(conn, _WITH_WORD, match=f'"{word}"')]
        rarity = log1p((count - len(rows) + 0.5) / (len(rows) + 0.5))
        for key, name, description, dependents in rows:
            found_words[key] += 1
            if key not in scores:
                scores[key] = _USE * log1p(dependents)
            scores[key] += _EVERY_WORD / len(words) + _NAME * (name == word)
            scores[key] += rarity * _weight(word, name, description)
    if every_word:
        scores = {key: score for key, score in scores.items() if found_words[key] == len(words)}
    best = nsmallest(limit, scores, key=lambda key: (-scores[key], key))
    found = {key: PackageStatus(*row) for key, *row in select_in(conn, _FOUND, best)}
    return [found[key] for key in best]


def _weight(word: str, name: str, description: str) -> float:
    """Return what a word of a package is worth, by Okapi BM25 with its usual constants.

    FTS5's own `bm25` needs an index with positions, which is four times as large.
    """
    times: float = max(1, description.lower().count(word))
    stem = word.rstrip("s")
    if stem in name and stem in (part.rstrip("s") for part in name.split("-")):
        times += _IN_NAME
    return times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(description) / _USUAL_LENGTH))


def summary_of(description: str) -> str:
    """Return the first sentence of a description, or of a long one its beginning."""
    text = one_line(description)
    end = _SENTENCE_END.search(text)
    first = text[: end.start() + 1] if end else text
    return first if len(first) <= 160 else f"{first[:157].rstrip()}..."


class PackageStatus(NamedTuple):
    """A package that Spack has, and what binaries there are of it.

    Attributes:
        name: the package.
        description: what it is for; None where the data does not say it.
        homepage: its address, as the recipe has it: not every text is a URL.
        latest_version: the version that Spack prefers.
        newest_version: the newest version of a binary; None where there is none.
        versions_behind: how many numbered versions are newer than that and not deprecated; None
            without a binary or package data.
        spec_count: the binaries.
    """

    name: str
    description: str | None
    homepage: str | None
    latest_version: str | None
    newest_version: str | None
    versions_behind: int | None
    spec_count: int

    @property
    def summary(self) -> str:
        """The first sentence of the description as a printable line, shortened if it is long."""
        return summary_of(self.description or "")

    def as_dict(self) -> dict[str, Any]:
        """Return what `behind --json` prints of a package."""
        return self._asdict()


def behind(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> list[PackageStatus]:
    """Return the packages whose newest binary is older than Spack's newest version, by name.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        release: only binaries that this release lists.
        stack: only binaries in this stack; in that release, where one is given.

    Raises:
        ArgumentError: a path or limit has a wrong type.
        UnknownNameError: the file has no such release or stack.
        DatabaseError: the file is not one of this builder, or has no package data.
    """
    with opened(db) as lookups:
        known = compared_with_spack(lookups, release=release, stack=stack)
    return [each for each in known if each.versions_behind]


def compared_with_spack(
    lookups: Lookups, release: str | None = None, stack: str | None = None
) -> list[PackageStatus]:
    """Return every package that Spack has, behind or not; the arguments are those of `behind`.

    Raises:
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database has no package data.
    """
    scope = scope_of(lookups, release=release, stack=stack)
    found = [PackageStatus(*row) for row in select(lookups.conn, _STATUS)]
    if not found:
        data = "the output of spack list --format version_json"
        raise DatabaseError(f"the database has no package data; build it with {data} as well")
    return [*_within(lookups, scope, found)] if scope else found


def has_package_data(conn: sqlite3.Connection) -> bool:
    """Return whether packages can be compared with Spack's."""
    return bool(next(select(conn, _HAS_DATA))[0])


def latest_versions(conn: sqlite3.Connection) -> dict[str, str]:
    """Return Spack's latest version of each package of the database."""
    return dict(select(conn, _LATEST))


def known_packages(conn: sqlite3.Connection) -> Iterator[tuple[str, str, int, str]]:
    """Yield the packages of the package data: name, latest version, dependents, summary."""
    for name, latest, dependents, description in select(conn, _KNOWN):
        yield name, latest, dependents, summary_of(description or "")


def summarized_packages(conn: sqlite3.Connection) -> Iterator[tuple[str, int, str]]:
    """Yield the packages that have a binary: name, number of binaries, summary."""
    for name, count, description in select(conn, _SUMMARIZED):
        yield name, count, summary_of(description or "")


def unbuilt_packages(conn: sqlite3.Connection) -> list[str]:
    """Return the names of Spack's packages without a binary."""
    return [name for (name,) in select(conn, _UNBUILT)]


def versions_behind(conn: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Return how many released versions are newer, by package and version."""
    return {(name, version): behind for name, version, behind in select(conn, _BEHIND)}


def _within(
    lookups: Lookups, scope: Conditions, found: list[PackageStatus]
) -> Iterator[PackageStatus]:
    """Yield packages with the binaries of a scope in the place of all."""
    behind = versions_behind(lookups.conn)
    versions, counts = defaultdict[str, set[str]](set), Counter[str]()
    for each in counted_part(lookups, matching(lookups, scope), slice(None)):
        versions[each.configuration.package].add(each.configuration.version)
        counts[each.configuration.package] += each.spec_count
    for status in found:
        newest = newest_version(versions[status.name])
        count = behind.get((status.name, newest or ""))
        yield status._replace(
            newest_version=newest, versions_behind=count, spec_count=counts[status.name]
        )
