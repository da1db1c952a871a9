"""Spack build-cache pages in, one searchable SQLite file out, served with Datasette."""

from .build import Report, build, check
from .errors import BuilderError, DatabaseError, Fault, InputError, OutputError

__all__ = [
    "BuilderError",
    "DatabaseError",
    "Fault",
    "InputError",
    "OutputError",
    "Report",
    "build",
    "check",
]
