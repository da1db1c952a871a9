"""Facts of Spack 1.2 that its recipes and its code contain, each once."""

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
"""Spack prints the compiler of the first of these that a spec uses (Spack 1.1 `spec.py`,
`DeprecatedCompilerSpec.factory`)."""

FLAG_NAMES = frozenset({"cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs"})
# Values in which a comma is part of the text: paths, git references, compiler flags.
UNSPLIT_NAMES = frozenset({"dev_path", "commit", "branch", "tag", "ref"}) | FLAG_NAMES
