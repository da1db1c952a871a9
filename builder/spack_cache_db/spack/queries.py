"""Spec queries as frozen records, their text, and the test of each constraint.

`parser` makes the records, and `intersection` combines them. The tests follow Spack
1.2's `Spec._satisfies_node`, `VariantValue.satisfies` and `FlagMap.satisfies`;
docs/spack-semantics.md lists the differences.
"""

from dataclasses import dataclass

from spack_cache_db.spack.normal_forms import VariantKind
from spack_cache_db.spack.versions import VersionRanges


@dataclass(frozen=True, slots=True)
class VariantConstraint:
    """A constraint on one variant.

    Attributes:
        values: the values, sorted; `('true',)` or `('false',)` for a bool, empty for
            `k=*`.
        kind: bool for `+x`, `~x`, `x=True`; multi otherwise, because the syntax cannot
            tell.
        exact: written `k:=a,b`, these values and no others; bools are always exact.
        propagate: written `++x` or `k==v`, a constraint on all dependencies as well.
    """

    name: str
    values: tuple[str, ...]
    kind: VariantKind
    exact: bool = False
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """`%gcc@13`, a constraint on the compiler that Spack prints for a spec; None is
    any.
    """

    name: str | None
    versions: VersionRanges | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A compiler flag option, such as `cflags=-g`; the value is as written, without
    quotes.
    """

    name: str
    value: str
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class SpecQuery:
    """The constraints on one package; a part that is None or empty is not
    constrained.
    """

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
        node: the constraints on the dependency; a `^dep` may have `%` dependencies.
        direct: written with `%`, not `^`.
        virtuals: the virtual packages that the edge must provide.
        propagate: written `%%`.
        column: the column of the sigil in the query.
    """

    node: SpecQuery
    direct: bool
    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()
    when: "SpecQuery | None" = None
    propagate: bool = False
    column: int = 0
