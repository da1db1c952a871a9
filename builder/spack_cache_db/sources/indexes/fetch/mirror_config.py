"""The section `mirrors` of Spack's configuration, and what it says of an address that is asked.

The rules are those of Spack 1.0 (`mirrors/mirror.py`, `schema/mirrors.py`): a mirror is a text or a
mapping, what stands under `fetch` counts before what stands beside it, and secrets are given by
the names of environment variables, or, as before Spack 1.0, in the file itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import yaml
from msgspec import Struct

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import YamlBounds, compose, line_of, merge_keys, text_value
from spack_cache_db.errors import Fault, LineFault

_BOUNDS = YamlBounds(aliases=1_000)
_MAX_BYTES = 2**22
_NOTHING = ("", "~", "null", "Null", "NULL")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_EXPECTED = "expected Spack's configuration, lines of the form 'name: URL' under 'mirrors:'"


@dataclass(frozen=True, slots=True)
class Login:
    """Who asks a mirror; what is printed of it has no secret."""

    user: str
    secret: str = field(repr=False)
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ConfiguredMirror:
    """A mirror to fetch from.

    Attributes:
        url: its address; a path of this machine is one that begins with `file://`.
        name: what the configuration calls it.
        login: who may read it, None for anybody.
        endpoint: the URL of the object store that has an `s3://` address, None for Amazon's.
    """

    url: str
    name: str | None = None
    login: Login | None = None
    endpoint: str | None = None


class MirrorConfig(NamedTuple):
    """The mirrors of a file that can be fetched from, in its order, and what is wrong with it."""

    mirrors: tuple[ConfiguredMirror, ...]
    faults: tuple[Fault, ...]


class _Pair(Struct, frozen=True):
    secret_variable: str
    id: str | None = None
    id_variable: str | None = None


class _Connection(Struct, frozen=True):
    url: str | None = None
    endpoint_url: str | None = None
    access_pair: tuple[str, ...] | _Pair | None = None
    access_token: str | None = None
    access_token_variable: str | None = None
    profile: str | None = None


class _Mirror(_Connection, frozen=True):
    fetch: str | _Connection | None = None
    binary: bool = True


def read_mirror_config(path: Path, variables: Mapping[str, str]) -> MirrorConfig:
    """Return the mirrors with binaries that a `mirrors.yaml` or a `spack.yaml` names.

    Args:
        path: the file.
        variables: the environment variables that have its secrets.
    """
    try:
        text = read_file(path, _MAX_BYTES).decode()
        section = _section(compose(text, _BOUNDS))
    except (OSError, UnicodeDecodeError) as error:
        return MirrorConfig((), (Fault(str(path), 0, unreadable(error)),))
    except LineFault as fault:
        return MirrorConfig((), (Fault(str(path), fault.line, fault.message),))
    mirrors, faults = list[ConfiguredMirror](), list[Fault]()
    for key, node in section.value:
        name = str(key.value).removesuffix(":")
        try:
            entry = _plain(text_value(node))
            given = _Mirror(url=entry) if isinstance(entry, str) else _converted(entry)
            if given.binary:
                mirrors.append(_mirror(name, given, path.absolute().parent, variables))
        except (ValueError, LineFault) as error:
            faults.append(Fault(str(path), line_of(key), f"the mirror {name} {error}"))
    if not mirrors and not faults:
        faults.append(Fault(str(path), 0, f"names no mirror with binaries, {_EXPECTED}"))
    return MirrorConfig(tuple(mirrors), tuple(faults))


def _section(root: yaml.Node | None) -> yaml.MappingNode:
    """Return the mapping `mirrors`, at the top or in the section `spack` of an environment."""
    if root is not None:
        merge_keys(root, _BOUNDS.parts)
    node = _entry(_entry(root, "spack") or root, "mirrors")
    if not isinstance(node, yaml.MappingNode):
        raise LineFault(0 if node is None else line_of(node), f"has no mirrors, {_EXPECTED}")
    return node


def _entry(node: yaml.Node | None, name: str) -> yaml.Node | None:
    """Return the value of a key, which may override others; None if there is none."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value in (name, f"{name}:")), None)


def _plain(value: Any) -> Any:
    """Return a value without what is null in it, and keys without the colon that overrides."""
    if isinstance(value, dict):
        kept = {str(key).removesuffix(":"): each for key, each in value.items()}
        return {key: _plain(each) for key, each in kept.items() if each not in _NOTHING}
    if isinstance(value, list):
        return [_plain(each) for each in value if each not in _NOTHING]
    return value


def _converted(entry: Any) -> _Mirror:
    try:
        return msgspec.convert(entry, _Mirror, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from None


def _mirror(
    name: str, given: _Mirror, folder: Path, variables: Mapping[str, str]
) -> ConfiguredMirror:
    """Return a mirror; `ValueError` says what it lacks."""
    own = _Connection(url=given.fetch) if isinstance(given.fetch, str) else given.fetch
    found = _Connection(
        **{
            key: value
            for each in (given, own)
            for key in _Connection.__struct_fields__
            if (value := getattr(each, key, None))
        }
    )
    if found.url is None:
        raise ValueError("has no url to fetch from, expected url: or fetch:")
    if found.profile is not None:
        raise ValueError("has a profile, which is not read here: expected access_pair:")
    return ConfiguredMirror(
        found.url if "://" in found.url else _file_url(found.url, folder, variables),
        name,
        _login(found, variables),
        found.endpoint_url,
    )


def _login(given: _Connection, variables: Mapping[str, str]) -> Login | None:
    pair, session = given.access_pair, given.access_token
    if given.access_token_variable:
        session = _variable(given.access_token_variable, variables)
    if not pair:
        return None
    if isinstance(pair, tuple):
        if len(pair) != 2:
            raise ValueError(f"has {len(pair)} values in access_pair, expected a name and a secret")
        return Login(*pair, session)
    user = pair.id or (_variable(pair.id_variable, variables) if pair.id_variable else None)
    if user is None:
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


class Access:
    """Where and as whom an address is asked: of configured ones above it, the longest counts.

    Object stores are asked as Amazon S3's "Virtual hosting of general purpose buckets" and
    "Signature Version 4" say; the variables of the environment are those of Amazon's own tools and,
    for the endpoint, of Spack.
    """

    def __init__(
        self, mirrors: Iterable[ConfiguredMirror] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        """Take what mirrors say of themselves, and what the environment says of all others.

        Args:
            mirrors: configured ones, with the addresses that are asked.
            variables: `AWS_ACCESS_KEY_ID` and the like.
        """
        known = variables or {}
        self._mirrors = sorted(mirrors, key=lambda each: len(each.url), reverse=True)
        self._endpoint = known.get("S3_ENDPOINT_URL")
        self._region = known.get("AWS_DEFAULT_REGION") or known.get("AWS_REGION") or "us-east-1"
        user, secret = known.get("AWS_ACCESS_KEY_ID"), known.get("AWS_SECRET_ACCESS_KEY")
        session = known.get("AWS_SESSION_TOKEN")
        self._login = Login(user, secret, session) if user and secret else None

    def login(self, url: str) -> Login | None:
        """Return who asks a URL; None for anybody."""
        return self._mirror(url).login

    def request(self, url: str) -> tuple[str, httpx.Auth | None]:
        """Return the address behind a URL, and what signs a request for it."""
        if not url.startswith("s3://"):
            # httpx takes a URL without a host for a relative one.
            return url.replace("file:///", "file://localhost/", 1), None
        mirror = self._mirror(url)
        address = _object_url(url, mirror.endpoint or self._endpoint)
        login = mirror.login or self._login
        if login is None:
            return address, None
        # It loads ways to log in that nothing else here needs.
        from httpx_auth import AWS4Auth

        return address, AWS4Auth(
            login.user, login.secret, self._region, "s3", security_token=login.session
        )

    def _mirror(self, url: str) -> ConfiguredMirror:
        above = (each for each in self._mirrors if f"{url}/".startswith(f"{each.url}/"))
        return next(above, ConfiguredMirror(url))


def _object_url(url: str, endpoint: str | None) -> str:
    """Return where an object store has what an `s3://` URL names.

    Its path is a name as it is, in which `%` and `+` mean nothing else. No certificate of Amazon
    is for a host with a dot more.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    path = quote(key, safe="/-_.~")
    if endpoint is not None:
        return f"{endpoint.rstrip('/')}/{bucket}/{path}"
    if "." in bucket:
        return f"https://s3.amazonaws.com/{bucket}/{path}"
    return f"https://{bucket}.s3.amazonaws.com/{path}"
