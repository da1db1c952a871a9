"""The faults of files of mirrors."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import zstandard

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.texts import BROKEN, message_of


class IndexFault(LineFault):
    """The reason why a file of a mirror cannot be read, and what was expected.

    These files are written by programs, often in one line, so a fault has no line.
    """

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


@contextmanager
def decoding(kind: str, expected: str) -> Iterator[None]:
    """Turn the exceptions of decoders into `IndexFault`.

    Args:
        kind: what is being decoded, such as "manifest".
        expected: the end of the message: what was expected, or what to do.
    """
    try:
        yield
    except (*BROKEN, zlib.error, zstandard.ZstdError) as error:
        raise IndexFault(f"broken {kind}: {message_of(error)}{expected}") from None
