"""Decodes the bytes of an environment."""

from __future__ import annotations

from spack_cache_db.errors import LineFault, foreign_fault

TOP_KEYS = ("spack", "env")
"""The top-level key of a `spack.yaml`; `env` in old files."""


def decoded(data: bytes, path: str = "") -> str:
    """Return the text of a file; `LineFault` if it is not UTF-8, has NUL bytes or is a
    web page.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LineFault(
            line, "is not UTF-8 text, expected an environment", path
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LineFault(line, "has a NUL byte, expected text", path)
    if fault := foreign_fault(text):
        raise LineFault(fault.line, fault.message, path)
    return text
