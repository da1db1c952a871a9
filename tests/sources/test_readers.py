"""sources: the input divided, each file read by what it holds, and odd texts
refused.
"""

import bz2
import lzma
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.errors import Fault
from spack_cache_db.model import Configuration
from spack_cache_db.sources import units
from spack_cache_db.sources.bounds import require_bounded
from spack_cache_db.sources.files import File, RawFile
from spack_cache_db.sources.readers import read_files
from spack_cache_db.sources.units import plan
from spack_cache_db.spack.lexer import QuerySyntaxError, is_package, tokens
from tests.configurations import configuration
from tests.indexes import index, node, record
from tests.pagetexts import page, spec_hash, write


def test_the_plan_does_not_depend_on_the_order_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files are divided the same way; archives come last, in units of their
    own.
    """
    monkeypatch.setattr(units, "ENTRIES_PER_UNIT", 2)
    write(tmp_path, a=b"1", b=b"2", c=b"3")
    path = f"{tmp_path}/pages.tar"
    Path(path).touch()
    files = [str(tmp_path / f"{name}.md") for name in "abc"]
    planned = plan([*files, path])

    assert plan([path, *reversed(files), files[0]]) == planned
    assert [len(unit) for unit in planned] == [2, 1, 1]
    assert planned[-1] == (File(path, "pages.tar"),)


def paths_of(*folders: Path) -> list[str]:
    """Return the names within the input of the files of these folders."""
    return sorted(entry.path for unit in plan(map(str, folders)) for entry in unit)


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    """What lies elsewhere is read, by the first link to it; what is read anyway is not
    again.
    """
    write(tmp_path / "in" / "real", a=b"x")
    write(tmp_path / "elsewhere" / "deep", b=b"x")
    for link, target in (
        ("again", "real"), ("linked", "../elsewhere"), ("third", "../elsewhere/deep"),
    ):  # fmt: skip
        (tmp_path / "in" / link).symlink_to(target)
    (tmp_path / "elsewhere" / "back").symlink_to("../in/real")

    assert paths_of(tmp_path / "in") == ["linked/deep/b.md", "real/a.md"]


@pytest.mark.parametrize("target", [".", "..", "../..", "/"])
def test_circles_are_told(tmp_path: Path, target: str) -> None:
    """A link to a folder that contains it is a fault; all other files are read, each
    once.
    """
    write(tmp_path / "in" / "below", a=b"x")
    (tmp_path / "in" / "below" / "round").symlink_to(target)

    files, faults = plan([str(tmp_path / "in")])

    assert [str(fault) for fault in faults] == [
        f"{tmp_path}/in/below/round: is a link to a folder that contains it, expected no circle"
    ]
    assert [file.path for file in files] == ["below/a.md"]


def test_a_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the files of the others."""
    write(tmp_path / "in" / "good", a=b"x")
    bad = tmp_path / "in" / "bad"
    bad.mkdir()
    listed = os.scandir

    def scandir(path: str) -> Any:
        if path == str(bad):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert plan([str(tmp_path / "in")]) == [
        (File(f"{tmp_path}/in/good/a.md", "good/a.md"),),
        (Fault(str(bad), 0, "cannot be listed: Permission denied"),),
    ]


def test_what_is_named_twice_is_read_once(tmp_path: Path) -> None:
    """A file and an archive of a folder that are also named themselves, in any
    order.
    """
    write(tmp_path / "in", a=b"x")
    (tmp_path / "in" / "b.tar").touch()
    paths = [f"{tmp_path}/{name}" for name in ("in", "in/a.md", "in/b.tar")]

    assert plan(paths) == plan(paths[::-1]) == plan(paths[:1])

    deeper = [str(tmp_path), *paths]
    (page,), (archive,) = plan(deeper)
    assert (page.path, archive.path) == ("a.md", "b.tar")
    assert plan(deeper) == plan(deeper[::-1])


def file(name: str, data: bytes) -> RawFile:
    """Return a file of that name."""
    return RawFile(f"in/{name}", name, data)


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\nsize 1\n",
            1,
            "is a Git LFS pointer",
        ),
        (b"<html><body>404 Not Found</body></html>", 1, "is an HTML page"),
        (
            b"---\ntitle: x\n<<<<<<< HEAD\n=======\n>>>>>>> x\n---\n",
            3,
            "has an unresolved merge",
        ),
        (
            b'{"database":\n<<<<<<< HEAD\n=======\n>>>>>>> x\n}',
            2,
            "has an unresolved merge",
        ),
        (
            b'[{"name": "zlib", "arch": {}, "hash": "a"}]',
            1,
            "is output of 'spack find --json'",
        ),
        (b"# mine\nspack:\n  specs: [zlib]\n", 1, "is an environment"),
        (lzma.compress(b"{}"), 1, "is compressed by a program that is not read here"),
        (bz2.compress(b"{}"), 1, "is compressed by a program that is not read here"),
        (b"SQLite format 3\0" + bytes(84), 1, "is an SQLite database that"),
        (b'\xef\xbb\xbf{"database": {}}', 1, "begins with a byte order mark"),
    ],
)
def test_files_given_by_mistake_are_named(data: bytes, line: int, said: str) -> None:
    """A file that cannot be read is named for what it is, not for what a page lacks."""
    (fault,) = read_files([file("index.json", data)]).faults
    assert (fault.path, fault.line) == ("in/index.json", line)
    assert fault.message.startswith(said)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "README.md",
            b"# Pages\n",
            "unknown kind of file, expected a page, an index, ",
        ),
        ("Makefile", b"all:\n---\n", "unknown kind of file, "),
        ("logo.png", b"\x89PNG\r\n\x1a\n\0\0", "unknown kind of file, "),
        (
            "zlib/specs.md",
            b"title: zlib\n",
            "no front matter, expected --- on the first",
        ),
        ("zlib.md", b"title: zlib\n---\n", "no front matter, "),
        ("zlib", b"\n", "the file is empty, "),
    ],
)
def test_only_a_file_that_looks_like_a_page_is_reported_as_one(
    name: str, data: bytes, message: str
) -> None:
    """For other files, the message lists the kinds of files that are read."""
    (fault,) = read_files([file(name, data)]).faults
    assert fault.message.startswith(message)


def test_the_kind_of_a_file_is_known_by_its_content() -> None:
    """Kinds meet in one unit, whatever the files are called, and share their texts."""
    other = index(record(node("zlib", hash=spec_hash(1))))
    found = read_files([file("a.md", other), file("b.json", page()), file("c", other)])
    assert [bool(document.page) for document in found.documents] == [False, True, False]
    assert len(found.things["hashes"]) == 1
    assert sorted(found.tables["listings"]["document"]) == [1, 2, 3]


@pytest.mark.parametrize(
    "odd", ["\u202e", "\u200b", "\n", "\x1b[2J", "\x85", "\ud800", "\U000e0001"]
)
def test_no_name_changes_how_text_around_it_is_shown(odd: str) -> None:
    """No name or variant has control or format characters, ends of lines, halves of
    pairs.
    """
    texts = dict.fromkeys(Configuration._fields, f"a{odd}b") | {
        "variants": (f"a=b{odd}c",)
    }

    for changes in ({name: value} for name, value in texts.items()):
        with pytest.raises(ValueError, match=r"^has (?:a|the) ") as caught:
            require_bounded(configuration(**changes))
        assert str(caught.value).isprintable()


@given(st.text(st.sampled_from("aZ09_-. /@=é\n"), max_size=6))
def test_packages_are_those_that_a_spec_can_name(name: str) -> None:
    """A package is accepted if, and only if, a spec of this text names it."""
    try:
        (word,) = tokens(name)
        can_be_named = word.kind == "name" and word.text == name != "*"
    except (QuerySyntaxError, ValueError):
        can_be_named = False

    assert is_package(name) == can_be_named
