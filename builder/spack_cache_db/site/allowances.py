"""What the site's owner allows other plugins and other websites; by default nothing.

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
    """What is allowed.

    Attributes:
        open_paths: addresses that are answered, with every method, and all that is below them.
        csp: sources by directive, added to the content security policy of Datasette's pages.
        sql_functions: names of functions that SQL may call.
        sql_in_server: whether the statements of visitors run in the server's own process, where
            the functions of plugins are.
        embedding: origins (`https://host`) whose pages may show this site's in a frame.
    """

    open_paths: tuple[str, ...] = ()
    csp: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sql_functions: frozenset[str] = frozenset()
    sql_in_server: bool = False
    embedding: tuple[str, ...] = ()

    def opens(self, path: str) -> bool:
        """Return whether an address is open; `/-/a` opens `/-/a.json` and `/-/a/b` as well."""
        return any(
            path == each or path.startswith((f"{each}/", f"{each}.")) for each in self.open_paths
        )

    def policy(self, stock: str) -> str:
        """Return a content security policy with the additions."""
        directives = dict(each.strip().partition(" ")[::2] for each in stock.split(";"))
        for name, sources in self.csp.items():
            known = directives.get(name) or directives["default-src"]
            known = "" if known == "'none'" else known
            directives[name] = " ".join(filter(None, (known, *sources)))
        return "; ".join(f"{name} {sources}" for name, sources in directives.items())


_known: WeakKeyDictionary[Any, Allowances] = WeakKeyDictionary()


def allowances_of(datasette: Any) -> Allowances:
    """Return what the configuration of a Datasette allows.

    Raises:
        StartupError: it cannot be read; the message names the key.
    """
    if datasette not in _known:
        _known[datasette] = read_allowances(datasette.plugin_config(NAME) or {})
    return _known[datasette]


def read_allowances(config: Any) -> Allowances:
    """Return what a configuration allows.

    Raises:
        StartupError: it has another key, or a value of another type.
    """
    if not isinstance(config, dict):
        raise _error("", "a mapping", config)
    unknown = sorted({*map(str, config)} - {*Allowances.__dataclass_fields__})
    if unknown:
        known = ", ".join(Allowances.__dataclass_fields__)
        raise StartupError(f"plugins: {NAME}: no key is called {unknown[0]!r}, expected {known}")
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
        frozenset(each.lower() for each in functions),
        in_server,
        origins,
    )


def _texts(key: str, value: Any) -> tuple[str, ...]:
    given = [] if value is None else value
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise _error(key, "a list of texts", value)
    for each in given:
        if not each.isprintable() or ";" in each or not each.isascii():
            raise _error(key, "printable ASCII without semicolons", each)
    return tuple(given)


def _error(key: str, expected: str, found: Any) -> StartupError:
    where = f"plugins: {NAME}:" + (f" {key}:" if key else "")
    return StartupError(f"{where} {found!r} is not {expected}")
