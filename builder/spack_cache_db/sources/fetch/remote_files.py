"""Downloads indexes of mirrors, sizes of binaries, and package data.

Layouts 2 and 3 are those of Spack 1.0 `url_buildcache.py`. In a registry, the index is the only
layer of the image with the tag `index.spack` (`binary_distribution.py`, `OCIIndexFetcher`; OCI
Distribution Specification 1.1; "Token Authentication Specification", distribution/distribution).
"""

from __future__ import annotations

import asyncio
import base64
import io
import re
import tarfile
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import parse_http_list, parse_keqv_list, url2pathname

import msgspec
import zstandard
from msgspec import Meta, Struct

from spack_cache_db.errors import Fault, InputError, counted, faults_of
from spack_cache_db.sources import (
    BROKEN,
    MAX_INDEX,
    SIZES_FILE,
    File,
    RawFile,
    as_json,
    is_archive,
    message_of,
)
from spack_cache_db.sources.archives import read_archive
from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import (
    SMALL,
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
    is_clear_signed,
    is_sum,
    read_manifest,
    read_sizes,
    read_spec_file,
)
from spack_cache_db.sources.indexes.mirrors import (
    MOST_SIGNATURES,
    Binary,
    agreed,
    files_without_index,
    first_entries,
    listed_binaries,
)
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.spack.lexer import is_package
from spack_cache_db.spack.nodes import Node

T = TypeVar("T")

LAYOUT_3 = f"{MANIFESTS}/index.manifest.json"
_ADVICE = (
    "`spack buildcache update-index` makes one, --view names a view, "
    "and `spack-cache-db build FOLDER` reads a copy of the mirror without one"
)
_NO_BINARIES = "a folder without spec files has no binaries; `spack buildcache push` adds some"


async def fetch_mirror(web: Web, folder: StackFolder, mirror: Mirror) -> None:
    """Download the index of a mirror, and its views; faults of views go to `folder.faults`."""
    try:
        if mirror.has_index:
            await _steady(web, partial(_layout_3, web, folder, mirror.url, LAYOUT_3))
    except NotThereFault:
        if not mirror.views:
            names = await asyncio.to_thread(_local_names, mirror.url)
            for at, name in ((f"{mirror.url}/{quote(name)}", name) for name in names):
                folder.write(name, await web.read(at, limit=web.limits.max_size), at)
            if not names:
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
    for name in folder.files if mirror.has_index else ():
        if name.startswith(f"{MANIFESTS}/") and name not in {LAYOUT_3, *folder.kept}:
            with suppress(FetchFault):
                blob = _blob_of(name, folder.stored(name, MAX_MANIFEST), INDEX)
                folder.kept |= {name, blob.path.as_posix()}


def _local_names(url: str) -> list[str]:
    """Return the files that `build` reads from a local folder without a mirror's index."""
    if not url.startswith("file://"):
        return []
    folder = Path(url2pathname(urlsplit(url).path))
    with faults_of(url):
        if not folder.is_dir():
            raise FetchFault(url, "there is no such folder, expected a mirror")
        return files_without_index(folder)


async def _layout_3(web: Web, folder: StackFolder, url: str, name: str) -> None:
    """Download the index of a manifest, then store the manifest."""
    at = f"{url}/{name}"
    manifest = await web.read(at)
    blob = _blob_of(at, manifest, INDEX)
    require_size(at, blob.content_length, web.limits.max_size)
    path = blob.path.as_posix()
    try:
        await folder.download(web, path, f"{url}/{path}", blob.checksum)
    except NotThereFault as fault:
        raise MismatchFault(at, f"names {path}, which {fault}") from None
    folder.write(name, manifest, at)


def _blob_of(url: str, manifest: bytes, media_type: str) -> Blob:
    """Return the blob of this type that the manifest at `url` names, or raise `FetchFault`."""
    try:
        blob = read_manifest(manifest).blob(media_type)
    except IndexFault as fault:
        raise FetchFault(url, str(fault)) from None
    if blob is None:
        kind = "index" if media_type == INDEX else "tarball"
        raise FetchFault(url, f"names no {kind}, expected one of media type {media_type}…")
    return blob


async def _layout_2(web: Web, folder: StackFolder, url: str) -> None:
    """Download an index, and verify its checksum if it has one."""
    at, sha256 = f"{url}/{LAYOUT_2_INDEX}.hash", None
    try:
        sha256 = (await web.read(at)).decode("latin-1").strip()
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
    """Repeat an attempt, at most twice, if the mirror changes meanwhile."""
    for factor in (1, 2):
        try:
            return await attempt()
        except MismatchFault:
            await asyncio.sleep(web.limits.pause * factor)
    return await attempt()


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
    """Return the layers of an image from its manifest; `FetchFault` if the data is not one."""
    try:
        return msgspec.json.decode(data, type=_Image).layers
    except BROKEN as error:
        raise FetchFault(url, f"is not an image: {message_of(error)}") from None


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    return bool(re.fullmatch(r"localhost|127(\.\d+){3}|::1", urlsplit(url).hostname or ""))


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
        host, self._name, self._tag = image["host"], image["name"], image["tag"] or "index.spack"
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
            lambda login: folder.download(self._web, "index.json", url, sha256, login)
        )

    async def size(self, binary: Binary) -> int:
        """Return the size of a tarball, the last layer of an image; `FetchFault` if unknown."""
        # Tags are those of Spack 1.2 (`binary_distribution.py`, `_oci_default_tag`).
        tag = re.sub(r"[^\w.-]", "_", f"{'-'.join(binary)}.spack", flags=re.ASCII)
        return (await self._layers(tag if len(tag) <= 128 else tag[:64] + tag[-64:]))[-1].size

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

        Only a local registry that is used over plain HTTP may have a local realm over plain HTTP.
        Another port is another program, and another origin: it gets no login.
        """
        try:
            url = urlsplit(realm)
            is_local = self.address.startswith("http:") and is_loopback(realm)
            if is_local and url.scheme == "http" and self._basic:
                is_local = (url.hostname, url.port or 80) == self._place
        except ValueError:
            return False
        return bool(url.hostname) and (url.scheme == "https" or (url.scheme == "http" and is_local))


async def manifest_size(web: Web, url: str, signatures: dict[str, bool], binary: Binary) -> int:
    """Return the size of a tarball in a mirror of layout 3; `FetchFault` if it is not known.

    Whether the manifest is signed is added to `signatures`, by the hash of the binary.
    """
    at = _spec_manifest(url, binary)
    manifest = await web.read(at)
    size = _blob_of(at, manifest, TARBALL).content_length
    signatures[binary[-1]] = is_clear_signed(manifest)
    return size


def _spec_manifest(url: str, binary: Binary) -> str:
    """Return the URL of the manifest of a binary in a mirror of layout 3."""
    # Names of files are those of Spack 1.2 (`filesystem.py`, `polite_filename`).
    name = re.sub(r"[^A-Za-z0-9_+.-]", "_", "-".join(binary))
    name = name if url.startswith("s3:") else quote(name)
    return f"{url}/v3/manifests/spec/{binary[0]}/{name}.spec.manifest.json"


SIGNATURES_READ = 3
"""Binaries of a mirror elsewhere whose signatures are looked for: the first by hash."""


async def fetch_signatures(
    web: Web, folder: StackFolder, mirror: Mirror, known: Mapping[str, bool]
) -> None:
    """Set `folder.signed`: whether the binaries of a mirror are signed.

    One or two small files are read for each of a few binaries, or for as many as `build` reads if
    the mirror is on this machine. A file that cannot be read shows nothing; it is not a fault of
    the mirror. `known` has what this run has already seen, by hash.
    """
    count = MOST_SIGNATURES if mirror.url.startswith("file:") else SIGNATURES_READ
    entries = await asyncio.to_thread(first_entries, folder.path, count)
    is_layout_2 = LAYOUT_2_INDEX in folder.files
    signatures = []
    for entry in entries:
        dag_hash = entry.node.hash
        is_signed = _is_signed_2 if is_layout_2 else _is_signed_3
        if dag_hash in known:
            signatures.append(known[dag_hash])
            continue
        try:
            signatures.append(await is_signed(web, mirror.url, entry.node))
        except (NotThereFault, IndexFault):
            continue
        except (FetchFault, SilenceFault):
            break  # The server does not answer, or requires a login.
    folder.signed = agreed(signatures)


async def _is_signed_3(web: Web, url: str, node: Node) -> bool:
    """Return whether a binary of layout 3 is signed; a fault if it has no manifest."""
    data = await web.read(_spec_manifest(url, (node.name, node.version, node.hash)))
    # Some servers return a page of HTML for a missing file.
    read_manifest(data)
    return is_clear_signed(data)


async def _is_signed_2(web: Web, url: str, node: Node) -> bool:
    """Return whether a binary of layout 2 is signed; a fault if it has no spec file."""
    parts = (
        f"{node.platform}-{node.os}-{node.target}",
        (node.compiler or "").replace("@", "-"),
        f"{node.name}-{node.version}-{node.hash}",
    )
    name = "-".join(parts)
    name = name if url.startswith("s3:") else quote(name)
    at = f"{url}/build_cache/{name}.spec.json"
    try:
        data = await web.read(f"{at}.sig")
    except NotThereFault:
        data = await web.read(at)
    read_spec_file(data)
    return is_clear_signed(data)


async def fetch_sizes(
    web: Web, folder: StackFolder, url: str, size_of: Callable[[Binary], Awaitable[int]]
) -> list[str]:
    """Add the sizes of new binaries, and drop those of removed ones; return a note on others.

    If the mirror stops responding, the sizes so far are stored.
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
        except FetchFault as fault:
            unknown.append(fault)

    try:
        await web.in_parallel((binary for binary in binaries if binary[-1] not in sizes), add)
    finally:
        folder.write(SIZES_FILE, as_json(sizes).encode(), f"{url}/{SIZES_FILE}")
    count = counted(len(unknown), "binary", "binaries")
    return [f"{url}: the size of {count} is unknown: {fault}" for fault in unknown[:1]]


_OF_THE_SITE = re.compile(r"(?:.*/)?(data/packages(?:/[^/]+)?\.json)")
_LARGEST = 2**28
"""Bytes of an archive or a list; the site's archive has 4 MB, the list 5 MB."""


async def fetch_packages(
    web: Web, folder: StackFolder, url: str, names: Sequence[str] | None
) -> None:
    """Download an archive or a list, recognized by its suffix, or files of a packages site.

    Packages that the site lacks are skipped, because they may be private; faults of others go to
    `folder.faults`.
    """
    if url.startswith("oci:"):
        raise FetchFault(url, "is an image, expected the address of package data")
    if is_archive(File(url, url)):
        await _download(web, folder, "packages.tar.zst", url, _site_files)
    elif url.endswith(".json"):
        await _download(web, folder, "packages.json", url, _package_data)
    elif names is None:
        advice = "for a packages site, name a database: --packages-of FILE"
        raise FetchFault(url, f"is neither an archive nor a list; {advice}")
    else:
        await _download_each(web, folder, url, names)


async def _download_each(web: Web, folder: StackFolder, url: str, names: Sequence[str]) -> None:
    count = 0

    async def add(name: str) -> None:
        nonlocal count
        path = f"data/packages/{name}.json"
        try:
            await _download(web, folder, path, f"{url}/{path}", _package_data, SMALL)
            count += 1
        except FetchFault as fault:
            folder.faults += [] if isinstance(fault, NotThereFault) else [fault]

    await web.in_parallel(filter(is_package, names), add)
    if not count and not folder.faults:
        raise FetchFault(url, "has none of these packages, expected data/packages/<name>.json")


async def _download(
    web: Web,
    folder: StackFolder,
    name: str,
    url: str,
    convert: Callable[[str, bytes], bytes],
    largest: int = _LARGEST,
) -> None:
    """Download and convert one file; `FetchFault` if it is not package data."""
    earlier, stream = await asyncio.to_thread(folder.unchanged, name, url), io.BytesIO()
    limit = min(largest, web.limits.max_size)
    conditions = await web.save(url, stream, limit, earlier.conditions if earlier else {})
    folder.kept.add(name)
    if conditions is not None:
        data = await asyncio.to_thread(convert, url, stream.getvalue())
        folder.write(name, data, url, conditions)


def _package_data(url: str, data: bytes) -> bytes:
    """Return the data unchanged; `MismatchFault` if it is not package data that `build` reads."""
    if not is_package_data(data):
        raise MismatchFault(url, "is not package data, expected that of Spack or its packages site")
    try:
        read_facts(RawFile(url, url, data))
    except InputError as error:
        raise MismatchFault(url, error.faults[0].message) from None
    return data


def _site_files(url: str, data: bytes) -> bytes:
    """Return an archive with only the package data of an archive, which may be a repository."""
    packed, size = io.BytesIO(), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|") as archive,
    ):
        path = Path(folder, Path(urlsplit(url).path).name)
        path.write_bytes(data)
        for file in read_archive(str(path), MAX_INDEX):
            if isinstance(file, Fault):
                raise MismatchFault(url, file.message)
            size += len(file.data)
            require_size(url, size, _LARGEST)
            if inner := _OF_THE_SITE.fullmatch(file.path):
                member = tarfile.TarInfo(inner[1])
                member.size = len(file.data)
                archive.addfile(member, io.BytesIO(file.data))
        if not archive.offset:
            raise MismatchFault(url, "has no package data, expected data/packages/<name>.json")
    return packed.getvalue()
