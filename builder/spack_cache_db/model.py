"""Records that several packages share: a configuration, and a problem of sources."""

from __future__ import annotations

from typing import NamedTuple

ROOT = "root"
"""The stack of the top-level index of a mirror, which lists all binaries. It is stored,
but not shown as a stack.
"""

INSTALLED = "installed"
"""The kind of a release that is an installation, and its default name."""

NO_COMPILER = "none"
"""The compiler of a spec that uses no compiler."""

FORMULA = ("=", "+", "-", "@")
"""First characters of a cell of CSV that spreadsheets run as a formula."""

FILTERED = "filtered"
"""The code of the problem that counts the binaries which the filters of a mirror
exclude.
"""


def is_name(text: str) -> bool:
    """Return whether text can be a name, such as that of a release or a stack.

    Names are parts of URLs, lists with commas, commands to copy and cells of CSV. So
    they are printable, do not begin or end with a blank, and are not a `FORMULA`.
    """
    if not text or not text.isprintable():
        return False
    return text == text.strip() and not text.startswith(FORMULA)


class Configuration(NamedTuple):
    """The visible properties of a spec, in normal form: binaries may share them.

    Attributes:
        package: its name, such as `hdf5`.
        version: such as `1.14.6` or `git.main=1.14`.
        compiler: such as `gcc@13.2.0`, or `NO_COMPILER`.
        os: such as `ubuntu24.04`.
        platform: such as `linux`.
        target: the CPU, such as `x86_64_v3`.
        variants: such as `+mpi` and `build_type=Release`, sorted.
    """

    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The configuration on one line, without platform and variants."""
        return f"{self.package}@{self.version} {self.compiler} {self.os} {self.target}"

    @property
    def spec(self) -> str:
        """The configuration as a spec on one line, which `find` and Spack read.

        Such as `hdf5@=1.14.6 +mpi platform=linux os=rhel9 target=zen3 %gcc@=13.2.0`.
        """
        # `@=1.14` means this version only. One such as `git.main=1.14` is exact
        # already.
        is_exact = "=" in self.version
        version = self.version if is_exact else f"={self.version}"
        words = [
            f"{self.package}@{version}",
            *self.variants,
            f"platform={self.platform}",
            f"os={self.os}",
            f"target={self.target}",
        ]
        if self.compiler != NO_COMPILER:
            exact_compiler = self.compiler.replace("@", "@=")
            words.append(f"%{exact_compiler}")
        return " ".join(words)


class Problem(NamedTuple):
    """An inconsistency of the sources, which a build records.

    Attributes:
        code: its kind, such as `two_records`.
        message: a text for people.
        hash: the spec that it is about; None if it is not about a single one.
        value: the value of the source that is not stored elsewhere, as JSON; None
            without one.
    """

    code: str
    message: str
    hash: str | None = None
    value: str | None = None
