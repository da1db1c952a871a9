"""The search page."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.query.answers import notes_on
from spack_cache_db.query.conditions import (
    Conditions,
    OneOf,
    Question,
    UnsupportedQuery,
    asked,
    only,
)
from spack_cache_db.query.configurations import specs_beginning
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.explanation import WhyNot, why_corrected, why_not
from spack_cache_db.query.installation import Commands, install_binary
from spack_cache_db.query.names import (
    UnknownNameError,
    known_names,
    package_counts,
    read_spellings,
    scope_of,
)
from spack_cache_db.query.records import question_of, respelled
from spack_cache_db.query.selection import Candidates, ResultSet, counted_part, matching
from spack_cache_db.query.words import (
    Reading,
    package_called,
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
    Pagination,
    most_first,
    paginated,
)
from spack_cache_db.site.pages.package import PAGE_ROWS, shared_variants
from spack_cache_db.site.pages.spec import MOST_CANDIDATES, is_hash_prefix
from spack_cache_db.site.sandbox.sql_functions import parse
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import UnknownSpackVersion, todays_spec
from spack_cache_db.spack.pasted_specs import PastedSpec, pasted_spec

Result = TypeVar("Result")
NO_TIME = "the reason why nothing matches takes too long to find: name a package"

_SIGNS = re.compile(r"[@~%^=/]|(?<![\w+])\+")
"""The signs of Spack's syntax; `c++` has none of them."""
_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
_PINNED = re.compile(r"\s*([\w-]+)==?\d\S*\s*")
"""Other package managers write versions like this; in Spack it is the value of a variant."""
_ONE_WORD = re.compile(r"\s*/?([a-z2-7]{7,32})\s*")

FACETS = {"package": "name", "os": "os", "target": "target"}
"""Columns that a search can be narrowed by, and the part of a spec for each.

The compiler is missing, because it is a dependency in some databases.
"""
MOST_VALUES = 8

MOST_ANSWERS = 4
"""Cached answers of a process: the next page, JSON and CSV use the same answer.

An answer of 40,000 configurations takes about 12 MB.
"""
kept_question = lru_cache(maxsize=MOST_ANSWERS)(question_of)
kept_matching = lru_cache(maxsize=MOST_ANSWERS)(matching)


class Facet(NamedTuple):
    """The most frequent values of one column: name, search text and number of configurations."""

    label: str
    values: tuple[tuple[str, str, int], ...]
    value_count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One page of the configurations that satisfy a spec."""

    count: int
    rows: tuple[ConfigurationRow, ...]
    common_variants: tuple[str, ...]
    window: Pagination
    facets: tuple[Facet, ...]


@dataclass(frozen=True, slots=True)
class FindPage:
    """The result of a search: another page (`package` or `hashes`), rows, packages, or an error.

    Attributes:
        reading: the meaning of the words; without answer or packages, the result is another page.
        asked: the spec that is answered, in Spack's order.
        compiler: a spec of the binaries that the package of the search compiled.
        error: why the text is not a spec, or why the database cannot answer it.
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
    install: Commands | None = None

    @property
    def count(self) -> int:
        """The number of configurations."""
        return self.answer.count if self.answer else 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether the answer is another page, which `reading` names."""
        return self.reading is not None and self.answer is None and self.packages is None


def asked_spec(lookups: Lookups, text: str, narrowing: Narrowing) -> PastedSpec:
    """Return the spec in a typed or pasted text, in the syntax of Spack 1.0."""
    pasted = pasted_spec(text, known_names(lookups))
    return replace(pasted, spec=todays_spec(pasted.spec, narrowing.spack))


def load_find(
    lookups: Lookups,
    text: str,
    page: int = 1,
    narrowing: Narrowing = EVERYWHERE,
    opened: str | None = None,
) -> FindPage:
    """Return one page of the answer to a search; `opened` is the first hash of an open row."""
    try:
        search = _Search(lookups, narrowing.scope(lookups), page, opened)
        repository = repository_name(lookups, text)
        if repository is not None:
            return search.load(repository)
        pasted = asked_spec(lookups, text, narrowing)
        result = search.load(pasted.spec)
    except (UnknownNameError, UnknownSpackVersion) as error:
        return FindPage(error=str(error))
    return replace(result, notes=(*pasted.notes_on(text), *result.notes))


def _in_time(explain: Callable[[], Result], otherwise: Result) -> Result:
    """Return an explanation; `otherwise` if it takes too long."""
    try:
        return explain()
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        return otherwise


def reasons_of(lookups: Lookups, query: SpecQuery, scope: Conditions) -> tuple[str, ...]:
    """Return why nothing satisfies a query, or `NO_TIME` if that takes too long."""
    return _in_time(lambda: why_not(Candidates(lookups), query, scope).reasons(), (NO_TIME,))


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: its database, its scope, and the rows to show."""

    lookups: Lookups
    scope: Conditions
    page: int
    opened: str | None

    def load(self, text: str) -> FindPage:
        """Return the result for a spec, a name or words."""
        if not text.strip():
            return FindPage()
        word = _ONE_WORD.fullmatch(text)
        if word and word[1] not in self.lookups.packages and (hashes := self._hashes(word[1])):
            return FindPage(prefix=word[1], hashes=hashes)
        name = read_spellings(self.lookups).canonical("package", text)
        count = package_counts(self.lookups).get(name.strip())
        if count or (count == 0 and not packages_providing(self.lookups, text)):
            # Names of packages come from pages and may be invalid in a spec.
            return FindPage(package=name.strip())
        if not _SIGNS.search(text) and text != "*" and not self._is_spec_of_package(text):
            return self._read(text) or self._of_words(plain_words(text))
        pinned = _PINNED.fullmatch(text)
        if pinned is not None and pinned[1] in self.lookups.packages and (page := self._read(text)):
            return page
        try:
            query, spelled = respelled(self.lookups, parse(text))
            question = kept_question(self.lookups, query, self.scope)
        except QuerySyntaxError as error:
            return replace(self._read(text) or self._of_parts(text), error=str(error))
        except UnsupportedQuery as error:
            # `hdf5-1.14` is a package called `14`, in a namespace.
            if query.namespace is not None and (result := self._read(text)) is not None:
                return result
            result = replace(self._of_parts(text), error=str(error))
            return self._explained(result, why_corrected, query, self.scope)
        if _is_name(query) and query.name in self.lookups.packages:
            return FindPage(package=query.name)
        is_virtual = isinstance(asked(question.conditions, "package"), OneOf)
        if query.name is not None and not is_virtual and query.name not in self.lookups.packages:
            result = self._read(text)
            # A text with Spack's signs is a spec, even if the name is unknown.
            is_known = package_called(self.lookups, query.name) is not None
            if result and result.answer is None and (is_known or result.packages is None):
                return result
        prefix = asked(question.conditions, "hash")
        result = replace(self._found(question, query), asked=spec_text(query), prefix=prefix)
        if prefix is not None and is_hash_prefix(prefix) and result.count == 1:
            hashes = self._hashes(prefix)
            if len(hashes) == 1:
                return FindPage(prefix=prefix, hashes=hashes)
        compiler = self._compiled(query)
        if compiler is not None and not result.count:
            return FindPage(reading=Reading(compiler))
        result = replace(result, compiler=compiler, notes=(*spelled, *result.notes))
        return result if result.count else self._explained(result, why_not, query, self.scope)

    def _hashes(self, prefix: str) -> tuple[str, ...]:
        return tuple(specs_beginning(self.lookups.conn, prefix, MOST_CANDIDATES).values())

    def _is_spec_of_package(self, text: str) -> bool:
        """Return whether a text is a spec of a package of the database, such as `Hdf5+mpi`."""
        try:
            query, _ = respelled(self.lookups, parse(text))
        except (QuerySyntaxError, UnsupportedQuery):
            return False
        return query.name in self.lookups.packages and not _is_name(query)

    def _read(self, text: str) -> FindPage | None:
        """Return the result for a text as plain words; None if none of them has a meaning.

        Words that are a spec, or name a machine, lead to another page.
        """
        if packages_providing(self.lookups, word := " ".join(plain_words(text))):
            return self._of_words([word])
        reading = read_words(self.lookups, text)
        if reading is None:
            return None
        if reading.host or (reading.is_whole and reading.spec != text.strip()):
            return FindPage(reading=reading)
        if not reading.is_whole and (not reading.package or reading.left_out):
            result = self._of_words(reading.rest, reading.nouns)
            if result.packages or reading.left_out:
                return replace(result, reading=reading)
        scope = (*scope_of(self.lookups, release=reading.release, stack=reading.stack), *self.scope)
        try:
            query = parse(reading.spec or "*")
            question = kept_question(self.lookups, query, (*reading.conditions(), *scope))
        except (QuerySyntaxError, UnsupportedQuery):
            # A word is a part of a spec that is not valid alone, such as `^[virtuals=c,cxx]`.
            return None
        result = replace(self._found(question, query), reading=reading, asked=reading.spec)
        return result if result.count else self._explained(result, why_not, query, scope)

    def _of_words(self, words: Sequence[str], nouns: Sequence[str] | None = None) -> FindPage:
        """Return the packages that words name or describe."""
        nouns = words if nouns is None else nouns
        return FindPage(packages=packages_of(self.lookups, words, nouns, self.scope))

    def _of_parts(self, text: str) -> FindPage:
        """Return the packages that the words of a spec may mean."""
        return self._of_words(plain_words(" ".join(_WORD.findall(text))))

    def _explained(
        self,
        result: FindPage,
        explain: Callable[[Candidates, SpecQuery, Conditions], WhyNot | None],
        query: SpecQuery,
        scope: Conditions,
    ) -> FindPage:
        """Return a page without rows, with the reason unless that takes too long."""
        late = replace(result, notes=(*result.notes, NO_TIME))
        candidates = Candidates(self.lookups)
        return _in_time(lambda: replace(result, why=explain(candidates, query, scope)), late)

    def _compiled(self, query: SpecQuery) -> str | None:
        """Return a spec of the binaries that a compiler built, if the query is only a compiler."""
        name = SpecQuery(name=query.name, text=query.text)
        if query.name not in self.lookups.compilers or replace(query, versions=None) != name:
            return None
        built = f"%{spec_text(query)}"
        question = question_of(self.lookups, parse(built), self.scope)
        return built if matching(self.lookups, question.conditions).ids else None

    def _found(self, question: Question, query: SpecQuery) -> FindPage:
        """Return the configurations that answer a question, and the commands for the first row."""
        lookups, results = self.lookups, kept_matching(self.lookups, question.conditions)
        window = paginated(len(results.ids), self.page, PAGE_ROWS)
        configurations = counted_part(lookups, results, window.rows)
        variants = shared_variants(configurations) if window.page_count == 1 else ()
        rows = table_rows(lookups, configurations, variants, results.conditions, self.opened)
        facets = facets_of(lookups, results, query)
        install, release = None, asked(self.scope, "release")
        if window.page == 1 and rows:
            name = lookups.releases[release].name if release is not None else None
            package = rows[0].configuration.package
            install = install_binary(lookups.conn, package, rows[0].hash, name)
        answer = Answer(len(results.ids), rows, variants, window, facets)
        return FindPage(answer=answer, notes=notes_on(lookups, question), install=install)


def page_filters(lookups: Lookups, text: str, narrowing: Narrowing) -> list[tuple[str, str]] | None:
    """Return the filters of a package's page with the result of a spec; None if there are none."""
    query = parse(text)
    switches: dict[tuple[str, ...], str] = {("true",): "+", ("false",): "~"}
    without_variants = replace(query, variants=(), os=None, platform=None, text="")
    if without_variants != SpecQuery(name=query.name) or query.name not in lookups.packages:
        return None
    if any(variant.propagate or variant.values not in switches for variant in query.variants):
        return None
    question = kept_question(lookups, query, narrowing.scope(lookups))
    if not kept_matching(lookups, question.conditions).ids:
        return None
    return [
        *(("variant", switches[variant.values] + variant.name) for variant in query.variants),
        *((kind, value) for kind in ("os", "platform") if (value := getattr(query, kind))),
    ]


def _is_name(query: SpecQuery) -> bool:
    return query.name is not None and query == SpecQuery(name=query.name, text=query.text)


@lru_cache(maxsize=MOST_ANSWERS)
def facets_of(lookups: Lookups, results: ResultSet, query: SpecQuery) -> tuple[Facet, ...]:
    """Return the columns in which results differ, except those that the query has."""
    facets = []
    words = "".join(condition.text for condition in only(results.conditions, "words")[:1])
    for column, part in FACETS.items():
        if getattr(query, part) is not None:
            continue
        of_configurations = lookups.column("configurations", column)
        keys = Counter(map(of_configurations.__getitem__, results.ids))
        if len(keys) > 1:
            counts = most_first({lookups.words[column][key]: keys[key] for key in keys})
            values = tuple(
                (value, f"{spec_text(replace(query, **{part: value}))} {words}".strip(), count)  # type: ignore[arg-type]
                for value, count in counts[:MOST_VALUES]
            )
            facets.append(Facet(LABELS[column], values, len(counts)))
    return tuple(facets)
