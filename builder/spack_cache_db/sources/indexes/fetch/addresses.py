"""URLs of mirrors and of manifests of releases → mirrors, each with a folder of its own.

A manifest of releases is `{release: [{"label": stack, "url": index}]}` (spack-infrastructure
`images/cache-indexer/cache_indexer.py`, which writes that of the public cache). Its URLs are those
of indexes or their blobs, in a store's own scheme.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from spack_cache_db.errors import Fault
from spack_cache_db.records import ROOT, is_name
from spack_cache_db.sources.strictness import BROKEN, quoted, read_strictly, said

_USER = re.compile(r"(?<=://)[^/?#]*@")


def shown(url: str) -> str:
    """Return a URL as it may be printed and kept: without a user, a password or a query."""
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


class FetchFault(Exception):
    """A URL that did not give what was expected; the text says what it gave, and what to do."""

    def __init__(self, url: str, message: str) -> None:
        super().__init__(message)
        self.url = url

    def fault(self) -> Fault:
        """Return the same as a line for the user."""
        return Fault(shown(self.url), 0, str(self))


SCHEMES = ("https", "http", "oci", "s3", "file")

LONGEST_NAME = 200
"""Bytes of a release's or stack's name: file systems take 255."""

_WITHIN = re.compile(
    r"(?:/build_cache(?:/index\.json)?|/v3/manifests/index(?:/[^/]+)?/index\.manifest\.json"
    r"|/blobs/sha256/[0-9a-f]{2}/[0-9a-f]{64})?/*\Z"
)
"""What leads from a mirror to its index: manifests of releases name indexes, not mirrors."""

_TAG = re.compile(r"(?<=/)([^/:]+):[^/]*\Z")


class Map(NamedTuple):
    """An address that is another one here, with all that lies below it."""

    source: str
    to: str


class MirrorRequest(NamedTuple):
    """One mirror, and the names of the folder that its index goes into.

    `manifest` is the URL of the manifest of releases that names it, if one does. Package data is
    fetched like a mirror, and is none.
    """

    url: str
    release: str
    stack: str
    views: tuple[str, ...] = ()
    manifest: str | None = None
    is_package_data: bool = False


def require_name(url: str, kind: str, name: str) -> str:
    """Return a name that can be a folder's; `FetchFault` for one that leads elsewhere.

    Args:
        url: where the name was read.
        kind: `release`, `stack` or `view`, for the message.
        name: what came from the network or the command line.
    """
    fits = is_name(name) and len(name.encode(errors="replace")) <= LONGEST_NAME
    if name.startswith(".") or "/" in name or "\\" in name or not fits:
        raise FetchFault(
            url, f"{quoted(name)} is no name of a {kind}, expected one such as develop"
        )
    return name


def mirror_url(text: str, maps: Sequence[Map] = ()) -> str:
    """Return a mirror's URL from that of the mirror or of its index, mapped.

    Raises:
        FetchFault: it is none that can be fetched.
    """
    url = _mapped(text, maps)
    try:
        parts = urlsplit(url)
        # `file:///path` is a path of this machine, which has no name there.
        host, _ = "localhost" if url.startswith("file:///") else parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise FetchFault(text, "is no URL, expected one such as https://host/mirror")
    # A bucket has neither a user nor a port, and a file of this machine no host.
    is_other = parts.netloc != {"s3": host, "file": ""}.get(parts.scheme, parts.netloc)
    if parts.scheme not in SCHEMES or is_other:
        # Of the store, not of what lies in it: one line for the many stacks of a manifest.
        store = f"{parts.scheme}://{host}"
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise FetchFault(store, f"cannot be asked, expected {known}; --map {store}=https://…")
    if parts.query or parts.fragment:
        raise FetchFault(text, "has a query or a fragment, expected a mirror's address without")
    if parts.scheme == "oci":
        return url.rstrip("/")
    return _WITHIN.sub("", url)


def mirror_request(
    url: str, release: str | None, stack: str | None, views: tuple[str, ...] = ()
) -> MirrorRequest:
    """Return what a mirror's URL asks for; names that are not given come from the URL.

    The release is then the last part of the path, or the host where there is none, and the stack
    is `root`.
    """
    if release is None:
        parts = urlsplit(_TAG.sub(r"\1", url) if url.startswith("oci:") else url)
        release = unquote(parts.path.rpartition("/")[2]) or str(parts.hostname)
    for view in views:
        require_name(url, "view", view)
    return MirrorRequest(
        url,
        require_name(url, "release", release),
        require_name(url, "stack", ROOT if stack is None else stack),
        views,
    )


def _mapped(url: str, maps: Sequence[Map]) -> str:
    fitting = [each for each in maps if url == each.source or url.startswith(each.source + "/")]
    if not fitting:
        return url
    longest = max(fitting, key=lambda each: len(each.source))
    return longest.to + url[len(longest.source) :]


def parse_map(text: str) -> Map:
    """Return the map that `FROM=TO` says; `ValueError` if it says none."""
    match = re.fullmatch(r"([a-z][a-z0-9+.-]*://[^=\s]+)=((?:https?|oci|s3|file)://\S+)", text)
    if match is None:
        raise ValueError(f"{text!r} maps nothing, expected s3://bucket=https://host/mirrors")
    return Map(match[1].rstrip("/"), match[2].rstrip("/"))


class _Stack(Struct, frozen=True):
    label: str
    url: str


_MANIFEST = msgspec.json.Decoder(dict[str, tuple[_Stack, ...]])


class NamedMirrors(NamedTuple):
    """What a manifest names: mirrors, every (release, stack), and what is wrong with the others."""

    mirrors: tuple[MirrorRequest, ...]
    stacks: frozenset[tuple[str, str]]
    faults: tuple[FetchFault, ...]


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Sequence[Map] = (),
    release: str | None = None,
    stack: str | None = None,
    most: int = 5000,
) -> NamedMirrors:
    """Return what a manifest names.

    Args:
        url: where it is.
        data: its bytes.
        maps: what its addresses are here.
        release: the only release whose mirrors are wanted; all without.
        stack: the only stack whose mirrors are wanted; all without.
        most: mirrors that it may name.

    Raises:
        FetchFault: it is none, or names nothing that is wanted.
    """
    try:
        manifest = _MANIFEST.decode(data)
        read_strictly(data)
    except BROKEN as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        raise FetchFault(url, f"is no manifest of releases: {said(error)}; {expected}") from None
    count = sum(map(len, manifest.values()))
    if count > most:
        raise FetchFault(url, f"names {count:,} mirrors, expected at most {most:,} (--max-mirrors)")
    stacks = {(name, each.label) for name, listed in manifest.items() for each in listed}
    mirrors: list[MirrorRequest] = []
    faults: list[FetchFault] = []
    for name, listed in manifest.items():
        for each in listed:
            if release in (None, name) and stack in (None, each.label):
                try:
                    mirrors.append(_mirror(url, name, each, maps))
                except FetchFault as fault:
                    faults.append(fault)
    if not mirrors and not faults:
        asked = "/".join(each or "*" for each in (release, stack))
        raise FetchFault(url, f"names no stack {asked}, it names {_shortened(stacks)}")
    return NamedMirrors(tuple(mirrors), frozenset(stacks), tuple(faults))


def _mirror(manifest: str, release: str, stack: _Stack, maps: Sequence[Map]) -> MirrorRequest:
    require_name(manifest, "release", release)
    require_name(manifest, "stack", stack.label)
    if stack.url.startswith("file:") and not manifest.startswith("file:"):
        # Whoever writes the manifest would choose which files of this machine are read.
        raise FetchFault(stack.url, f"is named by {shown(manifest)}, expected no file from there")
    address = mirror_url(stack.url, maps)
    return MirrorRequest(address, release, stack.label, manifest=manifest)


def _shortened(stacks: set[tuple[str, str]]) -> str:
    """Return the names of releases, not more than a line takes."""
    names = sorted({release for release, _ in stacks})
    shown = ", ".join(names[:10]) or "none"
    return f"{shown}, …" if len(names) > 10 else shown
