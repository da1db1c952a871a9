"""cli.output: whatever ends a command leaves no traceback, no litter and no
half-written file.
"""

import io
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch.stack_folder import PART_FILE
from tests.builds import built, digest, digest_of, is_whole
from tests.pagetexts import SAMPLES, page, spec
from tests.processes import completed
from tests.sources.fetch.mirrors import below, index, layout_2
from tests.sources.fetch.server import Answer, Handler, serve, tag

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).parent / "spack-cache-db"
MODULE = [sys.executable, "-m", "spack_cache_db"]
TIDY = {"x.db", "x.inspect.json"}
LEFT = "; no incomplete file is left"

WHEN_LOADED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHEN_LOADED"]:
            sys.meta_path.remove(self)
            {}

sys.meta_path.insert(0, Finder())
"""
"""Python runs `sitecustomize` before all else: it does something when a module is
loaded.
"""


def environment(folder: Path, module: str, do: str) -> dict[str, str]:
    """Return an environment in which a process does something when it loads a
    module.
    """
    (folder / "sitecustomize.py").write_text(WHEN_LOADED.format(do))
    return {**os.environ, "PYTHONPATH": str(folder), "WHEN_LOADED": module}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of archives of pages, each a unit of its own, that takes a while to
    read.
    """
    folder = tmp_path_factory.mktemp("many")
    for number in range(36):
        specs = [
            spec(1000 * number + each, versions=[f"1.{each}"]) for each in range(50)
        ]
        data = page(f"p{number}", specs=specs)
        with tarfile.open(folder / f"{number % 12}.tar", "a") as tar:
            member = tarfile.TarInfo(f"p{number}.md")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return folder


@pytest.fixture(scope="module")
def new(many: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the file that is built of the archives."""
    return digest_of(built(tmp_path_factory.mktemp("new") / "x.db", many))


@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGINT, 3), (signal.SIGTERM, 1), (signal.SIGHUP, 3)]
)
def test_a_signal_ends_a_build_at_any_moment(
    number: int, jobs: int, many: Path, old: Path, new: str, tmp_path: Path
) -> None:
    """From the command's first line on: one line or none, no litter, the old file or
    the new.
    """
    output = tmp_path / "out" / "x.db"
    env = environment(tmp_path, "spack_cache_db.cli.build", "os.write(1, b'.')")
    length = 0.0
    ended = 0
    chance = random.Random()

    for _ in range(50):
        if ended == 2:
            break
        shutil.copytree(old, output.parent, dirs_exist_ok=True)
        with subprocess.Popen(
            [COMMAND, "build", many, "-o", output, "--force", "--jobs", str(jobs)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        ) as running:
            assert running.stdout is not None
            running.stdout.read(1)
            begun = time.monotonic()
            if length:
                with suppress(subprocess.TimeoutExpired):
                    running.wait(chance.uniform(0, length))
                # A terminal sends it to all processes.
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, number)
            # They end when the last process has ended that could say something.
            said = running.communicate(timeout=60)[1].decode()
        length = length or time.monotonic() - begun
        assert digest(output) in (digest(old / "x.db"), new)
        assert is_whole(output)
        assert {path.name for path in output.parent.iterdir()} == TIDY
        if running.returncode == 0:
            assert said == ""
            continue
        ended += 1
        assert running.returncode == -number, said
        line = f"Error: stopped by {signal.Signals(number).name}"
        assert said in ("", f"{line}\n", f"{line}{LEFT}\n")
    assert ended == 2


@pytest.mark.parametrize(
    ("begun", "module"),
    [
        ([str(COMMAND)], "spack_cache_db.cli.build"),
        ([str(COMMAND)], "numpy.linalg"),
        (MODULE, "spack_cache_db.assembly.pipeline"),
        (MODULE, "numpy"),
    ],
    ids=str,
)
def test_ctrl_c_while_the_command_is_loaded(
    begun: list[str], module: str, tmp_path: Path
) -> None:
    """While a command is imported: no traceback, and the status of the signal."""
    done = completed(
        [*begun, "build", str(SAMPLES), "-o", str(tmp_path / "x.db")],
        env=environment(tmp_path, module, "os.kill(os.getpid(), signal.SIGINT)"),
    )

    assert (done.returncode, done.stdout) == (-signal.SIGINT, "")
    assert done.stderr in (
        "",
        "Error: stopped by SIGINT\n",
        f"Error: stopped by SIGINT{LEFT}\n",
    )
    assert not (tmp_path / "x.db").exists()


def test_a_signal_that_is_ignored_stays_ignored(many: Path, tmp_path: Path) -> None:
    """`nohup` keeps a build and its workers alive when their terminal goes."""
    command = [*MODULE, "build", str(many), "-o", str(tmp_path / "x.db"), "--jobs", "2"]

    with subprocess.Popen(
        ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command],
        stdout=subprocess.PIPE,
        env=environment(
            tmp_path, "spack_cache_db.assembly.pipeline", "os.write(1, b'.')"
        ),
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.read(1)
        while running.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGHUP)
            time.sleep(0.05)
    assert running.returncode == 0


def test_the_cursor_comes_back(many: Path, tmp_path: Path) -> None:
    """A progress bar hides it, and a signal ends both."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*MODULE, "build", str(many), "-o", str(tmp_path / "x.db")], stderr=child
    ) as running:
        os.close(child)
        said = b""
        while b"\x1b[?25l" not in said:
            said += os.read(parent, 65536)
        running.send_signal(signal.SIGTERM)
        # Linux says by an error that nobody else has the terminal any more.
        with suppress(OSError):
            while part := os.read(parent, 65536):
                said += part
    os.close(parent)

    assert running.returncode == -signal.SIGTERM

    shown, _, last = said.rpartition(b"\x1b[?25h\r\n")
    assert shown
    assert last.decode() == f"Error: stopped by SIGTERM{LEFT}\r\n"


def stall_after(size: int, stalled: threading.Event) -> Answer:
    """Answer with so many bytes of a file and then no more, until the client leaves."""

    def answer(handler: Handler, data: bytes) -> None:
        handler.send(200, data[:size], etag=tag(data), content_length=len(data))
        handler.wfile.flush()
        stalled.set()
        handler.rfile.read(1)

    return answer


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGTERM, "Error: stopped by SIGTERM; run the same command again\n"),
        (signal.SIGKILL, ""),
    ],
)
def test_a_stopped_fetch_is_begun_again(
    number: signal.Signals, words: str, tmp_path: Path
) -> None:
    """The old index stays whole, and a hidden part stays that the next run replaces."""
    old = index("zlib")
    data = index("zlib", size=300_000)
    stalled = threading.Event()
    fetched = tmp_path / "m/a/root/build_cache/index.json"
    with serve(below("a", layout_2(old))) as site:
        command = [*MODULE, "fetch", f"{site.url}/a", "-o", str(tmp_path / "m")]
        completed(command, check=True)
        site.serve(below("a", layout_2(data)))
        site.answers["/a/build_cache/index.json"].append(stall_after(200_000, stalled))
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
            assert stalled.wait(30)
            received = tmp_path / "m"
            while not any(path.stat().st_size for path in received.rglob(PART_FILE)):
                time.sleep(0.05)
            running.send_signal(number)
            said = running.communicate(timeout=30)[1]
        assert (running.returncode, said, fetched.read_bytes()) == (-number, words, old)

        completed(command, check=True)
        assert fetched.read_bytes() == data
        assert list(received.rglob("*.part")) == []
