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
from datasette.utils.asgi import Response

from spack_cache_db.site.answers import Answer, Link, Request, refused
from spack_cache_db.site.catalogues import ensure, may_view, others, published
from spack_cache_db.site.download import DOWNLOAD, download
from spack_cache_db.site.middleware import path_of, start_of
from spack_cache_db.site.routes import ROUTES, respond, route_of
from spack_cache_db.site.workers.execute import ask

FORM_TYPE = "application/x-www-form-urlencoded"
NO_FORM = f"expected a form ({FORM_TYPE}) with the field q: curl --data-urlencode q@spack.yaml"

Handler = Callable[..., Awaitable[Any]]


class KeptAnswers(dict[Request, Answer]):
    """The answers to requests; beyond its size limit, the oldest go first."""

    def __init__(self, size_limit: int = 32_000_000) -> None:
        self._size_limit, self._bytes = size_limit, 0

    def keep(self, request: Request, answer: Answer) -> None:
        """Add an answer."""
        if self.setdefault(request, answer) is answer:
            self._bytes += _size(request, answer)
        while self._bytes > self._size_limit:
            oldest = next(iter(self))
            self._bytes -= _size(oldest, self.pop(oldest))


_kept: WeakKeyDictionary[Any, KeptAnswers] = WeakKeyDictionary()
"""Answers by Datasette's database."""


def _size(request: Request, answer: Answer) -> int:
    return len(answer.body) + len(request.path) + len(request.query) + 1_000


def response_of(answer: Answer) -> Any:
    """Return Datasette's form of an answer."""
    headers = dict(answer.headers)
    return Response(answer.body, answer.status, headers, headers.pop("content-type"))


def handler_of(number: int) -> Handler:
    """Return the function that Datasette calls for a route, given by its index in `ROUTES`."""

    async def handler(datasette: Any, request: Any, send: Any) -> Any:
        await ensure(datasette, request.actor, "view-database", published(datasette).name)
        form = None
        if request.method == "POST":
            if not request.headers.get("content-type", FORM_TYPE).startswith(FORM_TYPE):
                return response_of(refused(NO_FORM, None, 415))
            form = (await request.post_body()).decode("latin-1")
        page_request = await _page_request(datasette, request, form)
        answer = await _answer(datasette, number, page_request)
        if answer.following is None:
            return response_of(answer)
        await _stream(datasette, number, page_request, answer, send)
        return None

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
    actor, path = request.actor, path_of(request.scope)
    links: list[Link] = []
    for result in pm.hook.menu_links(datasette=datasette, actor=actor, request=request):
        entries = await await_me_maybe(result) or []
        links += [Link(str(entry["href"]), str(entry["label"])) for entry in entries]
    names = others(datasette) if path == "/about" else []
    return Request(
        path,
        request.query_string,
        str(datasette.absolute_url(request, "/")).rstrip("/"),
        form,
        tuple(links),
        tuple(
            [
                Link(datasette.urls.database(name), name)
                for name in names
                if await may_view(datasette, actor, name)
            ]
        ),
    )


async def _stream(datasette: Any, number: int, request: Request, answer: Answer, send: Any) -> None:
    """Send rows in parts; close the connection if one of them fails."""
    await send(start_of(answer))
    while answer.following is not None:
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        try:
            answer = await _answer(datasette, number, replace(request, first=answer.following))
        except Exception as error:
            # Without a last message, the server closes the connection.
            print(f"the rows of a search end early: {error!r:.500}", file=sys.stderr)
            return
        if answer.status != 200:
            return
    await send({"type": "http.response.body", "body": answer.body})


PAGES: tuple[tuple[str, Handler], ...] = (
    *((route.pattern, handler_of(number)) for number, route in enumerate(ROUTES)),
    (DOWNLOAD, download),
)
"""Patterns of our own addresses, and the functions that Datasette calls for them."""


def is_own_page(path: str) -> bool:
    """Return whether a path is one of our pages or a download."""
    return route_of(path) is not None or re.match(DOWNLOAD, path) is not None
