"""Serves our own pages: a worker process makes the bytes, and those asked for last are kept."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from datasette.plugins import pm
from datasette.utils import await_me_maybe, tilde_decode
from datasette.utils.asgi import Forbidden, NotFound, Response

from spack_cache_db.site.answers import Answer, Link, Request
from spack_cache_db.site.catalogues import others, published
from spack_cache_db.site.download import is_as_it_was, send_file
from spack_cache_db.site.middleware import OWN_PAGE, path_of
from spack_cache_db.site.permissions import ensure, may_view
from spack_cache_db.site.routes import ROUTES, respond, route_of
from spack_cache_db.site.workers.execute import ask

DOWNLOAD = r"^/(?P<database>[^/]+)\.db$"
FORM_TYPE = "application/x-www-form-urlencoded"
NO_FORM = (
    f"Error: expected a form ({FORM_TYPE}) with the field q: curl --data-urlencode q@spack.yaml\n"
)
MOST_KEPT_BYTES = 32_000_000
"""Of answers that are kept."""
_kept: WeakKeyDictionary[Any, KeptAnswers] = WeakKeyDictionary()

Handler = Callable[..., Awaitable[Any]]


class KeptAnswers:
    """The answers that were asked for last, by what was asked, as many as fit into `most` bytes."""

    def __init__(self, most: int = MOST_KEPT_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._answers: OrderedDict[Request, Answer] = OrderedDict()

    def get(self, request: Request) -> Answer | None:
        """Return the answer to a request, if it is kept."""
        if request in self._answers:
            self._answers.move_to_end(request)
        return self._answers.get(request)

    def keep(self, request: Request, answer: Answer) -> None:
        """Keep an answer, in place of those that were not asked for since longest."""
        if request in self._answers:
            return
        self._answers[request] = answer
        self._bytes += _size(request, answer)
        while self._bytes > self._most:
            self._bytes -= _size(*self._answers.popitem(last=False))


def _size(request: Request, answer: Answer) -> int:
    return len(answer.body) + len(request.path) + len(request.query) + 1_000


def handler_of(number: int) -> Handler:
    """Return the function that Datasette calls for the route with this number."""

    async def handler(datasette: Any, request: Any, send: Any) -> Any:
        database = published(datasette)
        await ensure(datasette, request.actor, "view-database", database.name)
        form = None
        if request.method == "POST":
            if not request.headers.get("content-type", FORM_TYPE).startswith(FORM_TYPE):
                return Response.text(NO_FORM, status=415)
            form = (await request.post_body()).decode("latin-1")
        asked = await _asked(datasette, request, form)
        answer = await answered(datasette, number, asked)
        if answer.following is not None:
            await _stream(datasette, number, asked, answer, send)
            return None
        headers = {**OWN_PAGE, **dict(answer.headers)}
        return Response(answer.body, answer.status, headers, headers.pop("content-type"))

    return handler


async def answered(datasette: Any, number: int, asked: Request) -> Answer:
    """Return the answer of a route, now or as it was before.

    Raises:
        Exception: see `Pool.run`.
    """
    database = published(datasette)
    kept = _kept.setdefault(database, KeptAnswers())
    answer = kept.get(asked) or await ask(datasette, ROUTES[number].kind, respond, number, asked)
    is_whole = answer.status == 200 and answer.following is None
    if is_whole and asked.form is None and not database.is_mutable:
        kept.keep(asked, answer)
    return answer


async def _asked(datasette: Any, request: Any, form: str | None) -> Request:
    """Return a request as a worker takes it."""
    links: list[Link] = []
    for found in pm.hook.menu_links(datasette=datasette, actor=request.actor, request=request):
        added = await await_me_maybe(found) or []
        links += [Link(str(link["href"]), str(link["label"])) for link in added]
    actor, beside = request.actor, others(datasette)
    path = path_of(request.scope)
    return Request(
        path,
        request.query_string,
        str(datasette.absolute_url(request, "/")).rstrip("/"),
        form,
        tuple(links),
        tuple(
            [name for name in beside if path == "/about" and await may_view(datasette, actor, name)]
        ),
    )


async def _stream(datasette: Any, number: int, asked: Request, answer: Answer, send: Any) -> None:
    """Send rows in parts; break the connection if one of them cannot be read."""
    headers = [
        (name.encode(), value.encode()) for name, value in (*OWN_PAGE.items(), *answer.headers)
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while answer.following is not None:
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        try:
            answer = await answered(datasette, number, replace(asked, first=answer.following))
        except Exception as error:
            # Without a last message, the server closes the connection.
            print(f"the rows of a search end early: {error!r:.500}", file=sys.stderr)
            return
        if answer.status != 200:
            # A part that is refused is no row either.
            return
    await send({"type": "http.response.body", "body": answer.body})


async def download(datasette: Any, request: Any, send: Any) -> None:
    """`/<database>.db`: the whole file, with length, entity tag and ranges."""
    try:
        database = datasette.get_database(route=tilde_decode(request.url_vars["database"]))
    except KeyError:
        raise NotFound("There is no such file here.") from None
    await ensure(datasette, request.actor, "view-database", database.name)
    if not database.path or database.is_mutable:
        raise NotFound("There is no such file here.")
    if not datasette.setting("allow_download"):
        raise Forbidden("Downloading the file is turned off here.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    path = Path(database.path)
    if not is_as_it_was(path):
        raise NotFound("The file has been overwritten; the server has to be started again.")
    await send_file(request.scope, send, path, f'"{database.hash}"')


PAGES: tuple[tuple[str, Handler], ...] = (
    *((route.pattern, handler_of(number)) for number, route in enumerate(ROUTES)),
    (DOWNLOAD, download),
)
"""The addresses of our own pages, and the functions that Datasette calls for them."""


def is_own_page(path: str) -> bool:
    """Return whether a path is that of one of our pages, or of a download."""
    return route_of(path) is not None or re.match(DOWNLOAD, path) is not None
