"""A parsed spec query, as frozen records.

A query is a spec that somebody asks for. The record of `hdf5@1.14 +mpi %gcc@13` is

    SpecQuery(
        name="hdf5",
        versions=VersionRanges.parse("1.14"),
        variants=(VariantConstraint("mpi", ("true",), "bool", exact=True),),
        dependencies=(Dependency(SpecQuery(name="gcc", ...), direct=True),),
    )

`parser` makes these records, `printing` writes them as text, `intersection` combines
them, and `matching` and `satisfying` compare them with concrete specs.

In all of them, `column` is the place in the text where the constraint begins, counted
from 0, for messages. A value of `propagate` is true if the sign is doubled (`++x`,
`k==v`, `%%gcc`): the constraint then applies to dependencies as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.spack.normal_forms import VariantKind
from spack_cache_db.spack.versions import VersionRanges


@dataclass(frozen=True, slots=True)
class VariantConstraint:
    """A constraint on one variant, which is a build option: `+mpi`, `libs=shared`.

    Attributes:
        name: the name of the variant.
        values: the values, sorted: `('true',)` or `('false',)` for a bool, and none for
            `k=*`, which allows any value.
        kind: bool for `+x`, `~x` and `x=True`. Everything else is multi, because the
            text `k=v` does not show whether the variant can have several values.
        exact: these values and no others, written `k:=a,b`. Without it, `k=a,b` also
            allows more values. Bools are always exact.
        propagate: written `++x` or `k==v`.
    """

    name: str
    values: tuple[str, ...]
    kind: VariantKind
    exact: bool = False
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """`%gcc@13` as a constraint on the compiler that Spack prints for a spec.

    Some sources record only that compiler, and no dependencies. A name or versions of
    None allow any.
    """

    name: str | None
    versions: VersionRanges | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A constraint on the flags of a compiler, such as `cflags="-O2 -g"`.

    Attributes:
        name: the option, here `cflags`.
        value: the flags as written, without the quotes.
    """

    name: str
    value: str
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class SpecQuery:
    """The constraints on one package; a part that is None or empty allows everything.

    Attributes:
        namespace: the repository of the recipe: `builtin` in `builtin.hdf5`.
        target: a CPU target, a range such as `:zen3`, or a list with commas.
        hash: the beginning of the hash, without the slash.
        text: the whole text from which the query was read.
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
    dependencies: tuple[Dependency, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A constraint on a dependency: `%gcc`, `^hdf5+mpi`, `%[deptypes=build] cmake`.

    Attributes:
        node: the constraints on the package at the end. That of a `^hdf5` may have `%`
            dependencies of its own.
        direct: written with `%`, a dependency of the package itself. With `^`, it may
            also be a dependency of a dependency.
        virtuals: the virtual packages (interfaces such as mpi) as which it is used: c
            and cxx in `%c,cxx=gcc`.
        deptypes: the types that it has to have, such as build and link.
        when: a condition on the package; if the package does not satisfy it, the
            dependency is not required.
        propagate: written `%%`.
    """

    node: SpecQuery
    direct: bool
    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()
    when: SpecQuery | None = None
    propagate: bool = False
    column: int = 0
