"""The commands that install binaries from mirrors: the only place that makes them.

A fresh Spack runs them as they are. They add each mirror that has a binary or something
that it needs (its closure), trust its keys if it is signed, and install:

    spack mirror add develop https://binaries.example.org/develop
    yes | spack buildcache keys --install --trust
    spack install --cache-only hdf5/abcdefg

If a dependency has no binary, Spack may build it from source.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from spack_cache_db.query.commands.closure_words import (
    builds_sentence,
    external_sentence,
    gone_sentence,
    missing_sentence,
    size_words,
)
from spack_cache_db.query.commands.load import load_commands
from spack_cache_db.query.commands.model import Commands, short_spec
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.closure import Closure, Member, closures
from spack_cache_db.query.stored.mirrors import Mirror

TRUST_KEYS = "yes | spack buildcache keys --install --trust"
"""Spack since June 2026 asks about each key; without `yes`, it would read the next
pasted line as the answer.
"""
INSTALL = ("spack", "install")
"""The command that installs a binary, or builds what has none."""
CACHE_ONLY = "--cache-only"
"""Users who look for a binary do not want Spack to build one."""
PLACEHOLDER = "URL-of-your-mirror"
"""What stands in the commands for an unknown address."""
# Notes on the commands.
NO_ADDRESS = (
    f"The address of the mirror is not known: put it in place of {PLACEHOLDER}."
)
MAYBE_UNSIGNED = (
    'if Spack says "no binary available", the mirror is not signed: '
    "add it with --unsigned"
)
# The options of `spack mirror add` (Spack 1.2 `cmd/mirror.py`) for what a mirror has in
# mirrors.yaml.
OPTIONS = {
    "endpoint_url": "--s3-endpoint-url",
    "profile": "--s3-profile",
    "access_token_variable": "--s3-access-token-variable",
    "view": "--name",
}
"""The options for the properties of a mirror."""
S3_LOGIN = {
    "id_variable": "--s3-access-key-id-variable",
    "secret_variable": "--s3-access-key-secret-variable",
}
"""The options for the properties of `access_pair`, if the mirror is a bucket of S3."""
OCI_LOGIN = {
    "id_variable": "--oci-username-variable",
    "secret_variable": "--oci-password-variable",
}
"""The options for the properties of `access_pair`, if it is a registry."""
OCI_SCHEMES = ("oci://", "oci+http://")
"""The beginnings of the URLs of registries."""
NOT_IN_NAMES = re.compile(r"[^\w.+-]+", re.ASCII)
"""Characters that Spack does not accept in the name of a mirror."""
NAMELESS = "mirror"
"""The name of a mirror whose release has no character for a name."""


def commands_of(
    lookups: Lookups, specs: Iterable[int], release: str | None = None
) -> dict[int, Commands]:
    """Return the commands that load each spec from an installation, or else install its
    binary.

    A spec that neither an installation nor a mirror has, now or earlier, has no key.

    Args:
        lookups: an open database.
        specs: ids of specs.
        release: the release to install from, or the installation to load from; None for
            any.
    """
    found: dict[int, Commands] = {}
    for spec, closure in closures_in(lookups, specs, release).items():
        commands = commands_of_closure(lookups, closure, release)
        if commands is not None:
            found[spec] = commands
    return found


def commands_of_closure(
    lookups: Lookups, closure: Closure, release: str | None = None
) -> Commands | None:
    """Return the commands that load a spec from an installation, or else install its
    binary.

    None if neither an installation nor a mirror has it, now or earlier.
    """
    binary = closure.binary
    commands = load_commands(lookups.conn, binary.package, binary.hash, release)
    return mirror_commands(lookups, closure) if commands is None else commands


def closures_in(
    lookups: Lookups, specs: Iterable[int], release: str | None = None
) -> Mapping[int, Closure]:
    """Return what installing each spec takes, from the release of a name, or from any
    release.
    """
    named_release = lookups.release(release)
    release_id = None if named_release is None else named_release.id
    return closures(lookups, specs, release_id)


def mirror_commands(lookups: Lookups, closure: Closure) -> Commands | None:
    """Return the commands that install a binary; None if no mirror ever listed it.

    If its mirror has lost it, there are no lines, and the note says so.
    """
    binary = closure.binary
    if not closure.is_listed and closure.last_seen is None:
        return None
    spec = short_spec(lookups.conn, binary.package, binary.hash)
    return install_commands([closure], [spec])


def install_commands(closures: Sequence[Closure], specs: Sequence[str]) -> Commands:
    """Return the commands that install binaries.

    Binaries that no mirror lists are left out; `note` says so.

    Args:
        closures: each binary, and what installing it takes.
        specs: the text for each binary, such as `hdf5/abcdefg` (`short_spec`).
    """
    # Part the binaries: what needs no compiler is installed first.
    complete: list[str] = []
    incomplete: list[str] = []
    listed: list[Closure] = []
    notes: list[str] = []
    for closure, spec in zip(closures, specs, strict=True):
        if not closure.is_listed:
            notes.append(gone_sentence(closure))
            continue
        listed.append(closure)
        if closure.missing:
            incomplete.append(spec)
        else:
            complete.append(spec)

    mirrors = mirrors_of(listed)
    lines = list(setup_commands(mirrors))
    setup_count = len(lines)

    # Install the binaries.
    if complete:
        lines.append(shlex.join([*INSTALL, CACHE_ONLY, *complete]))
    if incomplete:
        lines.append(shlex.join([*INSTALL, *incomplete]))

    # Say what the commands need and what they may lack.
    has_addresses = all(mirror.url is not None for mirror in mirrors)
    if not has_addresses:
        notes.append(NO_ADDRESS)
    is_unsure = any(mirror.is_signed is None for mirror in mirrors)
    missing: list[Member] = []
    needs: list[str] = []
    for closure in listed:
        missing += closure.missing
        needs += [external_sentence(member) for member in closure.externals]
    return Commands(
        tuple(lines),
        release=mirrors[0].release if mirrors else "",
        note="; ".join(dict.fromkeys(notes)) or None,
        advice=MAYBE_UNSIGNED if is_unsure else None,
        is_known=bool(lines) and has_addresses,
        builds=builds_sentence(missing) if missing else None,
        missing=_first_missing_sentence(listed),
        needs=tuple(dict.fromkeys(needs)),
        size=size_words(listed) if listed else None,
        closures=tuple(closures),
        setup_count=setup_count,
    )


def setup_of(commands: Commands) -> Commands:
    """Return the commands that install a binary without those that install it: what a
    machine needs once.
    """
    mirrors = mirrors_of(closure for closure in commands.closures if closure.is_listed)
    return Commands(
        setup_commands(mirrors),
        release=commands.release,
        note=commands.note,
        advice=commands.advice,
        is_known=commands.is_known,
    )


# The binaries of a page have the same few mirrors.
@lru_cache(maxsize=128)
def setup_commands(mirrors: tuple[Mirror, ...]) -> tuple[str, ...]:
    """Return the commands that add mirrors, and trust the keys of those that are or may
    be signed.
    """
    lines = add_commands(mirrors)
    # Of some mirrors it is not known whether they are signed (None).
    if any(mirror.is_signed is not False for mirror in mirrors):
        lines.append(TRUST_KEYS)
    return tuple(lines)


def mirrors_of(closures: Iterable[Closure]) -> tuple[Mirror, ...]:
    """Return the mirrors of closures in order, each once."""
    mirrors: dict[Mirror, None] = {}
    for closure in closures:
        mirrors |= dict.fromkeys(closure.mirrors)
    return tuple(mirrors)


def _first_missing_sentence(closures: Sequence[Closure]) -> str | None:
    """Return the sentence on the first incomplete binary; None if all are complete.

    The numbers in a sentence are those of one binary, so sentences cannot be joined.
    """
    for closure in closures:
        sentence = missing_sentence(closure)
        if sentence is not None:
            return sentence
    return None


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
    """Return a name for each mirror: its release, or else its release with its stack,
    or else with a number, such as `develop`, `develop-e4s` and `develop-2`.
    """
    names: list[str] = []
    for mirror in mirrors:
        base = _name_for_spack(mirror.release)
        candidates = [base]
        if mirror.stack is not None:
            candidates.append(f"{base}-{_name_for_spack(mirror.stack)}")
        # There are enough numbers for all mirrors.
        candidates += [f"{base}-{number}" for number in range(2, len(mirrors) + 2)]
        unused = [name for name in candidates if name not in names]
        names.append(unused[0])
    return names


def _name_for_spack(text: str) -> str:
    """Return a name that Spack accepts for a mirror, such as `team-x` for `team/x`.

    Spack takes a name with a slash for a path, and a name that starts with a dash for
    an option.
    """
    return NOT_IN_NAMES.sub("-", text).strip("-.") or NAMELESS


def _options(mirror: Mirror) -> Iterator[str]:
    """Yield the options for the properties of a mirror that Spack needs besides its
    URL.
    """
    yield from _option_words(OPTIONS, mirror.settings)
    login: Mapping[str, Any] = mirror.settings.get("access_pair") or {}
    is_oci = mirror.url is not None and mirror.url.startswith(OCI_SCHEMES)
    yield from _option_words(OCI_LOGIN if is_oci else S3_LOGIN, login)


def _option_words(
    options: Mapping[str, str], properties: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the option and the value of each property that a mirror has."""
    for name, option in options.items():
        value = properties.get(name)
        if value:
            yield option
            yield str(value)
