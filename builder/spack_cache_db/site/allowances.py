"""Permissions that the site's owner gives to other plugins and websites; by default
none.

They are under `plugins: spack-cache-db:`, in `datasette.yml` for Datasette 1.0 and in
the metadata for 0.65. For example, this lets pages of Datasette show maps:

    plugins:
      spack-cache-db:
        csp:
          img-src: ["https://*.tile.openstreetmap.org"]
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
"""The name of our plugin in Datasette."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """The configuration of our plugin (docs/site-reference.md, "Other plugins").

    Attributes:
        open_paths: addresses that are open, such as `/-/tool`, and all below them.
        csp: additional sources by the directive of the content security policy, such as
            `script-src`.
        embedding: origins of websites that may show pages in a frame.
        stale_days: age in days from which `/-/health.json` reports old data; None for
            never.
    """

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
        for directive, sources in self.csp.items():
            text = " ".join((directive, *sources))
            # A semicolon would begin another directive, a line end another header.
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
        """Return whether an address is open.

        `/-/a` in `open_paths` opens `/-/a.json` and `/-/a/b` as well.
        """
        for open_path in self.open_paths:
            if path == open_path or path.startswith((f"{open_path}/", f"{open_path}.")):
                return True
        return False

    def policy(self, stock: str) -> str:
        """Return a content security policy with the additional sources.

        Args:
            stock: the policy without them: `default-src 'self'; object-src 'none'`.
        """
        sources_of = {}
        for part in stock.split(";"):
            directive, _, sources = part.strip().partition(" ")
            sources_of[directive] = sources
        for directive, additional in self.csp.items():
            # Browsers use default-src for a directive that a policy does not have.
            sources = sources_of.get(directive) or sources_of["default-src"]
            # Beside another source, 'none' would have no meaning.
            if sources == "'none'":
                sources = ""
            sources_of[directive] = " ".join((sources, *additional)).strip()
        return "; ".join(
            f"{directive} {sources}" for directive, sources in sources_of.items()
        )


_read: WeakKeyDictionary[Any, Allowances] = WeakKeyDictionary()
"""The allowances of each Datasette, once they have been read."""


def allowances_of(datasette: Any) -> Allowances:
    """Return the allowances in the configuration of a Datasette, read once."""
    if datasette not in _read:
        config = datasette.plugin_config(NAME)
        _read[datasette] = read_allowances(config) if config else Allowances()
    return _read[datasette]


def read_allowances(config: object) -> Allowances:
    """Return the allowances in a configuration.

    Raises:
        StartupError: a key is unknown or has a wrong value; the message names the key.
    """
    known = Allowances.__dataclass_fields__
    try:
        for key in msgspec.convert(config, dict[str, object]):
            if key not in known:
                expected = ", ".join(known)
                raise ValueError(f"no key is called {key!r}, expected {expected}")
        return msgspec.convert(config, Allowances)
    # msgspec's own exception is a ValueError, too.
    except ValueError as error:
        raise StartupError(f"plugins: {NAME}: {error}") from None


def add_allowances(
    datasette: Any, embedding: Sequence[str], stale_days: float | None
) -> None:
    """Add options of the command line to the allowances of a Datasette.

    Args:
        datasette: the Datasette.
        embedding: the origins of `--allow-embedding`.
        stale_days: the days of `--stale`; None leaves those of the configuration.
    """
    allowed = allowances_of(datasette)
    _read[datasette] = replace(
        allowed,
        embedding=(*allowed.embedding, *embedding),
        stale_days=stale_days or allowed.stale_days,
    )
