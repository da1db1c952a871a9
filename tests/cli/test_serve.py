"""`serve` as a process: signals, crowds of visitors, and a file that is built anew meanwhile."""

import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from datasette.app import Datasette

from spack_cache_db.build import build
from tests.pagetexts import page, spec, write
from tests.processes import completed
from tests.serving import PATIENCE, Server, answers, eventually, serving

pytestmark = pytest.mark.slow

# Datasette 1.0 has an address for SQL, to which it leads from the old one.
SQL = f"/spack-cache{'' if hasattr(Datasette, 'metadata') else '/-/query'}.json?_shape=arrays&sql="
ENDLESS = (
    f"{SQL}WITH+RECURSIVE+n(x)+AS+(SELECT+1+UNION+ALL+SELECT+x%2B1+FROM+n)+SELECT+count(*)+FROM+n"
)
STREAM = "/spack-cache/spec_variants.csv?_stream=on&_size=1"
SMALL = 4096
BIG = 20_000_000


def padded(samples_file: Path, folder: Path) -> Path:
    """Return a copy in a folder of its own, larger than what the system takes in unread."""
    copy = folder / "served" / "samples.db"
    copy.parent.mkdir()
    shutil.copy(samples_file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE padding AS SELECT zeroblob(?) AS x", [BIG])
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
def shared(samples_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests leave as it was."""
    with serving(padded(samples_file, tmp_path_factory.mktemp("shared"))) as running:
        yield running


def litter(folder: Path) -> list[str]:
    """What servers have put into a folder."""
    return [each.name for each in folder.iterdir() if each.name.startswith(".")]


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
    """With streams, statements and stalled downloads under way it ends, and nothing is left."""
    assert litter(file.parent)
    with ExitStack() as stack:
        streams = [stack.enter_context(server.visit(STREAM)) for _ in range(4)]
        downloads = [
            stack.enter_context(server.visit("/spack-cache.db", buffer=SMALL)) for _ in range(8)
        ]
        for each in (*streams, *downloads):
            assert server.status_of(each) == 200
        for _ in range(8):
            stack.enter_context(server.visit(ENDLESS))
        # Five seconds are promised, the rest is for a machine busy with other tests.
        assert server.end(within=5 * 2) == 0
    assert "CancelledError" not in server.log.read_text()
    assert not litter(file.parent)
    assert not answers(server.address)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGHUP])
def test_it_ends_when_it_is_told_to(file: Path, sig: int) -> None:
    """Ctrl-C, a terminal that closes: nothing answers any more and nothing is left."""
    _, terminal = os.openpty()
    with serving(file, terminal=terminal) as server:
        assert litter(file.parent)
        assert server.end(sig) == 0
        assert not litter(file.parent)
        assert not answers(server.address)


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_without_a_terminal_it_reads_the_file_anew(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Without a terminal SIGHUP brings the new database; a faulty one is reported."""
    file = tmp_path / "served" / "x.db"
    for name in ("old-one", "new-one"):
        build(write(tmp_path / f"pages-{name}", one=page(name)), tmp_path / f"{name}.db")
    file.parent.mkdir()
    shutil.copy(tmp_path / "old-one.db", file)
    with serving(file, *options) as server:
        pid, statuses = server.process.pid, set()

        def is_new() -> bool:
            statuses.add(server.get("/").status_code)
            return server.get("/package/new-one").status_code == 200

        assert not is_new()
        (tmp_path / "new-one.db").replace(file)
        os.kill(pid, signal.SIGHUP)
        eventually(is_new)
        (tmp_path / "broken.db").write_text("no database")
        (tmp_path / "broken.db").replace(file)
        os.kill(pid, signal.SIGHUP)
        eventually(lambda: "is still served" in server.log.read_text())
        assert is_new() and statuses == {200}
        assert server.end() == 0
    assert not litter(file.parent)


def test_a_server_outlives_its_terminal_if_it_shall(file: Path) -> None:
    """Under `nohup` SIGHUP ends neither the server nor a worker."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with serving(file, "--workers", "2") as running:
            everybody = {running.process.pid, *running.workers()}
            for pid in everybody:
                os.kill(pid, signal.SIGHUP)
            time.sleep(1)
            assert answers(running.address)
            assert {running.process.pid, *running.workers()} == everybody
            assert running.end() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reader_of_the_log_may_leave(file: Path, workers: str) -> None:
    """`serve | head -1` goes on serving, without a word about each line that nobody reads."""
    command = [sys.executable, "-m", "spack_cache_db", "serve", str(file), "--port", "0"]
    command += ["--workers", workers]
    with subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(file.parent)},
    ) as process:
        assert process.stdout is not None
        url = next(each for each in process.stdout.readline().split() if each.startswith("http"))
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
        "from spack_cache_db.cli import main, serve\n"
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
    assert not litter(file.parent)


def test_a_build_under_its_feet_changes_nothing(server: Server, file: Path, tmp_path: Path) -> None:
    """`build` onto the served file: every thread and download shows the one that was opened."""
    old = hashlib.sha256(file.read_bytes()).hexdigest()
    build([str(write(tmp_path / "pages", a=page("new-package", specs=[spec()])))], file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() != old

    paths = ["/package/py-mpi4py", "/spack-cache/specs.json?_size=1", "/find?q=py-mpi4py@4"] * 16
    with ThreadPoolExecutor(16) as pool:
        answered = list(pool.map(server.get, paths))
    assert {each.status_code for each in answered} == {200}
    assert server.get("/package/new-package").status_code == 404
    download = server.get("/spack-cache.db")
    assert hashlib.sha256(download.content).hexdigest() == old
    assert download.headers["etag"] == f'"{old}"'


def test_a_new_worker_serves_the_same_file(file: Path, tmp_path: Path) -> None:
    """A worker that is started again after a build shows what the others show."""
    with serving(file, "--workers", "2") as server:
        build([str(write(tmp_path / "pages", a=page("new-package", specs=[spec()])))], file)
        before = set(server.workers())
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(server.workers()) == 2 and not before & set(server.workers()))
        eventually(lambda: answers(server.address))
        assert server.get("/package/py-mpi4py").status_code == 200
        assert server.get("/package/new-package").status_code == 404
        assert server.end() == 0
    assert not litter(file.parent)


def test_only_the_proxy_is_believed(shared: Server, file: Path) -> None:
    """Nobody says by a header how they came, but the proxy that is named."""
    page, forwarded = "/spack-cache/packages.json?_size=1", {"X-Forwarded-Proto": "https"}
    with (
        serving(file, "--proxy", "127.0.0.1", "--workers", "2") as behind,
        serving(file, "--proxy", "192.0.2.1") as elsewhere,
    ):
        for server, scheme in ((shared, "http"), (behind, "https"), (elsewhere, "http")):
            found = server.get(page, **forwarded).json()
            assert found["next_url"].startswith(f"{scheme}://127.0.0.1:{server.port}/")


def test_csv_that_is_too_large_breaks_the_connection(file: Path) -> None:
    """So no program takes a part of the rows for all of them."""
    many = ENDLESS.replace("+FROM+n)", "+FROM+n+LIMIT+900)").replace(".json", ".csv")
    rows = many.replace("count(*)", "x")
    with serving(file, "--setting", "max_csv_mb", "1") as server:
        assert len(server.get(rows).text.splitlines()) == 901
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            server.get(many.replace("count(*)", f"'{'x' * 2_000}'"))
