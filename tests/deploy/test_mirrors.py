"""The way of `docs/mirrors.md` from a mirror to a site, typed by somebody who has a mirror."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from benchmarks.server import free_port, wait_until_up
from tests.deploy.test_commands import Reader, blocks, reader
from tests.indexes import index, node, record, write_layout3
from tests.paths import ROOT

__all__ = ["reader"]

pytestmark = pytest.mark.slow

EXAMPLE = "https://cache.example.org/v1.0"
DOCUMENT = (ROOT / "docs" / "mirrors.md").read_text(encoding="utf-8")
ONCE, NIGHTLY = re.findall(
    r"^```sh\n(.*?)^```", DOCUMENT.partition("\n## Build")[0], re.MULTILINE | re.DOTALL
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; give the address of what is `v1.0` in it."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1.0"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """The folder of a mirror of one package."""
    return write_layout3(tmp_path / "there" / "v1.0", {None: index(record(node("hdf5")))})


def test_three_commands_make_a_site(tmp_path: Path, mirror: Path) -> None:
    """Typed in an empty folder; the last one serves what the mirror has."""
    *commands, serve = ONCE.splitlines()
    port = free_port()
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    with served(mirror.parent) as address:
        for command in commands:
            subprocess.run(
                ["sh", "-euc", command.replace(EXAMPLE, address)],
                cwd=tmp_path,
                env=path,
                check=True,
            )
    process = subprocess.Popen(
        ["sh", "-c", f"exec {serve} --port {port}"],
        cwd=tmp_path,
        env=path,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_up(port, process)
        assert "hdf5" in httpx.get(f"http://127.0.0.1:{port}/release/v1.0").text
    finally:
        process.terminate()
        process.wait(30)


def test_a_timer_brings_what_the_mirror_has(reader: Reader, mirror: Path) -> None:
    """Every night; with a mirror that is gone, what it gave last is built and stays published."""
    for section, commands in blocks():
        if section[0] in "12":
            reader.type(commands)
    assert reader.get("/package/py-mpi4py", "8001").status_code == 200

    with served(mirror.parent) as address:
        reader.type(NIGHTLY.replace(EXAMPLE, address))
        assert reader.get("/package/hdf5", "8001").status_code == 200
        assert reader.get("/package/py-mpi4py", "8001").status_code == 404
        first = reader.published()

        write_layout3(mirror, {None: index(record(node("hdf5")), record(node("zlib")))})
        reader.type("systemctl start spack-cache-update")
        assert reader.get("/package/zlib", "8002").status_code == 200
        second = reader.published()

    reader.type("systemctl start spack-cache-update")
    assert (reader.published(), second == first) == (second, False)


def test_everything_up_to_the_reference_is_typed() -> None:
    """The page has no other commands of a shell before it says what each of them takes."""
    assert ONCE.startswith("spack-cache-db fetch ")
    assert "systemctl start spack-cache-update" in NIGHTLY
