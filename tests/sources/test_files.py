"""sources.readers: files, folders and archives give the same pages, or say why not."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.errors import Fault
from spack_cache_db.sources import File, RawFile
from spack_cache_db.sources.readers import plan, read

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
    assert all(isinstance(each, Fault) for each in found)
    return [str(each).replace(f"{folder}/", "") for each in found]


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
    assert [type(each) for each in found] == [RawFile, Fault]
    assert messages(found[1:], tmp_path) == [
        f"pages{suffix}/v0.18/b/specs.md: has 1,500 bytes, expected at most 1,000 (--max-page-size)"
    ]


def test_links_and_devices_in_archives_are_refused(tmp_path: Path) -> None:
    """A link could point anywhere; it is told and not followed. Zip marks it by its Unix mode."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo("link.md")
            member.type, member.linkname = kind, "/etc/passwd"
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
    # A plain tar file is padded with zeros; only its first two blocks of them are its end.
    end = len(whole.rstrip(b"\0")) if suffix == ".tar" else len(whole)
    for size in {0, 1, 511, 512, 513, end // 3, end // 2, end - 700, end - 1}:
        path.write_bytes(whole[:size])
        found = read_all([str(path)])
        assert isinstance(found[-1], Fault), size
        assert found[-1].message.startswith("the archive cannot be read to its end: "), size
        pages = {page.path: page.data for page in found if isinstance(page, RawFile)}
        assert pages.items() <= content.items()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_archives_never_raise(
    suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever bytes are changed, the answer is pages and faults, never an exception."""
    damaged = bytearray(pack(CONTENT, suffix))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / f"pages{suffix}"
    path.write_bytes(damaged)
    found = read_all([str(path)])
    assert found
    assert all(isinstance(each, RawFile | Fault) for each in found)


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
