"""Downloads the index of a mirror: layout 3 with its views, layout 2, or an OCI registry.

The layouts are those of Spack 1.0 `url_buildcache.py`. HTTP cannot list a mirror's files, so views
are fetched only by name. In a registry, the index is the only layer of the image with the tag
`index.spack` (Spack 1.0 `binary_distribution.py`, `OCIIndexFetcher`; the OCI Distribution
Specification 1.1; the anonymous token flow of "Token Authentication Specification",
distribution/distribution).
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list, url2pathname

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.errors import faults_of
from spack_cache_db.sources.fetch.addresses import FetchFault, Login, MirrorRequest
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    Headers,
    LoginFault,
    MismatchFault,
    NotThereFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes import (
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    Blob,
    Bytes,
    IndexFault,
    is_sum,
    read_manifest,
)
from spack_cache_db.sources.indexes.mirrors import Binary, files_without_index
from spack_cache_db.sources.strictness import BROKEN, message_of

T = TypeVar("T")

LAYOUT_3 = f"{MANIFESTS}/index.manifest.json"
_SUM_SIZE = 1024
_ADVICE = (
    "`spack buildcache update-index` makes one, --view names a view, "
    "and `spack-cache-db build FOLDER` reads a copy of the mirror without one"
)
_NO_BINARIES = "a folder without spec files has no binaries; `spack buildcache push` adds some"
_TRIES = 3
"""Number of attempts to read a mirror that changes meanwhile."""


class Outcome(NamedTuple):
    """Whether anything changed, and the faults of views or files."""

    changed: bool
    faults: tuple[FetchFault, ...] = ()


async def fetch_mirror(web: Web, folder: StackFolder, request: MirrorRequest) -> Outcome:
    """Download the index of a mirror, and the views of the request.

    Raises:
        FetchFault: it has no index and the request has no view, or its index cannot be fetched.
    """
    url, changed, faults = request.url, False, list[FetchFault]()
    try:
        if request.has_index:
            changed = await _steady(web, partial(_layout_3, web, folder, url, LAYOUT_3))
    except NotThereFault:
        if not request.views and (names := await asyncio.to_thread(_local_names, url)):
            return Outcome(await _copy(web, folder, url, names))
        if not request.views:
            return Outcome(await _steady(web, partial(_layout_2, web, folder, url)))
    for view in request.views:
        name = f"{MANIFESTS}/{view}/index.manifest.json"
        try:
            changed |= await _steady(web, partial(_layout_3, web, folder, url, name))
        except NotThereFault as fault:
            faults.append(FetchFault(url, f"has no view {view}: {name} {fault}"))
        except FetchFault as fault:
            faults.append(fault)
    if request.has_index:
        _keep_other_views(folder, request.views)
    return Outcome(changed, tuple(faults))


def _local_names(url: str) -> list[str]:
    """Return the files that `build` reads from a local folder without a mirror's index."""
    if not url.startswith("file://"):
        return []
    folder = Path(url2pathname(urlsplit(url).path))
    with faults_of(url):
        if not folder.is_dir():
            raise FetchFault(url, "there is no such folder, expected a mirror")
        return files_without_index(folder)


async def _copy(web: Web, folder: StackFolder, url: str, names: list[str]) -> bool:
    """Copy files of a local folder; return whether any of them changed."""
    changed = False
    for name in names:
        at = f"{url}/{quote(name)}"
        answer = await web.read(at, web.limits.max_size)
        changed |= folder.write(name, answer.data or b"", at, answer.tags)
    return changed


def _keep_other_views(folder: StackFolder, views: tuple[str, ...]) -> None:
    """Keep the views of earlier runs that this request does not name."""
    view_names = {f"{MANIFESTS}/{view}/index.manifest.json" for view in views}
    for name in folder.names():
        if not name.startswith(f"{MANIFESTS}/") or name == LAYOUT_3 or name in view_names:
            continue
        try:
            blob = _index_of(name, folder.read(name, MAX_MANIFEST) or b"")
        except FetchFault:
            continue
        folder.keep(name)
        folder.keep(blob.path.as_posix())


async def _layout_3(web: Web, folder: StackFolder, url: str, name: str) -> bool:
    """Download the index of a manifest, then store the manifest; return whether it changed."""
    at = f"{url}/{name}"
    earlier = folder.unchanged(name, at)
    answer = await web.read(at, MAX_MANIFEST, earlier.tags.conditions() if earlier else {})
    data = answer.data if answer.data is not None else folder.read(name, MAX_MANIFEST) or b""
    blob = _index_of(at, data)
    require_size(at, blob.length, web.limits.max_size)
    try:
        path = blob.path.as_posix()
        changed = await folder.download(web, path, f"{url}/{path}", blob.checksum)
    except NotThereFault as fault:
        raise MismatchFault(at, f"names {path}, which {fault}") from None
    if answer.data is None:
        folder.keep(name)
    else:
        folder.write(name, data, at, answer.tags)
    return changed


def _index_of(url: str, data: bytes) -> Blob:
    try:
        blob = read_manifest(data).blob(INDEX)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        raise FetchFault(url, f"names no index, expected one of media type {INDEX}…")
    return blob


async def _layout_2(web: Web, folder: StackFolder, url: str) -> bool:
    """Download an index, and verify its checksum if it has one; return whether it changed."""
    at, sha256 = f"{url}/{LAYOUT_2_INDEX}.hash", None
    try:
        answer = await web.read(at, _SUM_SIZE)
        sha256 = (answer.data or b"").decode("latin-1").strip()
        if not is_sum(sha256):
            raise FetchFault(at, "is not a sha256, expected 64 hexadecimal digits")
    except NotThereFault:
        pass
    try:
        return await folder.download(web, LAYOUT_2_INDEX, f"{url}/{LAYOUT_2_INDEX}", sha256)
    except NotThereFault as fault:
        message = f"has neither {LAYOUT_3} nor {LAYOUT_2_INDEX}, expected a mirror with an index"
        if fault.is_closed:
            raise FetchFault(url, f"{message}, or a login that may read it") from None
        advice = _NO_BINARIES if url.startswith("file:") else _ADVICE
        raise FetchFault(url, f"{message}: {advice}") from None


async def _steady(web: Web, attempt: Callable[[], Awaitable[bool]]) -> bool:
    """Return the result of an attempt, which is repeated if the mirror changes meanwhile."""
    for turn in range(_TRIES - 1):
        try:
            return await attempt()
        except MismatchFault:
            await asyncio.sleep(web.limits.pause * 2**turn)
    return await attempt()


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
_IMAGE_SIZE = 4 * 2**20
"""Bytes of a manifest that registries accept (OCI Distribution Specification 1.1)."""

_TOKEN_SIZE = 2**16


class Layer(Struct, frozen=True):
    """A blob of an image: its checksum (`sha256:…`) and its length in bytes."""

    digest: str
    size: Bytes


class _Image(Struct, frozen=True):
    layers: Annotated[tuple[Layer, ...], Meta(min_length=1)]


class _Token(Struct, frozen=True):
    token: str = ""
    access_token: str = ""


_IMAGE = msgspec.json.Decoder(_Image)
_TOKEN = msgspec.json.Decoder(_Token)


class Reference(NamedTuple):
    """An image: the registry's host, a name within it, a tag."""

    host: str
    name: str
    tag: str

    def place(self, plain_http: bool) -> str:
        """Return the base URL of the image; with `plain_http`, HTTP for a local registry."""
        scheme = "http" if plain_http and is_loopback(f"//{self.host}") else "https"
        return f"{scheme}://{self.host}/v2/{self.name}"


def read_reference(url: str) -> Reference:
    """Return the image of a URL; `FetchFault` if the URL is not one of an image."""
    match = _REFERENCE.fullmatch(url)
    if match is None:
        raise FetchFault(
            url, "does not name an image, expected oci://host/name or oci://host/name:tag"
        )
    return Reference(match["host"], match["name"], match["tag"] or TAG)


def read_layers(url: str, data: bytes) -> tuple[Layer, ...]:
    """Return the layers of an image from its manifest; `FetchFault` if the data is not one."""
    try:
        return _IMAGE.decode(data).layers
    except BROKEN as error:
        raise FetchFault(url, f"is not an image: {message_of(error)}") from None


def _basic(login: Login | None) -> Headers:
    """Return the header of a login (RFC 7617), or no header without a login."""
    if login is None:
        return {}
    credentials = base64.b64encode(f"{login.user}:{login.secret}".encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Registry:
    """One image of a registry, read anonymously or with the login of its mirror."""

    def __init__(self, web: Web, url: str, *, plain_http: bool) -> None:
        """Take the URL of an image, `oci://host/name[:tag]`; `FetchFault` for another URL.

        With `plain_http`, a registry on this machine is used without TLS.
        """
        self._web = web
        self._url = url
        self._image = read_reference(url)
        self._place = self._image.place(plain_http)
        self._login: dict[str, str] = {}
        self._basic = _basic(web.access.login(url))

    async def fetch(self, folder: StackFolder) -> bool:
        """Download the index; return whether it changed.

        Raises:
            FetchFault: there is no readable index.
        """
        layers = await self._layers(self._image.tag)
        if len(layers) != 1:
            raise FetchFault(self._url, f"has {len(layers)} layers, expected one, the index")
        (layer,) = layers
        if not is_sum(layer.digest.removeprefix("sha256:")):
            raise FetchFault(self._url, "has a layer without a sha256, expected one")
        require_size(self._url, layer.size, self._web.limits.max_size)
        url, sha256 = f"{self._place}/blobs/{layer.digest}", layer.digest.removeprefix("sha256:")
        return await self._allowed(
            lambda login: folder.download(self._web, INDEX_NAME, url, sha256, login)
        )

    async def size(self, binary: Binary) -> int:
        """Return the size of a tarball, the last layer of an image; `FetchFault` if unknown."""
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`).
        tag = re.sub(r"[^\w.-]", "_", f"{'-'.join(binary)}.spack", flags=re.ASCII)
        return (await self._layers(tag if len(tag) <= 128 else tag[:64] + tag[-64:]))[-1].size

    async def _layers(self, tag: str) -> tuple[Layer, ...]:
        """Return the layers of an image; `FetchFault` if it is not there."""
        at = f"{self._place}/manifests/{tag}"
        try:
            answer = await self._allowed(
                lambda login: self._web.read(at, _IMAGE_SIZE, {"Accept": _ACCEPT, **login})
            )
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {tag}: {fault}") from None
        return read_layers(self._url, answer.data or b"")

    async def _allowed(self, ask: Callable[[Headers], Awaitable[T]]) -> T:
        """Send a request, and repeat it with a login or a token if the registry requires one."""
        try:
            return await ask(self._login)
        except LoginFault as fault:
            is_basic = self._basic and fault.challenge[:6].lower() == "basic "
            token = {} if is_basic else {"Authorization": f"Bearer {await self._token(fault)}"}
            self._login = {**self._basic, **token}
        try:
            return await ask(self._login)
        except LoginFault:
            message = "refuses the login of its mirror" if self._basic else "refuses its own token"
            raise FetchFault(self._url, f"{message}, expected one that may read") from None

    async def _token(self, fault: LoginFault) -> str:
        scheme, _, text = fault.challenge.partition(" ")
        try:
            challenge = parse_keqv_list(parse_http_list(text))
        except (ValueError, IndexError):
            challenge = {}
        realm = challenge.get("realm", "")
        self._require_realm(scheme, realm)
        scope = challenge.get("scope", f"repository:{self._image.name}:pull")
        query = {"service": challenge.get("service", ""), "scope": scope}
        parameters = urlencode({key: value for key, value in query.items() if value})
        at = f"{realm}{'&' if '?' in realm else '?'}{parameters}"
        answer = await self._web.read(at, _TOKEN_SIZE, self._basic)
        try:
            token = _TOKEN.decode(answer.data or b"")
        except BROKEN as error:
            raise FetchFault(realm, f"gives no token: {message_of(error)}") from None
        value = token.token or token.access_token
        if not value or not value.isascii() or not value.isprintable():
            raise FetchFault(realm, "gives no token, expected one that may read")
        return value

    def _require_realm(self, scheme: str, realm: str) -> None:
        """Raise `FetchFault` unless a realm issues tokens over an encrypted connection.

        Only a local registry that is used over plain HTTP may have a local realm over plain HTTP.
        """
        try:
            at = urlsplit(realm)
            is_local = self._place.startswith("http:") and is_loopback(realm)
            safe = at.scheme == "https" or (at.scheme == "http" and is_local)
            is_known = bool(scheme.lower() == "bearer" and at.hostname and safe)
        except ValueError:
            is_known = False
        if not is_known:
            advice = "expected one that issues tokens over https, or a login in --mirrors"
            raise FetchFault(self._url, f"is in a registry that requires a login, {advice}")
