"""Adapts Datasette, 0.65 or 1.0, to this site.

- hooks with types, and permissions for our own pages and the file
- tables in the schema's order on Datasette's page of a database
- our own pages are rendered in threads, which leave the event loop to others
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from datasette import hookimpl
from datasette.utils.asgi import Forbidden
from jinja2 import Environment, Template

from spack_cache_db.schema import TABLES, VIEWS

Function = TypeVar("Function", bound=Callable[..., object])
Handler = Callable[..., Awaitable[Any]]
T = TypeVar("T")

_renderers = ThreadPoolExecutor(8)
"""As many threads as pages are answered at once: a small page does not wait for large ones."""
_own_environments: WeakKeyDictionary[Any, Environment] = WeakKeyDictionary()
_ORDER = {name: place for place, name in enumerate((*VIEWS, *(table.name for table in TABLES)))}


def add_templates(environment: Any, folder: Path) -> None:
    """Have a Datasette look for templates in a folder, just before it looks among its own."""
    paths = environment.loader.loaders[0].searchpath
    if str(folder) not in paths:
        paths.insert(len(paths) - 1, str(folder))


def keep_own_templates(datasette: Any) -> None:
    """Give a Datasette an environment for our own templates, which await nothing.

    Templates do not change while a server runs: their files are not looked at for each page.
    """
    environment = _environment(datasette)
    environment.auto_reload = False
    own = environment.overlay()
    own.is_async = False
    own.template_class = ThreadedTemplate
    _own_environments[datasette] = own


class ThreadedTemplate(Template):
    """A template that does not keep the event loop from answering others while it is rendered."""

    async def render_async(self, *args: Any, **kwargs: Any) -> str:
        """Return the page, as Jinja's own method does."""
        render = partial(copy_context().run, self.render, *args, **kwargs)
        if sys.platform == "emscripten":
            return str(render())
        return str(await asyncio.get_running_loop().run_in_executor(_renderers, render))


def _environment(datasette: Any) -> Environment:
    # 1.0 keeps its environment under another name.
    found: Environment = getattr(datasette, "_jinja_env", None) or datasette.jinja_env
    return found


def compile_templates(datasette: Any, folder: Path) -> None:
    """Compile the templates of a folder, and those of Datasette that extend or replace them."""
    own, environment = _own_environments[datasette], _environment(datasette)
    every = {*environment.list_templates()}
    for name in sorted(path.name for path in folder.iterdir()):
        own.get_template(name)
        replaced = {f"default:{name}"} & every
        for other in replaced | ({name} if replaced or name.startswith("_") else set()):
            environment.get_template(other)


async def rendered(datasette: Any, request: Any, template: str, context: dict[str, Any]) -> str:
    """Return a page made from one of our own templates.

    They call nothing that has to be awaited. Jinja makes each piece of a template with `async` an
    awaitable, which takes half of the time of a page.
    """
    found = _own_environments[datasette].get_template(template)
    return str(await datasette.render_template(found, context, request=request))


def hook(function: Function, *, trylast: bool = False, optionalhook: bool = False) -> Function:
    """Mark a function as a hook.

    Args:
        function: what Datasette calls.
        trylast: whether it is called after those of other plugins.
        optionalhook: whether there are versions of Datasette without this hook.
    """
    return cast("Function", hookimpl(function, trylast=trylast, optionalhook=optionalhook))


class Recent:
    """What was read of a file that does not change; of all of it, what was asked for last.

    Args:
        most: so many answers are kept, or so much as they take by `size`.
        size: returns what a key and its answer take.
    """

    def __init__(self, most: int, size: Callable[[object], int] = lambda _: 1) -> None:
        self._most, self._size, self._taken = most, size, 0
        self._found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    async def once(
        self,
        key: Hashable,
        read: Callable[[], Awaitable[T]],
        is_kept: Callable[[T], bool] = lambda found: found is not None,
    ) -> T:
        """Return what was read for this key, now or before.

        Args:
            key: what is asked.
            read: reads the answer.
            is_kept: whether an answer may be kept; by default all but None, for what is not there.
        """
        if key in self._found:
            self._found.move_to_end(key)
            known: T = self._found[key][0]
            return known
        found = await read()
        # Another visitor may have asked the same meanwhile.
        if is_kept(found) and key not in self._found:
            size = self._size((key, found))
            self._found[key] = found, size
            self._taken += size
            while self._taken > self._most:
                self._taken -= self._found.popitem(last=False)[1][1]
        return found


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Ask whether a visitor may do something with a database.

    Our pages show the catalogue as a whole, so they ask whether a visitor may view the database.
    What `allow` says of a single table holds for Datasette's pages of it, and not for ours.

    Args:
        datasette: either version of it.
        actor: who asks, as Datasette knows them; None for anybody.
        action: `view-database` or `view-database-download`.
        database: the name of the database.

    Raises:
        Forbidden: they may not.
    """
    if hasattr(datasette, "ensure_permissions"):
        # Datasette 0.65: the first that has an opinion decides, as on its own pages.
        asked = dict.fromkeys(((action, database), ("view-database", database), "view-instance"))
        await datasette.ensure_permissions(actor, [*asked])
        return
    resource = import_module("datasette.resources").DatabaseResource(database=database)
    await datasette.ensure_permission(action=action, resource=resource, actor=actor)


def permitted(
    handler: Handler,
    database_of: Callable[[Any, Any], Any],
    check: Callable[[Any, Any], Awaitable[None]],
) -> Handler:
    """Return a route's handler that answers only visitors who may view the database.

    Args:
        handler: it takes some of `datasette`, `request` and `send`.
        database_of: returns the database of a Datasette that a request reads.
        check: raises if the address of a request is not one to answer.
    """
    taken = inspect.signature(handler).parameters

    async def guarded(datasette: Any, request: Any, send: Any) -> Any:
        name = database_of(datasette, request).name
        await ensure(datasette, request.actor, "view-database", name)
        await check(datasette, request)
        given = {"datasette": datasette, "request": request, "send": send}
        return await handler(**{key: value for key, value in given.items() if key in taken})

    return guarded


async def may_view(datasette: Any, actor: Any, database: str) -> bool:
    """Return whether a visitor may view a database."""
    try:
        await ensure(datasette, actor, "view-database", database)
    except Forbidden:
        return False
    return True


def in_order(found: Iterable[Any]) -> list[Any]:
    """Return tables or views in the schema's order, those that are not ours last.

    Args:
        found: what Datasette tells of each; 0.65 has dictionaries, 1.0 may have records.
    """
    return sorted(found, key=lambda each: _ORDER.get(_name(each), len(_ORDER)))


def _name(each: Any) -> str:
    return str(each["name"] if isinstance(each, dict) else each.name)
