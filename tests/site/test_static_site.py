"""site.static.export: a folder that is whole, and that replaces nothing of others."""

import json
import re
import sqlite3
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from spack_cache_db import build
from spack_cache_db.output_folders import alone_in
from spack_cache_db.site.static.addresses import ASSETS, safe_name
from spack_cache_db.site.static.catalogue import CATALOGUE
from spack_cache_db.site.static.export import (
    LOADED,
    MACHINES,
    PART,
    PHRASES,
    export_static,
)
from spack_cache_db.site.static.vocabulary import VOCABULARY
from tests import pagetexts
from tests.commands import run
from tests.histories import lost_history
from tests.pagetexts import SAMPLE_PAGES
from tests.paths import ROOT
from tests.processes import completed


def export(file: Path, folder: Path) -> str:
    """Export a file, and return the name of its copy."""
    done = run("export-static", file, "-o", folder)
    assert done.exit_code == 0, done.stderr
    name: str = json.loads((folder / CATALOGUE).read_text())["database"]
    assert name in done.stdout
    return name


def test_the_folder_has_all_that_the_pages_need(
    samples_file: Path, tmp_path: Path
) -> None:
    """The pages of the site, what they load, a copy of the database, and its totals and
    largest packages.
    """
    folder = tmp_path / "public"
    name = export(samples_file, folder)
    scripts = {path.name for path in (ROOT / "static-site").iterdir()}
    loaded = {path.name for path in (folder / ASSETS).iterdir()}

    assert loaded == {*scripts, *LOADED, MACHINES, PHRASES}

    pages = {"index", "packages", "releases", "stacks", "about"}
    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert files == {*(f"{page}.html" for page in pages), CATALOGUE, VOCABULARY, name}
    assert (folder / name).read_bytes() == samples_file.read_bytes()

    catalogue = json.loads((folder / CATALOGUE).read_text())
    assert catalogue["totals"] == {"binaries": 413, "packages": 4, "releases": 2}
    assert len(list((folder / "package").iterdir())) == 4
    assert len(list((folder / "release").iterdir())) == 2
    counts = [count for _, _, count in catalogue["packages"]]
    assert len(counts) == 4
    assert counts == sorted(counts, reverse=True)


class Links(HTMLParser):
    """The addresses and the ids of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and the id of an element."""
        for name, value in attrs:
            if name in ("href", "src", "action"):
                self.addresses.append(value or "")
            elif name == "id" and value:
                self.ids.add(value)


@pytest.mark.parametrize("kind", ["samples", "real_index", "real_tree", "history"])
def test_no_link_is_dead(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each link of each page leads to a file of the folder, and to a part of its page,
    or to a route of the first page; none leads to the root of a server.
    """
    is_history = kind == "history"
    file: Path = (
        lost_history(tmp_path)
        if is_history
        else request.getfixturevalue(f"{kind}_file")
    )
    folder = tmp_path / "public"
    export(file, folder)
    pages = {page: Links(page) for page in folder.rglob("*.html")}
    routes = re.compile(r"/(binary/\w+|sql)")

    for page, links in pages.items():
        for address in links.addresses:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "data"):
                continue
            assert not address.startswith("/"), f"{page}: {address}"
            assert not parts.scheme, f"{page}: {address}"
            target = page
            if parts.path:
                target = (page.parent / unquote(parts.path)).resolve()
            assert target.is_file(), f"{page}: {address}"
            if not parts.fragment:
                continue
            is_route = routes.fullmatch(parts.fragment) is not None
            is_part = parts.fragment in pages[target].ids
            assert is_part or is_route, f"{page}: {address}"


def test_names_of_files_are_safe() -> None:
    """Different names have different files, also where capital letters do not count and
    names of devices are reserved.
    """
    names = ["hdf5", "HDF5", "a/b", "a~b", "con", "aux.x", ".hidden", "x" * 300]
    names += ["x" * 299 + "y", "é", "~48~44~465", "-x", "x."]
    safe = {safe_name(name) for name in names}

    assert len(safe) == len(names)
    assert len({name.lower() for name in safe}) == len(names)
    for name in safe:
        assert re.fullmatch(r"[a-z0-9_~][a-z0-9._+~-]*", name)
        assert len(name) < 200
    assert not {"con", "aux.x"} & safe


def test_the_scripts_know_the_files_of_renamed_packages(tmp_path: Path) -> None:
    """They link to each package by the name of its file, which is there."""
    pages = {}
    for number, name in enumerate(("hdf5", "aux", "HDF5"), start=1):
        pages[name] = pagetexts.page(name, specs=[pagetexts.spec(number)])
    pagetexts.write(tmp_path / "pages", **pages)
    build(tmp_path / "pages", tmp_path / "x.db")
    renamed = export_static(tmp_path / "x.db", tmp_path / "public")["renamedFiles"]

    assert renamed.keys() == {"aux", "HDF5"}
    for name, file in renamed.items():
        assert file == f"package/{safe_name(name)}.html"
        assert (tmp_path / "public" / file).is_file()


@pytest.mark.parametrize("tables", ["parquet", "csv"])
def test_tables_are_beside_the_page(
    tables: str, samples_file: Path, tmp_path: Path
) -> None:
    """Pages link to their description; those of a later export without them do not."""
    folder = tmp_path / "public"
    done = run("export-static", samples_file, "-o", folder, "--tables", tables)
    assert done.exit_code == 0, done.stderr
    alone = run("export", samples_file, "-o", tmp_path / "alone", "--format", tables)
    assert alone.exit_code == 0, alone.stderr
    assert contents(folder / "tables") == contents(tmp_path / "alone")
    description = "tables/datapackage.json"
    assert f'href="{description}"' in (folder / "index.html").read_text()
    resources = json.loads((folder / description).read_text())["resources"]
    assert all((folder / "tables" / each["path"]).is_file() for each in resources)

    export(samples_file, folder)
    assert description not in (folder / "index.html").read_text()


def test_a_killed_export_with_tables_is_finished_by_the_next(
    samples_file: Path, tmp_path: Path
) -> None:
    """The tables come first, so that they may be there without a page."""
    folder = tmp_path / "public"
    run("export", samples_file, "-o", folder / "tables")
    export(samples_file, folder)


def test_another_file_is_exported_under_another_name(
    samples_file: Path, tmp_path: Path
) -> None:
    """An open page never reads parts of two files; the old copy goes, other files
    stay.
    """
    folder = tmp_path / "public"
    old = export(samples_file, folder)

    assert export(samples_file, folder) == old

    build(SAMPLE_PAGES[0], tmp_path / "other.db")
    (folder / "spack-cache-mine.db").touch()
    new = export(tmp_path / "other.db", folder)

    assert new != old
    assert {path.name for path in folder.glob("*.db")} == {new, "spack-cache-mine.db"}


def test_a_folder_of_others_stays(samples_file: Path, tmp_path: Path) -> None:
    """What this command did not write is not written over, and nothing is put beside
    it.
    """
    (tmp_path / "index.html").write_text("mine")
    told = run("export-static", samples_file, "-o", tmp_path)
    assert told.exit_code == 2
    assert "has other files, expected a new or an empty folder" in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    """No folder is made for what the page could not show."""
    sqlite3.connect(tmp_path / "x.db").executescript("CREATE TABLE a (b)").close()
    told = run("export-static", tmp_path / "x.db", "-o", tmp_path / "public")
    assert told.exit_code == 2
    assert told.stderr.startswith("Error: ")
    assert not (tmp_path / "public").exists()


KILLED = """
import os, shutil, signal, sys
from itertools import count
from pathlib import Path
from spack_cache_db.site.static import export
from spack_cache_db.site.static.export import export_static

class Rendered(export.Pages):
    pages = []
    def rendered(self):
        if not self.pages:
            self.pages.extend(super().rendered())
        return self.pages

export.Pages = Rendered  # Renders the pages once, not for each kill.
STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.copyfile")
database, start, folders = map(Path, sys.argv[1:])
os.fsync = lambda _: None  # A kill loses nothing that the system has taken.
export_static(database, folders / "whole")
shutil.rmtree(folders / "whole")
for moment in count():
    folder = folders / str(moment)
    shutil.copytree(start, folder)
    child = os.fork()
    if not child:
        left = moment
        def step(event, arguments):
            global left
            # Reading templates and the database changes nothing.
            is_in_folder = any(str(each).startswith(str(folder)) for each in arguments)
            left -= event in STEPS and is_in_folder
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(step)
        export_static(database, folder)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""
"""Exports into a copy of a folder again and again, each time killed one step later."""


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_a_folder_of_ours(tmp_path: Path) -> None:
    """No half file has a name that is served, and the next export finishes the
    folder.
    """
    start = tmp_path / "start"
    folders = tmp_path / "folders"
    whole = tmp_path / "whole"

    # The folder shows one package, and then another one.
    build(SAMPLE_PAGES[0], tmp_path / "other.db")
    export(tmp_path / "other.db", start)
    old = contents(start)
    file = tmp_path / "samples.db"
    build(SAMPLE_PAGES[1], file)
    name = export(file, whole)
    new = contents(whole)
    completed([sys.executable, "-c", KILLED, file, start, folders], check=True)
    killed = list(folders.iterdir())
    assert len(killed) > len(new)
    # Many kills leave the same files: one folder of each state is enough.
    states = {}
    for folder in killed:
        names = sorted(path.name for path in folder.rglob("*"))
        states[frozenset(contents(folder).items()), *names] = folder
    for number, folder in enumerate(states.values()):
        shown = contents(folder)
        assert all(
            data in (new.get(path), old.get(path)) for path, data in shown.items()
        )
        if CATALOGUE in shown:
            assert json.loads(shown[CATALOGUE])["database"] in shown
        # Files follow one another: some of these states stand for all.
        if number % 8 == 0 or CATALOGUE not in shown:
            assert export(file, folder) == name
            assert contents(folder) == new


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder and of its folders, and what they contain."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(folder / PART)
    }


LIMITED = (
    "import resource, sys\n"
    "from spack_cache_db.cli.main import cli\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))\n"
    "cli()\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 700_000])
def test_a_full_disk_leaves_nothing_behind(
    size: int, samples_file: Path, tmp_path: Path
) -> None:
    """Export fails with one sentence, whichever file is too large, and works once there
    is room.
    """
    folder = tmp_path / "public"
    command = [
        sys.executable,
        "-c",
        LIMITED,
        size,
        "export-static",
        samples_file,
        "-o",
        folder,
    ]
    done = completed(command)

    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {folder}: ")
    assert (
        "cannot be written: File too large; free space or choose another" in done.stderr
    )
    assert done.stderr.count("\n") == 1
    assert not contents(folder)
    export(samples_file, folder)


@pytest.mark.parametrize("target", ["a file", "a folder", "nothing"])
def test_a_link_in_the_folder_is_replaced(
    target: str, samples_file: Path, tmp_path: Path
) -> None:
    """Whatever a file of the folder links to stays as it is, and the folder gets
    files.
    """
    folder = tmp_path / "public"
    kept = tmp_path / "kept"
    export(samples_file, folder)
    new = contents(folder)
    kept.mkdir()
    (kept / "file").write_text("mine")
    (kept / "copy").write_text("mine")
    places = {"a file": kept / "file", "a folder": kept, "nothing": kept / "none"}
    # Where the catalogue leads nowhere, the folder is not known any more.
    for name in new.keys() - ({CATALOGUE} if target != "a file" else set()):
        (folder / name).unlink()
        (folder / name).symlink_to(places[target])
    (folder / PART).symlink_to(places[target])
    export(samples_file, folder)

    assert contents(folder) == new
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert contents(kept) == {"file": b"mine", "copy": b"mine"}


def test_two_exports_into_one_folder(samples_file: Path, tmp_path: Path) -> None:
    """The second one says that it has to wait, and writes nothing."""
    with alone_in(tmp_path, "export"):
        done = run("export-static", samples_file, "-o", tmp_path)
    assert done.exit_code == 2
    assert "another export is writing into it" in done.stderr
    assert not list(tmp_path.iterdir())
