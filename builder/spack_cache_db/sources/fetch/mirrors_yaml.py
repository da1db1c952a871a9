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
    """Return the keys of a mirror; those below its `fetch`, null included, override
    others.
    """
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
    if (
        entry.profile
        and url.startswith("s3:")
        and not (login or os.environ.get(_AWS_KEY))
    ):
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
            raise ValueError(
                f"has {count} values in access_pair, expected a name and a secret"
            )
        return Login(pair[0], pair[1], session)
    user = pair.id or (_variable(pair.id_variable) if pair.id_variable else "")
    if not user:
        raise ValueError(
            "has an access_pair without id: and id_variable:, expected one of them"
        )
    return Login(user, _variable(pair.secret_variable), session)


def _variable(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise ValueError(f"needs the environment variable {name}, which is not set")
