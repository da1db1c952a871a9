"""Permissions that the site's owner gives to other plugins and websites; by default none.

The keys are under `plugins: spack-cache-db:`, in `datasette.yml` for Datasette 1.0 and in the
metadata for 0.65.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils import StartupError

from spack_cache_db.site import is_origin

NAME = "spack-cache-db"


@dataclass(frozen=True, slots=True)
class Allowances:
    """The configuration of our plugin.

    Attributes:
        open_paths: addresses that accept every method, with all addresses below them.
        csp: sources by directive, added to the content security policy of Datasette's pages.
        sql_functions: names of functions that SQL may call.
        sql_in_server: whether visitors' SQL runs in the server's own process, where other plugins
            add their functions.
        embedding: origins (`https://host`) whose pages may show this site in a frame.
    """

    open_paths: tuple[str, ...] = ()
    csp: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sql_functions: frozenset[str] = frozenset()
    sql_in_server: bool = False
    embedding: tuple[str, ...] = ()

    def opens(self, path: str) -> bool:
        """Return whether an address is open; `/-/a` opens `/-/a.json` and `/-/a/b` as well."""
        return any(
            path == opened or path.startswith((f"{opened}/", f"{opened}."))
            for opened in self.open_paths
        )

    def policy(self, stock: str) -> str:
        """Return a content security policy with the additional sources."""
        directives = dict(part.strip().partition(" ")[::2] for part in stock.split(";"))
        for name, sources in self.csp.items():
            value = directives.get(name) or directives["default-src"]
            directives[name] = " ".join(("" if value == "'none'" else value, *sources)).strip()
        return "; ".join(f"{name} {sources}" for name, sources in directives.items())


_read: WeakKeyDictionary[Any, Allowances] = WeakKeyDictionary()


def allowances_of(datasette: Any) -> Allowances:
    """Return the allowances in the configuration of a Datasette, read once.

    Raises:
        StartupError: see `read_allowances`.
    """
    if datasette not in _read:
        _read[datasette] = read_allowances(datasette.plugin_config(NAME) or {})
    return _read[datasette]


def read_allowances(config: Any) -> Allowances:
    """Return the allowances in a configuration.

    Raises:
        StartupError: a key is unknown or has a wrong value; the message names the key.
    """
    if not isinstance(config, dict):
        raise _error("", "a mapping", config)
    known = Allowances.__dataclass_fields__
    if unknown := sorted({*map(str, config)} - {*known}):
        message = f"no key is called {unknown[0]!r}, expected {', '.join(known)}"
        raise StartupError(f"plugins: {NAME}: {message}")
    csp = config.get("csp") or {}
    if not isinstance(csp, dict):
        raise _error("csp", "a mapping of directives to lists of sources", csp)
    in_server = config.get("sql_in_server", False)
    if not isinstance(in_server, bool):
        raise _error("sql_in_server", "true or false", in_server)
    paths = _texts("open_paths", config.get("open_paths"))
    for path in paths:
        if not path.startswith("/") or path == "/":
            raise _error("open_paths", "paths such as /-/search", path)
    origins = _texts("embedding", config.get("embedding"))
    for origin in origins:
        if not is_origin(origin):
            raise _error("embedding", "origins such as https://example.org", origin)
    functions = _texts("sql_functions", config.get("sql_functions"))
    return Allowances(
        tuple(path.rstrip("/") for path in paths),
        {str(name): _texts(f"csp: {name}", sources) for name, sources in csp.items()},
        frozenset(map(str.lower, functions)),
        in_server,
        origins,
    )


def _texts(key: str, value: Any) -> tuple[str, ...]:
    texts = [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _error(key, "a list of texts", value)
    for text in texts:
        if not text.isprintable() or ";" in text or not text.isascii():
            raise _error(key, "printable ASCII without semicolons", text)
    return tuple(texts)


def _error(key: str, expected: str, value: Any) -> StartupError:
    where = f"plugins: {NAME}:" + (f" {key}:" if key else "")
    return StartupError(f"{where} {value!r} is not {expected}")
