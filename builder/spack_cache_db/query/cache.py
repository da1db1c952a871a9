"""A built file that stays open for many questions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from spack_cache_db.query.answers import find
from spack_cache_db.query.binaries import binaries
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.difference import diff
from spack_cache_db.query.history import history
from spack_cache_db.query.lookups import Database, OpenFile
from spack_cache_db.query.package_data import package_data
from spack_cache_db.query.package_status import behind
from spack_cache_db.query.retention import retention
from spack_cache_db.query.summary import info

P = ParamSpec("P")
T = TypeVar("T")


def _method(
    function: Callable[Concatenate[Database, P], T],
) -> Callable[Concatenate[Cache, P], T]:
    """Return a function of a database as a method of an open one."""

    @wraps(function)
    def asked(self: Cache, /, *args: P.args, **named: P.kwargs) -> T:
        return function(self, *args, **named)

    return asked


class Cache(OpenFile):
    """A file made by `build` that stays open, with what was read of it: `Cache("x.db").find(…)`.

    Its methods are the functions of the same names without their first argument. It can be shared
    by threads, sent to other processes, and closed by `with`.

    Args:
        file: the file, as text or `Path`.

    Raises:
        ArgumentError: that is no path.
        DatabaseError: the file is not one of this builder, or is damaged.
    """

    binaries = _method(binaries)
    find = _method(find)
    cover = _method(cover)
    diff = _method(diff)
    history = _method(history)
    behind = _method(behind)
    package_data = _method(package_data)
    retention = _method(retention)

    def info(self) -> dict[str, Any]:
        """Return what is in the file and where it came from."""
        return info(self.path)
