"""Permissions that the site's owner gives to other plugins and websites; by default
none.

The keys are under `plugins: spack-cache-db:`, in `datasette.yml` for Datasette 1.0 and
in the metadata for 0.65.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from datasette.utils import StartupError

from spack_cache_db.site.origins import is_origin

NAME = "spack-cache-db"


@dataclass(frozen=True, slots=True)
class Allowances:
    """The configuration of our plugin (docs/site-reference.md, "Other plugins")."""

    open_paths: tuple[str, ...] = ()
    csp: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    embedding: tuple[str, ...] = ()
    stale_days: float | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for a path, source or origin that would allow more than it
        says.
        """
        for path in self.open_paths:
            if not path.startswith("/") or path.endswith("/"):
                raise ValueError(
                    f"open_paths: {path!r} is not a path such as /-/search"
                )
        for name, sources in self.csp.items():
            text = " ".join((name, *sources))
            if not (text.isascii() and text.isprintable()) or ";" in text:
                raise ValueError(
                    f"csp: {text!r} is not printable ASCII without semicolons"
                )
        for origin in self.embedding:
            if not is_origin(origin):
                raise ValueError(
                    f"embedding: {origin!r} is not an origin as https://example.org"
                )

    def opens(self, path: str) -> bool:
        """Return whether an address is open; `/-/a` opens `/-/a.json` and `/-/a/b` as
        well.
        """
        for open_path in self.open_paths:
            if path == open_path or path.startswith((f"{open_path}/", f"{open_path}.")):
                return True
        return False

    def policy(self, stock: str) -> str:
        """Return a content security policy with the additional sources."""
        # A policy is `default-src 'self'; object-src 'none'; …`.
        directives = {}
        for directive in stock.split(";"):
            name, _, sources = directive.strip().partition(" ")
            directives[name] = sources
        for name, additional in self.csp.items():
            sources = directives.get(name) or directives["default-src"]
            # Beside another source, 'none' would have no meaning.
            allowed = [] if sources in ("", "'none'") else [sources]
            directives[name] = " ".join((*allowed, *additional)).strip()
        return "; ".join(f"{name} {sources}" for name, sources in directives.items())


_read: WeakKeyDictionary[Any, Allowances] = WeakKeyDictionary()


def allowances_of(datasette: Any) -> Allowances:
    """Return the allowances in the configuration of a Datasette, read once."""
    if datasette not in _read:
        config = datasette.plugin_config(NAME)
        _read[datasette] = read_allowances(config) if config else Allowances()
    return _read[datasette]


def add_allowances(
    datasette: Any, embedding: Sequence[str], stale_days: float | None
) -> None:
    """Add options of the command line to the allowances of a Datasette."""
    allowed = allowances_of(datasette)
    _read[datasette] = replace(
        allowed,
        embedding=(*allowed.embedding, *embedding),
        stale_days=stale_days or allowed.stale_days,
    )


def read_allowances(config: object) -> Allowances:
    """Return the allowances in a configuration.

    Raises:
        StartupError: a key is unknown or has a wrong value; the message names the key.
    """
    keys = Allowances.__dataclass_fields__
    try:
        for key in msgspec.convert(config, dict[str, object]).keys() - keys.keys():
            raise ValueError(f"no key is called {key!r}, expected {', '.join(keys)}")
        return msgspec.convert(config, Allowances)
    except ValueError as error:
        raise StartupError(f"plugins: {NAME}: {error}") from None
