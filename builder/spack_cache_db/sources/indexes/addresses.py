"""The address of a mirror, which `fetch` writes beside its files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.sources.files import SIZES_FILE
from spack_cache_db.sources.indexes.faults import IndexFault, whole
from spack_cache_db.sources.indexes.manifests import Bytes
from spack_cache_db.sources.texts import as_json

VARIABLE_NAME = "[A-Za-z_][A-Za-z0-9_]{0,199}"
"""The name of an environment variable, as a regular expression."""

VariableName = Annotated[str, Meta(pattern=f"^{VARIABLE_NAME}$")]


class LoginVariables(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The names of the variables with the login for a mirror; `id` itself is not
    published.
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
        view: the view whose index is read.
    """

    signed: bool | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    access_pair: LoginVariables | None = None
    access_token_variable: VariableName | None = None
    view: str | None = None


class Address(Properties, frozen=True, kw_only=True):
    """The URL of a mirror, its properties, and its filters of binaries."""

    url: str
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


_ADDRESS = msgspec.json.Decoder(Address)
_SIZES = msgspec.json.Decoder(dict[str, Bytes])

_IN_COMMANDS = ("endpoint_url", "profile", "view")
"""Properties of a mirror that are arguments of commands."""

MAX_ADDRESS = 2**16
"""Bytes of the file with the address of a mirror."""


def read_address(data: bytes) -> Address:
    """Return the address of a mirror from the bytes of its file; `IndexFault` if it has
    none.
    """
    with whole("address of a mirror", ', expected {"url": …}'):
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


def settings_of(properties: Properties) -> str | None:
    """Return the properties that `spack mirror add` needs, as JSON with sorted keys.

    The login itself is left out; None if there is nothing else. `signed` is a column of
    its own.
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


def write_address(address: Address) -> bytes:
    """Return the content of the file with the address of a mirror."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


def read_sizes(data: bytes) -> dict[str, int]:
    """Return the size of each binary by its hash; `IndexFault` if it is another
    file.
    """
    with whole(SIZES_FILE, "; remove it"):
        return _SIZES.decode(data)
