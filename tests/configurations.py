"""Configurations for tests: whoever does not say a part gets a usual one."""

from typing import Any

from spack_cache_db.model import Configuration

USUAL = {
    "package": "zlib",
    "version": "1.0",
    "compiler": "gcc@13.2.0",
    "os": "ubuntu24.04",
    "platform": "linux",
    "target": "zen3",
    "variants": (),
}


def configuration(**parts: Any) -> Configuration:
    """Return a configuration; a part that is not usual is None."""
    given = {**dict.fromkeys(Configuration._fields), **USUAL, **parts}
    return Configuration._make(given.values())


HDF5 = configuration(
    package="hdf5",
    version="1.14.3",
    compiler="gcc@13.2.0",
    os="debian12",
    platform="linux",
    target="zen3",
    variants=(
        "+mpi",
        "~java",
        "api=default",
        "libs=shared,static",
        "patches=0abcdef,f7d58d3",
    ),
)
HASH = "abcdefghijklmnopqrstuvwxyz234567"
