"""`/find?q=<text>`: the search, as a page, JSON or CSV."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlencode

from spack_cache_db.query.answers.find import found_part, found_rows
from spack_cache_db.query.answers.spec_functions import parse
from spack_cache_db.query.answers.why_not import why_in_time, why_not
from spack_cache_db.query.match.question import recent_question
from spack_cache_db.query.names.known import spec_in
from spack_cache_db.query.rows import csv_text
from spack_cache_db.site.filters import DataLinks, Narrowing
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.names import having, load_names
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import Elsewhere, SearchPage
from spack_cache_db.site.pages.search_tokens import tokens_of_spec, tokens_of_words
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.search_words import notes_on_words
from spack_cache_db.site.site import Site
from spack_cache_db.site.words import Vocabulary

FOUND_AT_ONCE = 1_000
"""Configurations in one part of a stream of JSON or CSV."""


class Around(NamedTuple):
    """The text before all rows, between two parts of them, and after all rows."""

    start: str
    between: str
    end: str


AROUND = {
    "json": Around("[\n", ",\n", "\n]"),
    "csv": Around(csv_text(found_rows((), hashes=False)), "", ""),
}
"""The text around the rows of `/find.json` and `/find.csv`."""


def find(site: Site, request: PageRequest) -> PageResponse:
    """Return `/find?q=`, or a redirect to the page that the text means."""
    # Find where the text leads.
    text = request.args.get("q", "").strip()
    search = Search(
        site.lookups,
        Narrowing.parse(request.pairs),
        page=request.args.get("page"),
        opened=request.args.get("open"),
    )
    page = search.result(text)
    if isinstance(page, Elsewhere):
        return site.redirect(page.path, page.pairs)

    # What was understood, and what was left out.
    narrowing = page.narrowing
    page = with_tokens(site, search, text, page)

    # Only a spec has a feed, and the same rows as JSON and CSV; plain words have not.
    feed = None
    links = None
    if page.is_of_spec:
        spec = page.spec or text
        feed = Topic(spec, stack=narrowing.stack, host=narrowing.host).feed
        if page.packages or (page.answer is not None and page.answer.rows):
            query = urlencode([("q", spec), *narrowing.pairs])
            links = DataLinks.of_page("/find", f"?{query}")

    # Releases, stacks and others that have a word which begins with the text.
    other_names = []
    for name in having(load_names(site.lookups), text):
        begins_word = f"-{text.lower()}" in f"-{name.name.lower()}"
        if name.kind != "package" and begins_word:
            other_names.append(name)
    return site.page(
        request,
        "find.html",
        shell_quoted=shlex.quote,
        page=page,
        search_text=text,
        links=links,
        narrowing=narrowing,
        others=other_names,
        feed=feed,
    )


def with_tokens(site: Site, search: Search, text: str, page: SearchPage) -> SearchPage:
    """Return the page of a text with its tokens, and notes on the words that have
    none.
    """
    lookups = site.lookups
    # The chosen machine is not used if the text has one.
    chosen = search.narrowing
    if chosen.host != page.narrowing.host:
        chosen = replace(chosen, host=None)
    if page.reading is not None and not page.is_of_compiler:
        vocabulary = site.environment.globals["words"]
        assert isinstance(vocabulary, Vocabulary)
        notes = notes_on_words(text, page.reading, vocabulary.one)
        tokens = tokens_of_words(lookups, text, page.reading, chosen)
        return replace(page, tokens=tokens, notes=(*notes, *page.notes))
    if not page.spec:
        return page
    # The spec of a compiler is not the text: a machine of the text narrows the answer.
    names = page.narrowing if page.is_of_compiler else chosen
    tokens = tokens_of_spec(lookups, parse(page.spec), names)
    return replace(page, tokens=tokens)


def find_rows(site: Site, request: PageRequest, form: str) -> PageResponse:
    """Return rows of the command `find`, from `request.first` on, as `/find.json` or
    `.csv`.
    """
    lookups = site.lookups
    narrowing = Narrowing.parse(request.pairs)
    pasted = spec_in(lookups, request.args.get("q", ""), narrowing.spack)
    query = parse(pasted.spec)
    question = recent_question(lookups, query, narrowing.scope(lookups))
    if not question.count():
        why = why_in_time(why_not, question)
        return refused("; ".join(why.reasons()), form, 404)

    # One part of the rows, as a whole document.
    stop = request.first + FOUND_AT_ONCE
    part = found_part(question, slice(request.first, stop), with_hashes=False)
    rows = found_rows(part, hashes=False)
    document = form_of(rows.records, rows, form)

    # A later part continues the document, and all but the last one leave it open.
    around = AROUND[form]
    if request.first > 0:
        document = around.between + document.removeprefix(around.start)
    if stop >= question.count():
        return data(document, form)
    return data(document.removesuffix(around.end), form, following=stop)
