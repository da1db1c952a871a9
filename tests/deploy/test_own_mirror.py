"""The commands of `docs/own-mirror.md`, and the unit that fetches every night."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from benchmarks.server import free_port, wait_until_up
from tests.deploy.sandbox import read_unit
from tests.deploy.tools import needed
from tests.documents import fences, typed
from tests.indexes import real
from tests.paths import ROOT

pytestmark = pytest.mark.slow

DOCUMENT = ROOT / "docs" / "own-mirror.md"
EXAMPLE = "https://cache.example.org/v1.0"
UNIT = ROOT / "deploy" / "systemd" / "spack-cache-fetch.service"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """The address of a mirror that serves a real index."""
    folder = tmp_path / "server" / "v1.0" / "build_cache"
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(real())
    handler = partial(_Quiet, directory=str(tmp_path / "server"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1.0"
        server.shutdown()
        thread.join()


def test_three_commands_make_a_site(mirror: str, tmp_path: Path) -> None:
    """Typed one after the other they fetch, build, and serve a site with the mirror's address."""
    commands = [each.command for each in typed(next(fences(DOCUMENT)))]
    assert [each.split()[1] for each in commands] == ["fetch", "build", "serve"]
    fetch, build, serve = (
        [sys.executable, "-m", "spack_cache_db", *each.replace(EXAMPLE, mirror).split()[1:]]
        for each in commands
    )
    subprocess.run(fetch, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    port = free_port()
    process = subprocess.Popen(
        [*serve, "--port", str(port)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_up(port, process)
        home = httpx.get(f"http://127.0.0.1:{port}/").text
    finally:
        process.terminate()
        process.wait(30)
    host = httpx.URL(mirror).netloc.decode()
    assert f"<title>Build cache of {host}: prebuilt packages</title>" in home
    assert f"spack mirror add v1.0 {mirror}" in home


def test_a_fetch_runs_in_its_sandbox(mirror: str, tmp_path: Path) -> None:
    """With the unit's own command it brings the index, as a user who may write there alone."""
    needed("systemd-analyze", "systemd")
    output = tmp_path / "srv" / "pages"
    output.mkdir(parents=True)
    text = UNIT.read_text(encoding="utf-8")
    text = text.replace("/opt/spack-cache-db/.venv/bin/python", sys.executable)
    text = text.replace("/opt/spack-cache-db", str(ROOT))
    text = text.replace("$SPACK_CACHE_MIRRORS", mirror)
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/srv/spack-cache/pages", str(output)), encoding="utf-8")
    (command,) = read_unit(unit)["ExecStart"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.sandbox", str(unit), *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    index = output / "v1.0" / "root" / "build_cache" / "index.json"
    assert index.read_bytes() == real()


def test_the_drop_ins_name_what_the_units_have() -> None:
    """The variable and the units of the document are those in `deploy/systemd`."""
    written = DOCUMENT.read_text(encoding="utf-8")
    (variable,) = set(re.findall(r'Environment="(\w+)=', written))

    assert f"${variable} " in UNIT.read_text(encoding="utf-8")
    named = set(re.findall(r"(spack-cache-\w+\.service)\.d", written))
    assert named == {"spack-cache-fetch.service", "spack-cache-build.service"}
    for name in named:
        assert (UNIT.parent / name).is_file()
