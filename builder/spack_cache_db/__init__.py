"""Pages and indexes of Spack build caches in, one searchable SQLite file out, for Datasette."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spack_cache_db import start  # noqa: F401 - before all else
from spack_cache_db.build import Report, build, check
from spack_cache_db.errors import (
    ArgumentError,
    BuilderError,
    DatabaseError,
    Fault,
    InputError,
    OutputError,
)
from spack_cache_db.verify import Verification, verify

if TYPE_CHECKING:
    from spack_cache_db.environments import UnreadableEnvironment
    from spack_cache_db.query.answers import Found, FoundList, History, HistoryRow, find, history
    from spack_cache_db.query.cache import Binary, Cache, Retention, binaries, info, retention
    from spack_cache_db.query.catalogue import FoundSpec
    from spack_cache_db.query.changes import Diff, diff
    from spack_cache_db.query.conditions import UnsupportedQuery
    from spack_cache_db.query.coverage import cover
    from spack_cache_db.query.covered import Cover, CoveredNode, CoveredSpec
    from spack_cache_db.query.package_data import PackageData, PackageStatus, behind, package_data
    from spack_cache_db.query.questions import UnknownNameError
    from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, fetch
    from spack_cache_db.spack.lexer import QuerySyntaxError

__all__ = [
    "ArgumentError",
    "Binary",
    "BuilderError",
    "Cache",
    "Cover",
    "CoveredNode",
    "CoveredSpec",
    "DatabaseError",
    "Diff",
    "Fault",
    "FetchLimits",
    "FetchOptions",
    "FetchReport",
    "Found",
    "FoundList",
    "FoundSpec",
    "History",
    "HistoryRow",
    "InputError",
    "OutputError",
    "PackageData",
    "PackageStatus",
    "QuerySyntaxError",
    "Report",
    "Retention",
    "UnknownNameError",
    "UnreadableEnvironment",
    "UnsupportedQuery",
    "Verification",
    "behind",
    "binaries",
    "build",
    "check",
    "cover",
    "diff",
    "fetch",
    "find",
    "history",
    "info",
    "package_data",
    "retention",
    "verify",
]

__version__: str

# Commands load this package too, and each needs little of it.
_LOADED_WHEN_USED = {
    "environments": ("UnreadableEnvironment",),
    "query.answers": ("Found", "FoundList", "History", "HistoryRow", "find", "history"),
    "query.cache": ("Binary", "Cache", "Retention", "binaries", "info", "retention"),
    "query.catalogue": ("FoundSpec",),
    "query.conditions": ("UnsupportedQuery",),
    "query.coverage": ("cover",),
    "query.covered": ("Cover", "CoveredNode", "CoveredSpec"),
    "query.changes": ("Diff", "diff"),
    "query.package_data": ("PackageData", "PackageStatus", "behind", "package_data"),
    "query.questions": ("UnknownNameError",),
    "sources.fetch": ("FetchLimits", "FetchOptions", "FetchReport", "fetch"),
    "spack.lexer": ("QuerySyntaxError",),
}
_MODULES = {name: module for module, names in _LOADED_WHEN_USED.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return what takes longer to load than all else here, once somebody uses it."""
        if name == "__version__":
            from importlib.metadata import version

            return version("spack-cache-db")
        if name in _MODULES:
            found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
            return globals().setdefault(name, found)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, those as well that are not loaded yet."""
    return sorted({*globals(), *__all__})
