"""Which spec queries pages can answer: the rest is refused with the reason, never guessed.

Pages show of a spec its name, version, one compiler, architecture and variants. What Spack
decides by dependencies, recipes, flags or the host is not in them.
"""

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.query import Dependency, SpecQuery
from spack_cache_db.spack.targets import unknown_bounds
from spack_cache_db.spack.versions import VersionRanges, is_git_version

# The packages that Spack 1.1 knows as compilers, and the names that only old releases print.
COMPILERS = frozenset(
    {
        "acfl",
        "aocc",
        "apple-clang",
        "cce",
        "dpcpp",
        "fj",
        "gcc",
        "intel-oneapi-compilers",
        "intel-oneapi-compilers-classic",
        "llvm",
        "llvm-amdgpu",
        "msvc",
        "nag",
        "nvhpc",
        "pgi",
        "xl",
        "xl_r",
    }
)

# A binary is never named for a virtual package: which packages provide one is in recipes only.
_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libllvm
    libosmesa lua-lang mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa pbs pil
    pkgconfig rpc scalapack sycl szip tbb unwind uuid xxd yacc zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())
LANGUAGES = frozenset({"c", "cxx", "fortran"})

_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that pages cannot answer; its text says why."""


def _check_compiler(edge: Dependency) -> None:
    """Let through what asks for the compiler that a page shows."""
    name, what = edge.node.name, f"%{edge.node.name or ''}"
    if edge.propagate:
        raise UnsupportedQuery(f"'%{what}' is a wish for the solver: ask for {what!r}")
    if edge.deptypes or edge.when is not None:
        raise UnsupportedQuery(
            f"pages do not show how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered"
        )
    if name is None:
        raise UnsupportedQuery("pages show no dependencies: name a compiler after '%'")
    if not LANGUAGES.issuperset(edge.virtuals):
        raise UnsupportedQuery(f"pages do not show what provides {', '.join(edge.virtuals)}")
    if set(edge.virtuals) == {"fortran"}:
        raise UnsupportedQuery("pages show the compiler for C, not the one for Fortran")
    if name in LANGUAGES:
        raise UnsupportedQuery(f"pages do not show which languages a package uses ({what!r})")
    if not edge.virtuals and name not in COMPILERS:
        raise UnsupportedQuery(
            f"pages show no dependencies but the compiler, and {name} is not known as one"
        )
    _check_compiler_options(edge.node)


def _check_compiler_options(node: SpecQuery) -> None:
    arch = node.os or node.platform or node.target
    if node.variants or node.flags or node.hash or node.namespace or arch:
        raise UnsupportedQuery(
            f"what follows %{node.name} is asked of {node.name}, of which pages show the "
            "version only: write what the package itself must have before the '%'"
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


def _check_root(query: SpecQuery) -> None:
    if query.name in VIRTUALS:
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: which packages provide it is in Spack's recipes, "
            "not in pages; ask for a provider by name"
        )
    if query.namespace is not None:
        raise UnsupportedQuery("pages do not show namespaces: ask for the package by name alone")
    if query.flags:
        raise UnsupportedQuery(f"pages do not show compiler flags ({query.flags[0].name}=)")
    for variant in query.variants:
        if variant.propagate:
            raise UnsupportedQuery(
                f"the doubled sign of {variant.name!r} asks its dependencies too, which pages "
                "do not show: write it once to ask the package itself"
            )


def check_answerable(query: SpecQuery) -> None:
    """Refuse what pages cannot answer.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead where there is something.
    """
    _check_root(query)
    _check_versions(query.versions)
    _check_arch(query)
    for edge in query.dependencies:
        if not edge.direct:
            raise UnsupportedQuery("pages show no dependencies: '^' cannot be answered")
        _check_compiler(edge)
    names = {edge.node.name for edge in query.dependencies}
    if len(names) > 1:
        raise UnsupportedQuery(
            "pages show one compiler per binary: only one compiler can be asked for"
        )
