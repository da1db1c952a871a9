"""Environments that are dear to read: small texts of many specs."""

from __future__ import annotations

from itertools import pairwise


def large_environment() -> str:
    """Return 85 kB of a matrix of 900 specs, 200 excludes and version lists of 97
    parts.
    """
    versions = ",".join(f"1.{number}:1.{number}.5" for number in range(97))
    names = [f"hdf5@{versions}"]
    names += [f"package{number}" for number in range(29)]
    compilers = [f"%gcc@{number}" for number in range(30)]
    lines = ["spack:", "  specs:", "  - matrix:"]
    for row in (names, compilers):
        texts = ", ".join(f"'{text}'" for text in row)
        lines.append(f"    - [{texts}]")
    lines.append("    exclude:")
    for number in range(200):
        lines.append(f"    - 'hdf5@{versions[:380]} %gcc@{number}'")
    return "\n".join(lines) + "\n"


def doubling_environment() -> str:
    """Return 350 bytes of definitions, each of which contains the one before twice."""
    lines = ["spack:", "  definitions:", "  - a: [{matrix: [[]]}, zlib]"]
    for before, name in pairwise("abcdefghijklmno"):
        lines.append(f"  - {name}: [${before}, ${before}]")
    lines.append("  specs: [$o]")
    return "\n".join(lines) + "\n"


def multiplied_environment() -> str:
    """Return 500 bytes of requirements whose alternatives multiply."""
    requirements = []
    for row in range(8):
        variants = ", ".join(f"+a{row}{column}" for column in range(9))
        requirements.append(f"{{one_of: [{variants}]}}")
    required = ", ".join(requirements)
    return f"spack: {{packages: {{all: {{require: [{required}]}}}}, specs: [zlib]}}\n"
