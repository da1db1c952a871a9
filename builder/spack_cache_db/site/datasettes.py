"""Adapts Datasette, 0.65 or 1.0, to this site.

- hooks with types, and permissions for our own pages and the file
- tables in the schema's order on Datasette's page of a database
- the schema of a file that does not change is read once, not for each page
- SQL is checked by regular expressions that take linear time, and pages are rendered in threads or
  in slices: both would keep the event loop from answering others
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from datasette import hookimpl, utils
from datasette.utils.asgi import Forbidden
from jinja2 import Environment, Template, Undefined
from jinja2.runtime import BlockReference, Context

from spack_cache_db.schema import TABLES, VIEWS

Function = TypeVar("Function", bound=Callable[..., object])
Handler = Callable[..., Awaitable[Any]]
T = TypeVar("T")

SLICE_SECONDS = 0.002
"""So long a page is rendered at a stretch; then others have their turn on the event loop."""
LARGE_SECONDS = 0.02
"""A page that takes longer is large. One large page is rendered at a time, small ones beside it."""
CELLS_AT_ONCE = 50
"""So many cells of a table are prepared at a stretch."""

SCHEMA_METHODS = (
    *("table_names", "view_names", "hidden_table_names", "get_all_foreign_keys"),
    *("table_exists", "view_exists", "get_table_definition", "get_view_definition", "fts_table"),
    *("table_columns", "table_column_details", "primary_keys", "foreign_keys_for_table"),
    "label_column_for_table",
)
"""Methods of Datasette's `Database` that read its schema, each in another thread."""
MOST_TABLES = 200

# What stands before a statement. Datasette's expression tries each space in two places; here what
# was matched once is not given back.
_COMMENTS = r"^\s*+(?:--.*?\n\s*+|/\*(?:(?!\*/)[\s\S])*+\*/\s*+)*+\s*+"
# A comment or a bracket that nothing closes goes to the end, instead of being looked for again at
# each later one.
_CLOSED = {
    r"/\*.*?\*/": r"/\*.*?(?:\*/|\Z)",
    r"\[(?:[^\]])*\]": r"\[[^\]]*+(?:\]|\Z)",
}
_NAMED_PARAMETERS = ("_multi_line_comment_re", "_comments_and_strings_re")

_rendering: ContextVar[_Rendering | None] = ContextVar("rendering", default=None)
_large: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_renderers = ThreadPoolExecutor(8)
"""As many threads as pages are answered at once: a small page does not wait for large ones."""
_own_environments: WeakKeyDictionary[Any, Environment] = WeakKeyDictionary()
_ORDER = {name: place for place, name in enumerate((*VIEWS, *(table.name for table in TABLES)))}


def check_sql_in_linear_time() -> None:
    """Replace the expressions with which Datasette looks at SQL, on its event loop.

    They take time that grows with the square of a text; what they match stays the same.
    """
    for place, each in enumerate(utils.allowed_sql_res):
        pattern = each.pattern.replace(utils.comment_re, _COMMENTS)
        utils.allowed_sql_res[place] = re.compile(pattern)
    for name in _NAMED_PARAMETERS:
        if (found := getattr(utils, name, None)) is not None:
            pattern = found.pattern
            for slow, quick in _CLOSED.items():
                pattern = pattern.replace(slow, quick)
            setattr(utils, name, re.compile(pattern, found.flags))


class SlicedTemplate(Template):
    """A template that does not keep the event loop from answering others while it is rendered.

    Our own templates, which await nothing, are rendered in a thread. Datasette's are rendered in
    slices, and only one large page at a time.
    """

    async def render_async(self, *args: Any, **kwargs: Any) -> str:
        """Return the page, as Jinja's own method does; of our own templates as well."""
        if not self.environment.is_async:
            render = partial(copy_context().run, self.render, *args, **kwargs)
            if sys.platform == "emscripten":
                return str(render())
            return str(await asyncio.get_running_loop().run_in_executor(_renderers, render))
        token = _rendering.set(rendering := _Rendering())
        try:
            return "".join(
                [piece async for piece in _in_slices(self.generate_async(*args, **kwargs))]
            )
        finally:
            _rendering.reset(token)
            rendering.end()


class SlicedContext(Context):
    """What a template knows; it renders the block behind `super()` in slices as well."""

    def super(self, name: str, current: Any) -> BlockReference | Undefined:
        """Return the block of this name in the template that the current one extends."""
        found = super().super(name, current)
        if not isinstance(found, BlockReference):
            return found
        blocks = self.blocks[name]
        sliced: list[Any] = [partial(_block_in_slices, block) for block in blocks]
        return BlockReference(name, self, sliced, blocks.index(current) + 1)


class _Rendering:
    """One page that is being rendered."""

    def __init__(self) -> None:
        self._began, self._taken = time.monotonic(), 0.0
        self._lock: asyncio.Lock | None = None

    def is_due(self) -> bool:
        """Return whether others should have their turn on the event loop."""
        return time.monotonic() - self._began > SLICE_SECONDS

    async def pause(self) -> None:
        """Give others their turn."""
        self._taken += time.monotonic() - self._began
        if self._lock is None and self._taken > LARGE_SECONDS:
            large = _large.setdefault(asyncio.get_running_loop(), asyncio.Lock())
            await large.acquire()
            self._lock = large
        await asyncio.sleep(0)
        self._began = time.monotonic()

    def end(self) -> None:
        """Let another large page begin."""
        if self._lock is not None:
            self._lock.release()


async def _in_slices(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    rendering = _rendering.get()
    async for piece in pieces:
        if rendering is not None and rendering.is_due():
            await rendering.pause()
        yield piece


def _block_in_slices(block: Any, context: Context) -> AsyncIterator[str]:
    return _in_slices(block(context))


def add_templates(environment: Any, folder: Path) -> None:
    """Have a Datasette look for templates in a folder, just before it looks among its own."""
    paths = environment.loader.loaders[0].searchpath
    if str(folder) not in paths:
        paths.insert(len(paths) - 1, str(folder))


def render_in_slices(datasette: Any) -> None:
    """Have a Datasette render all pages by `SlicedTemplate`."""
    environment = _environment(datasette)
    environment.template_class, environment.context_class = SlicedTemplate, SlicedContext
    # Templates do not change while a server runs: their files are not looked at for each page.
    environment.auto_reload = False
    own = environment.overlay()
    own.is_async, own.context_class = False, Context
    _own_environments[datasette] = own


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


async def after_others(value: object) -> object:
    """Return a value after others have had their turn on the event loop."""
    await asyncio.sleep(0)
    return value


def hook(function: Function, *, tryfirst: bool = False, trylast: bool = False) -> Function:
    """Mark a function as a hook, which may be called before or after those of other plugins."""
    return cast("Function", hookimpl(function, tryfirst=tryfirst, trylast=trylast))


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


def remember_schemas(datasette: Any) -> None:
    """Read the schema of each file that does not change once, not for every page.

    Most pages of tables ask for it a dozen times, the page of a database three hundred times.
    """
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            for name in SCHEMA_METHODS:
                if hasattr(database, name):
                    setattr(database, name, _remembered(getattr(database, name)))


def _remembered(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    recent = Recent(MOST_TABLES)

    async def remembered(*args: Any, **named: Any) -> Any:
        read = partial(method, *args, **named)
        # Most tables have no full-text search: that there is none is an answer as well.
        found = await recent.once((args, *named.items()), read, lambda _: True)
        # Who asked may change their list.
        return copy(found)

    return remembered


def join_plain_addresses(datasette: Any) -> None:
    """Have a Datasette join addresses as plain texts, as it does for each value of a facet.

    Those that its `urls` makes are of a class that lists all methods of texts before it calls one.
    """
    inner = datasette.absolute_url
    datasette.absolute_url = lambda request, path: inner(request, str(path))


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
