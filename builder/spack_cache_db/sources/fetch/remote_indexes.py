"""Downloads the index of a mirror, and the sizes of its binaries.

The layouts are those of Spack 1.0 `url_buildcache.py`: layout 3 with its views, and layout 2. HTTP
cannot list a mirror's files, so views are fetched only by name. In a registry, the index is the
only layer of the image with the tag `index.spack` (Spack 1.0 `binary_distribution.py`,
`OCIIndexFetcher`; the OCI Distribution Specification 1.1; the anonymous token flow of "Token
Authentication Specification", distribution/distribution).
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list, url2pathname

import msgspec
from msgspec import Meta, Struct

from spack_cache_db.errors import counted, faults_of
from spack_cache_db.sources import BROKEN, MAX_INDEX, SIZES_FILE, as_json, message_of
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    Headers,
    LoginFault,
    MismatchFault,
    NotThereFault,
    SilenceFault,
    Web,
    require_size,
)
from spack_cache_db.sources.indexes import (
    INDEX,
    LAYOUT_2_INDEX,
    MANIFESTS,
    MAX_MANIFEST,
    TARBALL,
    Blob,
    Bytes,
    IndexFault,
    is_sum,
    read_manifest,
    read_sizes,
)
from spack_cache_db.sources.indexes.mirrors import Binary, files_without_index, listed_binaries

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


async def fetch_mirror(web: Web, folder: StackFolder, mirror: Mirror) -> None:
    """Download the index of a mirror, and its views; faults of views go to `folder.faults`.

    Raises:
        FetchFault: it has no index and no view was given, or its index cannot be fetched.
    """
    try:
        if mirror.has_index:
            await _steady(web, partial(_layout_3, web, folder, mirror.url, LAYOUT_3))
    except NotThereFault:
        if not mirror.views:
            if names := await asyncio.to_thread(_local_names, mirror.url):
                await _copy(web, folder, mirror.url, names)
            else:
                await _steady(web, partial(_layout_2, web, folder, mirror.url))
            return
    manifests = {view: f"{MANIFESTS}/{view}/index.manifest.json" for view in mirror.views}
    for view, name in manifests.items():
        try:
            await _steady(web, partial(_layout_3, web, folder, mirror.url, name))
        except NotThereFault as fault:
            message = f"has no view {view}: {name} {fault}"
            folder.faults.append(FetchFault(mirror.url, message))
        except FetchFault as fault:
            folder.faults.append(fault)
    # Views of earlier runs stay.
    for name in folder.files.keys() - manifests.values() if mirror.has_index else ():
        if name.startswith(f"{MANIFESTS}/") and name != LAYOUT_3:
            try:
                blob = _index_of(name, folder.stored(name, MAX_MANIFEST))
            except FetchFault:
                continue
            folder.keep(name)
            folder.keep(blob.path.as_posix())


def _local_names(url: str) -> list[str]:
    """Return the files that `build` reads from a local folder without a mirror's index."""
    if not url.startswith("file://"):
        return []
    folder = Path(url2pathname(urlsplit(url).path))
    with faults_of(url):
        if not folder.is_dir():
            raise FetchFault(url, "there is no such folder, expected a mirror")
        return files_without_index(folder)


async def _copy(web: Web, folder: StackFolder, url: str, names: list[str]) -> None:
    for name in names:
        at = f"{url}/{quote(name)}"
        body = await web.read(at, web.limits.max_size)
        folder.write(name, body.data or b"", at, body.conditions)


async def _layout_3(web: Web, folder: StackFolder, url: str, name: str) -> None:
    """Download the index of a manifest, then store the manifest."""
    at = f"{url}/{name}"
    body = await folder.read(web, name, at, MAX_MANIFEST)
    blob = _index_of(at, body.data or b"")
    require_size(at, blob.length, web.limits.max_size)
    path = blob.path.as_posix()
    try:
        await folder.download(web, path, f"{url}/{path}", blob.checksum)
    except NotThereFault as fault:
        raise MismatchFault(at, f"names {path}, which {fault}") from None
    folder.write(name, body.data or b"", at, body.conditions)


def _index_of(url: str, manifest: bytes) -> Blob:
    return _blob_of(url, manifest, INDEX, f"index, expected one of media type {INDEX}…")


def _blob_of(url: str, manifest: bytes, media_type: str, expected: str) -> Blob:
    try:
        blob = read_manifest(manifest).blob(media_type)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        raise FetchFault(url, f"names no {expected}")
    return blob


async def _layout_2(web: Web, folder: StackFolder, url: str) -> None:
    """Download an index, and verify its checksum if it has one."""
    at, sha256 = f"{url}/{LAYOUT_2_INDEX}.hash", None
    try:
        sha256 = ((await web.read(at, _SUM_SIZE)).data or b"").decode("latin-1").strip()
        if not is_sum(sha256):
            raise FetchFault(at, "is not a sha256, expected 64 hexadecimal digits")
    except NotThereFault:
        pass
    try:
        await folder.download(web, LAYOUT_2_INDEX, f"{url}/{LAYOUT_2_INDEX}", sha256)
    except NotThereFault as fault:
        message = f"has neither {LAYOUT_3} nor {LAYOUT_2_INDEX}, expected a mirror with an index"
        if fault.status == 403:
            raise FetchFault(url, f"{message}, or a login that may read it") from None
        advice = _NO_BINARIES if url.startswith("file:") else _ADVICE
        raise FetchFault(url, f"{message}: {advice}") from None


async def _steady(web: Web, attempt: Callable[[], Awaitable[None]]) -> None:
    """Repeat an attempt if the mirror changes meanwhile."""
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


def read_layers(url: str, data: bytes) -> tuple[Layer, ...]:
    """Return the layers of an image from its manifest; `FetchFault` if the data is not one."""
    try:
        return msgspec.json.decode(data, type=_Image).layers
    except BROKEN as error:
        raise FetchFault(url, f"is not an image: {message_of(error)}") from None


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
        image = _REFERENCE.fullmatch(url)
        if image is None:
            expected = "expected oci://host/name or oci://host/name:tag"
            raise FetchFault(url, f"does not name an image, {expected}")
        host, self._name, self._tag = image["host"], image["name"], image["tag"] or TAG
        scheme = "http" if plain_http and is_loopback(f"//{host}") else "https"
        self.address = f"{scheme}://{host}/v2/{self._name}"
        self._web = web
        self._url = url
        self._basic: Headers = {}
        self._login: Headers = {}
        if login := web.access.login(url):
            # RFC 7617.
            credentials = base64.b64encode(f"{login.user}:{login.secret}".encode()).decode()
            self._basic = {"Authorization": f"Basic {credentials}"}

    async def fetch(self, folder: StackFolder) -> None:
        """Download the index; `FetchFault` if it is not there or cannot be read."""
        layers = await self._layers(self._tag)
        if len(layers) != 1:
            raise FetchFault(self._url, f"has {len(layers)} layers, expected one, the index")
        sha256 = layers[0].digest.removeprefix("sha256:")
        if not is_sum(sha256):
            raise FetchFault(self._url, "has a layer without a sha256, expected one")
        require_size(self._url, layers[0].size, self._web.limits.max_size)
        url = f"{self.address}/blobs/{layers[0].digest}"
        await self._allowed(
            lambda login: folder.download(self._web, INDEX_NAME, url, sha256, login)
        )

    async def size(self, binary: Binary) -> int:
        """Return the size of a tarball, the last layer of an image; `FetchFault` if unknown."""
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`).
        tag = re.sub(r"[^\w.-]", "_", f"{'-'.join(binary)}.spack", flags=re.ASCII)
        return (await self._layers(tag if len(tag) <= 128 else tag[:64] + tag[-64:]))[-1].size

    async def _layers(self, tag: str) -> tuple[Layer, ...]:
        at = f"{self.address}/manifests/{tag}"
        try:
            body = await self._allowed(
                lambda login: self._web.read(at, _IMAGE_SIZE, {"Accept": _ACCEPT, **login})
            )
        except NotThereFault as fault:
            raise FetchFault(self._url, f"has no tag {tag}: {fault}") from None
        return read_layers(self._url, body.data or b"")

    async def _allowed(self, ask: Callable[[Headers], Awaitable[T]]) -> T:
        """Send a request, and repeat it with a login or a token if the registry requires one."""
        try:
            return await ask(self._login)
        except LoginFault as fault:
            self._login = self._basic
            if not self._basic or fault.challenge[:6].lower() != "basic ":
                self._login = {"Authorization": f"Bearer {await self._token(fault.challenge)}"}
        try:
            return await ask(self._login)
        except LoginFault:
            message = "refuses the login of its mirror" if self._basic else "refuses its own token"
            raise FetchFault(self._url, f"{message}, expected one that may read") from None

    async def _token(self, challenge: str) -> str:
        """Return a token from the server that a challenge names."""
        scheme, _, text = challenge.partition(" ")
        try:
            fields = parse_keqv_list(parse_http_list(text))
        except (ValueError, IndexError):
            fields = {}
        realm, scope = fields.get("realm", ""), f"repository:{self._name}:pull"
        if scheme.lower() != "bearer" or not self._is_safe(realm):
            advice = "expected one that issues tokens over https, or a login in --mirrors"
            raise FetchFault(self._url, f"is in a registry that requires a login, {advice}")
        query = {"service": fields.get("service", ""), "scope": fields.get("scope", scope)}
        parameters = urlencode({key: value for key, value in query.items() if value})
        at = f"{realm}{'&' if '?' in realm else '?'}{parameters}"
        body = await self._web.read(at, _TOKEN_SIZE, self._basic)
        try:
            token = msgspec.json.decode(body.data or b"", type=_Token)
        except BROKEN as error:
            raise FetchFault(realm, f"gives no token: {message_of(error)}") from None
        value = token.token or token.access_token
        if not value or not value.isascii() or not value.isprintable():
            raise FetchFault(realm, "gives no token, expected one that may read")
        return value

    def _is_safe(self, realm: str) -> bool:
        """Return whether a realm may get the login.

        Only a local registry that is used over plain HTTP may have a local realm over plain HTTP.
        """
        try:
            url = urlsplit(realm)
            is_local = self.address.startswith("http:") and is_loopback(realm)
        except ValueError:
            return False
        return bool(url.hostname) and (url.scheme == "https" or (url.scheme == "http" and is_local))


async def manifest_size(web: Web, url: str, binary: Binary) -> int:
    """Return the size of a tarball in a mirror of layout 3; `FetchFault` if it is not known."""
    # Names of files are those of Spack 1.2 (`filesystem.py`, `polite_filename`).
    name = re.sub(r"[^A-Za-z0-9_+.-]", "_", "-".join(binary))
    name = name if url.startswith("s3:") else quote(name)
    at = f"{url}/v3/manifests/spec/{binary[0]}/{name}.spec.manifest.json"
    manifest = (await web.read(at, MAX_MANIFEST)).data or b""
    return _blob_of(at, manifest, TARBALL, "tarball, expected one").length


async def fetch_sizes(
    web: Web, folder: StackFolder, url: str, size_of: Callable[[Binary], Awaitable[int]]
) -> list[str]:
    """Add the sizes of new binaries to the recorded sizes, and drop those of removed binaries.

    Returns:
        A note if some are unknown.

    Raises:
        SilenceFault: the mirror stopped responding; the sizes so far are stored.
    """
    if LAYOUT_2_INDEX in folder.files:
        return [f"{url}: a mirror of layout 2 does not record sizes"]
    binaries = await asyncio.to_thread(listed_binaries, folder.path)
    try:
        earlier = read_sizes(folder.stored(SIZES_FILE, MAX_INDEX) or b"{}")
    except IndexFault:
        earlier = {}
    sizes = {binary[-1]: earlier[binary[-1]] for binary in binaries if binary[-1] in earlier}
    unknown: list[FetchFault] = []

    async def add(binary: Binary) -> None:
        try:
            sizes[binary[-1]] = await size_of(binary)
        except SilenceFault:
            raise
        except FetchFault as fault:
            unknown.append(fault)

    try:
        await web.in_parallel((binary for binary in binaries if binary[-1] not in sizes), add)
    finally:
        folder.write(SIZES_FILE, as_json(sizes).encode(), f"{url}/{SIZES_FILE}")
    count = counted(len(unknown), "binary", "binaries")
    return [f"{url}: the size of {count} is unknown: {fault}" for fault in unknown[:1]]
