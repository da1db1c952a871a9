"""Which spec queries a file can answer: the rest is refused with the reason, never guessed.

Pages show of a spec its name, version, one compiler, architecture and variants. Records of indexes
add dependencies, flags and namespaces. What Spack decides by recipes or by the machine that asks
is in neither.
"""

from collections.abc import Callable, Set
from dataclasses import replace

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import CompilerConstraint, Dependency, SpecQuery
from spack_cache_db.spack.normal_forms import LANGUAGES
from spack_cache_db.spack.targets import unknown_bounds
from spack_cache_db.spack.versions import VersionRanges, is_git_version

# The packages that Spack 1.1 knows as compilers, and the names that only old releases print.
_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())

# A binary is never named for a virtual package: which packages provide one is in recipes only.
_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libifcore
    libllvm libosmesa lua-lang luajit mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa
    pbs pil pkgconfig qmake rpc scalapack sycl szip tbb unwind uuid wasi-sdk xkbdata-api xxd yacc
    ziglang zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())
DEPTYPES = frozenset({"build", "link", "run", "test"})

_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a file cannot answer; its text says why."""


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return what a dependency asks of the one compiler that a page shows.

    Raises:
        UnsupportedQuery: it asks for something else.
    """
    name, what = edge.node.name, f"%{edge.node.name or ''}"
    if edge.propagate:
        raise UnsupportedQuery(f"'%{what}' is a wish for the solver: ask for {what!r}")
    if edge.deptypes or edge.when is not None:
        raise UnsupportedQuery(
            f"nothing here says how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered"
        )
    if name is None:
        raise UnsupportedQuery("no dependencies are known here: name a compiler after '%'")
    if not {*LANGUAGES}.issuperset(edge.virtuals):
        raise UnsupportedQuery(f"nothing here says what provides {', '.join(edge.virtuals)}")
    if set(edge.virtuals) == {"fortran"}:
        raise UnsupportedQuery("the compiler for C is known here, not the one for Fortran")
    if name in LANGUAGES:
        raise UnsupportedQuery(f"nothing here says which languages a package uses ({what!r})")
    if not edge.virtuals and name not in COMPILERS:
        raise UnsupportedQuery(
            f"no dependencies are known here but the compiler, and {name} is not known as one"
        )
    _check_compiler_options(edge.node)
    return CompilerConstraint(name, edge.node.versions)


def _check_compiler_options(node: SpecQuery) -> None:
    arch = node.os or node.platform or node.target
    if node.variants or node.flags or node.hash or node.namespace or arch:
        raise UnsupportedQuery(
            f"what follows %{node.name} is asked of {node.name}, of which the "
            "version alone is known here: write what the package itself must have before the '%'"
        )
    _check_versions(node.versions)


def _check_versions(versions: VersionRanges | None) -> None:
    if versions is None:
        return
    for part in versions.text.split(","):
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"the version of {bare!r} is known to its git repository only: "
                f"write '@{bare}=<version>'"
            )


def _check_arch(query: SpecQuery) -> None:
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(f"{value!r} depends on a machine: write the name itself")
    unknown = unknown_bounds(query.target or "")
    if unknown:
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def _check_root(query: SpecQuery, virtuals: Set[str]) -> None:
    if query.name in virtuals:
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: which packages provide it is in Spack's recipes, "
            "not in pages or indexes; ask for a provider by name"
        )


def _check_shown(query: SpecQuery) -> None:
    """Refuse what only records of indexes tell."""
    if query.namespace is not None:
        raise UnsupportedQuery("no namespaces are known here: ask for the package by name alone")
    if query.flags:
        raise UnsupportedQuery(f"no compiler flags are known here ({query.flags[0].name}=)")
    for variant in query.variants:
        if variant.propagate:
            raise UnsupportedQuery(
                f"the doubled sign of {variant.name!r} asks its dependencies too, which are "
                "not known here: write it once to ask the package itself"
            )


def check_answerable(query: SpecQuery, hint: Callable[[str | None], str] = lambda _: "") -> None:
    """Refuse what pages cannot answer.

    Args:
        query: what is asked.
        hint: what to say of a dependency by its name, after the reason.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead where there is something.
    """
    _check_root(query, VIRTUALS)
    _check_shown(query)
    _check_versions(query.versions)
    _check_arch(query)
    for edge in query.dependencies:
        if not edge.direct:
            asked = f"^{edge.node.name or ''}"
            reason = f"no dependencies are known here: {asked!r} cannot be answered"
            raise UnsupportedQuery(reason + hint(edge.node.name))
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    if len(names) > 1:
        raise UnsupportedQuery("one compiler per binary is known here: only one can be asked for")


def check_recorded(
    query: SpecQuery,
    provided: Set[str] | None,
    is_package: Callable[[str], bool],
    known: Set[str] = frozenset(),
) -> None:
    """Refuse what the records of indexes cannot answer.

    Args:
        query: what is asked.
        provided: the virtual packages that dependencies in the file provide; None where no record
            is of a format that says so.
        is_package: whether the file has a package of that name.
        known: the virtual packages of which package data says what provides them.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead where there is something.
    """
    virtuals = {name for name in VIRTUALS | (provided or set()) if not is_package(name)}
    _check_root(query, virtuals)
    _check_versions(query.versions)
    _check_arch(query)
    for edge in query.dependencies:
        _check_edge(edge, virtuals)
        if provided is None:
            _check_virtuals(edge, virtuals, known)
        node = replace(edge.node, name=None) if edge.node.name in virtuals else edge.node
        check_recorded(node, provided, is_package, known)


def provider_of(node: SpecQuery, name: str | None = None) -> SpecQuery:
    """Return what can be asked of the provider of a virtual package: its hash, what it needs."""
    return SpecQuery(name=name, hash=node.hash, dependencies=node.dependencies, text=node.text)


def _check_edge(edge: Dependency, virtuals: Set[str]) -> None:
    """Refuse unknown types of dependencies, and what recipes alone say of virtual packages."""
    unknown = sorted({*edge.deptypes} - DEPTYPES)
    if unknown:
        raise UnsupportedQuery(
            f"no dependency is of type {unknown[0]!r}: the types are {', '.join(sorted(DEPTYPES))}"
        )
    node, name = edge.node, edge.node.name
    if name in virtuals and (edge.virtuals or node != provider_of(node, name)):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes, not in "
            f"indexes; ask for a provider, as in '{'%' if edge.direct else '^'}{name}=<package>'"
        )


def _check_virtuals(edge: Dependency, virtuals: Set[str], known: Set[str]) -> None:
    """Refuse virtual packages; of a direct dependency, older records name the compiler alone."""
    answerable: Set[str] = frozenset() if edge.direct else known
    asked = [each for each in (edge.node.name,) if each in virtuals and each not in answerable]
    asked += [] if edge.direct else edge.virtuals
    if asked:
        raise UnsupportedQuery(
            f"no index in this file says what provides {asked[0]}: those of Spack 0.21 and later do"
        )
