"""Builds one searchable SQLite database from pages and indexes of Spack build
caches.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spack_cache_db.api import *  # noqa: F403

__version__ = "0.1.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a public name or `__all__`, imported lazily to keep the commands
        fast.
        """
        # `from spack_cache_db import schema` calls this first if schema is not imported
        # yet.
        if find_spec(f"{__name__}.{name}") is None:
            api = import_module(f"{__name__}.api")
            if name == "__all__" or name in api.__all__:
                return globals().setdefault(name, getattr(api, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, including those that are not imported yet."""
    return sorted({*globals(), *import_module(f"{__name__}.api").__all__})
