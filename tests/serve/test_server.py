"""`serve` as a process: signals, crowds of visitors, and a file that is built anew
meanwhile.
"""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
from datasette.app import Datasette
from gunicorn.config import Config

from spack_cache_db.assembly.builds import build
from spack_cache_db.serve.application import MOST_WAITING
from spack_cache_db.serve.worker import Worker
from tests.pagetexts import page, write
from tests.processes import completed
from tests.serving import PATIENCE, Server, answers, eventually, serving

pytestmark = pytest.mark.slow

IS_065 = hasattr(Datasette, "metadata")
# Datasette 1.0 has another address for SQL.
PAGE_OF_SQL = "/spack-cache.json" if IS_065 else "/spack-cache/-/query.json"
SQL = f"{PAGE_OF_SQL}?_shape=arrays&sql="
ENDLESS = (
    f"{SQL}WITH+RECURSIVE+n(x)+AS+(SELECT+1+UNION+ALL+SELECT+x%2B1+FROM+n)"
    "+SELECT+count(*)+FROM+n"
)
STREAM = "/spack-cache/spec_variants.csv?_stream=on&_size=1"
HANGING = """
import time
from datasette import Response, hookimpl

def hang():
    time.sleep(60)

@hookimpl
def register_routes():
    return [("^/hang$", hang)]
"""
BROKEN_PLUGIN = """
from datasette import hookimpl

@hookimpl
def startup():
    raise LookupError("no such service")
"""
FAILING = """
from datasette import hookimpl

@hookimpl
def asgi_wrapper(datasette):
    def wrap(app):
        async def wrapped(scope, receive, send):
            if scope["type"] == "http" and scope["path"].startswith("/fail"):
                if scope["path"] == "/fail-late":
                    start = {"type": "http.response.start", "status": 200}
                    await send({**start, "headers": []})
                    body = {"type": "http.response.body", "body": b"a" * 70_000}
                    await send({**body, "more_body": True})
                raise LookupError("no such service")
            await app(scope, receive, send)
        return wrapped
    return wrap
"""
SERVE = [sys.executable, "-m", "spack_cache_db", "serve"]
"""The command, for tests that start it themselves."""
SMALL_BUFFER = 4096
"""The size of the buffer of a visitor who reads slowly, in bytes."""
PADDING = 20_000_000
"""More bytes than the system takes in for a visitor who does not read."""


def padded(samples_file: Path, folder: Path) -> Path:
    """Return a copy in a folder of its own, with `PADDING`."""
    copy = folder / "served" / "samples.db"
    copy.parent.mkdir()
    shutil.copy(samples_file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE padding AS SELECT zeroblob(?) AS x", [PADDING])
        connection.commit()
    return copy


@pytest.fixture
def file(samples_file: Path, tmp_path: Path) -> Path:
    """A file that the test may change."""
    return padded(samples_file, tmp_path)


@pytest.fixture
def server(file: Path) -> Iterator[Server]:
    """A server that the test may end."""
    with serving(file) as running:
        yield running


@pytest.fixture(scope="module")
def shared(
    samples_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with a name of its own, which tests leave as it was."""
    file = padded(samples_file, tmp_path_factory.mktemp("shared"))
    with serving(file, "--allow-host", "hub.example.org") as running:
        yield running


class Log:
    """The log of a server that other tests use as well, from here on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = len(server.log.read_text())

    def added(self) -> str:
        """Return what the server has written since then."""
        return self._server.log.read_text()[self._before :]


def leftovers(folder: Path) -> set[str]:
    """Return the names of files that servers have put into a folder."""
    names = {path.name for path in folder.iterdir()}
    return {name for name in names if not name.endswith((".log", ".db"))}


def test_work_stops_when_visitors_go(shared: Server) -> None:
    """Streams whose visitors have gone take no processor time any more."""
    visitors = [shared.visit(STREAM) for _ in range(4)]
    for visitor in visitors:
        assert shared.status_of(visitor) == 200
        visitor.close()

    def is_idle() -> bool:
        before = shared.cpu_seconds()
        time.sleep(1)
        return shared.cpu_seconds() - before < 0.2

    started = time.monotonic()
    eventually(is_idle)
    assert time.monotonic() - started < 10


def test_sigterm_ends_it_with_work_under_way(server: Server, file: Path) -> None:
    """With streams, statements and stalled downloads under way it ends, and nothing is
    left.
    """
    with ExitStack() as stack:
        downloads = [
            stack.enter_context(server.visit("/spack-cache.db", buffer=SMALL_BUFFER))
            for _ in range(2)
        ]
        for download in downloads:
            assert server.status_of(download) == 200
        for _ in range(8):
            stack.enter_context(server.visit(ENDLESS))
        # Five seconds are promised, the rest is for a machine busy with other tests.
        assert server.end(within=5 * 4) == 0
    assert not leftovers(file.parent)
    assert not answers(server.address)


def test_a_server_that_is_killed_leaves_nothing(file: Path) -> None:
    """After `kill -9` no file is left, and the processes that it started end by
    themselves.
    """
    with serving(file) as server:
        workers = server.workers()
        server.end(signal.SIGKILL)
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not leftovers(file.parent)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGHUP])
def test_it_ends_when_it_is_told_to(file: Path, sig: int) -> None:
    """Ctrl-C, a terminal that closes: nothing answers, nothing is left, and the log is
    quiet.
    """
    window, terminal = os.openpty()

    with serving(file, terminal=terminal) as server:
        os.close(terminal)
        if sig == signal.SIGHUP:
            os.close(window)
        assert server.end(sig) == 0
        assert not leftovers(file.parent)
        assert not answers(server.address)
        assert "destroyed" not in server.log.read_text()


def database_with(folder: Path, name: str) -> Path:
    """Build a database with one package of this name."""
    file = folder / f"{name}.db"
    build([str(write(folder / f"pages-{name}", one=page(name)))], file)
    return file


def test_a_new_database_is_shown_by_the_next_request(tmp_path: Path) -> None:
    """Under load, no request fails, and after `mv` every answer is of the new
    content.
    """
    file = tmp_path / "served" / "x.db"
    file.parent.mkdir()
    shutil.copy(database_with(tmp_path, "old-one"), file)
    new = database_with(tmp_path, "new-one")
    with serving(file, "--workers", "3") as server, ThreadPoolExecutor(4) as pool:
        assert server.get("/package/old-one").status_code == 200
        before = [pool.submit(server.get, f"/?x={number}") for number in range(200)]
        new.replace(file)
        after = [pool.submit(server.get, "/package/new-one") for _ in range(40)]

        for request in (*before, *after):
            assert request.result().status_code == 200
        assert server.end() == 0
    assert not leftovers(file.parent)


def test_a_process_that_starts_later_shows_what_the_others_show(tmp_path: Path) -> None:
    """After a bad file, and after all processes were killed, the last good content is
    shown.
    """
    file = tmp_path / "served" / "x.db"
    file.parent.mkdir()
    shutil.copy(database_with(tmp_path, "old-one"), file)

    with serving(file, "--workers", "2") as server:
        first_workers = set(server.workers())
        database_with(tmp_path, "new-one").replace(file)
        assert server.get("/package/new-one").status_code == 200
        # The parent opens the new one, too, and starts all processes again. It may have
        # done so before the response has come.
        await_other_workers(server, first_workers)
        file.unlink()
        killed = set(server.workers())
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        await_other_workers(server, killed)
        assert server.get("/package/new-one").status_code == 200
        assert server.get("/package/old-one").status_code == 404
        assert server.log.read_text().count("there is no such file any more") == 1


def await_other_workers(server: Server, ended: set[int]) -> None:
    """Return once two other processes have taken the place of those that ended."""

    def are_replaced() -> bool:
        workers = server.workers()
        return len(workers) == 2 and ended.isdisjoint(workers)

    eventually(are_replaced)


def test_a_request_that_hangs_is_ended_with_a_line(file: Path, tmp_path: Path) -> None:
    """Its visitor reads why, the log has the address, and others are answered
    meanwhile.
    """
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "hanging.py").write_text(HANGING)
    options = ["--plugins-dir", str(plugins), "--workers", "2", "--access-log"]

    with serving(file, *options) as server:
        with ThreadPoolExecutor(1) as pool:
            hanging = pool.submit(server.get, "/hang?a=b")
            for _ in range(5):
                assert server.get("/").status_code == 200
        assert hanging.result().status_code == 503
        assert "took too long" in hanging.result().text
        eventually(lambda: "ended process" in server.log.read_text())
        lines = server.log.read_text().splitlines()
        (ended,) = [
            line for line in lines if "ended process" in line and "/hang?a=b" in line
        ]
        assert ended.endswith(": GET /hang?a=b")
        assert server.get("/").status_code == 200
        assert re.search(r'"GET / HTTP/1.1" 200 \d+ms \d+', server.log.read_text())


def test_a_plugin_that_fails_is_named_before_anybody_is_served(
    file: Path, tmp_path: Path
) -> None:
    """Its hook `startup` is called first, as the command `datasette` does."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "broken.py").write_text(BROKEN_PLUGIN, encoding="utf-8")
    outcome = completed(
        [*SERVE, str(file), "--port", "0", "--plugins-dir", str(plugins)]
    )

    assert outcome.returncode == 2
    assert (
        "a plugin fails at the first page: LookupError: no such service"
        in outcome.stderr
    )
    assert "Traceback" not in outcome.stderr


def test_too_many_visitors_are_told_to_come_back(file: Path) -> None:
    """With more connections than may wait, one is refused at once, and says for how
    long.
    """
    with (
        serving(file, "--workers", "1") as server,
        ThreadPoolExecutor(MOST_WAITING * 3) as pool,
    ):
        paths = ["/find?q=%2Bmpi"] * MOST_WAITING * 3
        responses = list(pool.map(server.get, paths))
    refused = [response for response in responses if response.status_code == 503]

    assert {response.status_code for response in responses} == {200, 503}
    assert {response.headers["retry-after"] for response in refused} == {"5"}


def test_only_known_names_are_answered(shared: Server) -> None:
    """A website with a name of its own that leads to this machine cannot read the
    server.
    """
    assert shared.get("/", Host="hub.example.org").status_code == 200
    assert shared.get("/", Host="localhost:1").status_code == 200
    assert shared.get("/", Host="evil.example").status_code == 421


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/about", "localhost"),
        ("/-/health.json", "localhost"),
        ("/-/metrics", "localhost"),
        ("/spack-cache/packages.json", "localhost"),
        ("/nowhere", "localhost"),
        ("/about", "evil.example"),
        ("http://localhost/about", "localhost"),
    ],
)
def test_head_has_the_status_of_get_and_no_body(
    shared: Server, path: str, host: str
) -> None:
    """Also where the server answers itself; `OPTIONS` names the methods of every
    page.
    """
    received = {}
    for method in ("GET", "HEAD", "OPTIONS"):
        with socket.create_connection(("127.0.0.1", shared.port), PATIENCE) as visitor:
            request = (
                f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )
            visitor.sendall(request.encode())
            received[method] = b"".join(iter(lambda: visitor.recv(65_536), b""))

    statuses = {method: text.split()[1] for method, text in received.items()}
    assert statuses["HEAD"] == statuses["GET"]
    head, _, body = received["HEAD"].partition(b"\r\n\r\n")
    assert body == b""
    names = [line.partition(b":")[0] for line in head.splitlines()[1:]]
    whole_head = received["GET"].partition(b"\r\n\r\n")[0]
    names_of_get = [line.partition(b":")[0] for line in whole_head.splitlines()[1:]]
    assert set(names_of_get) - set(names) <= {b"Transfer-Encoding"}
    if host == "localhost" and path.startswith("/"):
        assert statuses["OPTIONS"] == b"204"
        assert b"allow: GET, HEAD, OPTIONS" in received["OPTIONS"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({f"X-{number}": "a" for number in range(200)}, 431),
        ({"X": "a" * 20_000}, 431),
        ({"Expect": "a miracle"}, 417),
    ],
)
def test_what_is_not_http_is_refused_with_the_headers_of_the_site(
    shared: Server, fields: dict[str, str], status: int
) -> None:
    """No cache keeps the refusal, no page frames it, and the log has one line about
    it.
    """
    log = Log(shared)
    answer = shared.get("/", **fields)
    lines = log.added().splitlines()

    assert answer.status_code == status
    assert answer.text.startswith("Error: ")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert sum("refused a request" in line for line in lines) == 1
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize(
    ("request_line", "field", "status"),
    [
        ("POST /cover.json HTTP/1.1", "X: a", 413),
        ("POST /package/hdf5 HTTP/1.1", "X: a", 405),
        ("POST /cover HTTP/1.1", f"X: {'a' * 20_000}", 431),
    ],
)
def test_a_refusal_reaches_a_client_that_still_writes(
    shared: Server, request_line: str, field: str, status: int
) -> None:
    """The whole body is taken, so that the connection is not reset before the answer is
    read.
    """
    body = b"q=" + b"x" * PADDING
    head = f"{request_line}\r\nHost: localhost\r\n{field}\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", shared.port), PATIENCE) as visitor:
        visitor.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: visitor.recv(65_536), b""))

    assert int(answer.split()[1]) == status
    assert b"Error: " in answer or b'"error"' in answer


def test_a_request_that_does_not_arrive_is_answered(shared: Server) -> None:
    """With 408, no cache keeps it, and the log has one line without a traceback."""
    log = Log(shared)
    with socket.create_connection(("127.0.0.1", shared.port), PATIENCE) as visitor:
        visitor.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        answer = b"".join(iter(lambda: visitor.recv(65_536), b""))

    assert shared.get("/").status_code == 200

    lines = log.added()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout")
    assert b"cache-control: no-store" in head
    assert b"did not arrive in time" in body
    assert lines.count("did not arrive in time") == 1
    assert "Traceback" not in lines


def test_a_response_that_has_begun_is_cut_off() -> None:
    """The signal that ends a process writes no second response into the first."""

    def application(_: object, start: Any) -> Iterator[bytes]:
        start("200 OK", [("content-type", "text/plain")])
        yield b"first"
        raise SystemExit(1)

    worker = Worker.__new__(Worker)
    worker.cfg = Config()
    worker.log = MagicMock()
    worker.wsgi = application
    worker.nr = 0
    worker.max_requests = 2
    worker.alive = True
    listener = socket.create_server(("127.0.0.1", 0))
    visitor = socket.create_connection(listener.getsockname(), PATIENCE)
    with listener, visitor:
        connection, address = listener.accept()
        visitor.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        worker.handle(listener, connection, address)
        answer = b"".join(iter(lambda: visitor.recv(65_536), b""))
    # The last chunk, of no bytes, is missing.
    assert answer.endswith(b"\r\n\r\n5\r\nfirst\r\n")
    assert answer.count(b"HTTP/1.1") == 1


def test_an_error_is_one_line_of_the_log(file: Path, tmp_path: Path) -> None:
    """Before the response has begun and after it; gunicorn writes no traceback of its
    own.
    """
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "failing.py").write_text(FAILING, encoding="utf-8")

    with serving(file, "--plugins-dir", str(plugins), "--workers", "1") as server:
        assert server.get("/fail").status_code == 500
        with pytest.raises(httpx.RemoteProtocolError):
            server.get("/fail-late")
        assert server.get("/").status_code == 200
        log = server.log.read_text()
    assert log.count("no such service") == 2
    assert "Traceback" not in log


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reader_of_the_log_may_leave(file: Path, workers: str) -> None:
    """`serve | head -1` goes on serving, without a word about each line that nobody
    reads.
    """
    command = [*SERVE, str(file), "--port", "0", "--workers", workers]

    with subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(file.parent)},
    ) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline()
        (url,) = [word for word in first_line.split() if word.startswith("http")]
        process.stdout.close()
        for _ in range(3):
            assert httpx.get(url, timeout=PATIENCE, verify=False).status_code == 200
        process.terminate()
        errors = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert "BrokenPipe" not in errors, errors


def test_ctrl_c_before_it_serves(file: Path) -> None:
    """Nothing is left then either."""
    program = (
        "import os, signal\n"
        "from spack_cache_db.cli import serve\n"
        "from spack_cache_db.cli.main import main\n"
        "def stopped(*given):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "serve.listen = stopped\n"
        "main()\n"
    )
    done = completed(
        [sys.executable, "-c", program, "serve", str(file), "--port", "0"],
        env={**os.environ, "TMPDIR": str(file.parent)},
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"Loading {file} ...\n"
    assert not leftovers(file.parent)


def test_only_the_proxy_is_believed(shared: Server, file: Path) -> None:
    """Nobody says by a header how they came, but the proxy that is named."""
    with (
        serving(file, "--proxy", "127.0.0.1", "--workers", "2") as behind,
        serving(file, "--proxy", "192.0.2.1") as elsewhere,
    ):
        assert next_address(shared).startswith(f"http://127.0.0.1:{shared.port}/")
        assert next_address(behind).startswith(f"https://127.0.0.1:{behind.port}/")
        assert next_address(elsewhere).startswith(f"http://127.0.0.1:{elsewhere.port}/")


def next_address(server: Server) -> str:
    """Return the address of the next page, as a visitor over HTTPS gets it."""
    page = "/spack-cache/packages.json?_size=1"
    response = server.get(page, **{"X-Forwarded-Proto": "https"})
    return str(response.json()["next_url"])


def test_csv_that_is_too_large_breaks_the_connection(file: Path) -> None:
    """So no program takes a part of the rows for all of them."""
    many = ENDLESS.replace("+FROM+n)", "+FROM+n+LIMIT+900)").replace(".json", ".csv")
    rows = many.replace("count(*)", "x")

    with serving(file, "--setting", "max_csv_mb", "1") as server:
        assert len(server.get(rows).text.splitlines()) == 901
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            server.get(many.replace("count(*)", f"'{'x' * 2_000}'"))
