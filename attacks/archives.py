"""Archives that unpack to huge files, lead out of their folder, lie, or are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import time
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from attacks.builder import enough, judged_build
from attacks.outcome import Outcome
from tests.pagetexts import page

MEGABYTE = 10**6
DAMAGED = 20
"""Damaged archives in one folder."""
GOOD = page()


def archives(seconds: float) -> Outcome:
    """Build from each bomb, and between them from a folder of slightly damaged
    archives.
    """
    outcome, chosen = Outcome("archives"), random.Random(3)
    began, largest = time.monotonic(), 0.0
    for name, data in chain(_escapes(), _bombs()):
        for title, files in ((name, {name.rpartition(" ")[2]: data}), _damaged(chosen)):
            with TemporaryDirectory(prefix="attacks-") as folder:
                source = Path(folder, "source")
                source.mkdir()
                for file_name, content in files.items():
                    (source / file_name).write_bytes(content)
                built, faults = judged_build(source, Path(folder))
            outcome.judge(title, faults)
            outcome.tried += len(files) - 1
            largest = max(largest, built.megabytes)
        if enough(began, seconds):
            break
    outcome.note = f"at most {largest:.0f} MB"
    return outcome


def _bombs() -> Iterator[tuple[str, bytes]]:
    """Yield small archives with large content; the last word of a name is the file
    name.
    """
    for name, text in (
        (
            "lists",
            GOOD.replace(
                b"spec_details: [", b"spec_details: [" + b"[]," * 20 * MEGABYTE
            ),
        ),
        ("YAML", GOOD.replace(b"[package", b"[" + b"a," * 20 * MEGABYTE + b"package")),
        (
            "wide text",
            GOOD.replace(
                b'"zlib"', b'"' + "\U0001f600".encode() * 10 * MEGABYTE + b'"'
            ),
        ),
        ("a long version", GOOD.replace(b'"1.0"', b'"' + b"1." * 20_000 + b'0"')),
    ):
        yield f"{name} a.tar.zst", _zst(_tar(("a.md", text)))
        yield f"{name} a.tar.gz", gzip.compress(_tar(("a.md", text)), 9)
    yield "zeros a.tar.zst", _zst(_tar(("a.md", GOOD)) + bytes(500 * MEGABYTE))
    yield "nothing but zeros a.md.zst", _zst(bytes(500 * MEGABYTE))
    yield "twice packed a.tar.zst", _zst(_zst(bytes(500 * MEGABYTE)))
    yield (
        "long names a.tar.zst",
        _zst(_tar(*((f"{'d/' * 100_000}{number}.md", GOOD) for number in range(50)))),
    )
    claimed = tarfile.TarInfo("a.md")
    claimed.size, claimed.type = 4000 * MEGABYTE, tarfile.GNUTYPE_LONGNAME
    yield "a long name a.tar.zst", _zst(claimed.tobuf() + b"a" * 200 * MEGABYTE)
    claimed.type = tarfile.XHDTYPE
    yield (
        "PAX records a.tar.zst",
        _zst(claimed.tobuf() + b"12 a=bbbbbb\n" * 15 * MEGABYTE),
    )
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = bytearray(_zip(("a.md", bytes(100 * MEGABYTE)), method=method))
        struct.pack_into("<I", packed, packed.rfind(b"PK\1\2") + 24, 1000)
        yield f"a size that lies ({method}) a.zip", bytes(packed)
    yield (
        "many members a.zip",
        _zip(*((f"{number}.md", b"") for number in range(50_000))),
    )


def _escapes() -> Iterator[tuple[str, bytes]]:
    """Yield archives whose members have names or types that lead out of the folder."""
    names = (
        "../../a.md",
        "/etc/a.md",
        "a\\..\\b.md",
        "a\nb.md",
        "\x1b[2J.md",
        ".md",
        "//a.md",
        "é.md",
    )
    yield "names a.tar", _tar(*((name, GOOD) for name in names))
    yield "names a.zip", _zip(*((name, GOOD) for name in names))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        kinds = (
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.CHRTYPE,
            tarfile.FIFOTYPE,
            tarfile.DIRTYPE,
        )
        for number, kind in enumerate(kinds):
            member = tarfile.TarInfo(f"{number}.md")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    yield "links a.tar", stream.getvalue()
    for name in ("tar.gz", "tar.zst", "zip", "tar", "tar.xz", "tar.bz2", "md"):
        yield f"nothing a.{name}", b""
        yield f"a word a.{name}", b"attack"


def _damaged(chosen: random.Random) -> tuple[str, dict[str, bytes]]:
    """Return archives of every kind with a few random changes."""
    files = {}
    for number in range(DAMAGED):
        name = chosen.choice(sorted(_WHOLE))
        files[f"{number}{name}"] = damaged(chosen, _WHOLE[name])
    return "damaged archives", files


def damaged(chosen: random.Random, data: bytes) -> bytes:
    """Return bytes with one to eight positions changed, cut out, or doubled."""
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 8))):
        start = chosen.randrange(len(changed) or 1)
        length = chosen.choice((1, 1, 2, 512, len(changed)))
        change = chosen.choice(("change", "change", "cut", "double", "zero"))
        piece = changed[start : start + length]
        if change == "change" and piece:
            changed[start] = chosen.randrange(256)
        elif change == "cut":
            del changed[start : start + length]
        elif change == "double":
            changed[start:start] = piece
        elif change == "zero":
            changed[start : start + length] = bytes(len(piece))
    return bytes(changed)


def _zst(data: bytes) -> bytes:
    return zstandard.compress(data, 3)


def _tar(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _zip(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


_MEMBERS = [(f"{number}/a.md", page(release=f"r{number}")) for number in range(9)]
_WHOLE = {
    ".tar": _tar(*_MEMBERS),
    ".tar.gz": gzip.compress(_tar(*_MEMBERS)),
    ".tar.zst": _zst(_tar(*_MEMBERS)),
    ".tar.xz": lzma.compress(_tar(*_MEMBERS)),
    ".tar.bz2": bz2.compress(_tar(*_MEMBERS)),
    ".zip": _zip(*_MEMBERS),
}
