"""Records and names that several packages share."""

from __future__ import annotations

import json
from typing import NamedTuple

ROOT = "root"
"""The stack of the top-level index, which lists all binaries; stored, but not shown as
a stack.
"""

INSTALLED = "installed"
"""The kind of a release that is an installation, and its default name."""

NO_COMPILER = "none"
"""Printed for a spec that uses no compiler."""

FORMULA = ("=", "+", "-", "@")
"""First characters of a CSV cell that spreadsheets run as a formula."""


def is_name(text: str) -> bool:
    """Return whether text is printable, without blanks at its ends or a first sign of
    `FORMULA`.

    Names are parts of URLs, lists with commas, commands to copy and cells of CSV.
    """
    return (
        bool(text)
        and text.isprintable()
        and text == text.strip()
        and text[0] not in FORMULA
    )


class Configuration(NamedTuple):
    """The visible properties of a spec, in normal form; `variants` is sorted."""

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
        """The configuration as a spec on one line, which `find` and Spack read."""
        # A version such as `git.main=1.4` is exact already.
        exact = "" if "=" in self.version else "="
        words = [f"{self.package}@{exact}{self.version}", *self.variants]
        words += [
            f"{name}={getattr(self, name)}" for name in ("platform", "os", "target")
        ]
        if self.compiler != NO_COMPILER:
            words.append(f"%{self.compiler.replace('@', '@=')}")
        return " ".join(words)

    @property
    def entry(self) -> str:
        """The configuration as an entry of a spack.yaml."""
        return f"- {json.dumps(self.spec)}"


class Problem(NamedTuple):
    """An inconsistency of a source, with its kind, and a message for people.

    `value` is the value of the source that is not stored elsewhere, as JSON.
    """

    code: str
    message: str
    hash: str | None = None
    value: str | None = None


FILTERED = "filtered"
"""The code of the problem that counts the binaries which the filters of a mirror
exclude.
"""
