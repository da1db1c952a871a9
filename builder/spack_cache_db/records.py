"""Names and records that all parts of the package share."""

from __future__ import annotations

from typing import NamedTuple

ROOT = "root"
"""The stack of the top-level index, which lists everything: kept, and never shown as a stack."""


INSTALLED = "installed"
"""The kind of a release that is an installed tree, and its name where none is given."""


FORMULA = ("=", "+", "-", "@")
"""Spreadsheets run a cell of CSV that begins with one of these."""


def is_name(text: str) -> bool:
    """Return whether text is a name: printable, no blank at either end, none of `FORMULA` first.

    Names are part of addresses, lists with commas, commands to copy and cells of CSV. A name does
    not look like an option, and has no characters that change how the text around it is shown.
    """
    return bool(text) and text.isprintable() and text == text.strip() and text[0] not in FORMULA


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
        """All of it in one line, without platform and variants."""
        return f"{self.package}@{self.version} {self.compiler} {self.os} {self.target}"


class Problem(NamedTuple):
    """Something in a source that does not add up.

    Attributes:
        code: the kind of problem.
        message: what is wrong, for people.
        hash: the DAG hash that it is about, or None.
        value: what the source says instead of what is stored, as JSON, or None.
    """

    code: str
    message: str
    hash: str | None = None
    value: str | None = None


FILTERED = "filtered"
"""The code of the problem that counts the binaries which the filters of a mirror leave out."""
