"""Reads the mirrors in Spack's configuration: a `mirrors.yaml` or a `spack.yaml`.

    mirrors:
      site: https://mirror.example.org
      team:
        url: s3://bucket/cache
        access_pair: {id_variable: KEY, secret_variable: SECRET}
        exclude_binary: [hdf5@:1.10]

The rules are those of Spack 1.0 (`mirrors/mirror.py`, `schema/mirrors.py`). Secrets are
in environment variables or, as before Spack 1.0, in the file itself. They are used to
download, and never written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from spack_cache_db.bounded_files import read_file, unreadable
from spack_cache_db.bounded_yaml import (
    NOTHING,
    compose,
    entries_of,
    line_of,
    text_value,
)
from spack_cache_db.errors import Fault, LineFault
from spack_cache_db.sources.fetch.addresses import Login, Mirror, NamedMirrors, shown
from spack_cache_db.sources.indexes.addresses import (
    VARIABLE_NAME,
    LoginVariables,
    Properties,
)
from spack_cache_db.sources.indexes.filters import parse_filter

_MAX_SIZE = 2**22
"""Bytes of a configuration."""

_AWS_KEY = "AWS_ACCESS_KEY_ID"
"""The variable with the user of Amazon's tools, such as that of an exported profile."""

_VARIABLE_IN_PATH = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
"""`${HOME}` or `$HOME`."""


class _Pair(Struct, frozen=True):
    """A login since Spack 1.0; the user may be in a variable, the secret always is."""

    secret_variable: str
    id: str | None = None
    id_variable: str | None = None


class _Entry(Struct, frozen=True):
    """The keys of a mirror in Spack's configuration."""

    url: str | None = None
    endpoint_url: str | None = None
    # A list of a user and a secret is the login before Spack 1.0.
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

    A mirror that cannot be fetched is a fault of the result; nothing is raised.
    """
    try:
        text = read_file(path, _MAX_SIZE).decode()
        root = compose(text)
        top = {} if root is None else entries_of(root, "Spack's configuration")
        if "spack" in top:
            top = entries_of(top["spack"], "an environment")
        section = entries_of(top["mirrors"], "mirrors") if "mirrors" in top else {}
    except (OSError, UnicodeDecodeError) as error:
        return NamedMirrors(faults=(Fault(str(path), 0, unreadable(error)),))
    except LineFault as fault:
        return NamedMirrors(faults=(Fault(str(path), fault.line, fault.message),))

    mirrors: list[Mirror] = []
    faults: list[Fault] = []
    notes: list[str] = []
    for name, node in section.items():
        try:
            entry = _entry(_plain(text_value(node)))
            if entry.binary:
                mirrors.append(_mirror(name, entry, path.absolute().parent))
            else:
                notes.append(f"{name}: has no binaries (binary: false)")
        except (ValueError, LineFault) as error:
            faults.append(Fault(str(path), line_of(node), f"the mirror {name} {error}"))
    if not mirrors and not faults:
        expected = "expected Spack's configuration, lines of the form 'name: URL' under 'mirrors:'"
        faults.append(Fault(str(path), 0, f"names no mirror with binaries, {expected}"))
    return NamedMirrors(tuple(mirrors), tuple(faults), tuple(notes))


def _plain(value: Any) -> Any:
    """Return a value with None for null, and keys without a colon at their end.

    In Spack's configuration, `fetch::` replaces what another file has under `fetch`.
    """
    if isinstance(value, dict):
        return {str(key).removesuffix(":"): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value in NOTHING:
        return None
    return value


def _entry(value: Any) -> _Entry:
    """Return the keys of a mirror; `ValueError` if they have other types."""
    # A text in place of keys is the URL.
    keys = value if isinstance(value, dict) else {"url": value}
    # Those below its `fetch` override others, even if they are null.
    override = keys.get("fetch") or {}
    if not isinstance(override, dict):
        override = {"url": override}
    keys |= override
    try:
        return msgspec.convert(keys, _Entry, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from None


def _mirror(name: str, entry: _Entry, folder: Path) -> Mirror:
    """Return a mirror.

    Args:
        name: its name, which is its release.
        entry: its keys.
        folder: the folder of the configuration.

    Raises:
        ValueError: a key is missing or wrong.
    """
    if not entry.url:
        raise ValueError("has no url to fetch from, expected url: or fetch:")
    # Only checked here: a build applies the filters.
    include = entry.include_binary or ()
    exclude = entry.exclude_binary or ()
    parse_filter(include)
    parse_filter(exclude)
    url = _url_of(entry.url, folder)

    # Profiles are in files of Amazon's tools, which are not read.
    login = _login(entry)
    has_login = login is not None or bool(os.environ.get(_AWS_KEY))
    if entry.profile and url.startswith("s3:") and not has_login:
        expected = f"expected access_pair:, or the variable {_AWS_KEY}"
        raise ValueError(f"has a profile, which cannot be read: {expected}")
    return Mirror(
        url,
        name,
        views=(entry.view,) if entry.view else (),
        has_index=not entry.view,
        include_binary=include,
        exclude_binary=exclude,
        login=login,
        endpoint=entry.endpoint_url or None,
        properties=_properties(entry),
    )


def _url_of(text: str, folder: Path) -> str:
    """Return a URL, or that of a path.

    A path may have variables and `~`, and is relative to the folder of the file.
    """
    if "://" in text:
        return text
    path = _VARIABLE_IN_PATH.sub(lambda match: _variable(match[1] or match[2]), text)
    absolute_path = os.path.normpath(folder / Path(path).expanduser())
    return Path(absolute_path).as_uri()


def _login(entry: _Entry) -> Login | None:
    """Return the login of a mirror; None if it has none."""
    session = entry.access_token
    if entry.access_token_variable:
        session = _variable(entry.access_token_variable)
    pair = entry.access_pair
    if pair is None:
        return None

    # Before Spack 1.0: a list of the user and the secret, or of two nulls.
    if isinstance(pair, tuple):
        given = [text for text in pair if text]
        if not given:
            return None
        if len(pair) != 2 or len(given) != 2:
            raise ValueError(
                f"has {len(given)} values in access_pair, expected a name and a secret"
            )
        user, secret = given
        return Login(user, secret, session)

    # Since Spack 1.0.
    id_of_user = pair.id
    if not id_of_user and pair.id_variable:
        id_of_user = _variable(pair.id_variable)
    if not id_of_user:
        raise ValueError(
            "has an access_pair without id: and id_variable:, expected one of them"
        )
    return Login(id_of_user, _variable(pair.secret_variable), session)


def _variable(name: str) -> str:
    """Return the value of an environment variable; `ValueError` if it is not set."""
    value = os.environ.get(name)
    if value:
        return value
    raise ValueError(f"needs the environment variable {name}, which is not set")


def _properties(entry: _Entry) -> Properties:
    """Return the properties that users need: the names of variables, but no secrets."""
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
    if text and re.fullmatch(VARIABLE_NAME, text):
        return text
    return None
