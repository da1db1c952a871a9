"""The files that `fetch` writes beside the index of a mirror.

`mirror.json` has the address of the mirror and what its users need to know, as in their
`mirrors.yaml`; `sizes.json` has the sizes of its binaries. `build` reads both.

    {"url": "https://mirror", "signed": true, "include_binary": ["hdf5@1.14"]}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.sources.files import SIZES_FILE
from spack_cache_db.sources.indexes.faults import IndexFault, decoding
from spack_cache_db.sources.indexes.manifests import Bytes
from spack_cache_db.sources.texts import as_json

VARIABLE_NAME = "[A-Za-z_][A-Za-z0-9_]{0,199}"
"""The name of an environment variable, as a regular expression."""

VariableName = Annotated[str, Meta(pattern=f"^{VARIABLE_NAME}$")]


class LoginVariables(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The names of the variables with the login for a mirror.

    Attributes:
        id_variable: the variable with the name of the user.
        secret_variable: the variable with the secret.
        id: the name of the user itself, which is not published.
    """

    id_variable: VariableName | None = None
    secret_variable: VariableName | None = None
    id: str | None = None


class Properties(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """The properties of a mirror in Spack's `mirrors.yaml` that its users need, without
    secrets.

    Source: Spack 1.2 `schema/mirrors.py` and `cmd/mirror.py`, `mirror_add`.

    Attributes:
        signed: whether Spack requires signatures; None if it is not configured.
        endpoint_url: the URL of the object store of an `s3://` URL.
        profile: the name of a profile of Amazon's tools.
        access_pair: the variables with the login.
        access_token_variable: the variable with the token of a session.
        view: the view whose index is read: a part of the mirror with its own index.
    """

    signed: bool | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    access_pair: LoginVariables | None = None
    access_token_variable: VariableName | None = None
    view: str | None = None


class Address(Properties, frozen=True, kw_only=True):
    """The content of `mirror.json`: a URL, its properties, and filters of binaries.

    Attributes:
        url: the URL of the mirror.
        include_binary: specs of the binaries that count; none for all.
        exclude_binary: specs of the binaries that do not count.
    """

    url: str
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


_ADDRESS = msgspec.json.Decoder(Address)
_SIZES = msgspec.json.Decoder(dict[str, Bytes])

_IN_COMMANDS = ("endpoint_url", "profile", "view")
"""Properties of a mirror that are arguments of commands, which people copy."""

MAX_ADDRESS = 2**16
"""Bytes of the file with the address of a mirror."""


def read_address(data: bytes) -> Address:
    """Return the address of a mirror from the bytes of its file.

    Raises:
        IndexFault: the file has no address, or one that cannot be used.
    """
    with decoding("address of a mirror", ', expected {"url": …}'):
        address = _ADDRESS.decode(data)
    url = address.url
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault(
            "the address of a mirror is not a URL, expected one such as https://…"
        )
    for name in _IN_COMMANDS:
        value = getattr(address, name)
        if value is None:
            continue
        if not value or not value.isprintable() or " " in value:
            message = f"the {name} of a mirror is {value!r:.60}, expected a text without blanks"
            raise IndexFault(message)
    return address


def write_address(address: Address) -> bytes:
    """Return the content of the file with the address of a mirror."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


def settings_of(properties: Properties) -> str | None:
    """Return the properties that `spack mirror add` needs, as JSON with sorted keys.

    None if there are none. The name of the user is left out, and so is `signed`, which
    has a column of its own.
    """
    settings = _given(
        properties, ("endpoint_url", "profile", "access_token_variable", "view")
    )
    if properties.access_pair is not None:
        variables = _given(properties.access_pair, ("id_variable", "secret_variable"))
        if variables:
            settings["access_pair"] = variables
    return as_json(settings) if settings else None


def _given(record: Struct, names: Iterable[str]) -> dict[str, Any]:
    """Return the attributes of a record that are neither None nor empty, by name."""
    given = {}
    for name in names:
        value = getattr(record, name)
        if value:
            given[name] = value
    return given


def read_sizes(data: bytes) -> dict[str, int]:
    """Return the size of each binary by its hash, from the bytes of `sizes.json`.

    Raises:
        IndexFault: the file has something else.
    """
    with decoding(SIZES_FILE, "; remove it"):
        return _SIZES.decode(data)
