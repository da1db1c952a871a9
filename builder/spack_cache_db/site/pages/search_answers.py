"""Answers a text of the search box: with another page, packages, or their binaries.

A text is a spec, a name, the beginning of a hash, or plain words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers.spec_functions import parse
from spack_cache_db.query.answers.why_not import why_corrected, why_in_time, why_not
from spack_cache_db.query.choice.proposal import propose_among
from spack_cache_db.query.conditions.conditions import Conditions, Word, condition_value
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question, recent_question
from spack_cache_db.query.match.selection import ResultSet
from spack_cache_db.query.names.known import spec_in
from spack_cache_db.query.names.spellings import package_counts, read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import specs_beginning
from spack_cache_db.query.stored.configurations import shared_variants
from spack_cache_db.query.words.reader import read_words
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.query.words.splitting import plain_words
from spack_cache_db.query.words.vocabulary import (
    package_called,
    packages_providing,
    repository_name,
)
from spack_cache_db.query.words.word_reader import SWITCH
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.site.filters import EVERYWHERE, Narrowing, Pairs, paginated
from spack_cache_db.site.pages.configurations import table_rows
from spack_cache_db.site.pages.names import named
from spack_cache_db.site.pages.package import CONFIGURATION_ROWS
from spack_cache_db.site.pages.package_rows import (
    package_of_question,
    packages_of_question,
    packages_of_words,
)
from spack_cache_db.site.pages.proposed import proposed_build
from spack_cache_db.site.pages.search_facets import facets_of
from spack_cache_db.site.pages.search_page import (
    Elsewhere,
    FoundConfigurations,
    SearchPage,
)
from spack_cache_db.site.pages.spec import is_hash_prefix
from spack_cache_db.site.search_words import CORRECTED, MACHINE_REPLACED
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.printing import spec_text, variant_text
from spack_cache_db.spack.queries import SpecQuery
from spack_cache_db.spack.targets import runs_on

SIGNS = re.compile(r"^\*$|[@~%^=/]|(?<![\w+])\+")
"""The signs of Spack's syntax; `c++` has none of them."""
_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
"""A word in a text that is not a valid spec, without Spack's signs."""

NOT_PACKAGED = (
    "no binary of {} is in this database: these are the packages that it built"
)
"""Note on a compiler that is read as the compiler of other packages."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search in a database.

    Attributes:
        narrowing: the names that narrow the answer.
        page: the number of a page of rows.
        opened: the first hash of the configuration whose row is open.
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
        page = self._page_of_name(text)
        if page is not None:
            return page
        # A name in a repository, such as `builtin.zlib`, means the package.
        text = repository_name(self.lookups, text) or text
        try:
            pasted = spec_in(self.lookups, text, self.narrowing.spack)
            result = self._result_of_spec(pasted.spec, self.scope)
        except BuilderError as error:
            return SearchPage(self.narrowing, error=str(error))
        if isinstance(result, Elsewhere):
            return result
        return replace(result, notes=(*pasted.notes_on(text), *result.notes))

    def _result_of_spec(self, text: str, scope: Conditions) -> Elsewhere | SearchPage:
        """Return the result for a spec, a name or words."""
        if not text.strip():
            return SearchPage(self.narrowing)

        # Names and hashes have pages of their own; words without Spack's signs are
        # plain words.
        hash_prefix = text.removeprefix("/").lower()
        page = self._page_of_name(text) or self._page_of_hash(hash_prefix)
        if page is not None:
            return page
        if not is_spec(self.lookups, text):
            return self._result_of_words(text) or self._packages(plain_words(text))

        # Read the spec. If that fails, the text may be plain words after all.
        words = plain_words(" ".join(_WORD.findall(text)))
        try:
            query = parse(text)
            if self._has_other_machine(query):
                return self._with_typed_machine(text)
            question = recent_question(self.lookups, query, scope)
            question.check()
        except QuerySyntaxError as error:
            result = self._result_of_words(text) or self._packages(words)
            if isinstance(result, Elsewhere):
                return result
            return replace(result, error=str(error))
        except UnsupportedQuery as error:
            # `hdf5-1.14` is a package called `14`, in a namespace.
            if query.namespace is not None:
                of_words = self._result_of_words(text)
                if of_words is not None:
                    return of_words
            why = why_in_time(why_corrected, question)
            corrected = why and (why.corrected or why.read_as)
            if corrected:
                return self._corrected(corrected)
            return replace(self._packages(words), error=str(error), why=why)
        return self._result_of_question(text, question)

    def _has_other_machine(self, query: SpecQuery) -> bool:
        """Return whether a spec has a target that replaces the chosen machine.

        One that runs on the machine narrows the answer, and does not replace it: the
        machine has a platform, too.
        """
        host = self.narrowing.host
        if host is None or query.target is None:
            return False
        return not runs_on(query.target, host)

    def _with_typed_machine(self, text: str) -> Elsewhere | SearchPage:
        """Return the result for a spec with a target, which replaces the chosen
        machine.
        """
        machine = self.narrowing.host
        search = replace(self, narrowing=replace(self.narrowing, host=None))
        result = search._result_of_spec(text, search.scope)
        return _with_note(result, MACHINE_REPLACED.format(machine))

    def _corrected(self, text: str) -> Elsewhere | SearchPage:
        """Return the result for a spec whose options stood behind the compiler."""
        result = self._result_of_spec(text, self.scope)
        return _with_note(result, CORRECTED.format(text))

    def _result_of_question(
        self, text: str, question: Question
    ) -> Elsewhere | SearchPage:
        """Return the result for a spec that the database can answer."""
        conditions = question.conditions

        # The name of the package is not that of a binary: the text may be plain words.
        package = condition_value(conditions, "package")
        if isinstance(package, Word) and package.text not in self.lookups.packages:
            of_words = self._result_of_words(text)
            if isinstance(of_words, Elsewhere):
                return of_words
            # A text with Spack's signs is a spec, even if the name is unknown.
            is_known = package_called(self.lookups, package.text) is not None
            if of_words is not None and is_known and of_words.answer is None:
                return of_words

        # A hash with a single configuration leads to the page of its spec.
        if question.count() == 1:
            page = self._page_of_hash(condition_value(conditions, "hash") or "")
            if page is not None:
                return page

        # A compiler without binaries of its own means what it compiled.
        compiled = self._compiled(question.canonical_spec)
        if compiled is not None and not question.count():
            result = self._found(parse(compiled))
            compiler = spec_text(question.canonical_spec)
            notes = (NOT_PACKAGED.format(compiler), *result.notes)
            # The package has other versions.
            package = question.canonical_spec.name or ""
            row = None
            if package_counts(self.lookups).get(package):
                row = package_of_question(self.lookups, package, self.scope)
            return replace(result, notes=notes, row=row, is_of_compiler=True)
        result = self._found(question.spec)
        if result.why is not None and result.why.corrected:
            return self._corrected(result.why.corrected)
        return replace(result, compiler=compiled)

    def _page_of_name(self, text: str) -> Elsewhere | SearchPage | None:
        """Return the page of a name in any spelling, also of a package without
        binaries.
        """
        name = named(self.lookups, text)
        if name is not None and name.kind != "package":
            return Elsewhere(name.address, [])
        package = read_spellings(self.lookups).canonical("package", text).strip()
        if name is None:
            # A package without a binary has a page, unless others provide it.
            is_unbuilt = package_counts(self.lookups).get(package) == 0
            if not is_unbuilt or packages_providing(self.lookups, text):
                return None
        # A package's page does not tell explicit installations from others.
        if self.narrowing.explicit:
            return self._found(parse(f"{package}@:"))
        return Elsewhere(f"/package/{quote(package)}", self.narrowing.pairs)

    def _page_of_hash(self, prefix: str) -> Elsewhere | None:
        """Return the page of the spec whose hash begins with a text, or of all such
        specs.
        """
        if not is_hash_prefix(prefix):
            return None
        if not specs_beginning(self.lookups.conn, prefix, 1):
            return None
        return Elsewhere(f"/spec/{prefix}", self.narrowing.pairs)

    def _result_of_words(self, text: str) -> Elsewhere | SearchPage | None:
        """Return the result for a text as plain words; None if none of them has a
        meaning.

        Words that are a spec, or name a machine, lead to another page.
        """
        lookups = self.lookups
        # A virtual package, such as `mpi`, means the packages that provide it.
        word = " ".join(plain_words(text))
        if packages_providing(lookups, word):
            return self._packages([word])
        reading = read_words(lookups, text)
        if reading is None:
            return None

        narrowing = self.narrowing.within(reading)
        search = replace(self, narrowing=narrowing)
        is_other_spec = reading.is_whole and reading.spec != text.strip()
        try:
            result = search._result_of_reading(reading, is_other_spec=is_other_spec)
        except (QuerySyntaxError, UnsupportedQuery):
            # A word is a part of a spec that is not valid alone, such as
            # `^[virtuals=c,cxx]`.
            return None
        machine = self.narrowing.host
        if machine is None or machine == narrowing.host:
            return result
        return _with_note(result, MACHINE_REPLACED.format(machine))

    def _result_of_reading(
        self, reading: Reading, *, is_other_spec: bool
    ) -> Elsewhere | SearchPage:
        """Return the result for plain words with a meaning.

        Args:
            reading: the meaning, whose names are in `narrowing`.
            is_other_spec: whether it is a spec, and not as it was typed.
        """
        if reading.host or is_other_spec:
            return self._page_of_words(reading)
        # Words without a meaning describe packages, if there is no other answer.
        describes = not reading.package or bool(reading.left_out)
        if describes and not reading.is_whole and not self._is_of_version(reading):
            result = self._packages(reading.rest, reading)
            if result.packages or reading.left_out:
                return result
        return self._found(parse(reading.spec or "*"), reading)

    def _is_of_version(self, reading: Reading) -> bool:
        """Return whether words ask for a version of a package, and for no other one.

        `hdf5 1.14 or newer` does: a list of packages would propose any version of it.
        `gcc 13 openmpi` names two packages.
        """
        if parse(reading.spec or "*").versions is None:
            return False
        others = [word for word in reading.left_out if word != reading.package]
        return not any(package_called(self.lookups, word) for word in others)

    def _page_of_words(self, reading: Reading) -> Elsewhere | SearchPage:
        """Return the page that plain words mean."""
        text = reading.search
        is_spec = text == reading.spec and not self.narrowing.explicit
        filters = self._filters(parse(text)) if text and is_spec else None
        if filters is not None:
            path = f"/package/{quote(reading.package)}"
            return Elsewhere(path, [*filters, *self.narrowing.pairs])
        # The address and the box keep the words.
        result = self.result(text or "*")
        if isinstance(result, Elsewhere):
            return result
        return replace(result, reading=reading)

    def _filters(self, query: SpecQuery) -> Pairs | None:
        """Return the filters of a package's page with the result of a spec.

        None if the spec has no result, or the page has no filter for one of its parts.
        """
        # A package, and nothing else than variants, an os and a platform.
        others = replace(query, variants=(), os=None, platform=None, text="")
        has_others = others != SpecQuery(name=query.name)
        if has_others or query.name not in self.lookups.packages:
            return None
        for variant in query.variants:
            if variant.kind != "bool" or variant.propagate:
                return None
        if not recent_question(self.lookups, query, self.scope).count():
            return None

        filters = [("variant", variant_text(variant)) for variant in query.variants]
        if query.os:
            filters.append(("os", query.os))
        if query.platform:
            filters.append(("platform", query.platform))
        return filters

    def _packages(
        self, words: Sequence[str], reading: Reading | None = None
    ) -> SearchPage:
        """Return the packages that words name or describe."""
        nouns: Sequence[str] = words
        scope = self.scope
        if reading is not None:
            nouns = reading.nouns
            scope = self._conditions_of_any_package(reading)
        packages = packages_of_words(self.lookups, words, nouns, scope)
        return SearchPage(self.narrowing, reading, packages=packages)

    def _conditions_of_any_package(self, reading: Reading) -> Conditions:
        """Return the conditions of a reading that packages with other names and options
        can satisfy: those on the system, the target and the compiler; and the scope.
        """
        query = parse(reading.spec or "*")
        compilers = tuple(edge for edge in query.dependencies if edge.direct)
        query = SpecQuery(
            os=query.os,
            platform=query.platform,
            target=query.target,
            dependencies=compilers,
        )
        return recent_question(self.lookups, query, self.scope).conditions

    def _compiled(self, query: SpecQuery) -> str | None:
        """Return `%gcc@13` for the query `gcc@13`, if that compiler built binaries.

        None if the query is not only a compiler.
        """
        only_versions = SpecQuery(
            name=query.name, versions=query.versions, text=query.text
        )
        if query.name not in self.lookups.compilers or query != only_versions:
            return None
        compiled = f"%{spec_text(query)}"
        question = recent_question(self.lookups, parse(compiled), self.scope)
        return compiled if question.count() else None

    def _found(self, query: SpecQuery, reading: Reading | None = None) -> SearchPage:
        """Return the configurations that satisfy a query and the words of a reading."""
        words: Sequence[str] = ()
        scope = self.scope
        if reading is not None:
            words = reading.words
            scope = (*reading.conditions(), *scope)
        question = recent_question(self.lookups, query, scope)
        spec = spec_text(question.canonical_spec)
        if question.count() and _asks_for_no_package(question):
            return SearchPage(
                self.narrowing,
                reading,
                spec=spec,
                notes=question.notes,
                packages=packages_of_question(self.lookups, question, self.page),
                facets=facets_of(
                    self.lookups, question.results, question.canonical_spec, words
                ),
            )
        answer = self._page_of_rows(question, words)
        notes = question.notes
        why = None
        # Where the package runs: with the other conditions, or at all.
        row = None
        package = condition_value(question.conditions, "package")
        if isinstance(package, Word) and package_counts(self.lookups).get(package.text):
            conditions = question.conditions if question.count() else ()
            row = package_of_question(self.lookups, package.text, conditions)
        if question.count():
            notes += question.lost_note()
        else:
            # Last, because this is left out if the time of the page is over.
            why = why_in_time(why_not, question)
        return SearchPage(
            self.narrowing,
            reading,
            spec=spec,
            answer=answer,
            why=why,
            notes=notes,
            row=row,
        )

    def _page_of_rows(
        self, question: Question, words: Sequence[str]
    ) -> FoundConfigurations:
        """Return one page of the configurations that satisfy a question."""
        lookups = self.lookups
        results = question.results
        window = paginated(question.count(), self.page, CONFIGURATION_ROWS)
        configurations = question.configurations(window.rows)

        # Variants that all matches share stand above the rows.
        common_variants = _common_variants(lookups, results)
        rows = table_rows(
            lookups, configurations, results.conditions, common_variants, self.opened
        )

        # The first page proposes a build.
        proposed = None
        if window.page == 1:
            proposal = propose_among(lookups, results)
            proposed = proposed_build(lookups, proposal, self.narrowing.release)
        return FoundConfigurations(
            count=question.count(),
            rows=rows,
            common_variants=common_variants,
            window=window,
            facets=facets_of(lookups, results, question.canonical_spec, words),
            proposed=proposed,
        )


def is_spec(lookups: Lookups, text: str) -> bool:
    """Return whether a text has Spack's signs, is a spec of a package such as
    `Hdf5+mpi`, or switches options of any package off (`-mpi`); otherwise it is plain
    words.
    """
    if SIGNS.search(text):
        return True
    try:
        query = parse(text)
    except QuerySyntaxError:
        return False
    if query.name is None:
        return all(
            any(select(lookups.conn, SWITCH, name=variant.name, package=""))
            for variant in query.variants
        )
    package = read_spellings(lookups).canonical("package", query.name)
    return package in lookups.packages


def _common_variants(lookups: Lookups, results: ResultSet) -> tuple[str, ...]:
    """Return the variants that all configurations of an answer share."""
    # Many configurations have few sets of variants.
    set_of = lookups.column("configurations", ID_COLUMNS["variants"])
    sets = {set_of[key] for key in results.ids}
    lookups.learn(set(), sets)
    variants = [lookups.words["variants"][key] for key in sorted(sets)]
    # Several configurations may have one set. A single one shows its variants itself.
    if len(sets) == 1 and len(results.ids) > 1:
        return tuple(variants[0])
    return shared_variants(variants)


def _with_note(result: Elsewhere | SearchPage, note: str) -> Elsewhere | SearchPage:
    """Return a result with a note before its others; another page has none."""
    if isinstance(result, Elsewhere):
        return result
    return replace(result, notes=(note, *result.notes))


def _asks_for_no_package(question: Question) -> bool:
    """Return whether the question names neither a package nor a spec by its hash."""
    package = condition_value(question.conditions, "package")
    has_hash = condition_value(question.conditions, "hash") is not None
    return not isinstance(package, Word) and not has_hash
