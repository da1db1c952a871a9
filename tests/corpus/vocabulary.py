"""The names that the invented history is made of: packages, versions, variants,
environments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random


def _words(text: str) -> list[str]:
    return text.split()


_FAMOUS = _words(
    """
    adios2 amrex arborx axl boost bricks caliper cmake conduit cuda fftw ginkgo hdf5 heffte hpx
    hypre kokkos llvm magma mfem mpich netcdf-c openblas openmpi parallel-netcdf petsc
    py-h5py py-jax py-matplotlib py-ml-dtypes py-mpi4py py-numpy py-pandas py-pip
    py-safetensors py-scipy py-torch py-torchvision raja slepc sundials superlu-dist
    tau trilinos umpire visit vtk-m zlib-ng
    """
)
_FIRST = _words(
    """
    acti alpha arc astro auto beam bio blas block bright chem cloud core cosmo cray data deep
    dense dis edge elastic exa fast fem field flow flux form gene geo graph grid heat hyper
    ice inter iso jet kinetic lattice light lin mesh meta micro mono multi nano net neuro nova
    omni open opti para particle phase plasma poly proto quant ray sci seis sim solar sparse
    spectral star stoch super sym tensor terra thermo topo uni vec wave x-ray xeno
    """
)
_SECOND = _words(
    "lib kit ml bench io viz core fit sort db py graph solve lang pack map stat sim"
)

_WORDS = _words(
    """
    async bindings blas cxx debug docs double doxygen examples fortran gui hdf5 hl int64 java
    lapack mpi mixed openmp optimize pic profile python shared static strict tests threads
    tools torch unwind xml zlib zstd
    """
)
_GPU = ("cuda", "rocm")
MULTI_VALUED = ("amdgpu_target", "cuda_arch", "languages", "libs", "patches")
"""Variants that era A writes with `:=`."""

_BUILD_SYSTEMS = {
    "python": ("build_system=python_pip",),
    "cmake": ("build_system=cmake", "build_type=Release", "generator=make", "~ipo"),
    "autotools": ("build_system=autotools",),
    "generic": ("build_system=generic",),
    "none": ("build_system=generic",),
}


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a stack builds. Spack 1.0 renamed Intel's compiler, so its name depends on
    the date.
    """

    stacks: tuple[str, ...]
    compiler: str
    os: str
    target: str
    platform: str = "linux"
    renamed: str = ""
    """The compiler's name in specs that were concretized in era A, if it is another."""


def _environment(line: str) -> Environment:
    compiler, os, target, platform, renamed, *stacks = line.split()
    return Environment(
        tuple(stacks), compiler, os, target, platform, renamed.strip("-")
    )


ENVIRONMENTS = tuple(
    _environment(line)
    for line in """\
gcc@13.2.0 ubuntu24.04 x86_64_v3 linux - ml-linux-x86_64-cpu ml-linux-x86_64-cuda \
ml-linux-x86_64-rocm
gcc@13.2.0 ubuntu24.04 aarch64 linux - ml-linux-aarch64-cpu ml-linux-aarch64-cuda
apple-clang@16.0.0 sequoia aarch64 darwin - ml-darwin-aarch64-mps developer-tools-darwin
gcc@11.4.0 ubuntu22.04 x86_64_v3 linux - e4s hep radiuss build_systems tutorial
gcc@11.4.0 ubuntu22.04 neoverse_v2 linux - e4s-neoverse-v2 radiuss-aws-aarch64
gcc@11.4.0 ubuntu20.04 neoverse_v1 linux - e4s-neoverse_v1
oneapi@2024.2.1 ubuntu22.04 x86_64_v3 linux intel-oneapi-compilers@2025.1.0 e4s-oneapi gpu-tests
gcc@11.1.0 ubuntu20.04 x86_64_v3 linux - data-vis-sdk e4s-rocm-external
gcc@9.4.0 ubuntu20.04 ppc64le linux - e4s-power
cce@18.0.0 rhel8 zen4 linux - e4s-cray-rhel
cce@15.0.1 sles15 zen3 linux - e4s-cray-sles
gcc@12.4.0 amzn2 x86_64_v4 linux - aws-pcluster-x86_64_v4 aws-isc
gcc@12.4.0 amzn2 graviton2 linux - aws-pcluster-neoverse_v1 aws-isc-aarch64
gcc@10.2.1 centos7 x86_64_v3 linux - developer-tools-manylinux2014 bootstrap-x86_64-linux-gnu
""".splitlines()
)


def package_names(count: int) -> list[str]:
    """Return `count` distinct package names, sorted; the first few are famous ones."""
    # A small corpus still needs a Python package and a CMake one: take names from all
    # over.
    famous = _FAMOUS[:: max(len(_FAMOUS) // max(count, 1), 1)]
    names = [f"{first}{second}" for first, second in product(_FIRST, _SECOND)]
    Random("names").shuffle(names)
    prefixes = (
        "",
        "py-",
        "py-",
        "lib",
        "r-",
        "py-flow-",
        "perl-",
        "py-io-",
        "rust-",
        "go-",
    )
    ends = ("", "-ng", "-mpi", "-data", "-tools", "2", "-legacy", "-plus")
    invented = [
        f"{prefixes[(row + turn * 3) % len(prefixes)]}{name}{end}"
        for turn, end in enumerate(ends)
        for row, name in enumerate(names)
    ]
    return sorted(list(dict.fromkeys([*famous, *invented]))[:count])


def kind(name: str, random: Random) -> str:
    """Say which build system a package has."""
    if name.startswith("py-"):
        return "python"
    draw = random.random()
    if draw < 0.55 or name in _FAMOUS:
        return "cmake"
    if draw < 0.85:
        return "autotools"
    return "generic" if draw < 0.98 else "none"


def versions(count: int, random: Random) -> tuple[str, ...]:
    """Return `count` versions of one package, oldest first: numbers, dates, sometimes a
    branch.
    """
    draw = random.random()
    if draw < 0.08:
        months = (2021 * 12 + random.randrange(12) + n * 7 for n in range(count))
        return tuple(
            f"{month // 12}.{month % 12 + 1:02d}.{random.randint(1, 28):02d}"
            for month in months
        )
    major = random.choice((0, 0, 1, 1, 2, 3, 5, 24))
    minor = random.randrange(20)
    found = [f"{major}.{minor + n}.{random.randrange(4)}" for n in range(count)]
    if draw > 0.97:
        found[-1] = random.choice(("develop", "main", "master"))
    return tuple(found)


def environments(kind: str, recipes: int, random: Random) -> list[Environment]:
    """Return where a package with so many recipes is built; Python packages mostly by
    ML stacks.
    """
    if kind == "none":
        return [ENVIRONMENTS[3]]
    common = ENVIRONMENTS[:4] if kind == "python" else ENVIRONMENTS[3:8]
    rare = [environment for environment in ENVIRONMENTS if environment not in common]
    wanted = min(max(recipes * 2 // 3, 1), len(ENVIRONMENTS))
    order = [*random.sample(common, len(common)), *random.sample(rare, len(rare))]
    return order[:wanted]


def variants(kind: str, random: Random) -> tuple[str, ...]:
    """Return a package's variants with their defaults."""
    found = list(_BUILD_SYSTEMS[kind])
    if kind in ("cmake", "autotools"):
        found += [
            f"{random.choice('+~')}{word}"
            for word in random.sample(_WORDS, random.randint(1, 5))
        ]
    if kind == "cmake" and random.random() < 0.3:
        found += [f"~{gpu}" for gpu in _GPU]
    if kind != "none" and random.random() < 0.06:
        found.append(f"patches={random.randbytes(4).hex()[:7]}")
    if kind == "autotools" and random.random() < 0.25:
        found.append("libs=shared,static")
    if kind == "generic" and random.random() < 0.2:
        found.append(f"commit={random.randbytes(20).hex()}")
    return _sorted(found)


def flipped(template: tuple[str, ...], random: Random) -> tuple[str, ...]:
    """Return the variants of one recipe: the defaults, or one option the other way."""
    switches = [text for text in template if text[0] in "+~" and text != "~ipo"]
    if not switches or random.random() < 0.5:
        return template
    chosen = random.choice(switches)
    changed = [_other(text) if text == chosen else text for text in template]
    if chosen == "~cuda":
        changed.append(f"cuda_arch={random.choice((80, 90))}")
    if chosen == "~rocm":
        changed.append("amdgpu_target=gfx90a")
    return _sorted(changed)


def _other(switch: str) -> str:
    return ("~" if switch[0] == "+" else "+") + switch[1:]


def _sorted(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(found, key=lambda text: text.lstrip("+~")))
