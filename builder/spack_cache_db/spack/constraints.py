"""What a spec query asks, as frozen records: the language between the parser and its users.

`nodes` and `query` make them, `merge` makes one of two, and `match` evaluates them part by part.
"""

from dataclasses import dataclass

from spack_cache_db.spack.variants import Kind
from spack_cache_db.spack.versions import VersionRanges


@dataclass(frozen=True, slots=True)
class VariantConstraint:
    """What a query asks of one variant.

    Attributes:
        name: the variant's name.
        values: the values asked for, sorted; `('True',)` or `('False',)` for a bool; none where
            any value will do (`k=*`).
        kind: bool for `+x`, `~x`, `x=True`; multi for the rest, since the syntax cannot tell.
        exact: written `k:=a,b`, these values and no others; bools are always exact.
        propagate: written `++x` or `k==v`, asked of all dependencies too.
        column: where it stands in the query.
    """

    name: str
    values: tuple[str, ...]
    kind: Kind
    exact: bool = False
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class Flag:
    """A compiler flag option, such as `cflags=-g`; the value is kept as written, unquoted."""

    name: str
    value: str
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class SpecQuery:
    """One node of a query: each part that is None or empty asks nothing."""

    name: str | None = None
    namespace: str | None = None
    versions: VersionRanges | None = None
    variants: tuple[VariantConstraint, ...] = ()
    flags: tuple[Flag, ...] = ()
    os: str | None = None
    platform: str | None = None
    target: str | None = None
    hash: str | None = None
    dependencies: tuple["Dependency", ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dependency:
    """An edge of a query: `%gcc`, `%c,cxx=gcc`, `^hdf5+mpi`, `%[deptypes=build] cmake`.

    Attributes:
        node: what is asked of the dependency; a `^dep` may carry `%` dependencies of its own.
        direct: written with `%`, not `^`.
        virtuals: the virtual packages that the edge must provide.
        deptypes: the types of dependency asked for.
        when: the condition of the edge, as written.
        propagate: written `%%`.
        column: where the sigil stands in the query.
    """

    node: SpecQuery
    direct: bool
    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()
    when: str | None = None
    propagate: bool = False
    column: int = 0
