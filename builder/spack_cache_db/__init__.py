"""Spack build-cache pages in, one searchable SQLite file out, served with Datasette."""

from spack_cache_db.build.steps import Report, build, check
from spack_cache_db.errors import BuilderError, DatabaseError, Fault, InputError, OutputError
from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.find import Found, UnknownNameError, find
from spack_cache_db.spack.query import QuerySyntaxError

__all__ = [
    "BuilderError",
    "DatabaseError",
    "Fault",
    "Found",
    "InputError",
    "OutputError",
    "QuerySyntaxError",
    "Report",
    "UnknownNameError",
    "UnsupportedQuery",
    "build",
    "check",
    "find",
]
