"""sources.archives: members are read or refused by name, within the memory that they
justify.
"""

import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.errors import Fault
from spack_cache_db.sources import archives
from spack_cache_db.sources.archives import MAX_HEADERS, unpacked_limit
from spack_cache_db.sources.files import File, RawFile
from spack_cache_db.sources.readers import read
from spack_cache_db.sources.units import plan
from tests.commands import peak_memory
from tests.pagetexts import page

LIMIT = 10_000
CONTENT = {"develop/a/specs.md": b"one", "v0.18/b/specs.md": b"two" * 500}
SUFFIXES = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"]


def pack(content: dict[str, bytes], suffix: str) -> bytes:
    """Return an archive with these members."""
    out = io.BytesIO()
    if suffix == ".zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in content.items():
                archive.writestr(zipfile.ZipInfo(name), data)
        return out.getvalue()
    mode = "w:gz" if suffix in (".tar.gz", ".tgz") else "w:"
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]  # the mode is ours
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    if suffix == ".tar.zst":
        return zstandard.ZstdCompressor().compress(out.getvalue())
    return out.getvalue()


def archive(folder: Path, suffix: str, content: dict[str, bytes]) -> str:
    """Write an archive and return its path."""
    path = folder / f"pages{suffix}"
    path.write_bytes(pack(content, suffix))
    return str(path)


def read_all(paths: Iterable[str], limit: int = LIMIT) -> list[RawFile | Fault]:
    """Return everything that the input holds."""
    found = [page for unit in plan(paths) for page in read(unit, limit)]
    return [page for page in found if not isinstance(page, File)]


def messages(found: Iterable[RawFile | Fault], folder: Path) -> list[str]:
    """Return the faults as texts, relative to a folder."""
    assert all(isinstance(fault, Fault) for fault in found)
    return [str(result).replace(f"{folder}/", "") for result in found]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hidden_members_are_no_pages(suffix: str, tmp_path: Path) -> None:
    """Members whose name, or whose folder's name, starts with a dot are skipped."""
    content = {".hidden.md": b"no", ".git/config": b"no", "./develop/a.md": b"yes"}
    found = read_all([archive(tmp_path, suffix, content)])
    assert [page.data for page in found if isinstance(page, RawFile)] == [b"yes"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_large_member_is_refused_unread(suffix: str, tmp_path: Path) -> None:
    """A page above the limit is a fault; its neighbours are read."""
    found = read_all([archive(tmp_path, suffix, CONTENT)], limit=1000)
    assert [type(result) for result in found] == [RawFile, Fault]
    assert messages(found[1:], tmp_path) == [
        f"pages{suffix}/v0.18/b/specs.md: has 1,500 bytes, expected at most 1,000 (--max-page-size)"
    ]


def test_links_and_devices_in_archives_are_refused(tmp_path: Path) -> None:
    """A link could point anywhere; it is told and not followed. Zip marks it by its
    Unix mode.
    """
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo("link.md")
            member.type = kind
            member.linkname = "/etc/passwd"
            tar.addfile(member)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive_file:
        entry = zipfile.ZipInfo("link.md")
        entry.external_attr = 0o120777 << 16
        archive_file.writestr(entry, "/etc/passwd")
    told = "link.md: is a link or a device, expected a regular file"
    found = messages(read_all([str(tmp_path)]), tmp_path)

    assert found == [*[f"a.tar/{told}"] * 3, f"b.zip/{told}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_truncation_passes_for_a_whole_archive(suffix: str, tmp_path: Path) -> None:
    """Cut anywhere before its end, an archive gives a fault and no wrong page."""
    content = {f"page-{number}.md": os.urandom(700) for number in range(4)}
    whole = pack(content, suffix)
    path = tmp_path / f"pages{suffix}"
    # A plain tar file is padded with zeros; only its first two blocks of them are its
    # end.
    end = len(whole.rstrip(b"\0")) if suffix == ".tar" else len(whole)

    for size in {0, 1, 511, 512, 513, end // 3, end // 2, end - 700, end - 1}:
        path.write_bytes(whole[:size])
        found = read_all([str(path)])
        assert isinstance(found[-1], Fault), size
        assert found[-1].message.startswith(
            "the archive cannot be read to its end: "
        ), size
        pages = {page.path: page.data for page in found if isinstance(page, RawFile)}
        assert pages.items() <= content.items()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_archives_never_raise(
    suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever bytes are changed, the answer is pages and faults, never an
    exception.
    """
    damaged = bytearray(pack(CONTENT, suffix))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path = tmp_path_factory.mktemp("damaged") / f"pages{suffix}"
    path.write_bytes(damaged)
    found = read_all([str(path)])

    assert found
    assert all(isinstance(result, RawFile | Fault) for result in found)


def test_a_damaged_header_does_not_hide_what_follows(tmp_path: Path) -> None:
    """The second header is broken: `tarfile` would stop there as if it were the end."""
    whole = bytearray(pack({"a.md": b"one", "b.md": b"two"}, ".tar"))
    whole[1024:1034] = b"x" * 10
    path = tmp_path / "pages.tar"
    path.write_bytes(whole)
    page, fault = read_all([str(path)])

    assert isinstance(page, RawFile)
    assert page.data == b"one"
    assert messages([fault], tmp_path) == [
        "pages.tar: the archive cannot be read to its end: no member starts at byte 1,024, "
        "and it goes on after it"
    ]


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    """A pipe would block its reader for ever; a broken link leads nowhere."""
    os.mkfifo(tmp_path / "a.md")
    (tmp_path / "b.md").symlink_to("nowhere")

    assert messages(read_all([str(tmp_path)]), tmp_path) == [
        "a.md: is a pipe, expected a regular file",
        "b.md: cannot be read: No such file or directory",
    ]


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    """File names may be any bytes; a database holds text."""
    with open(os.fsencode(tmp_path) + b"/a\xff.md", "wb") as stream:  # noqa: PTH123 - bytes
        stream.write(b"x")
    assert messages(read_all([str(tmp_path)]), tmp_path) == [
        "a\\udcff.md: the name is not UTF-8, expected a UTF-8 name"
    ]


MEGABYTE = 10**6


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    """Write parts, compressed by zstd, and return the path."""
    with (
        path.open("wb") as raw,
        zstandard.ZstdCompressor().stream_writer(raw) as stream,
    ):
        for part in parts:
            stream.write(part)
    return path


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return the header of a member that claims to have so many bytes."""
    member = tarfile.TarInfo(name)
    member.size = size
    member.type = kind
    return member.tobuf(tarfile.GNU_FORMAT)


def with_checksum(member: bytearray) -> bytes:
    """Return a header of tar with its checksum."""
    member[148:156] = b"%06o\0 " % sum((*member[:148], *b" " * 8, *member[156:512]))
    return bytes(member)


def long_name(path: Path) -> Path:
    """Write a tar file with a name of 4 GB."""
    return claiming(path, tarfile.GNUTYPE_LONGNAME, b"name" * 250)


def pax_records(path: Path) -> Path:
    """Write a tar file with 4 GB of PAX records."""
    return claiming(path, tarfile.XHDTYPE, b"12 a=bbbbbb\n" * 80)


def claiming(path: Path, kind: bytes, text: bytes) -> Path:
    """Write a tar file whose first header claims 4 GB of text, of which 30 MB are
    there.
    """
    parts = (text * (MEGABYTE // len(text)) for _ in range(30))
    return packed(path, [header("a.md", 4000 * MEGABYTE, kind), *parts])


def many_headers(path: Path) -> Path:
    """Write a tar file of 30 global headers that name nine thousand keys."""

    def headers() -> Iterator[bytes]:
        for number in range(30):
            record = {f"k{number}-{key}": "v" * 1000 for key in range(300)}
            yield tarfile.TarInfo.create_pax_global_header(record)

    return packed(path, headers())


def sparse(path: Path) -> Path:
    """Write a tar file whose first member has a map of a million holes."""
    first = bytearray(header("a.md", 0, tarfile.GNUTYPE_SPARSE))
    first[482] = 1
    piece = b"00000000001\0" * 42 + b"\1" + b"\0" * 7
    return packed(path, [with_checksum(first), *([piece * 1000] * 100)])


def lying(path: Path, method: int) -> Path:
    """Write a zip file with 120 MB of zeros that claims to hold a thousand bytes."""
    with (
        zipfile.ZipFile(path, "w", method) as archive,
        archive.open("a.md", "w") as stream,
    ):
        for _ in range(120):
            stream.write(bytes(MEGABYTE))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\1\2") + 24, 1000)
    path.write_bytes(data)
    return path


BOMBS: dict[str, Callable[[Path], Path]] = {
    "a long name": long_name,
    "PAX records": pax_records,
    "global PAX records": many_headers,
    "a sparse map": sparse,
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_headers_are_read_within_a_bound(bomb: str, tmp_path: Path) -> None:
    """A header is refused by what it claims, many of them by what they have in all."""
    path = BOMBS[bomb](tmp_path / "a.tar.zst")
    assert path.stat().st_size < 2 * MEGABYTE

    (found,) = read_all([str(path)], DEFAULT_MAX_PAGE_SIZE)
    assert str(found) == (
        f"{path}: the archive cannot be read to its end: "
        f"the headers of a member have more than {MAX_HEADERS:,} bytes"
    )


@pytest.mark.slow
def test_a_tar_file_unpacks_to_a_bounded_size(tmp_path: Path) -> None:
    """Zeros without end, of a member that is not read, come to an end."""
    body = header("a.md", 5) + b"hello".ljust(512, b"\0")
    huge = header("b.md", 2000 * MEGABYTE)
    path = packed(tmp_path / "a.tar.zst", [body, huge, *([bytes(MEGABYTE)] * 500)])
    limit = unpacked_limit(path.stat().st_size)

    assert limit < 500 * MEGABYTE

    whole, too_large, cut = read_all([str(path)], DEFAULT_MAX_PAGE_SIZE)
    assert isinstance(whole, RawFile)
    assert "has 2,000,000,000 bytes" in str(too_large)
    assert str(cut).endswith(f"it unpacks to more than {limit:,} bytes")


@pytest.mark.slow
def test_a_zip_file_unpacks_to_a_bounded_size(tmp_path: Path) -> None:
    """Members that lie at the same place of the file come to an end."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.md", bytes(10 * MEGABYTE))
    data = path.read_bytes()
    start = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    directory = data[start:end] * 100
    path.write_bytes(
        data[:start]
        + directory
        + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 100, 100, len(directory), start, 0)
    )
    *found, cut = read_all([str(path)], DEFAULT_MAX_PAGE_SIZE)

    assert 5 < len(found) < 20
    assert "it unpacks to more than a thousand times its size" in str(cut)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_zip_file_that_lies_about_its_size_takes_no_memory(
    method: int, tmp_path: Path
) -> None:
    """What it claims is what is unpacked."""
    path = lying(tmp_path / "a.zip", method)
    status, megabytes, output = peak_memory("check", path, "--jobs", 1)
    assert status == 1
    assert "the archive cannot be read to its end" in output
    assert megabytes < 100


@pytest.mark.slow
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
    """Whatever it says, the build stays below 600 MB and ends in one fault or a
    hundred.
    """
    begin, _, end = page().partition(before)
    assert end

    text = begin + before + piece * times + end
    path = packed(
        tmp_path / "a.tar.zst", [header("a.md", len(text)), text, bytes(10240)]
    )
    assert path.stat().st_size < MEGABYTE / 50

    status, megabytes, output = peak_memory(
        "build", path, "-o", tmp_path / "x.db", "--jobs", 1
    )
    assert status == 1, output
    assert megabytes < 400
    assert "Traceback" not in output
    assert len(output.splitlines()) <= 103


def test_sparse_members_are_refused_by_name(tmp_path: Path) -> None:
    """Their size is only claimed: a thousand of them would unpack for hours."""
    good = page()
    data = header("a.md", len(good)) + good + bytes(-len(good) % 512)
    for number in range(1000):
        # An old GNU sparse member without any data, which claims a size (GNU tar,
        # `tar.h`).
        member = bytearray(header(f"s{number}.md", 0, tarfile.GNUTYPE_SPARSE))
        member[386:410] = b"%011o\0" % 2**25 + b"%011o\0" % 0
        member[483:495] = b"%011o\0" % 2**25
        data += with_checksum(member)
    (tmp_path / "x.tar").write_bytes(data + bytes(1024))

    found = read_all([str(tmp_path / "x.tar")])[1:]

    assert len(found) == 1000
    told = {message.partition(": ")[2] for message in messages(found, tmp_path)}
    assert told == {"is a sparse file, expected a regular file"}


def test_the_directory_of_a_zip_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`zipfile` would make an object of each entry before anything could be refused."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(200):
            archive.writestr(f"{number}.md", b"")
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 1000)

    (fault,) = read_all([str(tmp_path / "x.zip")])

    assert str(fault).endswith("its directory has more than 1,000 bytes")
