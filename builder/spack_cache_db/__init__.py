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

# Type checkers would believe that every name exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a public name or `__all__` of `api`, which is imported when needed.

        It imports much, and the commands should start quickly.
        """
        # `from spack_cache_db import schema` asks for a name before Python imports the
        # package: it must not be found here.
        if find_spec(f"{__name__}.{name}") is None:
            api = import_module(f"{__name__}.api")
            if name == "__all__" or name in api.__all__:
                # Python finds the name without this function from now on.
                value = getattr(api, name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names in this module, and all public names of `api`."""
    api = import_module(f"{__name__}.api")
    return sorted({*globals(), *api.__all__})
