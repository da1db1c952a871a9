"""Reads images of registries as the files of a mirror."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    Headers,
    LoginFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes.manifests import Bytes, is_sum
from spack_cache_db.sources.indexes.mirrors import Binary
from spack_cache_db.sources.texts import BROKEN, message_of

T = TypeVar("T")


_ACCEPT = (
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
_REFERENCE = re.compile(
    r"oci://(?P<host>[\w.-]+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?)"
    r"/(?P<name>[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*)(?::(?P<tag>\w[\w.-]{0,127}))?",
    re.ASCII,
)


class Layer(Struct, frozen=True):
    """A blob of an image: its checksum (`sha256:…`) and its length in bytes."""

    digest: str
    size: Bytes


class _Image(Struct, frozen=True):
    layers: Annotated[tuple[Layer, ...], Meta(min_length=1)]


def read_layers(url: str, data: bytes) -> tuple[Layer, ...]:
    """Return the layers of an image from its manifest; `FetchFault` if the data is not
    one.
    """
    try:
        return msgspec.json.decode(data, type=_Image).layers
    except BROKEN as error:
        raise FetchFault(url, f"is not an image: {message_of(error)}") from None


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    return re.fullmatch(r"localhost|127(\.\d+){3}|::1", host) is not None


class Registry:
    """One image of a registry, read anonymously or with the login of its mirror."""

    def __init__(self, web: Web, url: str, *, plain_http: bool) -> None:
        """Take the URL of an image, `oci://host/name[:tag]`; `FetchFault` for another
        URL.

        With `plain_http`, a registry on this machine is used without TLS.
        """
        image = _REFERENCE.fullmatch(url)
        if image is None:
            expected = "expected oci://host/name or oci://host/name:tag"
            raise FetchFault(url, f"does not name an image, {expected}")
        self._web = web
        self._url = url
        self._name = image["name"]
        self._tag = image["tag"] or "index.spack"
        host = image["host"]
        scheme = "http" if plain_http and is_loopback(f"//{host}") else "https"
        self.address = f"{scheme}://{host}/v2/{self._name}"
        split = urlsplit(f"//{host}")
        self._host_and_port = (split.hostname, split.port or 80)

        # The login of the mirror, and the headers that the registry has accepted.
        self._basic: Headers = {}
        self._accepted: Headers = {}
        login = web.mirror(url).login
        if login is not None:
            # RFC 7617.
            credentials = base64.b64encode(f"{login.user}:{login.secret}".encode())
            self._basic = {"Authorization": f"Basic {credentials.decode()}"}

    async def fetch(self, folder: StackFolder) -> None:
        """Download the index; `FetchFault` if it is not there or cannot be read."""
        layers = await self._layers(self._tag)
        if len(layers) != 1:
            message = f"has {len(layers)} layers, expected one, the index"
            raise FetchFault(self._url, message)
        layer = layers[0]
        sha256 = layer.digest.removeprefix("sha256:")
        if not is_sum(sha256):
            raise FetchFault(self._url, "has a layer without a sha256, expected one")
        require_size(self._url, layer.size, self._web.limits.max_size)
        url = f"{self.address}/blobs/{layer.digest}"
        await self._allowed(
            lambda login: folder.download(self._web, "index.json", url, sha256, login)
        )

    async def size(self, binary: Binary) -> int:
        """Return the size of a tarball, the last layer of an image; `FetchFault` if
        unknown.
        """
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`); a
        # registry allows 128 characters.
        tag = re.sub(r"[^\w.-]", "_", f"{'-'.join(binary)}.spack", flags=re.ASCII)
        if len(tag) > 128:
            tag = tag[:64] + tag[-64:]
        layers = await self._layers(tag)
        return layers[-1].size

    async def _layers(self, tag: str) -> tuple[Layer, ...]:
        """Return the layers of the image with a tag."""
        url = f"{self.address}/manifests/{tag}"
        try:
            image = await self._allowed(
                lambda login: self._web.read(url, {"Accept": _ACCEPT, **login})
            )
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {tag}: {fault}") from None
        return read_layers(self._url, image)

    async def _allowed(self, ask: Callable[[Headers], Awaitable[T]]) -> T:
        """Send a request, and repeat it with a login or a token if the registry
        requires one.
        """
        try:
            return await ask(self._accepted)
        except LoginFault as fault:
            # The login of the mirror, or else a token for it or for anybody.
            self._accepted = self._basic
            wants_basic = fault.challenge[:6].lower() == "basic "
            if not self._basic or not wants_basic:
                token = await self._token(fault.challenge)
                self._accepted = {"Authorization": f"Bearer {token}"}
        try:
            return await ask(self._accepted)
        except LoginFault:
            refused = "the login of its mirror" if self._basic else "its own token"
            message = f"refuses {refused}, expected one that may read"
            raise FetchFault(self._url, message) from None

    async def _token(self, challenge: str) -> str:
        """Return a token from the server that a challenge names."""
        # Bearer realm="https://auth.example.org/token",service="…",scope="…"
        scheme, _, text = challenge.partition(" ")
        try:
            fields = parse_keqv_list(parse_http_list(text))
        except (ValueError, IndexError):
            fields = {}
        realm = fields.get("realm", "")
        if scheme.lower() != "bearer" or not self._is_safe(realm):
            advice = (
                "expected one that issues tokens over https, or a login in --mirrors"
            )
            message = f"is in a registry that requires a login, {advice}"
            raise FetchFault(self._url, message)

        # The URL of the token.
        parameters = {}
        service = fields.get("service", "")
        if service:
            parameters["service"] = service
        scope = fields.get("scope", f"repository:{self._name}:pull")
        if scope:
            parameters["scope"] = scope
        separator = "&" if "?" in realm else "?"
        url = f"{realm}{separator}{urlencode(parameters)}"

        # The token.
        data = await self._web.read(url, self._basic)
        try:
            answer = msgspec.json.decode(data, type=dict[str, Any])
        except BROKEN as error:
            raise FetchFault(realm, f"gives no token: {message_of(error)}") from None
        token = str(answer.get("token") or answer.get("access_token") or "")
        if not token or not token.isascii() or not token.isprintable():
            raise FetchFault(realm, "gives no token, expected one that may read")
        return token

    def _is_safe(self, realm: str) -> bool:
        """Return whether a realm may get the login.

        Only a local registry that is used over plain HTTP may have a local realm over
        plain HTTP. Another port is another program, and another origin: it gets no
        login.
        """
        try:
            url = urlsplit(realm)
            if not url.hostname:
                return False
            if url.scheme == "https":
                return True
            if url.scheme != "http" or not self.address.startswith("http:"):
                return False
            if not is_loopback(realm):
                return False
            if not self._basic:
                return True
            return (url.hostname, url.port or 80) == self._host_and_port
        except ValueError:
            return False
