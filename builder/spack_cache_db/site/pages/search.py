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
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.explanation import WhyNot, why_corrected, why_not
from spack_cache_db.query.installation import Install, Installation, install_binary
from spack_cache_db.query.names import UnknownNameError, known_names, read_spellings, scope_of
from spack_cache_db.query.records import question_of, respelled
from spack_cache_db.query.words import (
    Reading,
    package_called,
    package_counts,
    packages_providing,
    plain_words,
    read_words,
    repository_name,
)
from spack_cache_db.site.pages.cards import Packages, packages_of
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.filters import (
    EVERYWHERE,
    LABELS,
    Narrowing,
    paginated,
)
from spack_cache_db.site.pages.package import PAGE_ROWS, shared_variants
from spack_cache_db.site.pages.spec import MOST_CANDIDATES, is_hash_prefix
from spack_cache_db.site.sandbox.sql_functions import parse
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import UnknownSpackVersion, todays_spec
from spack_cache_db.spack.pasted_specs import PastedSpec, pasted_spec

NO_TIME = "the reason why nothing matches takes too long to find: name a package"

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
    common_variants: tuple[str, ...]
    page: int
    page_count: int
    facets: tuple[Facet, ...] = ()


@dataclass(frozen=True, slots=True)
class FindPage:
    """What a search leads to: another page (`package` or `hashes`), rows, or what is wrong.

    Attributes:
        prefix: what was asked of a hash.
        reading: what the words ask for; without an answer or packages, that is elsewhere.
        asked: the spec that is answered, in Spack's order.
        compiler: the spec of what the package that is asked for has compiled.
        error: why the text is no spec, or why the file cannot answer it.
        why: why nothing satisfies the spec, and what to search for instead.
        notes: what a reader should know of the answer.
        packages: the packages that the words may mean.
        install: the commands for the first row.
    """

    package: str | None = None
    reading: Reading | None = None
    asked: str = ""
    compiler: str | None = None
    prefix: str | None = None
    hashes: tuple[str, ...] = ()
    answer: Answer | None = None
    error: str | None = None
    why: WhyNot | None = None
    notes: tuple[str, ...] = ()
    packages: Packages | None = None
    install: Install | Installation | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the answer is at the address of what the words ask for."""
        return self.reading is not None and self.answer is None and self.packages is None


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
        repository = repository_name(lookups, text)
        if repository is not None:
            return search.load(repository)
        pasted = asked_spec(lookups, text, narrowing)
        found = search.load(pasted.spec)
    except (UnknownNameError, UnknownSpackVersion) as error:
        return FindPage(error=str(error))
    return replace(found, notes=(*pasted.notes_on(text), *found.notes))


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
        count = package_counts(self.lookups).get(name.strip())
        if count or (count == 0 and not packages_providing(self.lookups, text)):
            # Pages decide what packages are called: the name need not be one in a spec.
            return FindPage(package=name.strip())
        if not _SIGNS.search(text) and text != "*" and not self._is_spec_of_package(text):
            return self._read(text) or self._of_words(plain_words(text))
        pinned = _PINNED.fullmatch(text)
        if pinned is not None and pinned[1] in self.lookups.packages:
            found = self._read(text)
            if found is not None:
                return found
        try:
            query, spelled = respelled(self.lookups, parse(text))
            question = kept_question(self.lookups, query, self.scope)
        except QuerySyntaxError as error:
            return replace(self._read(text) or self._of_parts(text), error=str(error))
        except UnsupportedQuery as error:
            # `hdf5-1.14` is a package called `14`, in a namespace.
            if query.namespace is not None:
                found = self._read(text)
                if found is not None:
                    return found
            found = replace(self._of_parts(text), error=str(error))
            return self._explained(found, why_corrected, query, self.scope)
        if _is_name(query) and query.name in self.lookups.packages:
            return FindPage(package=query.name)
        is_virtual = isinstance(asked(question.conditions, "package"), OneOf)
        if query.name is not None and not is_virtual and query.name not in self.lookups.packages:
            found = self._read(text)
            # What has Spack's signs is answered as a spec, even if its name is not known.
            is_known = package_called(self.lookups, query.name) is not None
            if found and found.answer is None and (is_known or found.packages is None):
                return found
        prefix = asked(question.conditions, "hash")
        hashes = _hashes(self.lookups.conn, prefix)
        results = kept_matching(self.lookups, question.conditions)
        answer = self._answer(results, query)
        if answer.count == 1 and len(hashes) == 1:
            return FindPage(prefix=prefix, hashes=hashes)
        compiler = self._compiled(query)
        found = FindPage(
            asked=spec_text(query),
            prefix=prefix,
            answer=answer,
            notes=(*spelled, *notes_on(self.lookups, question)),
            compiler=compiler,
            install=self._install(answer),
        )
        if answer.count:
            return found
        if compiler is not None:
            return FindPage(reading=Reading(compiler))
        return self._explained(found, why_not, query, self.scope)

    def _is_spec_of_package(self, text: str) -> bool:
        """Return whether a text is a spec of a package of the database, such as `Hdf5+mpi`."""
        try:
            query, _ = respelled(self.lookups, parse(text))
        except (QuerySyntaxError, UnsupportedQuery):
            return False
        return query.name in self.lookups.packages and not _is_name(query)

    def _read(self, text: str) -> FindPage | None:
        """Return what a text asks for as plain words; None if none of them means anything.

        Words that are a spec, or name a machine, lead to another address. Packages come before
        rows of configurations, which are shown only where no package is meant.
        """
        if packages_providing(self.lookups, word := " ".join(plain_words(text))):
            return self._of_words([word])
        reading = read_words(self.lookups, text)
        if reading is None:
            return None
        if reading.host or (reading.is_whole and reading.spec != text.strip()):
            return FindPage(reading=reading)
        if not reading.is_whole and (not reading.package or reading.left_out):
            found = self._of_words(reading.rest, reading.nouns)
            if found.packages or reading.left_out:
                return replace(found, reading=reading)
        scope = (*scope_of(self.lookups, reading.release, reading.stack), *self.scope)
        try:
            query = parse(reading.spec or "*")
            question = kept_question(self.lookups, query, (*reading.conditions(), *scope))
        except (QuerySyntaxError, UnsupportedQuery):
            # A word is a part of a spec, such as `^[virtuals=c,cxx]`, that says nothing alone.
            return None
        answer = self._answer(kept_matching(self.lookups, question.conditions), query)
        found = FindPage(
            reading=reading,
            asked=reading.spec,
            answer=answer,
            notes=notes_on(self.lookups, question),
            install=self._install(answer),
        )
        return found if answer.count else self._explained(found, why_not, query, scope)

    def _of_words(self, words: Sequence[str], nouns: Sequence[str] | None = None) -> FindPage:
        """Return the packages that words name or describe."""
        nouns = words if nouns is None else nouns
        return FindPage(packages=packages_of(self.lookups, words, nouns, self.scope))

    def _of_parts(self, text: str) -> FindPage:
        """Return the packages that the words of a spec may mean."""
        return self._of_words(plain_words(" ".join(_WORD.findall(text))))

    def _install(self, answer: Answer) -> Install | Installation | None:
        """Return the commands for the first row."""
        if answer.page > 1 or not answer.rows or not answer.rows[0].hashes:
            return None
        row, release = answer.rows[0], asked(self.scope, "release")
        name = self.lookups.releases[release].name if release is not None else None
        return install_binary(self.lookups.conn, row.configuration.package, row.hashes[0], name)

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
        variants = shared_variants(found) if shown.page_count == 1 else ()
        return Answer(
            count=len(results.ids),
            rows=table_rows(self.lookups, found, variants, results.conditions, self.opened),
            common_variants=variants,
            page=shown.page,
            page_count=shown.page_count,
            facets=facets_of(self.lookups, results, query),
        )


def page_filters(lookups: Lookups, text: str, narrowing: Narrowing) -> list[tuple[str, str]] | None:
    """Return the filters of a package's page that show what a spec finds.

    Returns:
        None if the spec asks for more than filters can, or finds nothing.
    """
    query = parse(text)
    switches: dict[tuple[str, ...], str] = {("true",): "+", ("false",): "~"}
    rest = replace(query, variants=(), os=None, platform=None, text="")
    if rest != SpecQuery(name=query.name) or query.name not in lookups.packages:
        return None
    if any(each.propagate or each.values not in switches for each in query.variants):
        return None
    question = kept_question(lookups, query, narrowing.scope(lookups))
    if not kept_matching(lookups, question.conditions).ids:
        return None
    return [
        *(("variant", switches[each.values] + each.name) for each in query.variants),
        *((kind, value) for kind in ("os", "platform") if (value := getattr(query, kind))),
    ]


def _is_name(query: SpecQuery) -> bool:
    return query.name is not None and query == SpecQuery(name=query.name, text=query.text)


def _hashes(conn: sqlite3.Connection, prefix: str | None) -> tuple[str, ...]:
    """Return the first specs whose hash begins so; none where it is too short to lead anywhere."""
    if prefix is None or not is_hash_prefix(prefix):
        return ()
    return tuple(specs_beginning(conn, prefix, MOST_CANDIDATES).values())


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
