"""Spack build-cache pages in, one searchable SQLite file out, served with Datasette."""

from .build import Report, build, check
from .errors import BuilderError, DatabaseError, Fault, InputError, OutputError
from .find import Found, UnknownNameError, find
from .spack.answerable import UnsupportedQuery
from .spack.query import QuerySyntaxError

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
