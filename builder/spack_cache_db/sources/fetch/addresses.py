"""The URLs of mirrors, and the mirrors that `fetch` downloads.

A mirror comes from a URL on the command line, from a manifest of releases
(`release_manifests`) or from Spack's configuration (`mirrors_yaml`). `Mirror.placed`
gives it the folder `<release>/<stack>` into which its index goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.model import ROOT, is_name
from spack_cache_db.sources.indexes.addresses import Properties
from spack_cache_db.sources.texts import quoted

_PORT = r"(?:80|443|[1-9]\d{3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])[/?#]"
"""A port on which web servers listen, from 1000 or 80 or 443, and what follows it."""

_USER = re.compile(
    rf"(?P<scheme>\A(?>.*?://))(?:[^/?#:\[\]]*:(?!{_PORT}).*@(?!sha256:)|[^/?#]*@)",
    re.DOTALL | re.ASCII,
)
"""The scheme, up to the first `://`, and what is before the host: `user@`, or
`user:password@`.

A password may have a slash, `?` or `#` that is not encoded. So everything that follows
a colon, up to the last `@`, may be one, unless a port follows the colon: in
`host:8080/a@b`, nothing is hidden. Of random passwords in base64, 2 in 100,000 begin
like such a port; if any digits were a port, it would be 1 in 400.
"""


def shown(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be secret.

    `https://user:se/cret@host/mirror?token=x` becomes `https://host/mirror`.
    """
    without_user = _USER.sub(r"\g<scheme>", url)
    return without_user.partition("?")[0].partition("#")[0]


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


Maps = Sequence[tuple[str, str]]
"""URL prefixes and their replacements."""


@dataclass(frozen=True, slots=True)
class Login:
    """The login for a mirror; its `repr` has no secret.

    Attributes:
        user: the name of the user, or of a key.
        secret: the password, or the secret of the key.
        session: the token of a session, which object stores may require.
    """

    user: str
    secret: str = field(repr=False)
    session: str | None = field(default=None, repr=False)


class Mirror(NamedTuple):
    """One mirror to fetch, or package data.

    Attributes:
        url: its URL.
        release: the first folder of its index; None if the URL gives it.
        stack: the second folder of its index; None for the usual one.
        views: the names of views whose indexes are fetched.
        has_index: whether the mirror's own index is fetched too, beside the views.
        manifest: the URL of the manifest of releases that names the mirror, if one
            does.
        is_package_data: whether the URL has package data instead of a mirror.
        include_binary: specs of the binaries that count; none for all.
        exclude_binary: specs of the binaries that do not count.
        login: the login for it.
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
        stack is `root`. The URL of a view's index stands for that view alone.

        Raises:
            FetchFault: the URL cannot be read, or a name cannot be that of a folder.
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
    """Return the last part of a URL's path, or its host if there is no path.

    An image of a registry has no tag in it: that of `oci://host/cache:v1` is cache.
    """
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


_END_OF_INDEX = re.compile(
    r"(?:/build_cache(?:/index\.json)?"
    r"|/v3/manifests/index(?:/(?P<view>.+))?/index\.manifest\.json"
    r"|/blobs/sha256/[0-9a-f]{2}/[0-9a-f]{64})?/*\Z"
)
"""The end of the URL of an index, which follows that of its mirror, or of a mirror
itself. Manifests of releases name indexes, not mirrors.
"""

_SCHEMES = ("https", "http", "oci", "s3", "file")


def mirror_place(text: str, maps: Maps = ()) -> tuple[str, str | None]:
    """Return the URL of a mirror, and the view whose index a URL is; None without one.

    `https://host/m/v3/manifests/index/mine/index.manifest.json` is the mirror
    `https://host/m` and its view `mine`.

    Args:
        text: the URL of a mirror or of an index.
        maps: prefixes of URLs that are replaced.

    Raises:
        FetchFault: it is not a URL that `fetch` can read.
    """
    url = _mapped(text, maps)
    parts = _split_url(url)
    if parts is None:
        example = "https://host/mirror"
        # A folder of this machine has a URL, too.
        if text.startswith("/"):
            example = f"file://{text}"
        raise FetchFault(text, f"is not a URL, expected one such as {example}")
    host = _host_of(url, parts)
    is_known = parts.scheme in _SCHEMES
    # A bucket has neither user nor port, and a file has no host.
    if parts.scheme == "s3" and parts.netloc != host:
        is_known = False
    if parts.scheme == "file" and parts.netloc:
        is_known = False
    if not is_known:
        # The fault names only the store, so that those of the many stacks of a manifest
        # are one.
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
    end = _END_OF_INDEX.search(url)
    assert end is not None  # It matches the end of any URL.
    return url[: end.start()], end["view"]


def _mapped(text: str, maps: Maps) -> str:
    """Return a URL with its longest prefix among `maps` replaced."""
    fitting = [pair for pair in maps if f"{text}/".startswith(f"{pair[0]}/")]
    if not fitting:
        return text
    prefix, replacement = max(fitting, key=lambda pair: len(pair[0]))
    return replacement + text.removeprefix(prefix)


def _split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if the text is not one."""
    if not url.isprintable() or " " in url:
        return None
    # Raised for a host that cannot be read, and by `port` for a number above 65535.
    with suppress(ValueError):
        parts = urlsplit(url)
        _ = parts.port
        if _host_of(url, parts):
            return parts
    return None


def _host_of(url: str, parts: SplitResult) -> str | None:
    """Return the host of a URL, or the bucket of an object store; None without one."""
    if url.startswith("file:///"):
        return "localhost"
    host = parts.hostname
    # `hostname` has small letters; old buckets of S3 have capitals.
    if parts.scheme == "s3" and host == parts.netloc.lower():
        return parts.netloc
    return host


class NamedMirrors(NamedTuple):
    """The mirrors that a manifest of releases or a configuration names.

    Attributes:
        mirrors: the mirrors.
        faults: why others cannot be fetched.
        notes: mirrors that have nothing to fetch, as lines for people.
        stacks: pairs of a release and a stack, all that a manifest has.
    """

    mirrors: tuple[Mirror, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    stacks: frozenset[tuple[str, str]] = frozenset()
