"""The faults of files of mirrors."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import zstandard

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.texts import BROKEN, message_of


class IndexFault(LineFault):
    """The reason why a file cannot be read; the message has what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


@contextmanager
def whole(kind: str, expected: str) -> Iterator[None]:
    """Turn exceptions of decoders into `IndexFault`."""
    try:
        yield
    except (*BROKEN, zlib.error, zstandard.ZstdError) as error:
        raise IndexFault(f"broken {kind}: {message_of(error)}{expected}") from None
