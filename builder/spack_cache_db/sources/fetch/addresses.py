"""Reads what `fetch` is to download: URLs, manifests of releases, and Spack's configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import NOTHING, compose, entries_of, line_of, text_value
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.model import ROOT, is_name
from spack_cache_db.sources import BROKEN, message_of, quoted
from spack_cache_db.sources.indexes import VARIABLE_NAME, LoginVariables, Properties
from spack_cache_db.sources.indexes.binary_filter import parse_filter

_PORT = r"(?:80|443|[1-9]\d{3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])[/?#]"
"""A port on which web servers listen, and the end of the authority."""
_USER = re.compile(
    rf"(?<=://)(?:[^/?#:\[\]]*:(?!{_PORT}).*@(?!sha256:)|[^/?#]*@)", re.DOTALL | re.ASCII
)
"""What is before the host. A password may have a slash, `?` or `#` that is not encoded, so that
whatever follows a colon up to the last `@` may be one. A port is none: `host:8080/a@b` is shown.
Of random passwords in base64, 2 in 100,000 begin like a port; any digits would be 1 in 400."""


def shown(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be secret.

    `https://user:se/cret@host/mirror` becomes `https://host/mirror`.
    """
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


class FetchFault(InputError):
    """A URL did not return the expected data; the message has the response and the expectation."""

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
    """One mirror, or package data, and the names of its folder; None if the URL gives them.

    Attributes:
        has_index: whether the mirror's own index is fetched too, beside the views.
        manifest: the URL of the manifest of releases that names the mirror, if one does.
        endpoint: URL of the object store of an `s3://` URL; None for Amazon's.
        properties: the properties in Spack's configuration that users of the mirror need.
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
        """Return the mirror with its mapped URL, and with names that are safe for folders.

        The default release is the last part of the path, or else the host; the default stack is
        `root`. The URL of a view's index is that of the view alone.
        """
        url, view = mirror_place(self.url, maps)
        is_view = view is not None and self.has_index
        views = tuple(dict.fromkeys((view, *self.views) if view and is_view else self.views))
        parts = urlsplit(url)
        last = parts.path.rpartition("/")[2]
        last = last.partition(":")[0] if parts.scheme == "oci" else unquote(last)
        release = last or str(parts.hostname) if self.release is None else self.release
        stack = ROOT if self.stack is None else self.stack
        # The name of a view may have slashes.
        view_names = (("view", part) for name in views for part in name.split("/"))
        for kind, name in (("release", release), ("stack", stack), *view_names):
            # File systems allow 255 bytes.
            fits = is_name(name) and len(name.encode(errors="replace")) <= 200
            if name.startswith(".") or "/" in name or "\\" in name or not fits:
                message = f"{quoted(name)} is not a name of a {kind}, expected one such as develop"
                raise FetchFault(self.manifest or url, message)
        has_index = self.has_index and not is_view
        return self._replace(
            url=url, release=release, stack=stack, views=views, has_index=has_index
        )


def mirror_place(text: str, maps: Maps = ()) -> tuple[str, str | None]:
    """Return a mirror's URL after mapping, and the view whose index it is, if any."""
    url = text
    fitting = [pair for pair in maps if f"{text}/".startswith(f"{pair[0]}/")]
    if fitting:
        prefix, replacement = max(fitting, key=lambda pair: len(pair[0]))
        url = replacement + text.removeprefix(prefix)
    try:
        parts = urlsplit(url)
        # `file:///path` has no host.
        host, _ = "localhost" if url.startswith("file:///") else parts.hostname, parts.port
        # `hostname` has small letters; old buckets of S3 have capitals.
        if parts.scheme == "s3" and host == parts.netloc.lower():
            host = parts.netloc
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise FetchFault(text, "is not a URL, expected one such as https://host/mirror")
    # A bucket has neither user nor port, and a file has no host.
    is_other = parts.netloc != {"s3": host, "file": ""}.get(parts.scheme, parts.netloc)
    if parts.scheme not in ("https", "http", "oci", "s3", "file") or is_other:
        # Faults of the many stacks of a manifest become one, because it names only the store.
        store = f"{parts.scheme}://{host}"
        expected = f"https://, http://, oci://, s3://, file://, or --map {store}=https://…"
        raise FetchFault(store, f"cannot be downloaded, expected {expected}")
    if parts.query or parts.fragment:
        raise FetchFault(text, "has a query or a fragment, expected a mirror's address without")
    if parts.scheme == "oci":
        return url.rstrip("/"), None
    index = _WITHIN.search(url)
    assert index is not None  # It matches the end of any URL.
    return url[: index.start()], index["view"]


class _Stack(Struct, frozen=True):
    label: str
    url: str


_MANIFEST = msgspec.json.Decoder(dict[str, tuple[_Stack, ...]])


class NamedMirrors(NamedTuple):
    """The mirrors of a manifest or a configuration; `stacks` has pairs of a release and a stack."""

    mirrors: tuple[Mirror, ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    stacks: frozenset[tuple[str, str]] = frozenset()


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Maps = (),
    release: str | None = None,
    stack: str | None = None,
    max_mirrors: int = 5000,
) -> NamedMirrors:
    """Return the mirrors of a manifest, `{release: [{"label": stack, "url": index}]}`.

    Spack's `images/cache-indexer/cache_indexer.py` writes the public cache's; its URLs name indexes
    or their blobs. A release and a stack select mirrors.
    """
    try:
        manifest = _MANIFEST.decode(data)
    except BROKEN as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        message = f"is not a manifest of releases: {message_of(error)}; {expected}"
        raise FetchFault(url, message) from None
    stacks = [(name, entry) for name, entries in manifest.items() for entry in entries]
    if len(stacks) > max_mirrors:
        expected = f"expected at most {max_mirrors:,} (--max-mirrors)"
        raise FetchFault(url, f"names {len(stacks):,} mirrors, {expected}")
    mirrors, faults = list[Mirror](), list[Fault]()
    for name, entry in stacks:
        if release in (None, name) and stack in (None, entry.label):
            try:
                mirror = Mirror(entry.url, name, entry.label, manifest=url)
                # A remote manifest must not select files of this machine.
                if entry.url.startswith("file:") and not url.startswith("file:"):
                    message = f"is named by {shown(url)}, expected no file from there"
                    raise FetchFault(entry.url, message)
                mirrors.append(mirror.placed(maps))
            except FetchFault as fault:
                faults += fault.faults
    if not mirrors and not faults:
        filters = "/".join(name or "*" for name in (release, stack))
        names = sorted(manifest) or ["none"]
        first_names = ", ".join([*names[:10], *(["…"] if len(names) > 10 else [])])
        raise FetchFault(url, f"names no stack {filters}, it names {first_names}")
    pairs = frozenset((name, entry.label) for name, entry in stacks)
    return NamedMirrors(tuple(mirrors), tuple(faults), stacks=pairs)


_AWS_KEY = "AWS_ACCESS_KEY_ID"
"""The variable with the user of Amazon's tools, such as that of an exported profile."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class _Pair(Struct, frozen=True):
    secret_variable: str
    id: str | None = None
    id_variable: str | None = None


class _Mirror(Struct, frozen=True):
    """The keys of a mirror in Spack's configuration."""

    url: str | None = None
    endpoint_url: str | None = None
    access_pair: tuple[str | None, ...] | _Pair | None = None
    access_token: str | None = None
    access_token_variable: str | None = None
    profile: str | None = None
    view: str | None = None
    include_binary: tuple[str, ...] | None = None
    exclude_binary: tuple[str, ...] | None = None
    binary: bool = True
    signed: bool | None = None


def read_mirror_config(path: Path) -> NamedMirrors:
    """Return the mirrors with binaries in a `mirrors.yaml` or a `spack.yaml`.

    The rules are those of Spack 1.0 (`mirrors/mirror.py`, `schema/mirrors.py`). Secrets are in
    environment variables or, as before Spack 1.0, in the file itself.
    """
    try:
        text = read_file(path, 2**22).decode()
        root = compose(text)
        top = {} if root is None else entries_of(root, "Spack's configuration")
        top = entries_of(top["spack"], "an environment") if "spack" in top else top
        section = entries_of(top["mirrors"], "mirrors") if "mirrors" in top else {}
    except (OSError, UnicodeDecodeError) as error:
        return NamedMirrors(faults=(Fault(str(path), 0, unreadable(error)),))
    except LineFault as fault:
        return NamedMirrors(faults=(Fault(str(path), fault.line, fault.message),))
    mirrors, faults, notes = list[Mirror](), list[Fault](), list[str]()
    for name, node in section.items():
        try:
            entry = _entry(_plain(text_value(node)))
            if not entry.binary:
                notes.append(f"{name}: has no binaries (binary: false)")
            else:
                mirrors.append(_mirror(name, entry, path.absolute().parent))
        except (ValueError, LineFault) as error:
            faults.append(Fault(str(path), line_of(node), f"the mirror {name} {error}"))
    if not mirrors and not faults:
        expected = "expected Spack's configuration, lines of the form 'name: URL' under 'mirrors:'"
        faults.append(Fault(str(path), 0, f"names no mirror with binaries, {expected}"))
    return NamedMirrors(tuple(mirrors), tuple(faults), tuple(notes))


def _plain(value: Any) -> Any:
    """Return a value with None for null, and keys without the colon that overrides."""
    if isinstance(value, dict):
        return {str(key).removesuffix(":"): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value in NOTHING else value


def _entry(value: Any) -> _Mirror:
    """Return the keys of a mirror; those below its `fetch`, null included, override others."""
    keys = value if isinstance(value, dict) else {"url": value}
    override = keys.get("fetch") or {}
    keys |= override if isinstance(override, dict) else {"url": override}
    try:
        return msgspec.convert(keys, _Mirror, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from None


def _mirror(name: str, entry: _Mirror, folder: Path) -> Mirror:
    """Return a mirror; `ValueError` if a key is missing or wrong."""
    url, filters = entry.url, (entry.include_binary or (), entry.exclude_binary or ())
    if not url:
        raise ValueError("has no url to fetch from, expected url: or fetch:")
    for specs in filters:
        parse_filter(specs)
    if "://" not in url:
        text = _VARIABLE.sub(lambda match: _variable(match[1] or match[2]), url)
        url = Path(os.path.normpath(folder / Path(text).expanduser())).as_uri()
    login = _login(entry)
    if entry.profile and url.startswith("s3:") and not (login or os.environ.get(_AWS_KEY)):
        expected = f"expected access_pair:, or the variable {_AWS_KEY}"
        raise ValueError(f"has a profile, which cannot be read: {expected}")
    return Mirror(
        url,
        name,
        views=(entry.view,) if entry.view else (),
        has_index=not entry.view,
        include_binary=filters[0],
        exclude_binary=filters[1],
        login=login,
        endpoint=entry.endpoint_url or None,
        properties=_properties(entry),
    )


def _properties(entry: _Mirror) -> Properties:
    """Return the properties that users need; names of variables, and no secrets."""
    pair = entry.access_pair
    variables = None
    if isinstance(pair, _Pair):
        variables = LoginVariables(
            id_variable=_name_of_variable(pair.id_variable),
            secret_variable=_name_of_variable(pair.secret_variable),
        )
    return Properties(
        signed=entry.signed,
        endpoint_url=shown(entry.endpoint_url) if entry.endpoint_url else None,
        profile=entry.profile or None,
        access_pair=variables,
        access_token_variable=_name_of_variable(entry.access_token_variable),
        view=entry.view or None,
    )


def _name_of_variable(text: str | None) -> str | None:
    """Return the name of a variable; None for another text, which may be a secret."""
    return text if text and re.fullmatch(VARIABLE_NAME, text) else None


def _login(entry: _Mirror) -> Login | None:
    pair, session = entry.access_pair, entry.access_token
    if entry.access_token_variable:
        session = _variable(entry.access_token_variable)
    if pair is None or (isinstance(pair, tuple) and not any(pair)):
        return None
    if isinstance(pair, tuple):
        if len(pair) != 2 or not pair[0] or not pair[1]:
            count = sum(map(bool, pair))
            raise ValueError(f"has {count} values in access_pair, expected a name and a secret")
        return Login(pair[0], pair[1], session)
    user = pair.id or (_variable(pair.id_variable) if pair.id_variable else "")
    if not user:
        raise ValueError("has an access_pair without id: and id_variable:, expected one of them")
    return Login(user, _variable(pair.secret_variable), session)


def _variable(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise ValueError(f"needs the environment variable {name}, which is not set")
