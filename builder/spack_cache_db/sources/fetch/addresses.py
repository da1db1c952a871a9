"""Reads the URLs of `fetch`: mirrors, manifests of releases, and Spack's configuration.

A manifest of releases is `{release: [{"label": stack, "url": index}]}` (spack-infrastructure
`images/cache-indexer/cache_indexer.py`, which writes the public cache's). Its URLs name indexes or
their blobs.

A configuration follows the rules of Spack 1.0 (`mirrors/mirror.py`, `schema/mirrors.py`): a mirror
is a text or a mapping, keys under `fetch` override keys beside it, and secrets are in environment
variables or, as before Spack 1.0, in the file itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
import yaml
from msgspec import Struct

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import NOTHING, compose, line_of, text_value
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import ROOT, is_name
from spack_cache_db.sources.indexes import Address
from spack_cache_db.sources.indexes.binary_filter import parse_filter
from spack_cache_db.sources.strictness import BROKEN, message_of, quoted

_USER = re.compile(r"(?<=://)[^/?#]*@")


def shown(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be secret."""
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


class FetchFault(InputError):
    """A URL did not return the expected data; the message has the response and the expectation."""

    def __init__(self, url: str, message: str) -> None:
        super().__init__([Fault(shown(url), 0, message)])
        self._message = message

    def __str__(self) -> str:
        """Return the message without the URL."""
        return self._message


SCHEMES = ("https", "http", "oci", "s3", "file")

LONGEST_NAME = 200
"""Bytes of the name of a release or stack; file systems allow 255."""

_WITHIN = re.compile(
    r"(?:/build_cache(?:/index\.json)?|/v3/manifests/index(?:/(?P<view>.+))?/index\.manifest\.json"
    r"|/blobs/sha256/[0-9a-f]{2}/[0-9a-f]{64})?/*\Z"
)
"""The end of an index's URL: manifests of releases name indexes, not mirrors."""

_TAG = re.compile(r"(?<=/)([^/:]+):[^/]*\Z")


class Map(NamedTuple):
    """A URL prefix and its replacement."""

    source: str
    to: str


class MirrorRequest(NamedTuple):
    """One mirror, or package data, and the folder that its index goes into.

    Attributes:
        url: the URL of the mirror.
        release: the folder below the output.
        stack: the folder below that of the release.
        views: the views to fetch.
        has_index: whether the mirror's own index is fetched too.
        manifest: the URL of the manifest of releases that names the mirror, if one does.
        is_package_data: whether it is package data instead of a mirror.
        include_binary: specs whose binaries are included; empty for all.
        exclude_binary: specs whose binaries are excluded.
    """

    url: str
    release: str
    stack: str
    views: tuple[str, ...] = ()
    has_index: bool = True
    manifest: str | None = None
    is_package_data: bool = False
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()

    @property
    def address(self) -> Address:
        """The URL and the filters that are stored beside the index."""
        return Address(shown(self.url), self.include_binary, self.exclude_binary)


def require_folder_name(url: str, kind: str, name: str) -> str:
    """Return a name if it is safe as the name of a folder, otherwise raise `FetchFault`.

    Args:
        url: URL for the message.
        kind: `release`, `stack` or `view`, for the message.
        name: name from the network or the command line.
    """
    fits = is_name(name) and len(name.encode(errors="replace")) <= LONGEST_NAME
    if name.startswith(".") or "/" in name or "\\" in name or not fits:
        raise FetchFault(
            url, f"{quoted(name)} is not a name of a {kind}, expected one such as develop"
        )
    return name


def mirror_place(text: str, maps: Sequence[Map] = ()) -> tuple[str, str | None]:
    """Return a mirror's URL after mapping, and the view if the text is the URL of a view's index.

    Raises:
        FetchFault: the text is not a URL that can be fetched.
    """
    url = _mapped(text, maps)
    try:
        parts = urlsplit(url)
        # `file:///path` has no host.
        host, _ = "localhost" if url.startswith("file:///") else parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise FetchFault(text, "is not a URL, expected one such as https://host/mirror")
    # A bucket has neither user nor port, and a file has no host.
    is_other = parts.netloc != {"s3": host, "file": ""}.get(parts.scheme, parts.netloc)
    if parts.scheme not in SCHEMES or is_other:
        # Faults of the many stacks of a manifest become one, because it names only the store.
        store = f"{parts.scheme}://{host}"
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise FetchFault(
            store, f"cannot be downloaded, expected {schemes}, or --map {store}=https://…"
        )
    if parts.query or parts.fragment:
        raise FetchFault(text, "has a query or a fragment, expected a mirror's address without")
    if parts.scheme == "oci":
        return url.rstrip("/"), None
    index = _WITHIN.search(url)
    assert index is not None  # It matches the end of any URL.
    return url[: index.start()], index["view"]


def mirror_request(
    url: str,
    release: str | None,
    stack: str | None,
    views: tuple[str, ...] = (),
    view: str | None = None,
) -> MirrorRequest:
    """Return the request for a mirror; missing names come from the URL.

    The default release is the last part of the path, or else the host; the default stack is `root`.

    Args:
        url: the URL of the mirror.
        release: the release.
        stack: the stack.
        views: views to fetch beside the index.
        view: the view to fetch instead of the index.
    """
    if release is None:
        parts = urlsplit(_TAG.sub(r"\1", url) if url.startswith("oci:") else url)
        release = unquote(parts.path.rpartition("/")[2]) or str(parts.hostname)
    views = tuple(dict.fromkeys((view, *views) if view else views))
    # The name of a view may have slashes.
    for part in (part for name in views for part in name.split("/")):
        require_folder_name(url, "view", part)
    return MirrorRequest(
        url,
        require_folder_name(url, "release", release),
        require_folder_name(url, "stack", ROOT if stack is None else stack),
        views,
        has_index=view is None,
    )


def _mapped(url: str, maps: Sequence[Map]) -> str:
    fitting = [entry for entry in maps if url == entry.source or url.startswith(entry.source + "/")]
    if not fitting:
        return url
    longest = max(fitting, key=lambda entry: len(entry.source))
    return longest.to + url[len(longest.source) :]


def parse_map(text: str) -> Map:
    """Return the map in a text FROM=TO; `ValueError` if it is not one."""
    match = re.fullmatch(r"([a-z][a-z0-9+.-]*://[^=\s]+)=((?:https?|oci|s3|file)://\S+)", text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a pair of URLs, expected s3://bucket=https://host/mirrors"
        )
    return Map(match[1].rstrip("/"), match[2].rstrip("/"))


class _Stack(Struct, frozen=True):
    label: str
    url: str


_MANIFEST = msgspec.json.Decoder(dict[str, tuple[_Stack, ...]])


class NamedMirrors(NamedTuple):
    """The content of a manifest: selected mirrors, all pairs (release, stack), and faults."""

    mirrors: tuple[MirrorRequest, ...]
    stacks: frozenset[tuple[str, str]]
    faults: tuple[Fault, ...]


def read_release_manifest(
    url: str,
    data: bytes,
    maps: Sequence[Map] = (),
    release: str | None = None,
    stack: str | None = None,
    max_mirrors: int = 5000,
) -> NamedMirrors:
    """Return the mirrors of a manifest of releases.

    Args:
        url: URL of the manifest.
        data: its bytes.
        maps: URL prefixes to replace.
        release: the only release to select; None for all.
        stack: the only stack to select; None for all.
        max_mirrors: number of mirrors that it may name.

    Raises:
        FetchFault: the data is not a manifest, or has no selected mirror.
    """
    try:
        manifest = _MANIFEST.decode(data)
    except BROKEN as error:
        expected = "expected a mirror, or a manifest {release: [{label, url}]}"
        raise FetchFault(
            url, f"is not a manifest of releases: {message_of(error)}; {expected}"
        ) from None
    count = sum(map(len, manifest.values()))
    if count > max_mirrors:
        raise FetchFault(
            url, f"names {count:,} mirrors, expected at most {max_mirrors:,} (--max-mirrors)"
        )
    stacks = {(name, entry.label) for name, entries in manifest.items() for entry in entries}
    mirrors: list[MirrorRequest] = []
    faults: list[Fault] = []
    for name, entries in manifest.items():
        for entry in entries:
            if release in (None, name) and stack in (None, entry.label):
                try:
                    mirrors.append(_mirror_of(url, name, entry, maps))
                except FetchFault as fault:
                    faults += fault.faults
    if not mirrors and not faults:
        filters = "/".join(name or "*" for name in (release, stack))
        names = sorted(manifest) or ["none"]
        first_names = ", ".join([*names[:10], *(["…"] if len(names) > 10 else [])])
        raise FetchFault(url, f"names no stack {filters}, it names {first_names}")
    return NamedMirrors(tuple(mirrors), frozenset(stacks), tuple(faults))


def _mirror_of(manifest: str, release: str, stack: _Stack, maps: Sequence[Map]) -> MirrorRequest:
    require_folder_name(manifest, "release", release)
    require_folder_name(manifest, "stack", stack.label)
    if stack.url.startswith("file:") and not manifest.startswith("file:"):
        # A remote manifest must not select files of this machine.
        raise FetchFault(stack.url, f"is named by {shown(manifest)}, expected no file from there")
    url, view = mirror_place(stack.url, maps)
    return mirror_request(url, release, stack.label, view=view)._replace(manifest=manifest)


_MAX_CONFIGURATION = 2**22
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_EXPECTED = "expected Spack's configuration, lines of the form 'name: URL' under 'mirrors:'"


@dataclass(frozen=True, slots=True)
class Login:
    """The login for a mirror; its `repr` has no secret."""

    user: str
    secret: str = field(repr=False)
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ConfiguredMirror:
    """A mirror to fetch from.

    Attributes:
        url: its URL; `file://` for a path of this machine.
        name: its name in the configuration.
        login: its login; None for public mirrors.
        endpoint: URL of the object store of an `s3://` URL; None for Amazon's.
        view: the view that is read instead of the mirror's own index.
        include_binary: specs whose binaries are included; empty for all.
        exclude_binary: specs whose binaries are excluded.
    """

    url: str
    name: str | None = None
    login: Login | None = None
    endpoint: str | None = None
    view: str | None = None
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


class MirrorConfig(NamedTuple):
    """The mirrors of a configuration, its faults, and notes on mirrors without binaries."""

    mirrors: tuple[ConfiguredMirror, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


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


def read_mirror_config(path: Path, variables: Mapping[str, str]) -> MirrorConfig:
    """Return the mirrors with binaries in a `mirrors.yaml` or a `spack.yaml`.

    Args:
        path: the file.
        variables: environment variables, for its secrets.
    """
    try:
        text = read_file(path, _MAX_CONFIGURATION).decode()
        section = _section(compose(text))
    except (OSError, UnicodeDecodeError) as error:
        return MirrorConfig((), (Fault(str(path), 0, unreadable(error)),))
    except LineFault as fault:
        return MirrorConfig((), (Fault(str(path), fault.line, fault.message),))
    mirrors, faults, notes = list[ConfiguredMirror](), list[Fault](), list[str]()
    for key, node in section.value:
        name = str(key.value).removesuffix(":")
        try:
            entry = _converted(_plain(text_value(node)))
            if not entry.binary:
                notes.append(f"{name}: has no binaries (binary: false)")
            else:
                mirrors.append(_mirror(name, entry, path.absolute().parent, variables))
        except (ValueError, LineFault) as error:
            faults.append(Fault(str(path), line_of(key), f"the mirror {name} {error}"))
    if not mirrors and not faults:
        faults.append(Fault(str(path), 0, f"names no mirror with binaries, {_EXPECTED}"))
    return MirrorConfig(tuple(mirrors), tuple(faults), tuple(notes))


def _section(root: yaml.Node | None) -> yaml.MappingNode:
    """Return the mapping `mirrors`, at the top or in the section `spack` of an environment."""
    node = _entry(_entry(root, "spack") or root, "mirrors")
    if not isinstance(node, yaml.MappingNode):
        raise LineFault(0 if node is None else line_of(node), f"has no mirrors, {_EXPECTED}")
    return node


def _entry(node: yaml.Node | None, name: str) -> yaml.Node | None:
    """Return the value of a key, with or without the colon that overrides; None if missing."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value in (name, f"{name}:")), None)


def _plain(value: Any) -> Any:
    """Return a value with None for null, and keys without the colon that overrides."""
    if isinstance(value, dict):
        return {str(key).removesuffix(":"): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value in NOTHING else value


def _converted(entry: Any) -> _Mirror:
    """Return the keys of a mirror; those below its `fetch`, null included, override others."""
    entry = {"url": entry} if isinstance(entry, str) else entry
    override = entry.get("fetch") if isinstance(entry, dict) else None
    override = {"url": override} if isinstance(override, str) else override or {}
    try:
        if isinstance(override, dict):
            return msgspec.convert(entry | override if override else entry, _Mirror, strict=False)
        return msgspec.convert(override, _Mirror)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from None


def _mirror(
    name: str, entry: _Mirror, folder: Path, variables: Mapping[str, str]
) -> ConfiguredMirror:
    """Return a mirror; `ValueError` if a key is missing or wrong."""
    url, filters = entry.url, (entry.include_binary or (), entry.exclude_binary or ())
    if not url:
        raise ValueError("has no url to fetch from, expected url: or fetch:")
    if entry.profile:
        raise ValueError("has a profile, which cannot be read: expected access_pair:")
    for specs in filters:
        parse_filter(specs)
    return ConfiguredMirror(
        url if "://" in url else _file_url(url, folder, variables),
        name,
        _login(entry, variables),
        entry.endpoint_url or None,
        entry.view or None,
        *filters,
    )


def _login(entry: _Mirror, variables: Mapping[str, str]) -> Login | None:
    pair, session = entry.access_pair, entry.access_token
    if entry.access_token_variable:
        session = _variable(entry.access_token_variable, variables)
    if pair is None or (isinstance(pair, tuple) and not any(pair)):
        return None
    if isinstance(pair, tuple):
        user, secret = (text or "" for text in (*pair, None, None)[:2])
        if len(pair) != 2 or not user or not secret:
            count = sum(map(bool, pair))
            raise ValueError(f"has {count} values in access_pair, expected a name and a secret")
        return Login(user, secret, session)
    user = pair.id or (_variable(pair.id_variable, variables) if pair.id_variable else "")
    if not user:
        raise ValueError("has an access_pair without id: and id_variable:, expected one of them")
    return Login(user, _variable(pair.secret_variable, variables), session)


def _variable(name: str, variables: Mapping[str, str]) -> str:
    value = variables.get(name)
    if not value:
        raise ValueError(f"needs the environment variable {name}, which is not set")
    return value


def _file_url(text: str, folder: Path, variables: Mapping[str, str]) -> str:
    """Return the URL of a path, relative to the folder of the configuration."""

    def replaced(match: re.Match[str]) -> str:
        return _variable(match[1] or match[2], variables)

    path = Path(_VARIABLE.sub(replaced, text)).expanduser()
    return Path(os.path.normpath(folder / path)).as_uri()
