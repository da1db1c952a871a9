"""Facts about Spack that its recipes and its code contain, each of them once.

They are those of Spack 1.2 and its recipes of 2026, unless a constant names an older
version. This module imports nothing of the package, so any other module can use it.
"""

from collections.abc import Mapping

# Dependencies. A type of a dependency is the time at which a package needs it.

DEPTYPES = ("build", "link", "run", "test")
"""The types of dependencies, sorted."""

RUN_TIME = frozenset({"link", "run"})
"""The types of dependencies that a binary needs when it is used."""


# Compilers. They are packages since Spack 1.0; before, they were settings of a machine.

LANGUAGES = ("c", "cxx", "fortran")
"""The languages of compilers, in the order in which Spack looks for one to print.

A spec may be built with several compilers, and Spack prints one of them: that of the
first of these languages that the spec uses (Spack 1.1 `spec.py`,
`DeprecatedCompilerSpec.factory`).
"""

LEGACY_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "rocmcc": "llvm-amdgpu",
    "intel": "intel-oneapi-compilers-classic",
    "arm": "acfl",
}
"""The package of each compiler that had another name before Spack 1.0."""

_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())
"""Packages that are compilers in Spack 1.1, and names that only old releases print."""

CRAY_COMPILERS = frozenset({"cce"})
"""Compilers whose runtime libraries only Cray systems have."""

COMPILER_WRAPPER = "compiler-wrapper"
"""The package that passes flags to the compilers during a build."""


# Libraries that come with a system or with a compiler.

LIBC = frozenset({"glibc", "musl"})
"""Packages of the C library, which each machine has."""

RUNTIMES = LIBC | {COMPILER_WRAPPER, "gcc-runtime", "intel-oneapi-runtime"}
"""The packages with the tag `runtime` in their recipes.

Spack adds them to specs by itself. An environment may require that `all` packages have
some dependency; that does not apply to these packages, nor to compilers.
"""


# Variants and flags.

DEV_PATH = "dev_path"
"""The variant with the folder of sources from which a package is developed."""

PATCHES = "patches"
"""The variant with the checksums of the patches of a package."""

VARIANTS_WITHOUT_RECIPE = frozenset({"commit", DEV_PATH, PATCHES})
"""Variants that Spack accepts for any package (Spack 1.1 `variant.py`,
`RESERVED_NAMES`).
"""

FLAG_NAMES = frozenset(
    {"cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs"}
)
"""The options with flags of compilers."""

UNSPLIT_NAMES = FLAG_NAMES | {DEV_PATH, "commit", "branch", "tag", "ref"}
"""Names whose value is one text, even if it contains commas: flags, paths and git
references. The value of any other variant is a list, separated by commas.
"""


# Virtual packages. A virtual package, such as `mpi`, is an interface that several
# packages provide: `openmpi` and `mpich`.

_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libifcore
    libllvm libosmesa lua-lang luajit mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa
    pbs pil pkgconfig qmake rpc scalapack sycl szip tbb unwind uuid wasi-sdk xkbdata-api xxd yacc
    ziglang zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())
"""The virtual packages. No binary has the name of one, and only recipes know which
packages provide it.
"""

_PROVIDERS = {
    "blas": """
        acfl amdblis armpl-gcc atlas blis cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl
        intel-oneapi-mkl netlib-lapack nvhpc nvpl-blas openblas veclibfort
    """,
    "lapack": """
        acfl amdlibflame armpl-gcc atlas cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl
        intel-oneapi-mkl libflame netlib-lapack nvhpc nvpl-lapack openblas veclibfort
    """,
    "mpi": """
        cray-mpich cray-mvapich2 fujitsu-mpi hpcx-mpi intel-mpi intel-oneapi-mpi mpich
        mpilander mpitrampoline mpt msmpi mvapich mvapich-plus mvapich2 mvapich2-gdr mvapich2x
        nmad openmpi parastationmpi spectrum-mpi
    """,
    "scalapack": """
        amdscalapack cray-libsci fujitsu-ssl2 intel-mkl intel-oneapi-mkl netlib-scalapack
        nvpl-scalapack
    """,
}
PROVIDERS: Mapping[str, frozenset[str]] = {
    virtual: frozenset(packages.split()) for virtual, packages in _PROVIDERS.items()
}
"""Packages that computing centres install themselves, by the virtual package that they
provide. An environment may name more.
"""


# Graphics processors. A package with `+cuda` or `+rocm` is built for some of their
# architectures, which are the values of `cuda_arch` and `amdgpu_target`.

GPU_ARCHITECTURES: Mapping[str, str] = {
    "p100": "cuda_arch=60",
    "v100": "cuda_arch=70",
    "t4": "cuda_arch=75",
    "a100": "cuda_arch=80",
    "a30": "cuda_arch=80",
    "a10": "cuda_arch=86",
    "a40": "cuda_arch=86",
    "l4": "cuda_arch=89",
    "l40": "cuda_arch=89",
    "l40s": "cuda_arch=89",
    "h100": "cuda_arch=90",
    "h200": "cuda_arch=90",
    "gh200": "cuda_arch=90",
    "b200": "cuda_arch=100",
    "gb200": "cuda_arch=100",
    "mi50": "amdgpu_target=gfx906",
    "mi60": "amdgpu_target=gfx906",
    "mi100": "amdgpu_target=gfx908",
    "mi210": "amdgpu_target=gfx90a",
    "mi250": "amdgpu_target=gfx90a",
    "mi250x": "amdgpu_target=gfx90a",
    "mi300a": "amdgpu_target=gfx942",
    "mi300x": "amdgpu_target=gfx942",
    "mi325x": "amdgpu_target=gfx942",
    "mi350x": "amdgpu_target=gfx950",
    "mi355x": "amdgpu_target=gfx950",
}
"""The variant for each processor, by its name in lower case.

The compute capabilities are those of NVIDIA, without the dot
(https://developer.nvidia.com/cuda-gpus and its list of older ones). The targets are
those of AMD: see "Accelerator and GPU hardware specifications" in ROCm's documentation.
"""

GPU_SWITCHES: Mapping[str, str] = {"cuda_arch": "cuda", "amdgpu_target": "rocm"}
"""The variant that must be on for each variant with architectures."""
