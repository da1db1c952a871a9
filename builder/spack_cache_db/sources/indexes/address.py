"""Where a mirror is: the small file that lies beside the index that was fetched from it.

This module knows the file's format alone, neither a disk nor a network.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.faults import IndexFault, said

ADDRESS_FILE = "mirror.json"
"""The file's name, in the folder of a stack."""


class _Address(Struct, frozen=True, forbid_unknown_fields=True):
    url: str


_ADDRESS = msgspec.json.Decoder(_Address)


def read_address(data: bytes) -> str:
    """Return the URL of a mirror from the bytes of its file; `IndexFault` if it says none."""
    try:
        url = _ADDRESS.decode(data).url
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        message = f'broken address of a mirror: {said(error)}, expected {{"url": …}}'
        raise IndexFault(message) from None
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is no URL, expected one such as https://…")
    return url


def write_address(url: str) -> bytes:
    """Return the bytes of the file that says where a mirror is."""
    return msgspec.json.format(msgspec.json.encode(_Address(url)), indent=2) + b"\n"
