"""Archives that unpack to huge files, lead out of their folder, lie, or are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from attacks.builder import Run, judged_build
from attacks.outcome import Outcome, until
from tests.pagetexts import page

MEGABYTE = 10**6
DAMAGED = 20
"""Damaged archives in one folder."""
GOOD = page()
ODD_NAMES = (
    "../../a.md",
    "/etc/a.md",
    "a\\..\\b.md",
    "a\nb.md",
    "\x1b[2J.md",
    ".md",
    "//a.md",
    "é.md",
)
"""Names of members that lead out of the folder, or are invalid."""
ODD_TYPES = (
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
)
"""Types of members other than files."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A hostile archive: what is odd about it, its file name, and its bytes."""

    title: str
    file_name: str
    data: bytes


def archives(seconds: float) -> Outcome:
    """Build from each bomb, and between them from a folder of slightly damaged
    archives.
    """
    outcome = Outcome("archives")
    chance = random.Random(3)
    largest = 0.0
    for archive in until(seconds, chain(_escapes(), _bombs())):
        title = f"{archive.title} {archive.file_name}"
        built = _judge(outcome, title, {archive.file_name: archive.data})
        largest = max(largest, built.megabytes)
        built = _judge(outcome, "damaged archives", _damaged_archives(chance))
        largest = max(largest, built.megabytes)
    outcome.note = f"at most {largest:.0f} MB"
    return outcome


def _judge(outcome: Outcome, title: str, files: Mapping[str, bytes]) -> Run:
    """Build from a folder of these files, and judge each of them."""
    with TemporaryDirectory(prefix="attacks-") as folder:
        source = Path(folder, "source")
        source.mkdir()
        for name, content in files.items():
            (source / name).write_bytes(content)
        built, faults = judged_build(source, Path(folder))
    outcome.judge(title, faults)
    outcome.tried += len(files) - 1
    return built


def _bombs() -> Iterator[Archive]:
    """Yield small archives with large content."""
    # A page with much text in one place.
    for title, text in _large_pages().items():
        packed = _tar({"a.md": text})
        yield Archive(title, "a.tar.zst", _zst(packed))
        yield Archive(title, "a.tar.gz", gzip.compress(packed, 9))

    # Zeros after the archive, instead of it, and below two compressions.
    zeros = bytes(500 * MEGABYTE)
    yield Archive("zeros", "a.tar.zst", _zst(_tar({"a.md": GOOD}) + zeros))
    yield Archive("nothing but zeros", "a.md.zst", _zst(zeros))
    yield Archive("twice packed", "a.tar.zst", _zst(_zst(zeros)))

    # Long names, and headers of members that claim to be long.
    deep = "d/" * 100_000
    long_names = _tar({f"{deep}{number}.md": GOOD for number in range(50)})
    yield Archive("long names", "a.tar.zst", _zst(long_names))
    claimed = tarfile.TarInfo("a.md")
    claimed.size = 4000 * MEGABYTE
    claimed.type = tarfile.GNUTYPE_LONGNAME
    long_name = claimed.tobuf() + b"a" * 200 * MEGABYTE
    yield Archive("a long name", "a.tar.zst", _zst(long_name))
    claimed.type = tarfile.XHDTYPE
    records = claimed.tobuf() + b"12 a=bbbbbb\n" * 15 * MEGABYTE
    yield Archive("PAX records", "a.tar.zst", _zst(records))

    # Members of a ZIP archive whose size lies, and many members.
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive = bytearray(_zip({"a.md": bytes(100 * MEGABYTE)}, method))
        # The size stands 24 bytes after the beginning of a directory entry.
        position_of_size = archive.rfind(b"PK\1\2") + 24
        struct.pack_into("<I", archive, position_of_size, 1000)
        yield Archive(f"a size that lies ({method})", "a.zip", bytes(archive))
    many = _zip({f"{number}.md": b"" for number in range(50_000)})
    yield Archive("many members", "a.zip", many)


def _large_pages() -> dict[str, bytes]:
    """Return pages with much text in one place, by what is large."""
    lists = b"[]," * 20 * MEGABYTE
    names = b"a," * 20 * MEGABYTE
    wide_text = "\U0001f600".encode() * 10 * MEGABYTE
    version = b"1." * 20_000 + b"0"
    return {
        "lists": GOOD.replace(b"spec_details: [", b"spec_details: [" + lists),
        "YAML": GOOD.replace(b"[package", b"[" + names + b"package"),
        "wide text": GOOD.replace(b'"zlib"', b'"' + wide_text + b'"'),
        "a long version": GOOD.replace(b'"1.0"', b'"' + version + b'"'),
    }


def _escapes() -> Iterator[Archive]:
    """Yield archives whose members have names or types that lead out of the folder."""
    members = dict.fromkeys(ODD_NAMES, GOOD)
    yield Archive("names", "a.tar", _tar(members))
    yield Archive("names", "a.zip", _zip(members))

    # Links, devices and pipes.
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for number, kind in enumerate(ODD_TYPES):
            member = tarfile.TarInfo(f"{number}.md")
            member.type = kind
            member.linkname = "/etc/passwd"
            tar.addfile(member)
    yield Archive("links", "a.tar", stream.getvalue())

    # Files that only their name makes archives.
    for ending in ("tar.gz", "tar.zst", "zip", "tar", "tar.xz", "tar.bz2", "md"):
        yield Archive("nothing", f"a.{ending}", b"")
        yield Archive("a word", f"a.{ending}", b"attack")


def _damaged_archives(chance: random.Random) -> dict[str, bytes]:
    """Return archives of every kind with a few random changes, by file name."""
    files = {}
    for number in range(DAMAGED):
        ending = chance.choice(sorted(_WHOLE))
        files[f"{number}{ending}"] = damaged(chance, _WHOLE[ending])
    return files


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Return bytes with one to eight positions changed, cut out, or doubled."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        start = chance.randrange(len(changed) or 1)
        length = chance.choice((1, 1, 2, 512, len(changed)))
        end = start + length
        piece = changed[start:end]
        change = chance.choice(("change", "change", "cut", "double", "zero"))
        if change == "change" and piece:
            changed[start] = chance.randrange(256)
        elif change == "cut":
            del changed[start:end]
        elif change == "double":
            changed[start:start] = piece
        elif change == "zero":
            changed[start:end] = bytes(len(piece))
    return bytes(changed)


def _zst(data: bytes) -> bytes:
    return zstandard.compress(data, 3)


def _tar(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _zip(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


_MEMBERS = {f"{number}/a.md": page(release=f"r{number}") for number in range(9)}
_TAR = _tar(_MEMBERS)
_WHOLE = {
    ".tar": _TAR,
    ".tar.gz": gzip.compress(_TAR),
    ".tar.zst": _zst(_TAR),
    ".tar.xz": lzma.compress(_TAR),
    ".tar.bz2": bz2.compress(_TAR),
    ".zip": _zip(_MEMBERS),
}
"""Good archives of every kind, by the ending of their name."""
