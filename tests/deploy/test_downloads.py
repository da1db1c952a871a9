"""The whole file, as nginx gives it from the disk while databases are swapped under it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from benchmarks.nginx import nginx
from tests.deploy.upstream import upstream
from tests.processes import PATIENCE
from tests.programs import needed

pytestmark = pytest.mark.slow

SIZE = 20_000_000
"""More than the buffers of two sockets hold: a download that is not read waits."""


@dataclass
class Published:
    """A site whose servers give no files, and the folder in which `current` lies."""

    folder: Path
    address: str

    def put(self, name: str, data: bytes) -> None:
        """Publish other bytes, as `swap.sh` does."""
        place = self.folder / "files" / name
        place.mkdir(parents=True)
        (place / "spack-cache.db").write_bytes(data)
        (self.folder / ".current").symlink_to(f"files/{name}")
        (self.folder / ".current").replace(self.folder / "current")

    def get(self, end: str = "", **headers: str) -> httpx.Response:
        """Ask for the file; `_` in the names of headers is `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.get(
            f"{self.address}/spack-cache.db{end}", headers=named, verify=False, timeout=PATIENCE
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Published]:
    """A site with limits, which publishes some bytes."""
    needed("nginx", "nginx-light")
    with ExitStack() as stack:
        server = stack.enter_context(upstream())
        port = stack.enter_context(nginx(tmp_path, [server.port], limits=True))
        found = Published(tmp_path, f"http://127.0.0.1:{port}")
        found.put("first", b"0123456789")
        yield found


def test_the_file_is_given_whole(site: Published) -> None:
    """With length, entity tag, and what a browser needs to keep it as a file."""
    found = site.get()
    assert (found.status_code, found.content) == (200, b"0123456789")
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-length"] == "10"
    assert found.headers["accept-ranges"] == "bytes"
    assert found.headers["etag"]
    head = httpx.head(f"{site.address}/spack-cache.db", verify=False, timeout=PATIENCE)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == "10"


def test_a_download_is_resumed_only_in_the_same_file(site: Published) -> None:
    """After a swap `If-Range` brings the whole new file, never the end of it."""
    tag = site.get(Range="bytes=0-3").headers["etag"]
    same = site.get(Range="bytes=4-", If_Range=tag)
    assert (same.status_code, same.content) == (206, b"456789")
    site.put("second", b"abcdefghijk")
    other = site.get(Range="bytes=4-", If_Range=tag)
    assert (other.status_code, other.content) == (200, b"abcdefghijk")
    assert other.headers["etag"] != tag


def test_the_packed_file_is_given_if_there_is_one(site: Published) -> None:
    """Else there is no such page; the servers are not asked."""
    assert site.get(".zst").status_code == 404
    (site.folder / "current" / "spack-cache.db.zst").write_bytes(b"packed")
    found = site.get(".zst", Range="bytes=2-")
    assert (found.status_code, found.content) == (206, b"cked")
    assert found.headers["content-type"] == "application/octet-stream"


def test_nothing_else_of_the_folder_is_given(site: Published) -> None:
    """Neither the inspect file nor other databases: those addresses go to the servers."""
    (site.folder / "current" / "spack-cache.inspect.json").write_text("secret")
    (site.folder / "current" / "spack-cache.db-wal").write_text("secret")
    for target in (
        "/spack-cache.inspect.json",
        "/spack-cache.db-wal",
        "/files/first/spack-cache.db",
    ):
        assert "from" in httpx.get(f"{site.address}{target}", verify=False, timeout=PATIENCE).text


def test_one_address_has_four_downloads(site: Published) -> None:
    """The fifth is told so; when one has ended, the next may begin."""
    site.put("large", os.urandom(1000) * (SIZE // 1000))
    port = int(site.address.rpartition(":")[2])
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.socket()) for _ in range(4)]
        for visitor in idle:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            visitor.settimeout(30)
            visitor.connect(("127.0.0.1", port))
            visitor.sendall(b"GET /spack-cache.db HTTP/1.1\r\nHost: x\r\n\r\n")
            assert visitor.recv(12) == b"HTTP/1.1 200"
        assert site.get().status_code == 429
        assert httpx.get(f"{site.address}/", verify=False, timeout=PATIENCE).status_code == 200
        idle[0].close()
        deadline = time.monotonic() + PATIENCE
        while site.get(Range="bytes=0-1").status_code == 429:
            assert time.monotonic() < deadline
