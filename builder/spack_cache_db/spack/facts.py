"""Facts of Spack 1.2 that its recipes and its code contain, each once."""

from collections.abc import Mapping

DEPTYPES = frozenset({"build", "link", "run", "test"})

LEGACY_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "rocmcc": "llvm-amdgpu",
    "intel": "intel-oneapi-compilers-classic",
    "arm": "acfl",
}
"""The package of each compiler that had another name before Spack 1.0."""


LANGUAGES = ("c", "cxx", "fortran")
"""Spack prints the compiler of the first of these that a spec uses (Spack 1.1
`spec.py`, `DeprecatedCompilerSpec.factory`).
"""

FLAG_NAMES = frozenset(
    {"cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs"}
)
# Values in which a comma is part of the text: paths, git references, compiler flags.
UNSPLIT_NAMES = frozenset({"dev_path", "commit", "branch", "tag", "ref"}) | FLAG_NAMES


# Packages of Spack's recipes of 2026 that centres install themselves; an environment
# may add more.
_PROVIDERS = {
    "blas": """
acfl amdblis armpl-gcc atlas blis cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
netlib-lapack nvhpc nvpl-blas openblas veclibfort
""",
    "lapack": """
acfl amdlibflame armpl-gcc atlas cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
libflame netlib-lapack nvhpc nvpl-lapack openblas veclibfort
""",
    "mpi": """
cray-mpich cray-mvapich2 fujitsu-mpi hpcx-mpi intel-mpi intel-oneapi-mpi mpich mpilander
mpitrampoline mpt msmpi mvapich mvapich-plus mvapich2 mvapich2-gdr mvapich2x nmad openmpi
parastationmpi spectrum-mpi
""",
    "scalapack": """
amdscalapack cray-libsci fujitsu-ssl2 intel-mkl intel-oneapi-mkl netlib-scalapack nvpl-scalapack
""",
}
PROVIDERS: Mapping[str, frozenset[str]] = {
    virtual: frozenset(packages.split()) for virtual, packages in _PROVIDERS.items()
}


LIBC = frozenset(("glibc", "musl"))
"""Packages of the C library, which each machine has."""


# Packages that are compilers in Spack 1.1, and names that only old releases print.
_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())

# No binary has the name of a virtual package; only recipes know the providers.
_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libifcore
    libllvm libosmesa lua-lang luajit mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa
    pbs pil pkgconfig qmake rpc scalapack sycl szip tbb unwind uuid wasi-sdk xkbdata-api xxd yacc
    ziglang zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())


RUN_TIME = frozenset(("link", "run"))


CRAY_COMPILERS = frozenset({"cce"})
"""Compilers whose runtime only Cray systems have."""


RUNTIMES = frozenset(
    {"compiler-wrapper", "gcc-runtime", "glibc", "intel-oneapi-runtime", "musl"}
)
"""The packages with the tag `runtime`; `all` cannot require dependencies of them and
compilers.
"""
