"""The search: the page to which a text leads, or the content of the page with its
answer.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers.find import found_part, found_rows
from spack_cache_db.query.answers.why_not import (
    WhyNot,
    why_corrected,
    why_in_time,
    why_not,
)
from spack_cache_db.query.choice.proposal import propose_among
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.conditions.conditions import Conditions, Word, asked
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import recent_question
from spack_cache_db.query.match.selection import ResultSet
from spack_cache_db.query.names.known import spec_in
from spack_cache_db.query.names.spellings import package_counts, read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import csv_text
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.query.stored.configurations import shared_variants
from spack_cache_db.query.words.reader import plain_words, read_words
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.query.words.vocabulary import (
    package_called,
    packages_providing,
    repository_name,
)
from spack_cache_db.site.filters import (
    EVERYWHERE,
    LABELS,
    DataLinks,
    Narrowing,
    Pagination,
    Pairs,
    most_first,
    paginated,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.cards import Packages, packages_of
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.names import having, load_names, named
from spack_cache_db.site.pages.package import CONFIGURATION_ROWS
from spack_cache_db.site.pages.proposed import ProposedBuild, proposed_build
from spack_cache_db.site.pages.spec import is_hash_prefix
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql.functions import parse
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.printing import spec_text, variant_text
from spack_cache_db.spack.queries import SpecQuery

_SIGNS = re.compile(r"^\*$|[@~%^=/]|(?<![\w+])\+")
"""The signs of Spack's syntax; `c++` has none of them."""
_WORD = re.compile(r"[A-Za-z0-9][\w-]*")

FACETS = {"package": "name", "os": "os", "target": "target"}
"""Columns that narrow a search, and their parts of a spec; a compiler may be a
dependency.
"""
MOST_VALUES = 8


class Elsewhere(NamedTuple):
    """The path and the query string of another page to which a search leads."""

    path: str
    pairs: Pairs


class Facet(NamedTuple):
    """The most frequent values of one column: name, search text and number of
    configurations.
    """

    label: str
    values: tuple[tuple[str, str, int], ...]
    value_count: int


@dataclass(frozen=True, slots=True)
class FoundConfigurations:
    """One page of the configurations that satisfy a spec, and the build that it
    proposes.
    """

    count: int
    rows: tuple[ConfigurationRow, ...]
    common_variants: tuple[str, ...]
    window: Pagination
    facets: tuple[Facet, ...]
    proposed: ProposedBuild | None

    @property
    def install(self) -> Commands | None:
        """The commands that install or load the proposed build."""
        return None if self.proposed is None else self.proposed.commands


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The answer to a search: configurations, or packages, or the reason for neither.

    Attributes:
        narrowing: the names that narrow the answer, with those among the words.
        reading: the meaning of plain words.
        spec: the spec that is answered, in Spack's order.
        compiler: a spec of the binaries that the package of the search compiled.
        error: why the text is not a spec, or why the database cannot answer it.
    """

    narrowing: Narrowing
    reading: Reading | None = None
    spec: str = ""
    compiler: str | None = None
    answer: FoundConfigurations | None = None
    error: str | None = None
    why: WhyNot | None = None
    notes: tuple[str, ...] = ()
    packages: Packages | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """A search in a database: `page` is the number of a page, `opened` the hash of an
    open row.
    """

    lookups: Lookups
    narrowing: Narrowing = EVERYWHERE
    page: str | None = None
    opened: str | None = None

    @property
    def scope(self) -> Conditions:
        """The conditions of the names that narrow the answer; raises
        `UnknownNameError`.
        """
        return self.narrowing.scope(self.lookups)

    def result(self, text: str) -> Elsewhere | SearchPage:
        """Return where a typed or pasted text leads, or one page of its answer."""
        if (page := self._page_of_name(text)) is not None:
            return page
        text = repository_name(self.lookups, text) or text
        try:
            pasted = spec_in(self.lookups, text, self.narrowing.spack)
            result = self._of_text(pasted.spec, self.scope)
        except BuilderError as error:
            return SearchPage(self.narrowing, error=str(error))
        if isinstance(result, Elsewhere):
            return result
        return replace(result, notes=(*pasted.notes_on(text), *result.notes))

    def _of_text(self, text: str, scope: Conditions) -> Elsewhere | SearchPage:
        """Return the result for a spec, a name or words."""
        lookups, packages = self.lookups, self.lookups.packages
        if not text.strip():
            return SearchPage(self.narrowing)
        page = self._page_of_name(text) or self._page_of_hash(
            text.removeprefix("/").lower()
        )
        if page is not None:
            return page
        if not self._is_spec(text):
            return self._read(text) or self._packages(plain_words(text))
        words = plain_words(" ".join(_WORD.findall(text)))
        try:
            query = parse(text)
            question = recent_question(lookups, query, scope)
            question.check()
        except QuerySyntaxError as error:
            result = self._read(text) or self._packages(words)
            return (
                result
                if isinstance(result, Elsewhere)
                else replace(result, error=str(error))
            )
        except UnsupportedQuery as error:
            # `hdf5-1.14` is a package called `14`, in a namespace.
            if query.namespace is not None and (read := self._read(text)) is not None:
                return read
            why = why_in_time(why_corrected, question)
            return replace(self._packages(words), error=str(error), why=why)
        package = asked(question.conditions, "package")
        if isinstance(package, Word) and package.text not in packages:
            read = self._read(text)
            # A text with Spack's signs is a spec, even if the name is unknown.
            is_known = package_called(lookups, package.text) is not None
            if isinstance(read, Elsewhere) or (read and is_known and not read.answer):
                return read
        prefix = asked(question.conditions, "hash") or ""
        if question.count() == 1 and (page := self._page_of_hash(prefix)) is not None:
            return page
        compiler = self._compiled(question.canonical_spec)
        if compiler is not None and not question.count():
            return self._page_of_text(compiler)
        return replace(self._found(query), compiler=compiler)

    def _is_spec(self, text: str) -> bool:
        """Return whether a text has Spack's signs, or is a spec of a package such as
        `Hdf5+mpi`.
        """
        packages = self.lookups.packages
        if _SIGNS.search(text):
            return True
        try:
            name = parse(text).name or ""
        except QuerySyntaxError:
            return False
        return read_spellings(self.lookups).canonical("package", name) in packages

    def _page_of_text(self, text: str) -> Elsewhere:
        return Elsewhere("/find", [("q", text), *self.narrowing.pairs])

    def _page_of_name(self, text: str) -> Elsewhere | None:
        """Return the page of a name in any spelling, also of a package without
        binaries.
        """
        spellings = read_spellings(self.lookups)
        name = named(load_names(self.lookups), spellings, text)
        if name is not None and name.kind != "package":
            return Elsewhere(name.address, [])
        package = spellings.canonical("package", text).strip()
        is_unbuilt = package_counts(self.lookups).get(package) == 0
        if name is None and (not is_unbuilt or packages_providing(self.lookups, text)):
            return None
        # A package's page does not tell explicit installations from others.
        if self.narrowing.explicit:
            return self._page_of_text(f"{package}@:")
        return Elsewhere(f"/package/{quote(package)}", self.narrowing.pairs)

    def _page_of_hash(self, prefix: str) -> Elsewhere | None:
        """Return the page of the spec whose hash begins with a text, or of all such
        specs.
        """
        is_hash = is_hash_prefix(prefix) and specs_beginning(
            self.lookups.conn, prefix, 1
        )
        return Elsewhere(f"/spec/{prefix}", self.narrowing.pairs) if is_hash else None

    def _read(self, text: str) -> Elsewhere | SearchPage | None:
        """Return the result for a text as plain words; None if none of them has a
        meaning.

        Words that are a spec, or name a machine, lead to another page.
        """
        lookups = self.lookups
        if packages_providing(lookups, word := " ".join(plain_words(text))):
            return self._packages([word])
        if (reading := read_words(lookups, text)) is None:
            return None
        search = replace(self, narrowing=self.narrowing.within(reading))
        try:
            if reading.host or (reading.is_whole and reading.spec != text.strip()):
                return search._page_of_words(reading)
            if not reading.is_whole and (not reading.package or reading.left_out):
                result = search._packages(reading.rest, reading)
                if result.packages or reading.left_out:
                    return result
            return search._found(parse(reading.spec or "*"), reading)
        except (QuerySyntaxError, UnsupportedQuery):
            # A word is a part of a spec that is not valid alone, such as
            # `^[virtuals=c,cxx]`.
            return None

    def _page_of_words(self, reading: Reading) -> Elsewhere:
        """Return the page that plain words mean."""
        text = reading.search
        if not text:
            return Elsewhere("/packages", self.narrowing.pairs)
        is_spec = text == reading.spec and not self.narrowing.explicit
        filters = self._filters(parse(text)) if is_spec else None
        if filters is None:
            return self._page_of_text(text)
        return Elsewhere(
            f"/package/{quote(reading.package)}", [*filters, *self.narrowing.pairs]
        )

    def _filters(self, query: SpecQuery) -> Pairs | None:
        """Return the filters of a package's page with the result of a spec, if it has
        one.
        """
        others = replace(query, variants=(), os=None, platform=None, text="")
        if (
            others != SpecQuery(name=query.name)
            or query.name not in self.lookups.packages
        ):
            return None
        is_plain = all(
            part.kind == "bool" and not part.propagate for part in query.variants
        )
        if not is_plain:
            return None
        if not recent_question(self.lookups, query, self.scope).count():
            return None
        variants = (("variant", variant_text(variant)) for variant in query.variants)
        pairs = (*variants, ("os", query.os), ("platform", query.platform))
        return [(name, text) for name, text in pairs if text]

    def _packages(
        self, words: Sequence[str], reading: Reading | None = None
    ) -> SearchPage:
        """Return the packages that words name or describe."""
        nouns = words if reading is None else reading.nouns
        packages = packages_of(self.lookups, words, nouns, self.scope)
        return SearchPage(self.narrowing, reading, packages=packages)

    def _compiled(self, query: SpecQuery) -> str | None:
        """Return a spec of the binaries that a compiler built, if the query is only a
        compiler.
        """
        compiler = SpecQuery(name=query.name, versions=query.versions, text=query.text)
        if query.name not in self.lookups.compilers or query != compiler:
            return None
        built = f"%{spec_text(query)}"
        question = recent_question(self.lookups, parse(built), self.scope)
        return built if question.count() else None

    def _found(self, query: SpecQuery, reading: Reading | None = None) -> SearchPage:
        """Return the configurations that satisfy a query and the words of a reading."""
        lookups, words = self.lookups, reading.words if reading else ()
        scope = (*(reading.conditions() if reading else ()), *self.scope)
        question = recent_question(lookups, query, scope)
        results = question.results
        window = paginated(question.count(), self.page, CONFIGURATION_ROWS)
        configurations = question.configurations(window.rows)
        variants: tuple[str, ...] = ()
        if window.page_count == 1:
            variants = shared_variants(
                [row.configuration.variants for row in configurations]
            )
        rows = table_rows(
            lookups, configurations, results.conditions, variants, self.opened
        )
        proposed = None
        if window.page == 1:
            proposal = propose_among(lookups, results)
            proposed = proposed_build(lookups, proposal, self.narrowing.release)
        facets = facets_of(lookups, results, question.canonical_spec, words)
        notes = question.notes
        if results.ids:
            notes += question.lost_note()
        return SearchPage(
            self.narrowing,
            reading,
            spec=spec_text(question.canonical_spec),
            answer=FoundConfigurations(
                len(results.ids), rows, variants, window, facets, proposed
            ),
            why=None if results.ids else why_in_time(why_not, question),
            notes=notes,
        )


def facets_of(
    lookups: Lookups, results: ResultSet, query: SpecQuery, words: Sequence[str]
) -> tuple[Facet, ...]:
    """Return the columns in which results differ, except those that the query has."""
    facets = []
    for column, part in FACETS.items():
        names, keys = lookups.words[column], lookups.column("configurations", column)
        counts = most_first(Counter(names[keys[key]] for key in results.ids))
        if getattr(query, part) is None and len(counts) > 1:
            values = tuple(
                (
                    value,
                    " ".join((spec_text(replace(query, **{part: value})), *words)),  # type: ignore[arg-type]
                    count,
                )
                for value, count in counts[:MOST_VALUES]
            )
            facets.append(Facet(LABELS[column], values, len(counts)))
    return tuple(facets)


FOUND_AT_ONCE = 1_000
"""Configurations in one part of a stream of JSON or CSV."""


def find(site: Site, request: PageRequest) -> PageResponse:
    """Return `/find?q=`, or a redirect to the page that the text means."""
    text = (request.args.get("q") or "").strip()
    narrowing, number = Narrowing.parse(request.pairs), request.args.get("page")
    page = Search(site.lookups, narrowing, number, request.args.get("open")).result(
        text
    )
    if isinstance(page, Elsewhere):
        return site.redirect(*page)
    narrowing, is_spec = (
        page.narrowing,
        page.answer is not None and page.reading is None,
    )
    has_rows = is_spec and page.answer and page.answer.rows
    query = f"?{urlencode([('q', text), *narrowing.pairs])}"
    topic = Topic(text, stack=narrowing.stack, host=narrowing.host)
    other_names = [
        name
        for name in having(load_names(site.lookups), text)
        if name.kind != "package" and f"-{text.lower()}" in f"-{name.name.lower()}"
    ]
    return site.page(
        request,
        "find.html",
        shell_quoted=shlex.quote,
        page=page,
        search_text=text,
        links=DataLinks.of_page("/find", query) if has_rows else None,
        narrowing=narrowing,
        others=other_names,
        feed=topic.feed if is_spec else None,
    )


def find_rows(site: Site, request: PageRequest, form: str) -> PageResponse:
    """Return rows of the command `find`, from `request.first` on, as `/find.json` or
    `.csv`.
    """
    lookups, narrowing = site.lookups, Narrowing.parse(request.pairs)
    query = parse(spec_in(lookups, request.args.get("q", ""), narrowing.spack).spec)
    question = recent_question(lookups, query, narrowing.scope(lookups))
    if not question.count():
        why = why_in_time(why_not, question)
        return refused("; ".join(why.reasons()), form, 404)
    stop = request.first + FOUND_AT_ONCE
    part = found_part(question, slice(request.first, stop), with_hashes=False)
    rows = found_rows(part, hashes=False)
    body, (start, between, last) = form_of(rows.records, rows, form), AROUND[form]
    body = body if request.first == 0 else between + body.removeprefix(start)
    if stop >= question.count():
        return data(body, form)
    return data(body.removesuffix(last), form, following=stop)


AROUND = {
    "json": ("[\n", ",\n", "\n]"),
    "csv": (csv_text(found_rows((), hashes=False)), "", ""),
}
"""The text before the rows of `/find`, between two parts of them, and after them."""
