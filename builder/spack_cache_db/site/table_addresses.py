"""Checks the addresses of tables and canned queries before Datasette reads them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from typing import Any

from datasette.plugins import pm
from datasette.utils import asgi, await_me_maybe, tilde_decode

from spack_cache_db.site.addresses import check_data
from spack_cache_db.site.answers import PAGES, Request
from spack_cache_db.site.catalogues import may_view, name_of, own_queries
from spack_cache_db.site.middleware import App, Receive, Scope, Send
from spack_cache_db.site.workers.execute import BusyError, ask

_DATA = re.compile(r"/([^/]+)/([^/.]+)(?:\.\w+)?")


async def check_addresses(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse unknown fields and names of tables and canned queries; redirect other spellings.

    Visitors who may not view the database get the same answer to all names.
    """
    path, query = asgi.Request(scope, None).path, scope["query_string"].decode("latin-1")
    match = _DATA.fullmatch(path) if query else None
    database, name = map(tilde_decode, match.groups() if match else ("", ""))
    if database == name_of(datasette):
        fields = own_queries(datasette, database).get(name, {}).get("params")
        # Without a worker, Datasette cannot answer either, and says why.
        with suppress(BusyError, sqlite3.Error):
            answer = await ask(datasette, PAGES, check_data, Request(path, query), name, fields)
            is_wrong = answer.status != 200
            if is_wrong and await may_view(datasette, await _actor_of(datasette, scope), database):
                await answer.asgi_send(send)
                return
    await app(scope, receive, send)


async def _actor_of(datasette: Any, scope: Scope) -> Any:
    """Return the actor of a request, as Datasette does later."""
    request, actor = asgi.Request(scope, None), None
    for result in pm.hook.actor_from_request(datasette=datasette, request=request):
        actor = actor or await await_me_maybe(result)
    return actor
