"""An index in an OCI registry: the one layer of an image with the tag `index.spack`.

Spack 1.0 `binary_distribution.py`, `OCIIndexFetcher`; the OCI Distribution Specification 1.1; the
anonymous token flow of "Token Authentication Specification" (distribution/distribution).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.fetch.addresses import FetchFault
from spack_cache_db.sources.indexes.fetch.stack_folder import Download, StackFolder
from spack_cache_db.sources.indexes.fetch.web import (
    Headers,
    LoginFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes.layouts import is_sum
from spack_cache_db.sources.indexes.spack_json import said

T = TypeVar("T")
TAG = "index.spack"
INDEX_NAME = "index.json"
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_REFERENCE = re.compile(
    r"oci://(?P<host>[\w.-]+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?)"
    r"/(?P<name>[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*)(?::(?P<tag>\w[\w.-]{0,127}))?",
    re.ASCII,
)
_MANIFEST_SIZE = 4 * 2**20
"""Bytes; registries take manifests up to that size (OCI Distribution Specification 1.1)."""

_TOKEN_SIZE = 2**16


class _Layer(Struct, frozen=True):
    digest: str
    size: int


class _Manifest(Struct, frozen=True):
    layers: tuple[_Layer, ...]


class _Token(Struct, frozen=True):
    token: str = ""
    access_token: str = ""


_MANIFEST = msgspec.json.Decoder(_Manifest)
_TOKEN = msgspec.json.Decoder(_Token)


class Reference(NamedTuple):
    """An image: the registry's host, a name within it, a tag."""

    host: str
    name: str
    tag: str

    def place(self, plain_http: bool) -> str:
        """Return the URL of what the registry has of this name; `plain_http` for this machine's."""
        scheme = "http" if plain_http and is_loopback(f"//{self.host}") else "https"
        return f"{scheme}://{self.host}/v2/{self.name}"


def read_reference(url: str) -> Reference:
    """Return the image that a URL names; `FetchFault` if it names none."""
    match = _REFERENCE.fullmatch(url)
    if match is None:
        raise FetchFault(url, "names no image, expected oci://host/name or oci://host/name:tag")
    return Reference(match["host"], match["name"], match["tag"] or TAG)


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Registry:
    """One image of a registry, as anybody may read it."""

    def __init__(self, web: Web, url: str, *, plain_http: bool) -> None:
        """Name it; `FetchFault` if `url` names no image.

        Args:
            web: the client.
            url: `oci://host/name[:tag]`.
            plain_http: whether a registry on this machine is asked without TLS.
        """
        self._web = web
        self._url = url
        self._image = read_reference(url)
        self._plain_http = plain_http
        self._place = self._image.place(plain_http)
        self._login: dict[str, str] = {}

    async def fetch(self, folder: StackFolder) -> bool:
        """Bring the index; return whether it is another than before.

        Raises:
            FetchFault: there is none that can be read.
        """
        at = f"{self._place}/manifests/{self._image.tag}"
        try:
            answer = await self._allowed(
                lambda login: self._web.read(at, _MANIFEST_SIZE, {"Accept": _ACCEPT, **login})
            )
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {self._image.tag}: {fault}") from None
        layer = self._layer(answer.data or b"")
        require_size(self._url, layer.size, self._web.limits.max_size)
        blob = Download(
            folder,
            INDEX_NAME,
            f"{self._place}/blobs/{layer.digest}",
            layer.digest.removeprefix("sha256:"),
        )
        return await self._allowed(lambda login: blob.run(self._web, login))

    def _layer(self, data: bytes) -> _Layer:
        try:
            layers = _MANIFEST.decode(data).layers
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise FetchFault(self._url, f"is no image: {said(error)}") from None
        if len(layers) != 1:
            raise FetchFault(self._url, f"has {len(layers)} layers, expected one, the index")
        if not is_sum(layers[0].digest.removeprefix("sha256:")):
            raise FetchFault(self._url, "has a layer without a sha256, expected one")
        return layers[0]

    async def _allowed(self, ask: Callable[[Headers], Awaitable[T]]) -> T:
        """Ask, and once more with a token if the registry wants one."""
        try:
            return await ask(self._login)
        except LoginFault as fault:
            self._login = {"Authorization": f"Bearer {await self._token(fault)}"}
        return await ask(self._login)

    async def _token(self, fault: LoginFault) -> str:
        scheme, _, text = fault.challenge.partition(" ")
        try:
            asked = parse_keqv_list(parse_http_list(text))
        except (ValueError, IndexError):
            asked = {}
        realm = asked.get("realm", "")
        self._require_realm(scheme, realm)
        scope = asked.get("scope", f"repository:{self._image.name}:pull")
        query = {"service": asked.get("service", ""), "scope": scope}
        words = urlencode({key: value for key, value in query.items() if value})
        answer = await self._web.read(f"{realm}{'&' if '?' in realm else '?'}{words}", _TOKEN_SIZE)
        try:
            token = _TOKEN.decode(answer.data or b"")
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise FetchFault(realm, f"gives no token: {said(error)}") from None
        given = token.token or token.access_token
        if not given or not given.isascii() or not given.isprintable():
            raise FetchFault(realm, "gives no token, expected one for anybody")
        return given

    def _require_realm(self, scheme: str, realm: str) -> None:
        """Raise `FetchFault` unless a token can be had there, and nobody can listen."""
        try:
            at = urlsplit(realm)
            safe = at.scheme == "https" or (
                at.scheme == "http" and self._plain_http and is_loopback(realm)
            )
            is_known = bool(scheme.lower() == "bearer" and at.hostname and safe)
        except ValueError:
            is_known = False
        if not is_known:
            words = "expected one that gives tokens to anybody, over https"
            raise FetchFault(self._url, f"is in a registry that asks for a login, {words}")
