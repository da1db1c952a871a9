"""Reads Spack's `mirrors.yaml`: URLs, logins and properties of mirrors."""

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

    The rules are those of Spack 1.0 (`mirrors/mirror.py`, `schema/mirrors.py`). Secrets
    are in environment variables or, as before Spack 1.0, in the file itself.
    """
    try:
        text = read_file(path, 2**22).decode()
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
    """Return a value with None for null, and keys without the colon that overrides."""
    if isinstance(value, dict):
        return {str(key).removesuffix(":"): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value in NOTHING:
        return None
    return value


def _entry(value: Any) -> _Mirror:
    """Return the keys of a mirror; those below its `fetch`, null included, override
    others.
    """
    # A text in place of keys is the URL.
    keys = value if isinstance(value, dict) else {"url": value}
    override = keys.get("fetch") or {}
    if not isinstance(override, dict):
        override = {"url": override}
    keys |= override
    try:
        return msgspec.convert(keys, _Mirror, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from None


def _mirror(name: str, entry: _Mirror, folder: Path) -> Mirror:
    """Return a mirror; `ValueError` if a key is missing or wrong."""
    url = entry.url
    if not url:
        raise ValueError("has no url to fetch from, expected url: or fetch:")
    # Only checked here: a build applies the filters.
    include = entry.include_binary or ()
    exclude = entry.exclude_binary or ()
    parse_filter(include)
    parse_filter(exclude)

    # A path may have variables, and is relative to the folder of the file.
    if "://" not in url:
        text = _VARIABLE.sub(lambda match: _variable(match[1] or match[2]), url)
        path = os.path.normpath(folder / Path(text).expanduser())
        url = Path(path).as_uri()

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
    if text and re.fullmatch(VARIABLE_NAME, text):
        return text
    return None


def _login(entry: _Mirror) -> Login | None:
    """Return the login of a mirror; None if it has none."""
    pair = entry.access_pair
    session = entry.access_token
    if entry.access_token_variable:
        session = _variable(entry.access_token_variable)
    if pair is None:
        return None

    # Before Spack 1.0: a list of the name and the secret, or of two nulls.
    if isinstance(pair, tuple):
        given = [text for text in pair if text]
        if not given:
            return None
        if len(pair) != 2 or len(given) != 2:
            raise ValueError(
                f"has {len(given)} values in access_pair, expected a name and a secret"
            )
        name, secret = given
        return Login(name, secret, session)

    user = pair.id
    if not user and pair.id_variable:
        user = _variable(pair.id_variable)
    if not user:
        raise ValueError(
            "has an access_pair without id: and id_variable:, expected one of them"
        )
    return Login(user, _variable(pair.secret_variable), session)


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value:
        return value
    raise ValueError(f"needs the environment variable {name}, which is not set")
