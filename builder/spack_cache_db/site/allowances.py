"""Permissions that the site's owner gives to other plugins and websites; by default none.

The keys are under `plugins: spack-cache-db:`, in `datasette.yml` for Datasette 1.0 and in the
metadata for 0.65.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils import StartupError

from spack_cache_db.site import is_origin

NAME = "spack-cache-db"


@dataclass(frozen=True, slots=True)
class Allowances:
    """The configuration of our plugin (docs/site-reference.md, "Other plugins")."""

    open_paths: tuple[str, ...] = ()
    csp: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sql_functions: frozenset[str] = frozenset()
    sql_in_server: bool = False
    embedding: tuple[str, ...] = ()

    def opens(self, path: str) -> bool:
        """Return whether an address is open; `/-/a` opens `/-/a.json` and `/-/a/b` as well."""
        starts = [opened + end for opened in self.open_paths for end in "/."]
        return path in self.open_paths or path.startswith(tuple(starts))

    def policy(self, stock: str) -> str:
        """Return a content security policy with the additional sources."""
        directives = dict(part.strip().partition(" ")[::2] for part in stock.split(";"))
        for name, sources in self.csp.items():
            value = directives.get(name) or directives["default-src"]
            directives[name] = " ".join(("" if value == "'none'" else value, *sources)).strip()
        return "; ".join(f"{name} {sources}" for name, sources in directives.items())


_read: WeakKeyDictionary[Any, Allowances] = WeakKeyDictionary()


def allowances_of(datasette: Any, embedding: Sequence[str] = ()) -> Allowances:
    """Return the allowances in the configuration of a Datasette, read once, with more origins."""
    if datasette not in _read or embedding:
        allowed = read_allowances(datasette.plugin_config(NAME) or {})
        _read[datasette] = replace(allowed, embedding=(*allowed.embedding, *embedding))
    return _read[datasette]


def read_allowances(config: Any) -> Allowances:
    """Return the allowances in a configuration.

    Raises:
        StartupError: a key is unknown or has a wrong value; the message names the key.
    """
    _check(isinstance(config, dict), "", config, "a mapping")
    keys = Allowances.__dataclass_fields__
    if unknown := sorted({*map(str, config)} - {*keys}):
        message = f"no key is called {unknown[0]!r}, expected {', '.join(keys)}"
        raise StartupError(f"plugins: {NAME}: {message}")
    csp, in_server = config.get("csp") or {}, config.get("sql_in_server", False)
    _check(isinstance(csp, dict), "csp", csp, "a mapping of directives to lists of sources")
    _check(isinstance(in_server, bool), "sql_in_server", in_server, "true or false")
    paths, functions, origins = (
        _texts(key, config.get(key)) for key in ("open_paths", "sql_functions", "embedding")
    )
    for path in paths:
        is_path = path.startswith("/") and path != "/"
        _check(is_path, "open_paths", path, "paths such as /-/search")
    for origin in origins:
        _check(is_origin(origin), "embedding", origin, "origins such as https://example.org")
    return Allowances(
        tuple(path.rstrip("/") for path in paths),
        {str(name): _texts(f"csp: {name}", sources) for name, sources in csp.items()},
        frozenset(map(str.lower, functions)),
        in_server,
        origins,
    )


def _texts(key: str, value: Any) -> tuple[str, ...]:
    texts = [] if value is None else value
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    _check(is_list, key, value, "a list of texts")
    for text in texts:
        is_plain = text.isprintable() and ";" not in text and text.isascii()
        _check(is_plain, key, text, "printable ASCII without semicolons")
    return tuple(texts)


def _check(is_right: bool, key: str, value: Any, expected: str) -> None:
    if not is_right:
        where = f"plugins: {NAME}:" + (f" {key}:" if key else "")
        raise StartupError(f"{where} {value!r} is not {expected}")
