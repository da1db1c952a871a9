"""Compilers as Spack prints them: `gcc@13.2.0`, `none`; their names, and what `%gcc@13` asks.

A compiler has been a package since Spack 1.0; before, it had a name of its own.
"""

from dataclasses import dataclass

from spack_cache_db.spack.versions import VersionRanges

NO_COMPILER = "none"
"""What is printed for a spec that uses no compiler."""

LANGUAGES = ("c", "cxx", "fortran")
"""The compiler printed is the one for the first of these that a spec uses (Spack 1.1 `spec.py`,
`DeprecatedCompilerSpec.factory`)."""

LEGACY_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "rocmcc": "llvm-amdgpu",
    "intel": "intel-oneapi-compilers-classic",
    "arm": "acfl",
}
"""The package of each compiler that had another name before Spack 1.0."""


def normal_compiler(text: str) -> str:
    """Return the normal form of a printed compiler.

    `gcc@=13.2.0` becomes `gcc@13.2.0`, and `gcc@13.2.0/abc…` loses the hash that Spack 1.0 and
    later prints; `none` stays.

    Raises:
        ValueError: the text has no compiler name.
    """
    name, at, version = text.partition("@")
    if at:
        version = version.removeprefix("=").partition("/")[0]
    else:
        name = name.partition("/")[0]
    if not name or (at and not version):
        raise ValueError(f"{text!r} is not a compiler: expected name@version or a name")
    return f"{name}@{version}" if at else name


def split_compiler(name: str) -> tuple[str, str | None]:
    """Split `gcc@13.2.0` in name and version; the version of `none` and the like is None.

    Raises:
        ValueError: the text has no compiler name.
    """
    compiler, at, version = normal_compiler(name).partition("@")
    return compiler, version if at else None


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """What `%gcc@13` asks of the compiler that Spack prints of a spec; a None asks nothing."""

    name: str | None
    versions: VersionRanges | None = None


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a compiler as Spack prints it (`gcc@13.2.0`, `none`) is the one asked for.

    Names from before Spack 1.0 and today's names are the same: `clang` is `llvm`, `oneapi` is
    `intel-oneapi-compilers`.
    """
    name, version = split_compiler(compiler)
    asked = constraint.name
    if asked is not None and _package_name(name) != _package_name(asked):
        return False
    if constraint.versions is None:
        return asked is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def _package_name(compiler: str) -> str:
    return LEGACY_COMPILERS.get(compiler, compiler)
