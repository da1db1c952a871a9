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
    return bool(
        re.fullmatch(r"localhost|127(\.\d+){3}|::1", urlsplit(url).hostname or "")
    )


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
        host, self._name, self._tag = (
            image["host"],
            image["name"],
            image["tag"] or "index.spack",
        )
        scheme = "http" if plain_http and is_loopback(f"//{host}") else "https"
        self.address = f"{scheme}://{host}/v2/{self._name}"
        place = urlsplit(f"//{host}")
        self._place = place.hostname, place.port or 80
        self._web = web
        self._url = url
        self._basic: Headers = {}
        self._login: Headers = {}
        if login := web.mirror(url).login:
            # RFC 7617.
            credentials = base64.b64encode(
                f"{login.user}:{login.secret}".encode()
            ).decode()
            self._basic = {"Authorization": f"Basic {credentials}"}

    async def fetch(self, folder: StackFolder) -> None:
        """Download the index; `FetchFault` if it is not there or cannot be read."""
        layers = await self._layers(self._tag)
        if len(layers) != 1:
            raise FetchFault(
                self._url, f"has {len(layers)} layers, expected one, the index"
            )
        sha256 = layers[0].digest.removeprefix("sha256:")
        if not is_sum(sha256):
            raise FetchFault(self._url, "has a layer without a sha256, expected one")
        require_size(self._url, layers[0].size, self._web.limits.max_size)
        url = f"{self.address}/blobs/{layers[0].digest}"
        await self._allowed(
            lambda login: folder.download(self._web, "index.json", url, sha256, login)
        )

    async def size(self, binary: Binary) -> int:
        """Return the size of a tarball, the last layer of an image; `FetchFault` if
        unknown.
        """
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`).
        tag = re.sub(r"[^\w.-]", "_", f"{'-'.join(binary)}.spack", flags=re.ASCII)
        return (await self._layers(tag if len(tag) <= 128 else tag[:64] + tag[-64:]))[
            -1
        ].size

    async def _layers(self, tag: str) -> tuple[Layer, ...]:
        at = f"{self.address}/manifests/{tag}"
        try:
            image = await self._allowed(
                lambda login: self._web.read(at, {"Accept": _ACCEPT, **login})
            )
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {tag}: {fault}") from None
        return read_layers(self._url, image)

    async def _allowed(self, ask: Callable[[Headers], Awaitable[T]]) -> T:
        """Send a request, and repeat it with a login or a token if the registry
        requires one.
        """
        try:
            return await ask(self._login)
        except LoginFault as fault:
            self._login = self._basic
            if not self._basic or fault.challenge[:6].lower() != "basic ":
                self._login = {
                    "Authorization": f"Bearer {await self._token(fault.challenge)}"
                }
        try:
            return await ask(self._login)
        except LoginFault:
            message = (
                "refuses the login of its mirror"
                if self._basic
                else "refuses its own token"
            )
            raise FetchFault(
                self._url, f"{message}, expected one that may read"
            ) from None

    async def _token(self, challenge: str) -> str:
        """Return a token from the server that a challenge names."""
        scheme, _, text = challenge.partition(" ")
        try:
            fields = parse_keqv_list(parse_http_list(text))
        except (ValueError, IndexError):
            fields = {}
        realm, scope = fields.get("realm", ""), f"repository:{self._name}:pull"
        if scheme.lower() != "bearer" or not self._is_safe(realm):
            advice = (
                "expected one that issues tokens over https, or a login in --mirrors"
            )
            raise FetchFault(
                self._url, f"is in a registry that requires a login, {advice}"
            )
        query = {
            "service": fields.get("service", ""),
            "scope": fields.get("scope", scope),
        }
        parameters = urlencode({key: value for key, value in query.items() if value})
        at = f"{realm}{'&' if '?' in realm else '?'}{parameters}"
        answer = await self._web.read(at, self._basic)
        try:
            answers = msgspec.json.decode(answer, type=dict[str, Any])
        except BROKEN as error:
            raise FetchFault(realm, f"gives no token: {message_of(error)}") from None
        token = str(answers.get("token") or answers.get("access_token") or "")
        if not token or not token.isascii() or not token.isprintable():
            raise FetchFault(realm, "gives no token, expected one that may read")
        return token

    def _is_safe(self, realm: str) -> bool:
        """Return whether a realm may get the login.

        Only a local registry that is used over plain HTTP may have a local realm over
        plain HTTP.
        Another port is another program, and another origin: it gets no login.
        """
        try:
            url = urlsplit(realm)
            is_local = self.address.startswith("http:") and is_loopback(realm)
            if is_local and url.scheme == "http" and self._basic:
                is_local = (url.hostname, url.port or 80) == self._place
        except ValueError:
            return False
        return bool(url.hostname) and (
            url.scheme == "https" or (url.scheme == "http" and is_local)
        )
