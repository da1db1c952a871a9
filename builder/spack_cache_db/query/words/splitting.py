"""Splits a text into plain words, and a word into a name and a version.

`sudo apt install hdf5 >= 1.12, please` has the word `hdf5>=1.12`, and this has the name
`hdf5` and the range `1.12:`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from spack_cache_db.query.words.vocabulary import FILLERS

SEPARATORS = re.compile(r"[\s,;?!()]+")
"""What stands between words."""
COMPARISON = re.compile(r" ?(==|>=|<=) ?")
"""A sign between a name and a version, with blanks around it."""
OTHER_COMMAND = re.compile(
    r"^(sudo\s+)?(apt|apt-get|brew|conda|dnf|mamba|pip3?|yum)\s+(install|add|search)\s"
)
"""The beginning of a command of another package manager."""
WITH_GPU = re.compile(r"\b([\w-]+)-gpu\b", re.IGNORECASE)
"""A package of other software that is built for GPUs: `tensorflow-gpu`."""
NUMBER = re.compile(r"v?(\d[\w.:-]*?)(\.x)?")
"""A version alone: `13`, `v1.14.6`, `1.14.x`, `1.12:`."""
NAMES_AND_VERSIONS = (
    # hdf5@1.14, python=3.11, hdf5>=1.12, cmake-3.27.9
    re.compile(r"(.+?)(@|==?|>=|<=|[/:_-])v?(\d[\w.:]*)"),
    # gcc13
    re.compile(r"(.*?[a-z])()v?(\d[\w.:]*)"),
    # llvm@main
    re.compile(r"(.+)(@)(.+)"),
)
"""Words with a name, a sign and a version, as groups."""
RANGES = {">=": "{}:", "<=": ":{}"}
"""The ranges of Spack for signs of other programs; other signs mean one version."""


class NameAndVersion(NamedTuple):
    """The name in a word, and the version or range behind it; empty for none."""

    name: str
    version: str


def plain_words(text: str) -> list[str]:
    """Return the words of a text, without commands and fillers such as `with`.

    A text of fillers alone keeps them: it may be a name.
    """
    # `hdf5 >= 1.12` is one word.
    text = COMPARISON.sub(r"\1", text.strip())
    text = OTHER_COMMAND.sub("", text)
    text = WITH_GPU.sub(r"\1 gpu", text)
    words = [word for word in SEPARATORS.split(text) if word]
    meaningful = [word for word in words if word.lower() not in FILLERS]
    return meaningful or words


def fillers_in(text: str) -> list[str]:
    """Return the fillers of a text that has other words too, each once."""
    words = [word for word in SEPARATORS.split(text) if word]
    fillers = [word for word in words if word.lower() in FILLERS]
    if len(fillers) == len(words):
        return []
    return list(dict.fromkeys(fillers))


def number_in(word: str) -> str | None:
    """Return the version that a word is, such as `1.14` for `v1.14.x`; None for words
    with anything else.
    """
    match = NUMBER.fullmatch(word.lower())
    return None if match is None else match[1]


def name_and_version(word: str) -> NameAndVersion:
    """Return the name in a word, in lower case, and the version or range behind it.

    `gcc-13` has the name `gcc` and the version `13`, `hdf5>=1.12` the range `1.12:`.
    """
    word = word.lower()
    for pattern in NAMES_AND_VERSIONS:
        match = pattern.fullmatch(word)
        if match is not None:
            name, sign, version = match.groups()
            range_of_sign = RANGES.get(sign, "{}")
            return NameAndVersion(name, range_of_sign.format(version))
    return NameAndVersion(word, "")
