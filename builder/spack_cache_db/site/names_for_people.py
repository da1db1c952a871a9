"""Names and dates for people: `RHEL 8`, `gcc 13.2.0`, `4 Oct 2026`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from markupsafe import Markup

from spack_cache_db.errors import bytes_text, counted
from spack_cache_db.model import NO_COMPILER

MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
"""The names of months. Those of `strftime` depend on the locale."""


_SYSTEMS = {
    "almalinux": "AlmaLinux",
    "amzn": "Amazon Linux",
    "centos": "CentOS",
    "debian": "Debian",
    "fedora": "Fedora",
    "opensuse-leap": "openSUSE Leap",
    "rhel": "RHEL",
    "rocky": "Rocky Linux",
    "sles": "SLES",
    "ubuntu": "Ubuntu",
}
"""The names of operating systems for people, by Spack's names without a version."""
_SYSTEM = re.compile(r"([a-z-]+?)(\d[\d.]*)")


def system_name(text: str) -> str:
    """Return the name of an operating system for people; others as Spack has them.

    >>> system_name("ubuntu24.04"), system_name("amzn2"), system_name("sequoia")
    ('Ubuntu 24.04', 'Amazon Linux 2', 'sequoia')
    """
    match = _SYSTEM.fullmatch(text)
    if match is None or match[1] not in _SYSTEMS:
        return text
    return f"{_SYSTEMS[match[1]]} {match[2]}"


_COMPILERS = {
    "intel-oneapi-compilers": "oneAPI",
    "intel-oneapi-compilers-classic": "Intel classic",
    "oneapi": "oneAPI",
}
"""The names of compilers for people, where they are much shorter than Spack's."""


def compiler_name(text: str) -> str:
    """Return the name of a compiler for people.

    >>> compiler_name("gcc@13.2.0"), compiler_name("none")
    ('gcc 13.2.0', 'no compiler')
    """
    if text == NO_COMPILER:
        return "no compiler"
    name, _, version = text.partition("@")
    return f"{_COMPILERS.get(name, name)} {version}".rstrip()


def newest_and_others(versions: Sequence[str]) -> str:
    """Return the newest of some versions, which is the last, and the number of others.

    >>> newest_and_others(["1.0", "1.1", "2.0"])
    '2.0 and 2 more'
    """
    others = len(versions) - 1
    return f"{versions[-1]} and {others:,} more" if others > 0 else versions[-1]


MOST_PROCESSORS = 4
"""Limit of processors that are named."""


def names_of_processors(names: Sequence[str]) -> str:
    """Return the names of some processors, or their number if they are many.

    >>> names_of_processors(["x86-64-v3", "aarch64"])
    'x86-64-v3, aarch64'
    """
    if len(names) > MOST_PROCESSORS:
        return f"{len(names)} kinds of processor"
    return ", ".join(names)


MOST_NAMED = 3
"""Limit of names in a sentence."""


def first_of(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    text = ", ".join(names[:MOST_NAMED])
    others = len(names) - MOST_NAMED
    return f"{text} and {others:,} more" if others > 0 else text


def sentence(text: str) -> str:
    """Return a text that begins with a capital, unless it begins with a spec or a hash.

    >>> sentence("gone from its mirror")
    'Gone from its mirror'
    >>> sentence("hdf5@1.14 has no binary")
    'hdf5@1.14 has no binary'
    """
    first = text.split(" ")[0]
    if "@" in first or "/" in first:
        return text
    return text[:1].upper() + text[1:]


def day_words(day: date) -> str:
    """Return a day for people: `4 Oct 2026`."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def date_words(text: str | None) -> str:
    """Return a date of the database for people; any other text as it is.

    >>> date_words("2026-10-04"), date_words("tomorrow")
    ('4 Oct 2026', 'tomorrow')
    """
    try:
        return day_words(date.fromisoformat(text or ""))
    except (TypeError, ValueError):
        return text or ""


def listed(names: Iterable[object], link: Callable[[object], str]) -> Markup:
    """Return the links of names, with commas between them."""
    return Markup(", ").join(link(name) for name in names)


TEXT_FUNCTIONS = {
    "bytes_text": bytes_text,
    "compiler_name": compiler_name,
    "counted": counted,
    "date_words": date_words,
    "day_words": day_words,
    "listed": listed,
    "number": "{:,}".format,
    "sentence": sentence,
    "system_name": system_name,
}
"""What templates call for texts, by their names there."""
