"""Decodes the bytes of an environment, and of the files that it includes."""

from __future__ import annotations

from spack_cache_db.errors import LineFault
from spack_cache_db.foreign_files import foreign_fault


def decoded(data: bytes, path: str = "") -> str:
    """Return the text of a file.

    Args:
        data: the bytes of the file.
        path: the path of an included file in messages; empty for the environment.

    Raises:
        LineFault: the file is not UTF-8, has a NUL byte, or is of another kind, such as
            a web page.
    """
    try:
        # This codec also removes the mark that editors on Windows put at the beginning.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8 text, expected an environment"
        raise LineFault(line, message, path) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LineFault(line, "has a NUL byte, expected text", path)
    # A file of another kind, such as an HTML page, has a message of its own.
    fault = foreign_fault(text)
    if fault is not None:
        raise LineFault(fault.line, fault.message, path)
    return text
