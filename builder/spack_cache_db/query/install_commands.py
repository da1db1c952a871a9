"""The commands that install binaries from mirrors: the only place that makes them.

A fresh Spack runs them as they are. They add each mirror that a closure needs, trust its keys if
it is signed, and install. If a dependency has no binary, Spack may build it from source.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spack_cache_db.query.closure import Closure, closures
from spack_cache_db.query.closure_words import (
    builds_sentence,
    external_sentence,
    gone_sentence,
    missing_sentence,
    size_words,
)
from spack_cache_db.query.commands import Commands, short_spec
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.load_commands import load_commands
from spack_cache_db.query.mirrors import Mirror

TRUST_KEYS = "yes | spack buildcache keys --install --trust"
"""Spack since June 2026 asks about each key, and would read the next pasted line as the answer."""
INSTALL = ("spack", "install")
CACHE_ONLY = "--cache-only"
"""Users who look for a binary do not want Spack to build one."""
PLACEHOLDER = "URL-of-your-mirror"
NO_ADDRESS = f"The address of the mirror is not known: put it in place of {PLACEHOLDER}."
MAYBE_UNSIGNED = (
    'if Spack says "no binary available", the mirror is not signed: add it with --unsigned'
)
OPTIONS = {
    "endpoint_url": "--s3-endpoint-url",
    "profile": "--s3-profile",
    "access_token_variable": "--s3-access-token-variable",
    "view": "--name",
}
"""Options of `spack mirror add` by the properties of mirrors.yaml (Spack 1.2 `cmd/mirror.py`)."""
S3_LOGIN = {
    "id_variable": "--s3-access-key-id-variable",
    "secret_variable": "--s3-access-key-secret-variable",
}
OCI_LOGIN = {
    "id_variable": "--oci-username-variable",
    "secret_variable": "--oci-password-variable",
}
"""Options by the properties of `access_pair`."""
OCI = ("oci://", "oci+http://")
NOT_IN_NAMES = re.compile(r"[^\w.+-]+", re.ASCII)
NAMELESS = "mirror"


def commands_of(
    lookups: Lookups, specs: Iterable[int], release: str | None = None
) -> dict[int, Commands]:
    """Return the commands that load each spec from an installation, or else install its binary.

    A spec that neither an installation nor a mirror has, now or earlier, has no key.

    Args:
        lookups: an open database.
        specs: ids of specs.
        release: the release to install from, or the installation to load from; None for any.
    """
    ids = list(dict.fromkeys(specs))
    found: dict[int, Commands] = {}
    of_ids = closures_in(lookups, ids, release)
    for spec, closure in of_ids.items():
        binary = closure.binary
        commands = load_commands(lookups.conn, binary.package, binary.hash, release)
        if commands is None:
            commands = mirror_commands(lookups, closure)
        if commands is not None:
            found[spec] = commands
    return found


def closures_in(
    lookups: Lookups, specs: Iterable[int], release: str | None = None
) -> Mapping[int, Closure]:
    """Return what installing each spec from a release, or from any, takes."""
    named = lookups.release(release)
    return closures(lookups, specs, named.id if named else None)


def mirror_commands(lookups: Lookups, closure: Closure) -> Commands | None:
    """Return the commands that install a binary; None if no mirror ever listed it.

    They have no lines if a mirror has lost it.
    """
    binary = closure.binary
    if not closure.is_listed and closure.last_seen is None:
        return None
    return install_commands([closure], [short_spec(lookups.conn, binary.package, binary.hash)])


def install_commands(closures: Sequence[Closure], specs: Sequence[str]) -> Commands:
    """Return the commands that install binaries, given what each takes and its short spec.

    Binaries that no mirror lists are left out; `note` says so.
    """
    listed = [
        (closure, spec) for closure, spec in zip(closures, specs, strict=True) if closure.is_listed
    ]
    gone = [closure for closure in closures if not closure.is_listed]
    mirrors = list(dict.fromkeys(mirror for closure, _ in listed for mirror in closure.mirrors))
    # Add the mirrors, and trust the keys of those that are or may be signed.
    lines = add_commands(mirrors)
    if any(mirror.is_signed is not False for mirror in mirrors):
        lines.append(TRUST_KEYS)
    # Install what needs no compiler first.
    complete = [spec for closure, spec in listed if not closure.missing]
    incomplete = [spec for closure, spec in listed if closure.missing]
    if complete:
        lines.append(shlex.join([*INSTALL, CACHE_ONLY, *complete]))
    if incomplete:
        lines.append(shlex.join([*INSTALL, *incomplete]))
    missing = [member for closure, _ in listed for member in closure.missing]
    externals = [member for closure, _ in listed for member in closure.externals]
    sentences = [missing_sentence(closure) for closure, _ in listed]
    notes = list(dict.fromkeys(gone_sentence(closure) for closure in gone))
    if any(mirror.url is None for mirror in mirrors):
        notes.append(NO_ADDRESS)
    is_unsure = any(mirror.is_signed is None for mirror in mirrors)
    return Commands(
        tuple(lines),
        release=mirrors[0].release if mirrors else "",
        note="; ".join(notes) or None,
        advice=MAYBE_UNSIGNED if is_unsure else None,
        is_known=bool(lines) and all(mirror.url is not None for mirror in mirrors),
        builds=builds_sentence(missing) if missing else None,
        missing=next(filter(None, sentences), None),
        needs=tuple(dict.fromkeys(map(external_sentence, externals))),
        size=size_words([closure for closure, _ in listed]) if listed else None,
        closures=tuple(closures),
    )


def add_commands(mirrors: Sequence[Mirror]) -> list[str]:
    """Return the commands that add mirrors, each with a name of its own."""
    commands = []
    for mirror, name in zip(mirrors, mirror_names(mirrors), strict=True):
        signature = ["--unsigned"] if mirror.is_signed is False else []
        url = mirror.url or PLACEHOLDER
        words = ["spack", "mirror", "add", *signature, *_options(mirror), name, url]
        commands.append(shlex.join(words))
    return commands


def mirror_names(mirrors: Sequence[Mirror]) -> list[str]:
    """Return a name for each mirror that Spack accepts: its release, and its stack if needed.

        develop, develop-e4s

    Spack takes a name with a slash for a path, and a name that starts with a dash for an option.
    """
    names: list[str] = []
    for mirror in mirrors:
        base = _mirror_name(mirror.release)
        candidates = [base]
        if mirror.stack is not None:
            candidates.append(f"{base}-{_mirror_name(mirror.stack)}")
        candidates += [f"{base}-{number}" for number in range(2, len(mirrors) + 2)]
        names.append(next(name for name in candidates if name not in names))
    return names


def _mirror_name(text: str) -> str:
    return NOT_IN_NAMES.sub("-", text).strip("-.") or NAMELESS


def _options(mirror: Mirror) -> Iterator[str]:
    """Yield the options for the properties of a mirror that Spack needs besides its URL."""
    for name, option in OPTIONS.items():
        if mirror.settings.get(name):
            yield from (option, str(mirror.settings[name]))
    login: Mapping[str, Any] = mirror.settings.get("access_pair") or {}
    is_oci = mirror.url is not None and mirror.url.startswith(OCI)
    for name, option in (OCI_LOGIN if is_oci else S3_LOGIN).items():
        if login.get(name):
            yield from (option, str(login[name]))
