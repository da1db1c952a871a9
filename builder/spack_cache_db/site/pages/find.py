"""The search page."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlencode

from spack_cache_db.query.answers import (
    ResultSet,
    UnknownNameError,
    counted_part,
    matching,
    notes_on,
)
from spack_cache_db.query.candidates import Candidates
from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.connection import is_interrupted, select
from spack_cache_db.query.explanation import WhyNot, why_corrected, why_not
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.plain_words import FILLERS, Reading, read_words
from spack_cache_db.query.questions import question_of
from spack_cache_db.query.refusals import UnsupportedQuery
from spack_cache_db.query.selection import package_id
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.filters import EVERYWHERE, Narrowing, hosts_of
from spack_cache_db.site.pages.package import PAGE_ROWS, folded
from spack_cache_db.site.pages.spec import MOST_CANDIDATES, is_hash_prefix
from spack_cache_db.site.sandbox.spec_functions import parse
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.targets import family, runs_on

PACKAGES = "SELECT name, spec_count FROM packages WHERE release_count > 0 ORDER BY name"
TARGETS = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = 'targets'"

KINDS = ("package", "release", "stack", "target")
"""What a name may be of, the first first where it is of several."""
MOST_SUGGESTED = 8
LONGEST = 80
"""No name is longer that anybody types."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name, what it is of, and how many specs that has."""

    name: str
    kind: str
    spec_count: int

    @property
    def address(self) -> str:
        """The path of its page."""
        if self.kind == "target":
            field = "has" if self.name == family(self.name) else "host"
            return f"/packages?{urlencode({field: self.name})}"
        return f"/{self.kind}/{quote(self.name)}"


def load_names(conn: sqlite3.Connection, lookups: Lookups) -> tuple[Name, ...]:
    """Return every name, in the order of `KINDS`: releases as the file has them, others sorted."""
    return (
        *(Name(name, "package", count) for name, count in select(conn, PACKAGES)),
        *(Name(each.name, "release", each.spec_count) for each in lookups.releases.values()),
        *(Name(each.name, "stack", each.spec_count) for each in lookups.stacks.values()),
        *_targets(dict(select(conn, TARGETS))),
    )


def _targets(counts: Mapping[str, int]) -> Iterator[Name]:
    """Yield every machine on which something runs, and how many specs do; of a family all."""
    names = {name for hosts in hosts_of(counts).values() for name in hosts}
    for name in sorted(names | {*map(family, counts)}):
        fits = (
            count
            for target, count in counts.items()
            if runs_on(target, name) or family(target) == name
        )
        yield Name(name, "target", sum(fits))


def named(names: tuple[Name, ...], text: str) -> Name | None:
    """Return what is called so, capitals aside."""
    wanted = text.strip().lower()
    return next((each for each in names if each.name.lower() == wanted), None)


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that a text is part of, capitals aside: those first that begin with it."""
    wanted = text.strip().lower()
    if not wanted or len(wanted) > LONGEST:
        return []
    found = [each for each in names if wanted in each.name.lower()]
    return sorted(found, key=lambda each: not each.name.lower().startswith(wanted))


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return what to suggest to somebody who has typed so much: names and what they are of."""
    return [{"name": each.name, "kind": each.kind} for each in having(names, text)[:MOST_SUGGESTED]]


MOST_PACKAGES = 40
NO_TIME = "the reason why nothing matches takes too long to find: name a package"

PACKAGES_LIKE = """
SELECT packages.name, packages.spec_count
FROM packages_fts JOIN packages ON packages.id = packages_fts.rowid
WHERE packages_fts MATCH :match AND packages.release_count > 0
ORDER BY packages.spec_count DESC, packages.name LIMIT :limit
"""

_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
_ONE_WORD = re.compile(r"\s*/?([a-z2-7]{7,32})\s*")


@dataclass(frozen=True, slots=True)
class Answer:
    """The configurations that satisfy a spec, one page of them."""

    count: int
    rows: tuple[ConfigurationRow, ...]
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    page: int
    page_count: int


@dataclass(frozen=True, slots=True)
class FindPage:
    """What a search leads to: another page (`package` or `hashes`), rows, or what is wrong.

    Attributes:
        prefix: what was asked of a hash.
        reading: what the words ask for, where the text is no spec of this file.
        error: why the text is no spec, or why the file cannot answer it.
        why: why nothing satisfies the spec, and what to search for instead.
        notes: what a reader should know of the answer.
        releases: the names of all releases, in the file's order.
        hosts: the CPU targets of machines on which something runs, by family.
    """

    package: str | None = None
    reading: Reading | None = None
    prefix: str | None = None
    hashes: tuple[str, ...] = ()
    packages: tuple[tuple[str, int], ...] = ()
    answer: Answer | None = None
    error: str | None = None
    why: WhyNot | None = None
    notes: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def load_find(
    conn: sqlite3.Connection,
    lookups: Lookups,
    text: str,
    page: int = 1,
    narrowing: Narrowing = EVERYWHERE,
    opened: str | None = None,
) -> FindPage:
    """Return the answer to a search.

    Args:
        text: what was typed.
        page: which of the pages of its rows.
        narrowing: the release, the stack and the machine whose specs count.
        opened: the first hash of the row of which all hashes are wanted.
    """
    try:
        scope = narrowing.scope(lookups)
        found = _load(conn, lookups, text, scope, page, opened)
    except UnknownNameError as error:
        found = FindPage(error=str(error))
    names = tuple(each.name for each in lookups.releases.values())
    return replace(found, releases=names, hosts=hosts_of(lookups.families))


def _load(
    conn: sqlite3.Connection,
    lookups: Lookups,
    text: str,
    scope: Conditions,
    page: int,
    opened: str | None,
) -> FindPage:
    if not text.strip():
        return FindPage()
    word = _ONE_WORD.fullmatch(text)
    hashes = hashes_beginning(conn, word[1], MOST_CANDIDATES) if word else ()
    if word and hashes and package_id(conn, word[1]) is None:
        return FindPage(prefix=word[1], hashes=hashes)
    if package_id(conn, text.strip()) is not None:
        # Its name need not be one that a spec could have: pages decide what packages are called.
        return FindPage(package=text.strip())
    try:
        query = parse(text)
        question = question_of(conn, lookups, query)
    except QuerySyntaxError as error:
        return _read(conn, lookups, text) or _refused(conn, text, error)
    except UnsupportedQuery as error:
        candidates, refused = Candidates(conn, lookups), _refused(conn, text, error)
        return _explained(refused, lambda: why_corrected(candidates, query, scope))
    if _is_name(query) and package_id(conn, str(query.name)) is not None:
        return FindPage(package=query.name)
    if query.name is not None and package_id(conn, query.name) is None:
        reading = _read(conn, lookups, text)
        if reading is not None:
            return reading
    prefix = asked(question.conditions, "hash")
    hashes = _hashes(conn, prefix)
    whole = question.within(scope)
    results = matching(conn, lookups, whole.conditions)
    answer = _answer(conn, lookups, results, page, opened)
    if answer.count == 1 and len(hashes) == 1:
        return FindPage(prefix=prefix, hashes=hashes)
    found = FindPage(prefix=prefix, answer=answer, notes=notes_on(conn, lookups, whole))
    if answer.count:
        return found
    found = replace(found, packages=_packages(conn, query.name))
    candidates = Candidates(conn, lookups)
    return _explained(found, lambda: why_not(candidates, query, question.conditions, scope))


def _read(conn: sqlite3.Connection, lookups: Lookups, text: str) -> FindPage | None:
    """Return what a text asks for as plain words; None if that is nothing else than it says."""
    reading = read_words(conn, lookups, text)
    return None if reading is None or reading.spec == text.strip() else FindPage(reading=reading)


def _explained(found: FindPage, explain: Callable[[], WhyNot | None]) -> FindPage:
    """Return a page without rows with why there are none, as far as there is time for it."""
    try:
        why = explain()
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        return replace(found, notes=(*found.notes, NO_TIME))
    return replace(found, why=why)


def _refused(conn: sqlite3.Connection, text: str, error: Exception) -> FindPage:
    """Return what is wrong with a text, and the packages that its words may mean."""
    words = dict.fromkeys(each for each in _WORD.findall(text) if each.lower() not in FILLERS)
    packages = dict.fromkeys(each for word in words for each in _packages(conn, word))
    return FindPage(error=str(error), packages=tuple(packages)[:MOST_PACKAGES])


def _answer(
    conn: sqlite3.Connection, lookups: Lookups, results: ResultSet, page: int, opened: str | None
) -> Answer:
    """Return the configurations that satisfy a query, newest versions first."""
    pages = max(1, -(-len(results.ids) // PAGE_ROWS))
    start = (min(page, pages) - 1) * PAGE_ROWS
    found, _ = counted_part(conn, lookups, results, slice(start, start + PAGE_ROWS))
    common, variants = folded(found) if pages == 1 else ((), ())
    return Answer(
        count=len(results.ids),
        rows=table_rows(conn, lookups, found, variants, results.conditions, opened),
        common=common,
        common_variants=variants,
        page=min(page, pages),
        page_count=pages,
    )


def _is_name(query: SpecQuery) -> bool:
    return query.name is not None and query == SpecQuery(name=query.name, text=query.text)


def _hashes(conn: sqlite3.Connection, prefix: str | None) -> tuple[str, ...]:
    """Return the first specs whose hash begins so; none where it is too short to lead anywhere."""
    if prefix is None or not is_hash_prefix(prefix):
        return ()
    return hashes_beginning(conn, prefix, MOST_CANDIDATES)


def _packages(conn: sqlite3.Connection, name: str | None) -> tuple[tuple[str, int], ...]:
    """Return the packages whose name the searched name is part of."""
    if not name:
        return ()
    match = '"' + name.replace('"', '""') + '"'
    return tuple(
        (found, count)
        for found, count in select(conn, PACKAGES_LIKE, match=match, limit=MOST_PACKAGES)
    )
