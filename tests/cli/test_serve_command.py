"""The command `serve` before it serves: its socket, and what it refuses."""

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.cli.serve import ListenError, address_of, listen
from spack_cache_db.errors import DatabaseError
from spack_cache_db.site.folder import site_folder
from tests.commands import run
from tests.paths import ROOT
from tests.processes import completed


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])
def test_it_listens_where_it_says(host: str) -> None:
    """A visitor reaches the address as soon as they send something."""
    with closing(listen(host, 0)) as listener:
        name, port = listener.getsockname()[:2]
        assert address_of(listener).endswith(f":{port}/")
        assert ("[" in address_of(listener)) is (":" in name)
        with closing(socket.create_connection((name, port))) as visitor:
            listener.settimeout(0.2)
            with pytest.raises(TimeoutError):
                listener.accept()
            visitor.sendall(b"GET ")
            listener.settimeout(60)
            accepted, _ = listener.accept()
            assert accepted.recv(4) == b"GET "
            accepted.close()


@pytest.mark.parametrize(
    "host",
    ["192.0.2.7", "no.such.host.invalid", "", "a..b", "a\0b", "\ud800", "x" * 300],
)
def test_an_odd_host_is_told(host: str) -> None:
    """A host that is none, or not of this machine: one line that says what to do."""
    with pytest.raises(ListenError, match="use an address of this machine") as caught:
        listen(host, 0)
    assert str(caught.value).startswith(f"--host {host}: ")
    assert "\n" not in str(caught.value)


def run_serve(*arguments: object) -> tuple[int, str]:
    """Run `serve` until it ends, which it does at once when it refuses: its status and
    errors.
    """
    done = completed(
        [sys.executable, "-m", "spack_cache_db", "serve", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
def test_a_refusal_is_one_line(samples_file: Path, tmp_path: Path) -> None:
    """A port that is in use and a file that is missing: status 2, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = {
            f"Error: port {port} is in use; ": run_serve(samples_file, "--port", port),
            "Error: --proxy nginx: ": run_serve(samples_file, "--proxy", "nginx"),
            f"Error: {tmp_path}/missing.db: ": run_serve(tmp_path / "missing.db"),
        }

    for start, (status, said) in refusals.items():
        *loading, refusal = said.splitlines()
        assert status == 2
        assert refusal.startswith(start)
        assert len(loading) <= 1 and all(
            each.startswith("Loading ") for each in loading
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--setting", "sql_time_limit", "5"), "close: sql_time_limit_ms"),
        (("--setting", "sql_time_limit_ms", "soon"), "not a whole number"),
        (("--setting", "allow_download", "5"), "neither on nor off"),
        (("--metadata", "[1]"), "expected a mapping"),
        (("--metadata", "a: [b"), "m.yml:1: broken YAML"),
        (
            ("--metadata", "a:\n " + "[" * 9_999),
            "m.yml:2: is nested more than 32 levels deep: ",
        ),
        (("--metadata", "a: 1\na: 2"), "m.yml:1: a repeated key, expected each once"),
        (("--metadata", "settings: {nope: 1}"), "no setting is called 'nope'"),
        (
            ("--metadata", "plugins: {spack-cache-db: {open: 1}}"),
            "no key is called 'open'",
        ),
    ],
)
def test_what_it_cannot_be_told_is_refused(
    samples_file: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """A setting, a metadata file or an allowance that is wrong: one line that names
    it.
    """
    *option, value = arguments
    if option == ["--metadata"]:
        value = str(tmp_path / "m.yml")
        Path(value).write_text(arguments[-1])
    found = run("serve", samples_file, *option, value, "--port", "0")

    assert found.exit_code == 2
    assert said in found.stderr
    assert found.stderr.splitlines()[-1].startswith("Error: ")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package elsewhere, in `builder/` of what may be a checkout."""
    folder = tmp_path / "builder" / "spack_cache_db"
    (folder / "site" / "files").mkdir(parents=True)
    file = str(folder / "site" / "folder.py")
    monkeypatch.setattr("spack_cache_db.site.folder.__file__", file)
    return folder


def test_the_files_of_a_wheel_come_first(package: Path) -> None:
    """Files in the package win over those of a folder around it; without both, the
    error helps.
    """
    with pytest.raises(DatabaseError, match="install spack-cache-db again") as error:
        site_folder()
    for folder in (package / "site" / "files", package.parents[1]):
        assert str(folder) in str(error.value)

    for folder in (package / "site" / "files", package.parents[1]):
        (folder / "metadata.yml").touch()
    assert site_folder() == package / "site" / "files"


def test_it_prints_the_folder_alone() -> None:
    """Its output is a folder's path alone, for a shell; a checkout's root is its own
    site.
    """
    result = run("site")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{ROOT}\n", "")
