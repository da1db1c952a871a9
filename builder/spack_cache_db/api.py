"""The public Python API; `spack_cache_db` imports a name from this module when it is
used.
"""

from __future__ import annotations

from spack_cache_db.assembly.builds import build, check
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.verify import Verification, verify
from spack_cache_db.environments.model import UnreadableEnvironment
from spack_cache_db.errors import (
    ArgumentError,
    BuilderError,
    DatabaseError,
    Fault,
    InputError,
    OutputError,
)
from spack_cache_db.exports.exporting import export
from spack_cache_db.exports.report import ExportReport
from spack_cache_db.query.answers.behind import behind
from spack_cache_db.query.answers.binaries import Binary, binaries
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.answers.dependents import (
    Dependent,
    Dependents,
    NeedingPackage,
    dependents,
)
from spack_cache_db.query.answers.diff import diff
from spack_cache_db.query.answers.diff_result import Diff
from spack_cache_db.query.answers.find import Found, FoundList, find
from spack_cache_db.query.answers.history import History, HistoryRow, history
from spack_cache_db.query.answers.install import install_plan
from spack_cache_db.query.answers.package_data import package_data
from spack_cache_db.query.answers.planned import InstallPlan
from spack_cache_db.query.answers.retention import Retention, retention
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.names.scope import Scope, UnknownNameError
from spack_cache_db.query.open.info import Info, info
from spack_cache_db.query.open.lookups import OpenFile
from spack_cache_db.query.stored.package_data import PackageData, PackageStatus
from spack_cache_db.query.stored.presence import FoundSpec
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions
from spack_cache_db.sources.fetch.report import FetchReport
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.sql_functions import register

__all__ = [
    "ArgumentError",
    "Binary",
    "BuilderError",
    "Cache",
    "Cover",
    "CoveredSpec",
    "DatabaseError",
    "Dependent",
    "Dependents",
    "Diff",
    "ExportReport",
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
    "InstallPlan",
    "NeedingPackage",
    "OutputError",
    "PackageData",
    "PackageStatus",
    "QuerySyntaxError",
    "Report",
    "Retention",
    "Scope",
    "UnknownNameError",
    "UnreadableEnvironment",
    "UnsupportedQuery",
    "Verification",
    "behind",
    "binaries",
    "build",
    "check",
    "cover",
    "dependents",
    "diff",
    "export",
    "fetch",
    "find",
    "history",
    "info",
    "install_plan",
    "package_data",
    "register",
    "retention",
    "verify",
]


class Cache(OpenFile):
    """A database that stays open and caches its small tables: `Cache("x.db").find(…)`.

    Its methods are the functions of the same names without their first argument. It can
    be shared by threads, sent to other processes, and closed by `with`.

    Args:
        file: the database, as text or `Path`.

    Raises:
        ArgumentError: the file is not a path.
        DatabaseError: the database was not made by this builder, or is damaged.
    """

    # As a method, a function gets this object as its first argument.
    binaries = binaries
    find = find
    cover = cover
    dependents = dependents
    diff = diff
    history = history
    install_plan = install_plan
    behind = behind
    package_data = package_data
    retention = retention

    def info(self) -> Info:
        """Return the content and origin of the database (see `info`)."""
        return info(self.path)
