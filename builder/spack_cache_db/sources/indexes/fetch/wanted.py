"""What was asked for: URLs, releases, stacks and views → mirrors, each with a folder of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from spack_cache_db.sources.indexes.fetch.faults import FetchFault

ROOT = "root"
"""The stack of what lists everything."""

SCHEMES = ("https", "http", "oci")

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


class Wanted(NamedTuple):
    """One mirror, and the names of the folder that its index goes into.

    `manifest` is the URL of the manifest of releases that names it, if one does.
    """

    url: str
    release: str
    stack: str
    views: tuple[str, ...] = ()
    manifest: str | None = None


def require_name(url: str, kind: str, name: str) -> str:
    """Return a name that can be a folder's; `FetchFault` for one that leads elsewhere.

    Args:
        url: where the name was read.
        kind: `release`, `stack` or `view`, for the message.
        name: what came from the network or the command line.
    """
    fits = name.isprintable() and len(name.encode(errors="replace")) <= LONGEST_NAME
    if not name or name.startswith(".") or "/" in name or "\\" in name or not fits:
        given = repr(name if len(name) <= 60 else name[:57] + "...")
        raise FetchFault(url, f"{given} is no name of a {kind}, expected one such as develop")
    return name


def mirror_url(text: str, maps: Sequence[Map] = ()) -> str:
    """Return a mirror's URL from that of the mirror or of its index, mapped.

    Raises:
        FetchFault: it is none that can be fetched.
    """
    url = _mapped(text, maps)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise FetchFault(text, "is no URL, expected one such as https://host/mirror")
    if parts.scheme not in SCHEMES:
        # Of the store, not of what lies in it: one line for the many stacks of a manifest.
        store = f"{parts.scheme}://{host}"
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise FetchFault(store, f"cannot be asked, expected {known}; --map {store}=https://…")
    if parts.query or parts.fragment:
        raise FetchFault(text, "has a query or a fragment, expected a mirror's address without")
    if parts.scheme == "oci":
        return url.rstrip("/")
    return _WITHIN.sub("", url)


def wanted(url: str, release: str | None, stack: str | None, views: tuple[str, ...] = ()) -> Wanted:
    """Return what a mirror's URL asks for; names that are not given come from the URL.

    The release is then the last part of the path, or the host where there is none, and the stack
    is `root`.
    """
    if release is None:
        parts = urlsplit(_TAG.sub(r"\1", url) if url.startswith("oci:") else url)
        release = unquote(parts.path.rpartition("/")[2]) or str(parts.hostname)
    for view in views:
        require_name(url, "view", view)
    return Wanted(
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
    match = re.fullmatch(r"([a-z][a-z0-9+.-]*://[^=\s]+)=((?:https?|oci)://\S+)", text)
    if match is None:
        raise ValueError(f"{text!r} maps nothing, expected s3://bucket=https://host/mirrors")
    return Map(match[1].rstrip("/"), match[2].rstrip("/"))
