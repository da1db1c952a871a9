"""What can be a name: of a package as Spack has it, and of anything else that sources name.

Names stand in addresses, in lists with commas and in commands to copy. So none looks like an
option, and none has characters that change how the text around it is shown.
"""

import re

_WORD = r"[a-zA-Z0-9_][a-zA-Z0-9_\-]*"

PACKAGE = rf"{_WORD}(?:\.{_WORD})*"
"""A package's name, as Spack 1.1's `spec_parser.py` reads it (`DOTTED_IDENTIFIER`)."""

_PACKAGE = re.compile(PACKAGE, re.ASCII)


def is_name(text: str) -> bool:
    """Return whether text is a name: printable, no blank at either end, no `-` before it."""
    return text != "" and text.isprintable() and text == text.strip() and text[0] != "-"


def is_package(text: str) -> bool:
    """Return whether Spack can read a text as the name of a package."""
    return _PACKAGE.fullmatch(text) is not None
