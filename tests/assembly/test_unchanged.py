"""assembly.unchanged: a build with nothing new ends after hashing its sources, and it
is never wrong about that.
"""

import gzip
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly import unchanged, workers
from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.report import Report
from spack_cache_db.bounded_files import LARGE
from spack_cache_db.errors import BuilderError
from spack_cache_db.inspect_file import inspect_path
from tests.assembly.test_history import night
from tests.commands import run
from tests.every_kind import MODULES, write_every_kind
from tests.examples import examples
from tests.indexes import index, node, real, record, write_layout3
from tests.pagetexts import page, spec, write
from tests.test_databases_as_sources import SOME, files, same, write_files
from tests.trees import installed, write_tree


def is_compared(report: Report) -> bool:
    """Return whether a build ended after it compared its sources."""
    assert ("compare" in report.stages) == (set(report.stages) == {"compare"})
    return "compare" in report.stages


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two pages in their folders."""
    write(tmp_path / "in" / "zlib", specs=page("zlib"))
    write(tmp_path / "in" / "hdf5", specs=page("hdf5", specs=[spec(2)]))
    return tmp_path / "in"


def test_the_report_is_that_of_the_build(pages: Path, tmp_path: Path) -> None:
    """The counts are the same, nothing is read, and the file is not touched."""
    file = tmp_path / "x.db"
    first = build(pages, file)
    before = file.stat()
    second = build(pages, file)

    assert is_compared(first) is False
    assert is_compared(second) is True
    assert second.is_unchanged is True
    assert second.bytes_read == 0
    different = {"seconds", "stages", "bytes_read", "is_unchanged"}
    for name, value in first.as_dict().items():
        if name not in different:
            assert second.as_dict()[name] == value
    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_mtime_ns == before.st_mtime_ns

    result = run("build", pages, "-o", file)
    assert "unchanged, because its input has nothing new" in result.stdout


def change_a_page(pages: Path) -> None:
    """Change one byte of a page, but neither its size nor its times."""
    path = pages / "zlib" / "specs.md"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().replace(b"zen3", b"zen4").replace(b"v3", b"v4"))
    os.utime(path, ns=times)


@pytest.mark.parametrize(
    "change",
    [
        change_a_page,
        lambda pages: (pages / "zlib" / "specs.md").unlink(),
        lambda pages: (pages / "zlib").rename(pages / "other"),
        lambda pages: write(pages / "zstd", specs=page("zstd", specs=[spec(3)])),
        lambda pages: (pages / "packages.json").write_text('["zlib"]'),
    ],
)
def test_any_change_of_the_sources_is_built(
    change: Callable[[Path], object], pages: Path, tmp_path: Path
) -> None:
    """Of a content, of a name, or of the number of files."""
    file = tmp_path / "x.db"
    build(pages, file)
    before = file.read_bytes()
    change(pages)

    assert not is_compared(build(pages, file))
    assert file.read_bytes() != before
    assert is_compared(build(pages, file))


def test_a_change_at_the_end_of_a_large_index_is_built(tmp_path: Path) -> None:
    """An index has megabytes, and its last record may be the one that changes."""
    path = tmp_path / "in" / "e4s" / "index.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(real())
    assert len(real()) > LARGE
    file = tmp_path / "x.db"
    first = build(tmp_path / "in", file)

    before, _, after = real().rpartition(b'"in_buildcache":true')
    path.write_bytes(before + b'"in_buildcache":false' + after)
    second = build(tmp_path / "in", file)

    assert not is_compared(second)
    assert second.specs == first.specs - 1
    assert is_compared(build(tmp_path / "in", file))


@pytest.mark.parametrize("form", ["plain", "compressed", "layout 3"])
def test_the_same_index_is_not_built_again(form: str, tmp_path: Path) -> None:
    """Whether its checksum is that of its file, of what it unpacks to, or of its
    manifest.
    """
    data = index(record(node("zlib")))
    mirror = tmp_path / "develop" / "e4s"
    mirror.mkdir(parents=True)
    if form == "layout 3":
        write_layout3(mirror, {None: data})
    else:
        if form == "compressed":
            data = gzip.compress(data)
        (mirror / "index.json").write_bytes(data)
    file = tmp_path / "x.db"

    assert not is_compared(build(tmp_path / "develop", file))
    assert is_compared(build(tmp_path / "develop", file))


@pytest.mark.parametrize(
    "options",
    [
        {"first": "develop"},
        {"recipes": {"builtin": "https://example.org/{package}"}},
        {"without_paths": True},
        {"release": "other"},
        {"stack": "other"},
        {"max_page_size": 2**20},
        {"force": True},
    ],
)
def test_other_options_are_built(
    options: dict[str, Any], pages: Path, tmp_path: Path
) -> None:
    """Also those that happen to change nothing; `force` always builds."""
    file = tmp_path / "x.db"
    build(pages, file)
    assert not is_compared(build(pages, file, **options))


def test_jobs_and_executors_change_nothing(pages: Path, tmp_path: Path) -> None:
    """Forty folders are hashed in several parts, by whatever reads them."""
    for number in range(40):
        write(
            pages / f"r{number}" / "zlib",
            specs=page("zlib", f"develop-2025-01-{number:02}", [spec(number)]),
        )
    file = tmp_path / "x.db"
    build(pages, file)

    assert is_compared(build(pages, file, jobs=2))
    with ThreadPoolExecutor(2) as executor:
        assert is_compared(build(pages, file, executor=executor))

    change_a_page(pages)
    with ThreadPoolExecutor(2) as executor:
        assert not is_compared(build(pages, file, executor=executor))
    assert is_compared(build(pages, file, jobs=2))


def test_another_program_builds(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of it, of archspec or of SQLite, or other code."""
    file = tmp_path / "x.db"
    build(pages, file)
    versions = workers.program_versions()

    for program in versions:
        other = versions | {program: "0.0.1"}
        with monkeypatch.context() as patch:
            patch.setattr(unchanged, "program_versions", lambda other=other: other)
            assert not is_compared(build(pages, file))
        build(pages, file)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "sqlite_version", "3.99.0")
        assert not is_compared(build(pages, file))

    build(pages, file)
    assert is_compared(build(pages, file))


def test_the_code_is_a_part_of_the_program(tmp_path: Path) -> None:
    """A changed module has another checksum, and so has another name."""
    (tmp_path / "a.py").write_text("x = 1")
    first = unchanged.code_sha256(tmp_path)

    assert unchanged.code_sha256(tmp_path) == first

    (tmp_path / "a.py").write_text("x = 2")
    second = unchanged.code_sha256(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")

    assert len({first, second, unchanged.code_sha256(tmp_path)}) == 3


def test_a_replaced_database_is_built(pages: Path, tmp_path: Path) -> None:
    """The inspect file of another database says nothing about this one."""
    file = tmp_path / "x.db"
    build(pages / "zlib", file)
    other = file.read_bytes()
    build(pages, file, force=True)
    expected = file.read_bytes()
    inspected = inspect_path(file).read_bytes()
    file.write_bytes(other)

    assert not is_compared(build(pages, file))
    assert file.read_bytes() == expected

    file.unlink()
    assert not is_compared(build(pages, file))
    for broken in ("}}", '"build": {}}}', '"build": {"settings": ""}}}', "[" * 10_000):
        inspect_path(file).write_text('{\n "spack-cache": {\n' + broken)
        assert not is_compared(build(pages, file))

    # Its own record, but without the hash of a build.
    inspect_path(file).write_bytes(inspected.replace(b'"hash": "', b'"hash": "0'))
    assert not is_compared(build(pages, file))


def test_a_source_that_becomes_unreadable_is_a_fault(
    pages: Path, tmp_path: Path
) -> None:
    """The build says so, as it would without an older database."""
    file = tmp_path / "x.db"
    build(pages, file)
    os.mkfifo(pages / "pipe")

    with pytest.raises(BuilderError, match="is a pipe"):
        build(pages, file)

    (pages / "pipe").unlink()
    with (pages / "hole").open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(BuilderError, match=r"is a sparse file|expected at most"):
        build(pages, file)

    (pages / "hole").unlink()
    shutil.rmtree(pages)
    with pytest.raises(BuilderError, match="no such file or folder"):
        build(pages, file)


def test_a_release_is_dropped_once(pages: Path, tmp_path: Path) -> None:
    """The second build with the same option says that there is no such release."""
    write(pages / "old", specs=page("zlib", "v0.22", [spec(7)]))
    file = tmp_path / "x.db"
    build(pages, file)
    build(file, file, drop=["v0.22"])

    with pytest.raises(BuilderError, match=r"drop is 'v0\.22', expected a release"):
        build(file, file, drop=["v0.22"])


def test_installations_and_modules_count(tmp_path: Path) -> None:
    """Their files are sources like others."""
    tree = write_tree(tmp_path / "opt", [installed(node("tool"))])
    modules = tmp_path / "modules"
    modules.mkdir()
    index = modules / "module-index.yaml"
    index.write_text("module_index: {}\n")
    options: dict[str, Any] = {
        "installations": [("cluster", tree)],
        "modules": [("cluster", modules)],
    }
    file = tmp_path / "x.db"
    build([], file, **options)

    assert is_compared(build([], file, **options))

    text = f"module_index:\n  {node('tool')['hash']}:\n    path: /m\n    use_name: m\n"
    index.write_text(text)
    report = build([], file, **options)

    assert not is_compared(report)

    second = build([], file, **options)
    assert is_compared(second)
    assert second.notes == report.notes
    assert second.notes


def test_own_files_in_a_folder_do_not_count(pages: Path) -> None:
    """A database beside its sources is skipped, and so is its inspect file."""
    file = pages / "x.db"
    build(pages, file)
    assert is_compared(build(pages, file))


def test_links_are_followed(pages: Path, tmp_path: Path) -> None:
    """A change behind a link is a change."""
    other = write(tmp_path / "elsewhere", specs=page("zstd", specs=[spec(5)]))
    (pages / "link").symlink_to(other)
    file = tmp_path / "x.db"
    build(pages, file)

    assert is_compared(build(pages, file))

    write(other, specs=page("zstd", specs=[spec(6)]))
    assert not is_compared(build(pages, file))


@pytest.mark.slow
def test_sources_of_every_kind(tmp_path: Path) -> None:
    """Archives, mirrors, indexes, installations and package data."""
    sources = write_every_kind(tmp_path / "in")
    shutil.rmtree(sources / "pages")
    archive = shutil.make_archive(str(tmp_path / "more"), "gztar", sources / "packages")
    modules = [sources / MODULES]
    file = tmp_path / "x.db"
    paths = [sources, Path(archive)]
    build(paths, file, modules=modules)

    assert is_compared(build(paths, file, modules=modules))
    for path in sorted(sources.rglob("*.json")):
        data = path.read_bytes()
        path.write_bytes(data + b"\n")
        assert not is_compared(build(paths, file, modules=modules))
        path.write_bytes(data)

    build(paths, file, modules=modules)
    assert is_compared(build(paths, file, modules=modules))


WAYS = st.fixed_dictionaries(
    {
        "is_on_output": st.booleans(),
        "snapshot": st.sampled_from([None, "2025-11-01", "2025-11-02"]),
    }
)
"""How a database is built of its sources."""


@pytest.mark.slow
@settings(SOME, max_examples=examples(30))
@given(before=files(), some=files(), pages_only=st.booleans(), first=WAYS, second=WAYS)
def test_what_is_not_built_would_be_the_same(
    before: dict[str, bytes],
    some: dict[str, bytes],
    pages_only: bool,
    first: dict[str, Any],
    second: dict[str, Any],
) -> None:
    """Whichever way a database was built, and is built again."""
    if pages_only:
        some = {path: data for path, data in some.items() if path.endswith(".md")}
        before = {path: data for path, data in before.items() if path.endswith(".md")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder / "before", before)
        sources = write_files(folder / "in", some)
        file = folder / "x.db"

        def built(output: Path, is_on_output: bool, **options: Any) -> Report | None:
            paths = [output, sources] if is_on_output else [sources]
            try:
                return build(paths, output, **options)
            except BuilderError:
                return None

        if first["is_on_output"]:
            try:
                build(folder / "before", file)
            except BuilderError:
                return
        if not built(file, **first):
            return
        other = Path(shutil.copy(file, folder / "other.db"))
        report = built(file, **second)
        if report is not None and is_compared(report):
            assert built(other, **second)
            assert same(file, other)


def test_a_day_replaces_pages_of_the_same_release(pages: Path, tmp_path: Path) -> None:
    """A database that has more pages than the sources is built when a day is given."""
    file = tmp_path / "x.db"
    build(pages / "zlib", file)
    build([file, pages / "hdf5"], file)
    assert is_compared(build([file, pages / "hdf5"], file))
    assert not is_compared(build([file, pages / "hdf5"], file, snapshot="2025-11-01"))


def test_a_history_is_not_replaced_by_its_mirrors(tmp_path: Path) -> None:
    """Without the database among the sources, its snapshots would be lost; and no
    snapshot comes before the newest one.
    """
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    build(mirrors, file, snapshot="2025-11-02")

    assert is_compared(build(mirrors, file, snapshot="2025-11-02"))
    with pytest.raises(BuilderError, match="has the release site-2025-11-02, which"):
        build(mirrors, file, snapshot="2025-11-03")

    build([file, mirrors], file, snapshot="2025-11-02")
    assert is_compared(build([file, mirrors], file, snapshot="2025-11-03"))
    with pytest.raises(BuilderError, match="already has a snapshot of 2025-11-02"):
        build([file, mirrors], file, snapshot="2025-11-01")


def test_the_second_night_is_compared_with_the_first(tmp_path: Path) -> None:
    """Also if the first one began the history with the same command."""
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    assert not is_compared(build([file, mirrors], file, snapshot="2025-11-02"))
    assert is_compared(build([file, mirrors], file, snapshot="2025-11-03"))
