"""The search page."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.query.answers import notes_on
from spack_cache_db.query.conditions import Conditions, OneOf, UnsupportedQuery, asked
from spack_cache_db.query.configurations import (
    Candidates,
    ResultSet,
    counted_part,
    matching,
    specs_beginning,
)
from spack_cache_db.query.database import Lookups, select, select_in
from spack_cache_db.query.explanation import WhyNot, why_corrected, why_not
from spack_cache_db.query.names import (
    UnknownNameError,
    close_names,
    known_names,
    read_spellings,
    scope_of,
)
from spack_cache_db.query.packages import PackageStatus, described_packages
from spack_cache_db.query.records import question_of, respelled
from spack_cache_db.query.words import Reading, match_of, plain_words, read_words
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.filters import (
    EVERYWHERE,
    LABELS,
    NameCounts,
    Narrowing,
    paginated,
)
from spack_cache_db.site.pages.package import PAGE_ROWS, folded
from spack_cache_db.site.pages.spec import MOST_CANDIDATES, is_hash_prefix
from spack_cache_db.site.sandbox.sql_functions import parse
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import UnknownSpackVersion, todays_spec
from spack_cache_db.spack.pasted_specs import PastedSpec, pasted_spec

MOST_PACKAGES = 40
MOST_DESCRIBED = 12
NO_TIME = "the reason why nothing matches takes too long to find: name a package"

PACKAGES_LIKE = """
SELECT packages.name, packages.spec_count
FROM packages_fts JOIN packages ON packages.id = packages_fts.rowid
WHERE packages_fts MATCH :match AND packages.release_count > 0
ORDER BY packages.spec_count DESC, packages.name LIMIT :limit
"""

WITH_NAMES = """
SELECT configurations.id FROM packages_fts
JOIN configurations ON configurations.package = packages_fts.rowid
WHERE packages_fts MATCH :match AND configurations.id IN (SELECT value FROM json_each(:ids))
"""

_SIGNS = re.compile(r"[@~%^=/]|(?<![\w+])\+")
"""The signs of Spack's syntax; `c++` has none of them."""
_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
_PINNED = re.compile(r"\s*([\w-]+)==?\d\S*\s*")
"""What other package managers call a version of a package, and Spack the value of a variant."""
_ONE_WORD = re.compile(r"\s*/?([a-z2-7]{7,32})\s*")

FACETS = {"package": "name", "os": "os", "target": "target"}
"""The columns whose values a spec can ask for in every file, and by which of its parts.

A compiler is a dependency in some files.
"""
MOST_VALUES = 8

MOST_ANSWERS = 4
"""So many answers are kept in a process: the next page, and JSON and CSV, are of the same one.

One of 40,000 configurations takes some 12 MB.
"""
kept_question = lru_cache(maxsize=MOST_ANSWERS)(question_of)
kept_matching = lru_cache(maxsize=MOST_ANSWERS)(matching)


@dataclass(frozen=True, slots=True)
class Answer:
    """The configurations that satisfy a spec, one page of them."""

    count: int
    rows: tuple[ConfigurationRow, ...]
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    page: int
    page_count: int
    facets: tuple[Facet, ...] = ()


@dataclass(frozen=True, slots=True)
class FindPage:
    """What a search leads to: another page (`package` or `hashes`), rows, or what is wrong.

    Attributes:
        prefix: what was asked of a hash.
        reading: what the words ask for, where the text is no spec of this file; rows are here
            only if some of the words are no part of a spec.
        compiler: the spec of what the package that is asked for has compiled.
        error: why the text is no spec, or why the file cannot answer it.
        why: why nothing satisfies the spec, and what to search for instead.
        notes: what a reader should know of the answer.
        described: the packages that are described by the words, the best first.
    """

    package: str | None = None
    reading: Reading | None = None
    compiler: str | None = None
    prefix: str | None = None
    hashes: tuple[str, ...] = ()
    packages: NameCounts = ()
    answer: Answer | None = None
    error: str | None = None
    why: WhyNot | None = None
    notes: tuple[str, ...] = ()
    described: tuple[PackageStatus, ...] = ()


def asked_spec(lookups: Lookups, text: str, narrowing: Narrowing) -> PastedSpec:
    """Return the spec of what was typed or pasted, as Spack 1.0 writes it.

    Raises:
        UnknownSpackVersion: the specs are written for no version of Spack.
    """
    pasted = pasted_spec(text, known_names(lookups))
    return replace(pasted, spec=todays_spec(pasted.spec, narrowing.spack))


def load_find(
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
        search = _Search(lookups, narrowing.scope(lookups), page, opened)
        pasted = asked_spec(lookups, text, narrowing)
        found = search.load(pasted.spec)
    except (UnknownNameError, UnknownSpackVersion) as error:
        return FindPage(error=str(error))
    found = replace(found, notes=(*pasted.notes_on(text), *found.notes))
    if found.package is None and not found.hashes and not _SIGNS.search(pasted.spec):
        described = described_packages(lookups.conn, pasted.spec, MOST_DESCRIBED)
        found = replace(found, described=tuple(described))
    return found


def reasons_of(lookups: Lookups, query: SpecQuery, scope: Conditions) -> tuple[str, ...]:
    """Return why nothing satisfies a query, as far as there is time to find out."""
    try:
        return why_not(Candidates(lookups), query, scope).reasons()
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        return (NO_TIME,)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: in which file, whose specs count, and which rows are shown."""

    lookups: Lookups
    scope: Conditions
    page: int
    opened: str | None

    def load(self, text: str) -> FindPage:
        """Return the answer to a text, without what its words describe."""
        if not text.strip():
            return FindPage()
        word = _ONE_WORD.fullmatch(text)
        specs = specs_beginning(self.lookups.conn, word[1], MOST_CANDIDATES) if word else {}
        hashes = tuple(specs.values())
        if word and hashes and word[1] not in self.lookups.packages:
            return FindPage(prefix=word[1], hashes=hashes)
        name = read_spellings(self.lookups).canonical("package", text)
        if name.strip() in self.lookups.packages:
            # Pages decide what packages are called: the name need not be one in a spec.
            return FindPage(package=name.strip())
        pinned = _PINNED.fullmatch(text)
        if pinned is not None and pinned[1] in self.lookups.packages:
            found = self._read(text)
            if found is not None:
                return found
        try:
            query, spelled = respelled(self.lookups, parse(text))
            question = kept_question(self.lookups, query, self.scope)
        except QuerySyntaxError as error:
            found = self._read(text) or _refused(self.lookups.conn, text, error)
            return replace(found, error=str(error))
        except UnsupportedQuery as error:
            # `hdf5-1.14` is a package called `14`, in a namespace.
            if query.namespace is not None:
                found = self._read(text)
                if found is not None:
                    return found
            refused = _refused(self.lookups.conn, text, error)
            return self._explained(refused, why_corrected, query, self.scope)
        if _is_name(query) and query.name in self.lookups.packages:
            return FindPage(package=query.name)
        is_virtual = isinstance(asked(question.conditions, "package"), OneOf)
        if query.name is not None and not is_virtual and query.name not in self.lookups.packages:
            found = self._read(text)
            # What has Spack's signs is answered as a spec, even if its name is not known.
            if found is not None and (found.answer is None or _is_name(query)):
                return found
        prefix = asked(question.conditions, "hash")
        hashes = _hashes(self.lookups.conn, prefix)
        results = kept_matching(self.lookups, question.conditions)
        answer = self._answer(results, query)
        if answer.count == 1 and len(hashes) == 1:
            return FindPage(prefix=prefix, hashes=hashes)
        notes = (*spelled, *notes_on(self.lookups, question))
        compiler = self._compiled(query)
        found = FindPage(prefix=prefix, answer=answer, notes=notes, compiler=compiler)
        if answer.count:
            return found
        if compiler is not None:
            return FindPage(reading=Reading(compiler))
        found = replace(found, packages=_packages(self.lookups.conn, query.name))
        return self._explained(found, why_not, query, self.scope)

    def _read(self, text: str) -> FindPage | None:
        """Return what a text asks for as plain words; None if that is nothing else than it says.

        Where the words are more than a spec, this is the answer to them.
        """
        reading = read_words(self.lookups, text)
        if reading is None or reading.spec == text.strip():
            return None
        if not reading.words and not reading.left_out:
            return FindPage(reading=reading)
        scope = (*scope_of(self.lookups, reading.release, reading.stack), *self.scope)
        try:
            query = parse(reading.spec or "*")
            question = kept_question(self.lookups, query, (*reading.conditions(), *scope))
        except (QuerySyntaxError, UnsupportedQuery):
            # A word is a part of a spec, such as `^[virtuals=c,cxx]`, that says nothing alone.
            return None
        results = kept_matching(self.lookups, question.conditions)
        found = [*results.ids] if query.name is None else []
        if found:
            match = " OR ".join(match_of((word,)) for word in plain_words(text))
            first = {row[0] for row in select_in(self.lookups.conn, WITH_NAMES, found, match=match)}
            results = replace(results, ids=sorted(found, key=lambda each: each not in first))
        names = self.lookups.words["package"].values()
        close = (each for word in reading.left_out for each in close_names(word, names))
        read = FindPage(
            reading=reading,
            answer=self._answer(results, query),
            notes=notes_on(self.lookups, question),
            packages=() if query.name else _named(self.lookups.conn, [*close, *plain_words(text)]),
        )
        if results.ids or reading.words:
            return read
        return self._explained(read, why_not, query, scope)

    def _explained(
        self,
        found: FindPage,
        explain: Callable[[Candidates, SpecQuery, Conditions], WhyNot | None],
        query: SpecQuery,
        scope: Conditions,
    ) -> FindPage:
        """Return a page without rows with why there are none, as far as there is time for it."""
        try:
            why = explain(Candidates(self.lookups), query, scope)
        except sqlite3.OperationalError as error:
            if not is_interrupted(error):
                raise
            return replace(found, notes=(*found.notes, NO_TIME))
        return replace(found, why=why)

    def _compiled(self, query: SpecQuery) -> str | None:
        """Return the spec of what a compiler has built, where it is asked for as a package."""
        name = SpecQuery(name=query.name, text=query.text)
        if query.name not in self.lookups.compilers or replace(query, versions=None) != name:
            return None
        built = f"%{spec_text(query)}"
        question = question_of(self.lookups, parse(built), self.scope)
        return built if matching(self.lookups, question.conditions).ids else None

    def _answer(self, results: ResultSet, query: SpecQuery) -> Answer:
        """Return the configurations that satisfy a query, newest versions first."""
        shown = paginated(len(results.ids), self.page, PAGE_ROWS)
        found = counted_part(self.lookups, results, shown.rows)
        common, variants = folded(found) if shown.page_count == 1 else ((), ())
        return Answer(
            count=len(results.ids),
            rows=table_rows(self.lookups, found, variants, results.conditions, self.opened),
            common=common,
            common_variants=variants,
            page=shown.page,
            page_count=shown.page_count,
            facets=facets_of(self.lookups, results, query),
        )


def _refused(conn: sqlite3.Connection, text: str, error: Exception) -> FindPage:
    """Return what is wrong with a text, and the packages that its words may mean."""
    words = plain_words(" ".join(_WORD.findall(text)))
    return FindPage(error=str(error), packages=_named(conn, words))


def _named(conn: sqlite3.Connection, words: Sequence[str]) -> NameCounts:
    """Return the packages with one of some words in their name."""
    packages = dict.fromkeys(each for word in words for each in _packages(conn, word))
    return tuple(packages)[:MOST_PACKAGES]


def _is_name(query: SpecQuery) -> bool:
    return query.name is not None and query == SpecQuery(name=query.name, text=query.text)


def _hashes(conn: sqlite3.Connection, prefix: str | None) -> tuple[str, ...]:
    """Return the first specs whose hash begins so; none where it is too short to lead anywhere."""
    if prefix is None or not is_hash_prefix(prefix):
        return ()
    return tuple(specs_beginning(conn, prefix, MOST_CANDIDATES).values())


def _packages(conn: sqlite3.Connection, name: str | None) -> NameCounts:
    """Return the packages whose name the searched name is part of."""
    if not name:
        return ()
    match = '"' + name.replace('"', '""') + '"'
    return tuple(
        (found, count)
        for found, count in select(conn, PACKAGES_LIKE, match=match, limit=MOST_PACKAGES)
    )


@dataclass(frozen=True, slots=True)
class Facet:
    """Some values of one column, with the most rows first.

    Attributes:
        values: of each its name, what to search for, and how many configurations that finds.
        value_count: how many values there are in all.
    """

    label: str
    values: tuple[tuple[str, str, int], ...]
    value_count: int


@lru_cache(maxsize=MOST_ANSWERS)
def facets_of(lookups: Lookups, results: ResultSet, query: SpecQuery) -> tuple[Facet, ...]:
    """Return what the results of a query differ in, as far as the query does not ask for it."""
    facets = []
    words = next((each.text for each in results.conditions if each.kind == "words"), "")
    for column, part in FACETS.items():
        if getattr(query, part) is not None:
            continue
        of_configurations = lookups.column("configurations", column)
        counts = Counter(map(of_configurations.__getitem__, results.ids))
        if len(counts) > 1:
            names = lookups.words[column]
            named = ((names[key], count) for key, count in counts.items())
            found = sorted(named, key=lambda each: (-each[1], each[0]))
            values = tuple(
                (value, f"{spec_text(replace(query, **{part: value}))} {words}".strip(), count)
                for value, count in found[:MOST_VALUES]
            )
            facets.append(Facet(LABELS[column], values, len(found)))
    return tuple(facets)
