"""The kinds of processors that pages show as columns, in a fixed order.

Build caches have binaries for a few targets, mostly those of Spack's public cache. With
the same columns everywhere, a reader sees at a glance what is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from spack_cache_db.spack.targets import MAC

LINUX = "linux"


class Processor(NamedTuple):
    """A kind of processor that has a column.

    Attributes:
        name: its heading, such as `neoverse v1`.
        short: its heading on a phone, such as `nv1`.
        target: the target of its binaries; empty for macOS, and for all others.
        platform: the platform of its binaries; empty for all others.
    """

    name: str
    short: str
    target: str = ""
    platform: str = LINUX


MACS = Processor("macOS", "mac", platform=MAC)
OTHERS = Processor("other", "other", platform="")
"""The column of all binaries that have no column of their own."""
PROCESSORS = (
    Processor("x86-64-v3", "x86 v3", "x86_64_v3"),
    Processor("x86-64-v4", "x86 v4", "x86_64_v4"),
    Processor("aarch64", "arm", "aarch64"),
    Processor("neoverse v1", "nv1", "neoverse_v1"),
    Processor("neoverse v2", "nv2", "neoverse_v2"),
    MACS,
    OTHERS,
)
"""All columns, in order. Pages leave out the last one if nothing is in it."""
_BY_TARGET = {
    processor.target: processor for processor in PROCESSORS if processor.target
}


def processor_of(platform: str, target: str) -> Processor:
    """Return the column of a binary: macOS, on Linux that of its target, or `OTHERS`.

    >>> processor_of("linux", "neoverse_v2").name
    'neoverse v2'
    >>> processor_of("linux", "zen3").name
    'other'
    """
    if platform == MAC:
        return MACS
    if platform != LINUX:
        return OTHERS
    return _BY_TARGET.get(target, OTHERS)


def processor_name(platform: str, target: str) -> str:
    """Return what a binary runs on: the name of its column, or its target.

    >>> processor_name("linux", "zen3")
    'zen3'
    """
    processor = processor_of(platform, target)
    return target if processor is OTHERS else processor.name
