"""Pages and indexes of Spack build caches in, one searchable SQLite file out, for Datasette."""

from spack_cache_db import start  # noqa: F401 - before all else
from spack_cache_db.build import Report, build, check
from spack_cache_db.environments.faults import UnreadableEnvironment
from spack_cache_db.errors import (
    ArgumentError,
    BuilderError,
    DatabaseError,
    Fault,
    InputError,
    OutputError,
)
from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.cover.records import Cover, CoveredNode, CoveredSpec
from spack_cache_db.query.cover.steps import cover
from spack_cache_db.query.find import Found, UnknownNameError, find
from spack_cache_db.spack.query import QuerySyntaxError

__all__ = [
    "ArgumentError",
    "BuilderError",
    "Cover",
    "CoveredNode",
    "CoveredSpec",
    "DatabaseError",
    "Fault",
    "Found",
    "InputError",
    "OutputError",
    "QuerySyntaxError",
    "Report",
    "UnknownNameError",
    "UnreadableEnvironment",
    "UnsupportedQuery",
    "build",
    "check",
    "cover",
    "find",
]

__version__: str


def __getattr__(name: str) -> str:
    """Return `__version__`, which takes longer to find out than all else here."""
    if name == "__version__":
        from importlib.metadata import version

        return version("spack-cache-db")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
