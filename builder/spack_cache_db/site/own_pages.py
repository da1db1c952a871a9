"""Serves our own pages: a worker process makes the bytes, and recent answers are kept."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from datasette.plugins import pm
from datasette.utils import await_me_maybe

from spack_cache_db.site.answers import Answer, Link, Request, refused
from spack_cache_db.site.catalogues import ensure, may_view, published
from spack_cache_db.site.download import DOWNLOAD, download
from spack_cache_db.site.routes import ROUTES, respond, route_of
from spack_cache_db.site.workers.execute import ask

FORM_TYPE = "application/x-www-form-urlencoded"
NO_FORM = f"expected a form ({FORM_TYPE}) with the field q: curl --data-urlencode q@spack.yaml"

Handler = Callable[..., Awaitable[None]]


class KeptAnswers(dict[Request, Answer]):
    """The answers to requests; if they exceed the size limit, all of them go."""

    def __init__(self, size_limit: int = 32_000_000) -> None:
        self._size_limit, self._size = size_limit, 0

    def keep(self, request: Request, answer: Answer) -> None:
        """Add an answer."""
        self[request] = answer
        self._size += len(answer.body) + len(request.path) + len(request.query) + 1_000
        if self._size > self._size_limit:
            self.clear()
            self._size = 0


_kept: WeakKeyDictionary[Any, KeptAnswers] = WeakKeyDictionary()
"""Answers by Datasette's database."""


def handler_of(number: int) -> Handler:
    """Return the function that Datasette calls for a route, given by its index in `ROUTES`."""

    async def handler(datasette: Any, request: Any, send: Any) -> None:
        await ensure(datasette, request.actor, "view-database", published(datasette).name)
        form = None
        if request.method == "POST":
            if not request.headers.get("content-type", FORM_TYPE).startswith(FORM_TYPE):
                await refused(NO_FORM, None, 415).asgi_send(send)
                return
            form = (await request.post_body()).decode("latin-1")
        page_request = await _page_request(datasette, request, form)
        answer = await _answer(datasette, number, page_request)
        await answer.asgi_send(send)
        while answer.following is not None:
            part = replace(page_request, first=answer.following)
            try:
                answer = await _answer(datasette, number, part)
            except Exception as error:
                print(f"the rows of a search end early: {error!r:.500}", file=sys.stderr)
                # Without a last message, the server closes the connection.
                return
            if answer.status != 200:
                return
            more = answer.following is not None
            await send({"type": "http.response.body", "body": answer.body, "more_body": more})

    return handler


async def _answer(datasette: Any, number: int, request: Request) -> Answer:
    """Return the answer of a route, from a worker or from the kept answers."""
    database = published(datasette)
    answers = _kept.setdefault(database, KeptAnswers())
    if (answer := answers.get(request)) is not None:
        return answer
    answer = await ask(datasette, ROUTES[number].kind, respond, number, request)
    is_whole = answer.status == 200 and answer.following is None
    if is_whole and request.form is None and not database.is_mutable:
        answers.keep(request, answer)
    return answer


async def _page_request(datasette: Any, request: Any, form: str | None) -> Request:
    """Return the request for a worker that corresponds to one of Datasette's."""
    actor = request.actor
    menu = [
        Link(str(entry["href"]), str(entry["label"]))
        for entries in pm.hook.menu_links(datasette=datasette, actor=actor, request=request)
        for entry in await await_me_maybe(entries) or ()
    ]
    databases = [
        Link(datasette.urls.database(name), name)
        for name in (datasette.databases if request.path == "/about" else ())
        if name not in (published(datasette).name, "_internal")
        and await may_view(datasette, actor, name)
    ]
    origin = str(datasette.absolute_url(request, "/")).rstrip("/")
    query = request.query_string
    return Request(request.path, query, origin, form, tuple(menu), tuple(databases))


PAGES: tuple[tuple[str, Handler], ...] = (
    *((route.pattern, handler_of(number)) for number, route in enumerate(ROUTES)),
    (DOWNLOAD, download),
)
"""Patterns of our own addresses, and the functions that Datasette calls for them."""


def is_own_page(path: str) -> bool:
    """Return whether a path is one of our pages or a download."""
    return route_of(path) is not None or re.match(DOWNLOAD, path) is not None
