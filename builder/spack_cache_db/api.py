"""The public Python API; `spack_cache_db` imports a name from this module when it is used."""

from __future__ import annotations

from spack_cache_db.build import Report, build, check
from spack_cache_db.build.verification import Verification, verify
from spack_cache_db.environments import UnreadableEnvironment
from spack_cache_db.errors import (
    ArgumentError,
    BuilderError,
    DatabaseError,
    Fault,
    InputError,
    OutputError,
)
from spack_cache_db.query.answers import Found, FoundList, History, HistoryRow, find, history
from spack_cache_db.query.cache import Binary, Cache, binaries, info
from spack_cache_db.query.changes import Diff, diff
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.configurations import FoundSpec
from spack_cache_db.query.coverage import Cover, cover
from spack_cache_db.query.covered_spec import CoveredSpec
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.query.packages import PackageData, PackageStatus, behind, package_data
from spack_cache_db.query.retention import Retention, retention
from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, fetch
from spack_cache_db.spack.lexer import QuerySyntaxError

__all__ = [
    "ArgumentError",
    "Binary",
    "BuilderError",
    "Cache",
    "Cover",
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
