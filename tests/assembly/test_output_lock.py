"""build.output_lock: two builds never write one output at the same time."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.output_lock import alone_at
from spack_cache_db.errors import OutputError
from tests.assembly.test_history import listed, night
from tests.commands import run
from tests.pagetexts import page, write

HOLDER = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from spack_cache_db.assembly.output_lock import alone_at\n"
    "with alone_at(Path(sys.argv[1])):\n"
    "    print('locked', flush=True)\n"
    "    time.sleep(600)\n"
)


def test_a_second_build_is_refused_and_a_kill_blocks_nothing(tmp_path: Path) -> None:
    """While a process has the lock, builds of the output fail; after its death, they
    succeed.
    """
    pages = write(tmp_path / "in", a=page())
    output = tmp_path / "new" / "x.db"
    command = [sys.executable, "-c", HOLDER, str(output)]

    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        result = run("build", pages, "-o", output)
        message = f"{output}: another build is writing it: wait for its end; nothing was written"
        assert (result.exit_code, result.stderr) == (2, f"Error: {message}\n")
        assert run("build", pages, "-o", output.with_name("y.db")).exit_code == 0
        holder.send_signal(signal.SIGKILL)
    assert run("build", pages, "-o", output).exit_code == 0
    assert {path.name for path in output.parent.iterdir()} == {
        "x.db", "x.inspect.json", "y.db", "y.inspect.json"
    }  # fmt: skip


def test_threads_of_one_process_are_locked_as_well(tmp_path: Path) -> None:
    """Locks of files do not separate threads."""
    errors: list[OutputError] = []

    def try_lock() -> None:
        try:
            with alone_at(tmp_path / "x.db"):
                raise AssertionError("two builds have the lock")
        except OutputError as error:
            errors.append(error)

    with alone_at(tmp_path / ".." / tmp_path.name / "x.db"):
        thread = threading.Thread(target=try_lock)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    """A folder that did not exist before is removed again."""
    assert (
        run("build", tmp_path / "none", "-o", tmp_path / "a" / "b" / "x.db").exit_code
        == 1
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_program_replaced_stays(tmp_path: Path) -> None:
    """Where the system has no locks, a build notices that its output changed
    meanwhile.
    """
    file = tmp_path / "x.db"
    mirrors = night(tmp_path / "mirrors", "a")
    build([file, mirrors], file, snapshot="2026-11-24")
    night(mirrors, "b")
    other = tmp_path / "other.db"
    build([file, mirrors], other, snapshot="2026-11-25")
    night(mirrors, "c")

    def replace(done: float, total: int) -> None:
        if other.exists():
            other.replace(file)

    with pytest.raises(
        OutputError, match=r"x\.db: has changed since this build began, .* again$"
    ):
        build([file, mirrors], file, snapshot="2026-11-26", progress=replace)
    assert "site-2026-11-25" in listed(file)
    build([file, mirrors], file, snapshot="2026-11-26")
    assert {"site-2026-11-24", "site-2026-11-25", "site-2026-11-26"} < listed(
        file
    ).keys()


def test_an_inspect_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The database is in place by then, and the message says so."""
    pages = write(tmp_path / "in", a=page())
    output = tmp_path / "x.db"

    def block(done: float, total: int) -> None:
        (tmp_path / "x.inspect.json").mkdir(exist_ok=True)

    for what in ("the new database is complete and in place", "is unchanged"):
        with pytest.raises(
            OutputError, match=rf"x\.db: {what}, but .*inspect\.json was not"
        ):
            build(pages, output, progress=block)
        (tmp_path / "x.inspect.json").rmdir()
        assert listed(output) != {}
