"""The database of a server process: what it refuses, and how it notices another
file.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from jinja2 import Environment, TemplateSyntaxError

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import DatabaseError
from spack_cache_db.inspect_file import inspect_path
from spack_cache_db.serve import server as server_module
from spack_cache_db.serve.datasette_app import SiteOptions
from spack_cache_db.serve.served import SETTLED_SECONDS, Served, identity_of
from spack_cache_db.serve.server import Server, ServerOptions
from spack_cache_db.site.http.own_pages import compile_templates
from tests.pagetexts import page, write


def built(folder: Path, name: str) -> Path:
    """Return a database with one package of this name."""
    file = folder / f"{name}.db"
    build([str(write(folder / f"pages-{name}", one=page(name)))], file)
    return file


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The database with the package `old-one`."""
    return built(tmp_path, "old-one")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The database with the package `new-one`."""
    return built(tmp_path, "new-one")


@pytest.fixture
def served(old: Path, tmp_path: Path) -> Served:
    """A copy of the old one that is served."""
    file = tmp_path / "served.db"
    shutil.copy(old, file)
    return Served(file, SiteOptions())


def get(served: Served, path: str, **headers: str) -> httpx.Response:
    """Return the response of the Datasette that is served."""
    response: httpx.Response = asyncio.run(
        served.datasette.client.get(path, headers=headers)
    )
    return response


def has(served: Served, name: str) -> bool:
    """Return whether a package has a page."""
    return get(served, f"/package/{name}").status_code == 200


def settle(file: Path) -> None:
    """Pretend that a file was written some time ago."""
    written = time.time() - SETTLED_SECONDS - 1
    os.utime(file, (written, written))


def test_a_stale_inspect_file_is_not_believed(old: Path) -> None:
    """An inspect file of another database is replaced by what this one really holds."""
    inspected = json.loads(inspect_path(old).read_text(encoding="utf-8"))
    inspected["spack-cache"]["hash"] = "0" * 64
    inspected["spack-cache"]["tables"]["specs"]["count"] = 999
    inspect_path(old).write_text(json.dumps(inspected), encoding="utf-8")
    counts = (
        Served(old, SiteOptions())
        .datasette.get_database("spack-cache")
        .cached_table_counts
    )

    assert counts["specs"] == 1


def test_a_file_that_is_moved_there_is_opened(
    served: Served, new: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The next request has the new content, once; nothing is said."""
    assert has(served, "old-one")
    assert not served.refresh()
    new.replace(served.path)
    assert served.refresh()
    assert not served.refresh()

    assert has(served, "new-one")
    assert not has(served, "old-one")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_another_file_is_refused_once(
    content: bytes | None, served: Served, new: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What cannot be served, or a missing file, is one line of log, and the old one is
    shown.
    """
    bad = served.path.with_name("bad")
    if content is None:
        content = new.read_bytes()[:-3000]
    bad.write_bytes(content)
    bad.replace(served.path)
    for _ in range(3):
        assert not served.refresh()
        assert has(served, "old-one")
    served.path.unlink()
    for _ in range(3):
        assert not served.refresh()
        assert has(served, "old-one")
    refused, missing = capfd.readouterr().err.splitlines()
    assert "the new file is refused, and the old content is served on" in refused
    assert "there is no such file any more" in missing

    new.replace(served.path)
    assert served.refresh()
    assert has(served, "new-one")


def test_a_file_that_is_overwritten_is_closed_until_it_is_whole(
    served: Served, new: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the old content nor a part of the new one is shown; one line says why."""
    whole = new.read_bytes()
    for end in (4096, 8192, len(whole)):
        served.path.write_bytes(whole[:end])
        assert not served.refresh()
        assert served.app is None
    served.path.write_bytes(whole[:8192])
    settle(served.path)
    assert not served.refresh()
    assert served.app is None
    served.path.write_bytes(whole)
    settle(served.path)
    assert served.refresh()

    assert has(served, "new-one")
    overwritten, refused = capfd.readouterr().err.splitlines()
    assert "overwritten in place" in overwritten
    assert "all requests get status 503" in refused


def test_a_range_is_of_the_file_of_its_tag(served: Served, new: Path) -> None:
    """Even between the move and the next look, a download has the bytes that it was
    tagged for.
    """
    old = served.path.read_bytes()
    first = get(served, "/spack-cache.db", Range="bytes=0-99")
    new.replace(served.path)
    headers = {"Range": "bytes=100-", "If-Range": first.headers["etag"]}
    rest = get(served, "/spack-cache.db", **headers)
    assert first.content + rest.content == old
    served.refresh()
    whole = get(served, "/spack-cache.db", **headers)

    assert (rest.status_code, whole.status_code) == (206, 200)
    assert whole.content == served.path.read_bytes()


def refusal(file: Path) -> str:
    """Return why a file is not served."""
    with pytest.raises(DatabaseError) as caught:
        Served(file, SiteOptions())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("start", "new", "message"),
    [
        (-3000, b"", "is damaged: "),
        (10_000, b"\xff" * 9_000, "is damaged: "),
        (100, bytes(3996), "is damaged: "),
        (0, b"something else", "expected a file made by build"),
    ],
)
def test_a_damaged_file_is_refused(
    start: int, new: bytes, message: str, samples_file: Path, tmp_path: Path
) -> None:
    """A file that is cut off, overwritten, or of another kind is refused before it is
    served.
    """
    data = samples_file.read_bytes()
    copy = tmp_path / "damaged.db"
    copy.write_bytes(
        data[:start] + new + (data[start + len(new) :] if start > 0 else b"")
    )

    assert message in refusal(copy)


def test_a_file_without_a_table_is_refused(samples_file: Path, tmp_path: Path) -> None:
    """A missing table, a folder and a missing file are reported as they are."""
    copy = Path(shutil.copy(samples_file, tmp_path))
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("DROP TABLE listings")

    assert refusal(copy).endswith(", or build it again")
    assert refusal(tmp_path).endswith(": is a folder, expected a regular file")
    assert "no such file; build one with: " in refusal(tmp_path / "missing.db")


def test_a_good_file_that_a_bad_one_replaced_at_once_can_come_back(
    old: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent, which missed it the first time, is told again, and opens it."""
    # Limits of the whole process are not those of this test.
    monkeypatch.setattr(server_module, "bound_heap", lambda: None)
    monkeypatch.setattr(server_module, "exclude_from_collection", lambda: None)
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: signals.append(number))
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"no database")
    identity = identity_of(new)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(old, SiteOptions(), ServerOptions(workers=2), listener)
        # A process has opened the new one, and the bad one comes before the parent
        # looks.
        server._announce(identity)
        bad.replace(old)
        server.reload()
        assert has(server._served, "old-one")

        new.replace(old)
        server._announce(identity)
        server.reload()
        assert has(server._served, "new-one")
    assert signals == [signal.SIGHUP] * 2


def test_a_file_that_is_replaced_while_it_is_opened_can_come_back(
    served: Served, new: Path, tmp_path: Path
) -> None:
    """The fault of the file that took its place is not taken for its own."""
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"no database")
    aside = tmp_path / "aside.db"
    os.link(new, aside)
    new.replace(served.path)

    @contextmanager
    def replaced_while_opening() -> Iterator[None]:
        bad.replace(served.path)
        yield

    served.while_opening = replaced_while_opening
    assert not served.refresh()
    served.while_opening = nullcontext
    aside.replace(served.path)
    assert served.refresh()
    assert has(served, "new-one")


PAGES = (
    "/",
    "/about",
    "/cover",
    "/diff",
    "/find",
    "/find?q=old",
    "/package/old-one",
    "/package/unknown",
    "/packages",
    "/releases",
    "/spack-cache",
    "/spack-cache/configurations",
    "/spack-cache/configurations/1",
    "/spack-cache/most_hashes",
    "/spack-cache?sql=select+1",
)
"""Pages of each kind: ours, with and without an answer, and those of Datasette."""


def refuse_to_compile(*_: object, **__: object) -> None:
    """Take the place of the method that compiles a template."""
    raise AssertionError("a page compiles a template")


def test_pages_compile_nothing_if_all_templates_are_compiled(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`compile_templates` compiles what the pages use, ours and those of Datasette."""
    monkeypatch.setattr(Environment, "compile", refuse_to_compile)
    with pytest.raises(AssertionError):
        has(served, "old-one")
    monkeypatch.undo()

    compile_templates(served.datasette)
    monkeypatch.setattr(Environment, "compile", refuse_to_compile)
    for path in PAGES:
        expected = 404 if path == "/package/unknown" else 200
        assert get(served, path).status_code == expected, path


def test_a_template_with_a_fault_is_left_to_its_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are compiled, and the server goes on."""
    real_compile = Environment.compile

    def fail_for_one(self: Environment, source: str, *args: object, **kw: object):  # type: ignore[no-untyped-def]
        if args[:1] == ("about.html",):
            raise TemplateSyntaxError("a fault", 1)
        return real_compile(self, source, *args, **kw)  # type: ignore[call-overload]

    monkeypatch.setattr(Environment, "compile", fail_for_one)
    compile_templates(served.datasette)

    monkeypatch.setattr(Environment, "compile", refuse_to_compile)
    assert has(served, "old-one")


@pytest.mark.parametrize(("workers", "expected"), [(3, [0, 1, 1]), (1, [0, 0, 0])])
def test_no_first_process_waits_for_templates(
    workers: int, expected: list[int], old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent compiles them once, before it forks the second of several processes;
    the replacement of a single one starts at once.
    """
    # Limits of the whole process are not those of this test.
    monkeypatch.setattr(server_module, "bound_heap", lambda: None)
    monkeypatch.setattr(server_module, "exclude_from_collection", lambda: None)
    compiled: list[object] = []
    monkeypatch.setattr(server_module, "compile_templates", compiled.append)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(old, SiteOptions(), ServerOptions(workers=workers), listener)
        counts = []
        for _ in range(3):
            server._before_fork(None, SimpleNamespace())
            counts.append(len(compiled))

    assert counts == expected
