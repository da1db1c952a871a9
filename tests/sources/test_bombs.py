"""An archive takes no more memory and time than its own size justifies."""

from __future__ import annotations

import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard

from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.sources import File, RawFile
from spack_cache_db.sources.archives import MAX_HEADERS, unpacked_limit
from spack_cache_db.sources.readers import read
from tests.commands import peak_memory
from tests.pagetexts import page

pytestmark = pytest.mark.slow

MEGABYTE = 10**6


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    """Write parts, compressed by zstd, and return the path."""
    with path.open("wb") as raw, zstandard.ZstdCompressor().stream_writer(raw) as stream:
        for part in parts:
            stream.write(part)
    return path


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return the header of a member that claims to have so many bytes."""
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def claiming(path: Path, kind: bytes, text: bytes) -> Path:
    """Write a tar file whose first header claims 4 GB of text, of which 30 MB are there."""
    parts = (text * (MEGABYTE // len(text)) for _ in range(30))
    return packed(path, [header("a.md", 4000 * MEGABYTE, kind), *parts])


def many_headers(path: Path) -> Path:
    """Write a tar file of 30 global headers that name nine thousand keys."""
    records = ({f"k{number}-{key}": "v" * 1000 for key in range(300)} for number in range(30))
    return packed(path, map(tarfile.TarInfo.create_pax_global_header, records))


def sparse(path: Path) -> Path:
    """Write a tar file whose first member has a map of a million holes."""
    first = bytearray(header("a.md", 0, tarfile.GNUTYPE_SPARSE))
    first[482] = 1
    first[148:156] = b"%06o\0 " % sum((*first[:148], *b" " * 8, *first[156:512]))
    piece = b"00000000001\0" * 42 + b"\1" + b"\0" * 7
    return packed(path, [bytes(first), *([piece * 1000] * 100)])


def lying(path: Path, method: int) -> Path:
    """Write a zip file with 120 MB of zeros that claims to hold a thousand bytes."""
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("a.md", "w") as stream:
        for _ in range(120):
            stream.write(bytes(MEGABYTE))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\1\2") + 24, 1000)
    path.write_bytes(data)
    return path


BOMBS: dict[str, Callable[[Path], Path]] = {
    "a long name": lambda folder: claiming(
        folder / "a.tar.zst", tarfile.GNUTYPE_LONGNAME, b"name" * 250
    ),
    "PAX records": lambda folder: claiming(
        folder / "a.tar.zst", tarfile.XHDTYPE, b"12 a=bbbbbb\n" * 80
    ),
    "global PAX records": lambda folder: many_headers(folder / "a.tar.zst"),
    "a sparse map": lambda folder: sparse(folder / "a.tar.zst"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_headers_are_read_within_a_bound(bomb: str, tmp_path: Path) -> None:
    """A header is refused by what it claims, many of them by what they have in all."""
    path = BOMBS[bomb](tmp_path)
    assert path.stat().st_size < 2 * MEGABYTE
    (found,) = read((File(str(path), path.name),), DEFAULT_MAX_PAGE_SIZE)
    assert str(found) == (
        f"{path}: the archive cannot be read to its end: "
        f"the headers of a member have more than {MAX_HEADERS:,} bytes"
    )


def test_a_tar_file_unpacks_to_a_bounded_size(tmp_path: Path) -> None:
    """Zeros without end, of a member that is not read, come to an end."""
    body = header("a.md", 5) + b"hello".ljust(512, b"\0")
    huge = header("b.md", 2000 * MEGABYTE)
    path = packed(tmp_path / "a.tar.zst", [body, huge, *([bytes(MEGABYTE)] * 500)])
    limit = unpacked_limit(path.stat().st_size)
    assert limit < 500 * MEGABYTE
    whole, too_large, cut = read((File(str(path), path.name),), DEFAULT_MAX_PAGE_SIZE)
    assert isinstance(whole, RawFile)
    assert "has 2,000,000,000 bytes" in str(too_large)
    assert str(cut).endswith(f"it unpacks to more than {limit:,} bytes")


def test_a_zip_file_unpacks_to_a_bounded_size(tmp_path: Path) -> None:
    """Members that lie at the same place of the file come to an end."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.md", bytes(10 * MEGABYTE))
    data = path.read_bytes()
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    directory = data[start:end] * 100
    path.write_bytes(
        data[:start]
        + directory
        + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 100, 100, len(directory), start, 0)
    )
    *found, cut = read((File(str(path), path.name),), DEFAULT_MAX_PAGE_SIZE)
    assert 5 < len(found) < 20
    assert "it unpacks to more than a thousand times its size" in str(cut)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_file_that_lies_about_its_size_takes_no_memory(method: int, tmp_path: Path) -> None:
    """What it claims is what is unpacked."""
    path = lying(tmp_path / "a.zip", method)
    status, megabytes, output = peak_memory("check", path, "--jobs", 1)
    assert status == 1
    assert "the archive cannot be read to its end" in output
    assert megabytes < 100


@pytest.mark.parametrize(
    ("before", "piece", "times"),
    [
        (b"spec_details: [", b"[],", 20 * MEGABYTE),
        (b"spec_details: [", b"[],", 249_000),
        (b"spec_details: [", b'{"":0},', 160_000),
        (b"categories: [", b"a,", 30 * MEGABYTE),
        (b"categories: [", b"a,", MEGABYTE),
        (b'title: "', "\N{GRINNING FACE}".encode(), 16 * MEGABYTE),
        (b'"oss": [', b'"a",', 400_000),
    ],
    ids=["lists", "fewer lists", "objects", "YAML", "less YAML", "wide text", "texts"],
)
def test_a_page_of_sixty_megabytes_in_six_kilobytes(
    before: bytes, piece: bytes, times: int, tmp_path: Path
) -> None:
    """Whatever it says, the build stays below 600 MB and ends in one fault or a hundred."""
    begin, _, end = page().partition(before)
    assert end
    text = begin + before + piece * times + end
    path = packed(tmp_path / "a.tar.zst", [header("a.md", len(text)), text, bytes(10240)])
    assert path.stat().st_size < MEGABYTE / 50
    status, megabytes, output = peak_memory("build", path, "-o", tmp_path / "x.db", "--jobs", 1)
    assert status == 1, output
    assert megabytes < 400
    assert "Traceback" not in output
    assert len(output.splitlines()) <= 103
