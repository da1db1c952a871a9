"""A database with real names of packages, and searches as people type them."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

from spack_cache_db import build
from tests.pagetexts import page, spec, write
from tests.paths import DATA

TOOLCHAINS = (
    ("gcc@13.2.0", "ubuntu24.04", "linux", "x86_64_v3"),
    ("gcc@11.4.0", "ubuntu22.04", "linux", "x86_64_v3"),
    ("gcc@12.4.0", "amzn2", "linux", "x86_64_v4"),
    ("gcc@12.4.0", "amzn2", "linux", "neoverse_v1"),
    ("gcc@13.2.0", "ubuntu24.04", "linux", "aarch64"),
    ("gcc@13.2.0", "ubuntu22.04", "linux", "neoverse_v2"),
    ("intel-oneapi-compilers@2025.1.0", "ubuntu22.04", "linux", "x86_64_v3"),
    ("apple-clang@16.0.0", "sequoia", "darwin", "aarch64"),
)
"""The compilers, systems, platforms and targets of Spack's public cache."""
GPU_OPTIONS = (
    ("~cuda", "~rocm", "+mpi", "+openmp"),
    ("+cuda", "~rocm", "+mpi", "+openmp", "cuda_arch=80"),
    ("+cuda", "~rocm", "+mpi", "+openmp", "cuda_arch=90"),
    ("~cuda", "+rocm", "+mpi", "+openmp", "amdgpu_target=gfx90a"),
)
OPTIONS = {
    "hdf5": (("+mpi", "+shared"), ("~mpi", "+shared"), ("+mpi", "~shared")),
    "py-torch": (("~cuda", "~rocm"), ("+cuda", "~rocm", "cuda_arch=80")),
    "py-tensorflow": (("~cuda",), ("+cuda",)),
    "openblas": (("threads=none",), ("threads=openmp",)),
    **dict.fromkeys(("kokkos", "petsc", "trilinos", "gromacs", "lammps"), GPU_OPTIONS),
}
"""Options of some packages; all others have one set."""
PACKAGES = (
    *OPTIONS, "cmake", "cuda", "fftw", "gcc", "intel-oneapi-mkl", "julia", "metis",
    "mpich", "netcdf-c", "netcdf-fortran", "netlib-lapack", "openmpi", "paraview",
    "perl", "parallel-netcdf", "py-h5py", "py-jax", "py-mpi4py", "py-numpy", "py-scipy",
    "py-torchvision", "python", "r", "r-ggplot2", "scotch", "zlib", "zlib-ng",
)  # fmt: skip
"""Packages that searches below name."""
VERSIONS = {
    "hdf5": ("1.14.6", "1.12.3"),
    "gcc": ("14.2.0", "11.4.0"),
    "cmake": ("3.31.9", "3.27.9"),
    "python": ("3.13.8", "3.11.14"),
}
MORE_PACKAGES = 250
"""Number of other packages, of those of Spack with known descriptions."""

NAMED = (
    "pytorch", "py-torch +cuda", "parallel hdf5", "lapack for neoverse",
    "tensorflow gpu", "tensorflow-gpu", "gcc 13", "gcc@13", "gcc 11.4", "arm",
    "graviton", "epyc", "A100", "MI250", "numpy python 3.11", "pytorch A100",
    "cmake %gcc@13.2.0 target=zen3", "cmake %gcc@13.2.0 os=ubuntu24.04",
    "pytorch cuda zen3 gcc 13", "hfd5", "pytorhc", "numpi", "messa", "hdf5",
    "mesh partitioner", "mpi", "lapack", "blas", "fftw3", "libhdf5-dev",
    "python3-numpy", "openmpi cuda", "sapphire rapids", "kokkos MI 300X",
    "kokkos gfx90a", "nvidia a100-80gb pytorch", "petsc rocm", "H100", "Tesla V100",
    "pytorch sm_90", "hdf5 without mpi", "hdf5 ~mpi", "hdf5+mpi", "hdf5@1.14+mpi",
    "hdf5@1.14 +mpi %gcc@13", "hdf5 >= 1.12", "hdf5 1.12", "scipy aarch64", "mac cmake",
    "cmake macos", "ubuntu 22.04 cmake", "redhat hdf5", "oneapi hdf5", "zlib-ng",
    "zlib", "r-ggplot2", "py_torch", "PyTorch", "e4s hdf5", "develop hdf5",
    "milan hdf5", "genoa", "zen3", "x86", "hdf5 for zen3", "hdf5 skylake",
    "openblas threads=openmp", "jax", "tf", "torchvision", "gromacs cuda", "lammps gpu",
    "cuda", "rocm", "zen3 cuda", "what is pytorch", "apt install libhdf5-dev",
    "netcdf fortran", "netcdf", "paraview mpi", "%gcc@12", "%gcc", "target=neoverse_v2",
    "target=aarch64:", "os=ubuntu24.04", "py-torch cuda_arch=90",
    "trilinos rocm MI250X", "julia", "numpy graviton", "epyc milan", "r", "python",
    "perl", "intel-mkl", "mkl", "netcdf-c without netcdf fortran", "tensorflow A100",
    "metis icelake", "pytorch without mpi or cuda for milan gcc 13", "a100 hdf5",
    "hdf5 1.12 or newer", "hdf5 9.9 nonesuch", "gcc 13 openmpi",
)  # fmt: skip
"""Searches whose answers are the same in the browser and on the website."""

_WORDS = {
    "option": ("+cuda", "cuda", "+mpi", "~mpi", "without mpi", "gpu", "A100", "gfx90a"),
    "machine": ("zen3", "graviton3", "milan", "sapphirerapids", "aarch64", "epyc"),
    "compiler": ("gcc 13", "%gcc@13", "%gcc@13.2.0", "oneapi", "gcc13"),
    "system": ("ubuntu22.04", "ubuntu 24.04", "amzn2", "jammy", "os=ubuntu22.04"),
    "filler": ("with", "for", "please", "on"),
}


def write_database(folder: Path) -> Path:
    """Build a database with some 290 packages of Spack by their real names."""
    texts = json.loads(gzip.decompress((DATA / "descriptions.json.gz").read_bytes()))
    rng = random.Random(1)
    others = sorted(texts.keys() - set(PACKAGES))
    names = [*PACKAGES, *rng.sample(others, MORE_PACKAGES)]
    pages = {}
    number = 0
    for at, name in enumerate(names):
        specs = []
        for compiler, system, platform, target in TOOLCHAINS:
            # Packages have binaries for some of the toolchains.
            if name not in PACKAGES and rng.random() < 0.5:
                continue
            for options in OPTIONS.get(name, (("+shared",),)):
                number += 1
                specs.append(
                    spec(
                        number,
                        compiler=compiler,
                        os=system,
                        platform=platform,
                        target=target,
                        variants=["build_system=generic", *options],
                        versions=[rng.choice(VERSIONS.get(name, ("1.0",)))],
                    )
                )
        if specs:
            pages[f"page{at}"] = page(name, specs=specs)
    build(write(folder / "pages", **pages), folder / "real-names.db")
    return folder / "real-names.db"


def generated(names: list[str], count: int) -> Iterator[str]:
    """Yield searches of a package with other words, in any order, some misspelled."""
    rng = random.Random(2)
    for _ in range(count):
        name = rng.choice(names)
        if rng.random() < 0.2:
            name = name.removeprefix("py-")
        # Two letters in the wrong order.
        if rng.random() < 0.1 and len(name) > 4:
            at = rng.randrange(1, len(name) - 1)
            name = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        words = [name]
        for kind in _WORDS.values():
            if rng.random() < 0.4:
                words.append(rng.choice(kind))
        rng.shuffle(words)
        yield " ".join(words)
