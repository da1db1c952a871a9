"""Reads what `fetch` is to download: URLs, manifests of releases, and Spack's
configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.model import ROOT, is_name
from spack_cache_db.sources.indexes.addresses import Properties
from spack_cache_db.sources.texts import quoted

_PORT = r"(?:80|443|[1-9]\d{3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])[/?#]"
"""A port on which web servers listen, and the end of the authority."""
_USER = re.compile(
    rf"(?<=://)(?:[^/?#:\[\]]*:(?!{_PORT}).*@(?!sha256:)|[^/?#]*@)",
    re.DOTALL | re.ASCII,
)
"""What is before the host. A password may have a slash, `?` or `#` that is not encoded,
so that whatever follows a colon up to the last `@` may be one. A port is none:
`host:8080/a@b` is shown. Of random passwords in base64, 2 in 100,000 begin like a port;
any digits would be 1 in 400.
"""


def shown(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be secret.

    `https://user:se/cret@host/mirror` becomes `https://host/mirror`.
    """
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


class FetchFault(InputError):
    """A URL did not return the expected data; the message has the response and the
    expectation.
    """

    def __init__(self, url: str, message: str) -> None:
        super().__init__([Fault(shown(url), 0, message)])
        self._message = message

    def __str__(self) -> str:
        """Return the message without the URL."""
        return self._message


_WITHIN = re.compile(
    r"(?:/build_cache(?:/index\.json)?|/v3/manifests/index(?:/(?P<view>.+))?/index\.manifest\.json"
    r"|/blobs/sha256/[0-9a-f]{2}/[0-9a-f]{64})?/*\Z"
)
"""The end of an index's URL: manifests of releases name indexes, not mirrors."""


Maps = Sequence[tuple[str, str]]
"""URL prefixes and their replacements."""


@dataclass(frozen=True, slots=True)
class Login:
    """The login for a mirror; its `repr` has no secret."""

    user: str
    secret: str = field(repr=False)
    session: str | None = field(default=None, repr=False)


class Mirror(NamedTuple):
    """One mirror, or package data, and the names of its folder; None if the URL gives
    them.

    Attributes:
        has_index: whether the mirror's own index is fetched too, beside the views.
        manifest: the URL of the manifest of releases that names the mirror, if one
            does.
        endpoint: URL of the object store of an `s3://` URL; None for Amazon's.
        properties: the properties in Spack's configuration that users of the mirror
            need.
    """

    url: str
    release: str | None = None
    stack: str | None = None
    views: tuple[str, ...] = ()
    has_index: bool = True
    manifest: str | None = None
    is_package_data: bool = False
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()
    login: Login | None = None
    endpoint: str | None = None
    properties: Properties = Properties()

    @property
    def folder(self) -> str:
        """The folder of the index below the output."""
        return f"{self.release}/{self.stack}"

    def placed(self, maps: Maps = ()) -> Mirror:
        """Return the mirror with its mapped URL, and with names that are safe for
        folders.

        The default release is the last part of the path, or else the host; the default
        stack is `root`. The URL of a view's index is that of the view alone.
        """
        url, view = mirror_place(self.url, maps)
        views = list(self.views)
        has_index = self.has_index
        if view is not None and self.has_index:
            has_index = False
            views.insert(0, view)
        distinct_views = tuple(dict.fromkeys(views))
        release = _default_release(url) if self.release is None else self.release
        stack = ROOT if self.stack is None else self.stack

        # The names become folders; that of a view may have slashes.
        names = [("release", release), ("stack", stack)]
        for name in distinct_views:
            names += [("view", part) for part in name.split("/")]
        for kind, name in names:
            if not _is_folder_name(name):
                message = f"{quoted(name)} is not a name of a {kind}, expected one such as develop"
                raise FetchFault(self.manifest or url, message)
        return self._replace(
            url=url,
            release=release,
            stack=stack,
            views=distinct_views,
            has_index=has_index,
        )


def _default_release(url: str) -> str:
    """Return the last part of a URL's path without the tag of an image, or its host."""
    parts = urlsplit(url)
    last = parts.path.rpartition("/")[2]
    is_image = parts.scheme == "oci"
    last = last.partition(":")[0] if is_image else unquote(last)
    return last or str(parts.hostname)


def _is_folder_name(name: str) -> bool:
    """Return whether a name is safe for a folder. File systems allow 255 bytes."""
    if name.startswith(".") or "/" in name or "\\" in name:
        return False
    return is_name(name) and len(name.encode(errors="replace")) <= 200


def mirror_place(text: str, maps: Maps = ()) -> tuple[str, str | None]:
    """Return a mirror's URL after mapping, and the view whose index it is, if any;
    `FetchFault` if it is not a URL that `fetch` can read.
    """
    # The longest prefix that fits is replaced.
    url = text
    fitting = [pair for pair in maps if f"{text}/".startswith(f"{pair[0]}/")]
    if fitting:
        prefix, replacement = max(fitting, key=lambda pair: len(pair[0]))
        url = replacement + text.removeprefix(prefix)
    host = None
    # A host or a port that cannot be read raises ValueError.
    with suppress(ValueError):
        parts = urlsplit(url)
        _ = parts.port
        # `file:///path` has no host.
        host = "localhost" if url.startswith("file:///") else parts.hostname
        # `hostname` has small letters; old buckets of S3 have capitals.
        if parts.scheme == "s3" and host == parts.netloc.lower():
            host = parts.netloc
    if not host or not url.isprintable() or " " in url:
        raise FetchFault(text, "is not a URL, expected one such as https://host/mirror")
    # A bucket has neither user nor port, and a file has no host.
    is_known = parts.scheme in ("https", "http", "oci", "s3", "file")
    if parts.scheme == "s3" and parts.netloc != host:
        is_known = False
    if parts.scheme == "file" and parts.netloc:
        is_known = False
    if not is_known:
        # Faults of the many stacks of a manifest become one, because it names only the
        # store.
        store = f"{parts.scheme}://{host}"
        expected = (
            f"https://, http://, oci://, s3://, file://, or --map {store}=https://…"
        )
        raise FetchFault(store, f"cannot be downloaded, expected {expected}")
    if parts.query or parts.fragment:
        raise FetchFault(
            text, "has a query or a fragment, expected a mirror's address without"
        )
    if parts.scheme == "oci":
        return url.rstrip("/"), None
    index = _WITHIN.search(url)
    assert index is not None  # It matches the end of any URL.
    return url[: index.start()], index["view"]


class NamedMirrors(NamedTuple):
    """The mirrors of a manifest or a configuration; `stacks` has pairs of a release and
    a stack.
    """

    mirrors: tuple[Mirror, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    stacks: frozenset[tuple[str, str]] = frozenset()
