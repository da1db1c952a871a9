"""Reads the images of a registry as the files of a mirror.

Spack stores a mirror in an OCI registry as images. The index is the only layer of the
image with the tag `index.spack`, and each binary is an image of its own, whose last
layer is its tarball (Spack 1.2 `binary_distribution.py`, `OCIIndexFetcher`).

    oci://ghcr.io/site/cache  →  https://ghcr.io/v2/site/cache/manifests/index.spack

A registry that wants to know who asks answers with a challenge: a request for a login,
or the address of a server that gives tokens (OCI Distribution Specification 1.1; "Token
Authentication Specification", distribution/distribution).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.sources.fetch.addresses import FetchFault, Login
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    NO_HEADERS,
    Headers,
    LoginFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes.manifests import Bytes, is_sum
from spack_cache_db.sources.indexes.mirror_content import Binary
from spack_cache_db.sources.texts import BROKEN, message_of

T = TypeVar("T")

_ACCEPT = (
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
"""The media types of manifests of images."""

_REFERENCE = re.compile(
    r"oci://(?P<host>[\w.-]+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?)"
    r"/(?P<name>[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*)(?::(?P<tag>\w[\w.-]{0,127}))?",
    re.ASCII,
)
"""The URL of an image: a host, which may be an IPv6 address, a name, and a tag."""

_LONGEST_TAG = 128
"""Characters of a tag that a registry allows."""


class Layer(Struct, frozen=True):
    """A blob of an image: its checksum (`sha256:…`) and its length in bytes."""

    digest: str
    size: Bytes


class _Image(Struct, frozen=True):
    """The manifest of an image."""

    layers: Annotated[tuple[Layer, ...], Meta(min_length=1)]


def read_layers(url: str, data: bytes) -> tuple[Layer, ...]:
    """Return the layers of an image from its manifest.

    Args:
        url: the URL of the image, for messages.
        data: the manifest.

    Raises:
        FetchFault: the data is not the manifest of an image.
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
    """One image of a registry, read anonymously or with the login of its mirror.

    Attributes:
        address: the HTTP URL of the image.
    """

    def __init__(self, web: Web, url: str, *, plain_http: bool) -> None:
        """Take the URL of an image, `oci://host/name[:tag]`.

        Args:
            web: the HTTP client.
            url: the URL.
            plain_http: whether a registry on this machine is used without TLS.

        Raises:
            FetchFault: the URL is another.
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
        # For a token server that is reached by plain HTTP, whose default port is 80.
        split = urlsplit(f"//{host}")
        self._host_and_port = (split.hostname, split.port or 80)

        # The headers with the login of the mirror; none without a login.
        login = web.mirror(url).login
        self._login_headers = NO_HEADERS if login is None else _basic(login)
        # The headers that the registry has accepted so far.
        self._accepted: Headers = NO_HEADERS

    async def fetch(self, folder: StackFolder) -> None:
        """Download the index into a folder.

        Raises:
            FetchFault: it is not there, or cannot be read.
        """
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

        async def download(login: Headers) -> None:
            await folder.download(self._web, "index.json", url, sha256, login)

        await self._with_login(download)

    async def size(self, binary: Binary) -> int:
        """Return the size of a binary's tarball.

        Raises:
            FetchFault: it is not known.
        """
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`).
        name = f"{binary.package}-{binary.version}-{binary.hash}.spack"
        tag = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
        if len(tag) > _LONGEST_TAG:
            half = _LONGEST_TAG // 2
            tag = tag[:half] + tag[-half:]
        layers = await self._layers(tag)
        # The tarball is the last layer; before it, there may be those of a base image.
        return layers[-1].size

    async def _layers(self, tag: str) -> tuple[Layer, ...]:
        """Return the layers of the image with a tag."""
        url = f"{self.address}/manifests/{tag}"

        async def read(login: Headers) -> bytes:
            return await self._web.read(url, {"Accept": _ACCEPT, **login})

        try:
            manifest = await self._with_login(read)
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {tag}: {fault}") from None
        return read_layers(self._url, manifest)

    async def _with_login(self, request: Callable[[Headers], Awaitable[T]]) -> T:
        """Send a request, and repeat it with a login or a token if the registry
        requires one.

        Args:
            request: sends it with the headers of a login.
        """
        try:
            return await request(self._accepted)
        except LoginFault as fault:
            # The login of the mirror, or else a token for it or for anybody.
            self._accepted = self._login_headers
            wants_basic = fault.challenge[:6].lower() == "basic "
            if not self._login_headers or not wants_basic:
                token = await self._token(fault.challenge)
                self._accepted = {"Authorization": f"Bearer {token}"}
        try:
            return await request(self._accepted)
        except LoginFault:
            refused = "its own token"
            if self._login_headers:
                refused = "the login of its mirror"
            message = f"refuses {refused}, expected one that may read"
            raise FetchFault(self._url, message) from None

    async def _token(self, challenge: str) -> str:
        """Return a token from the server that a challenge names.

        The challenge is `Bearer realm="https://auth.example.org/token",service="…",
        scope="…"`. The realm is the URL of the server.
        """
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

        # Ask for the right that the challenge names, or else to read this image.
        parameters = {}
        service = fields.get("service", "")
        if service:
            parameters["service"] = service
        scope = fields.get("scope", f"repository:{self._name}:pull")
        if scope:
            parameters["scope"] = scope
        separator = "&" if "?" in realm else "?"
        url = f"{realm}{separator}{urlencode(parameters)}"
        data = await self._web.read(url, self._login_headers)

        # Servers call the token by one of two names.
        try:
            answer = msgspec.json.decode(data, type=dict[str, Any])
        except BROKEN as error:
            raise FetchFault(realm, f"gives no token: {message_of(error)}") from None
        token = str(answer.get("token") or answer.get("access_token") or "")
        if not token or not token.isascii() or not token.isprintable():
            raise FetchFault(realm, "gives no token, expected one that may read")
        return token

    def _is_safe(self, realm: str) -> bool:
        """Return whether the server of a realm may be asked for a token, and get the
        login of the mirror.

        Over https, any server may. Over plain HTTP, it has to be on this machine, and
        so does the registry, which has to be used in the same way. If there is a login,
        it has to be the registry itself, because another port is another program.
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
            if not self._login_headers:
                return True
            return (url.hostname, url.port or 80) == self._host_and_port
        # Raised for a host or a port that cannot be read.
        except ValueError:
            return False


def _basic(login: Login) -> Headers:
    """Return the headers with a user and a password (RFC 7617)."""
    credentials = base64.b64encode(f"{login.user}:{login.secret}".encode())
    return {"Authorization": f"Basic {credentials.decode()}"}
