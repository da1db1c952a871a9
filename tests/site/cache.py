"""A small invented build cache: pages written here, built by the real builder."""

import base64
import hashlib
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from tests.pagetexts import page

HOSTILE = "<script>document.title='owned'</script>"
MPI = "hdf5 1.14.5 x86_64_v3 gcc@13.2.0 ('build_system=cmake', '~cxx', '+mpi') 0"
"""What the hash of a spec that every release lists is made of."""

Spec = dict[str, Any]


def spec_hash(seed: str) -> str:
    """Return a hash in Spack's alphabet, the same for the same seed."""
    return base64.b32encode(hashlib.sha1(seed.encode()).digest()).decode().lower()


@dataclass(frozen=True)
class Build:
    """One configuration, and how many specs of it a release lists."""

    package: str
    version: str
    target: str = "x86_64_v3"
    compiler: str = "gcc@13.2.0"
    os: str = "ubuntu24.04"
    variants: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ("e4s",)
    specs: int = 1
    releases: tuple[str, ...] = ("develop",)
    hashes: tuple[str, ...] = field(default=())

    def in_page(self) -> list[Spec]:
        """Return the specs of this build as a page shows them."""
        seed = f"{self.package} {self.version} {self.target} {self.compiler} {self.variants}"
        hashes = self.hashes or tuple(
            spec_hash(f"{seed} {each}") for each in range(self.specs)
        )
        common = {
            "compiler": self.compiler,
            "os": self.os,
            "platform": "linux",
            "size": "-",
            "stacks": sorted((*self.stacks, "root")),
            "target": self.target,
            "variants": sorted(self.variants),
            "versions": [self.version],
        }
        return [common | {"hash": dag_hash} for dag_hash in hashes]


_ALL = ("develop", "develop-2025-04-13", "develop-2025-04-20", "v0.23.1")
_HDF5 = ("build_system=cmake", "~cxx")

BUILDS = (
    Build(
        "hdf5",
        "1.14.5",
        variants=(*_HDF5, "+mpi"),
        specs=7,
        releases=_ALL,
        stacks=("e4s", "hep"),
    ),
    Build("hdf5", "1.14.5", variants=(*_HDF5, "~mpi"), specs=3),
    Build(
        "hdf5",
        "1.14.5",
        "aarch64",
        variants=(*_HDF5, "+mpi"),
        specs=2,
        stacks=("e4s-arm",),
    ),
    Build(
        "hdf5",
        "1.14.10",
        "zen3",
        variants=(*_HDF5, "+mpi"),
        releases=("develop-2025-04-20",),
    ),
    Build("hdf5", "1.9", compiler="gcc@11.4.0", os="rhel8", variants=(*_HDF5, "+mpi")),
    Build(
        "py-torch",
        "2.5.1",
        variants=("+cuda", "build_system=python_pip"),
        releases=_ALL,
    ),
    Build("py-torch", "2.5.1", variants=("~cuda", "build_system=python_pip")),
    Build("py-torchvision", "0.20.1", variants=("build_system=python_pip",)),
    Build("netcdf-c", "4.9.2", variants=("+hdf5", "build_system=cmake")),
    Build(
        "zlib",
        "1.3.1",
        variants=("+shared",),
        hashes=("aaaaaaa" + "b" * 25, "aaaaaaa" + "c" * 25, "ddddddd" + "e" * 25),
        releases=_ALL,
        stacks=(),
    ),
    Build("hostile", f"git.{40 * 'a'}=1.0", variants=(f"note={HOSTILE}", "+fine")),
    Build("hostile", "1.1", variants=("note=plain", "+fine")),
)


def write_pages(folder: Path) -> Path:
    """Write the pages of the invented cache below `folder`."""
    pages: dict[tuple[str, str], list[Spec]] = {}
    for build in BUILDS:
        for release in build.releases:
            pages.setdefault((release, build.package), []).extend(build.in_page())
    for (release, package), specs in pages.items():
        path = folder / release / package / "specs.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(page(package, release, sorted(specs, key=itemgetter("hash"))))
    return folder
