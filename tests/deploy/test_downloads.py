"""The whole database, as nginx sends it from the disk while databases are replaced."""

import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.deploy.conftest import Front
from tests.processes import PATIENCE

pytestmark = pytest.mark.slow

SIZE = 20_000_000
"""More than the buffers of two sockets hold: a download that is not read waits."""
FILE = "/spack-cache.db"


def publish(site: Front, name: str, data: bytes) -> None:
    """Publish other bytes, as `publish.sh` does."""
    place = site.folder / "published"
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(data)
    (place / name).replace(place / "spack-cache.db")


@pytest.fixture
def site(start: Callable[..., Front]) -> Front:
    """A site with limits, which publishes some bytes."""
    found = start(limits=True)
    publish(found, "first", b"0123456789")
    return found


def test_the_file_is_sent_whole(site: Front) -> None:
    """With length, entity tag, and what a browser needs to store it as a file."""
    found = site.get(FILE)
    assert (found.status_code, found.content) == (200, b"0123456789")
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["accept-ranges"] == "bytes"
    assert found.headers["etag"]

    head = site.client().head(FILE)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == found.headers["content-length"] == "10"


def test_a_download_is_resumed_only_in_the_same_file(site: Front) -> None:
    """After a swap `If-Range` brings the whole new file, never the end of it."""
    tag = site.get(FILE, Range="bytes=0-3").headers["etag"]
    same = site.get(FILE, Range="bytes=4-", If_Range=tag)

    assert (same.status_code, same.content) == (206, b"456789")

    publish(site, "second", b"abcdefghijk")
    other = site.get(FILE, Range="bytes=4-", If_Range=tag)
    assert (other.status_code, other.content) == (200, b"abcdefghijk")
    assert other.headers["etag"] != tag


def test_the_packed_file_is_sent_if_there_is_one(site: Front) -> None:
    """Else there is no such page; the servers are not asked."""
    assert site.get(f"{FILE}.zst").status_code == 404
    (site.folder / "published" / "spack-cache.db.zst").write_bytes(b"packed")
    found = site.get(f"{FILE}.zst", Range="bytes=2-")
    assert (found.status_code, found.content) == (206, b"cked")
    assert found.headers["content-type"] == "application/octet-stream"


def test_no_other_file_of_the_folder_is_sent(site: Front) -> None:
    """Neither the inspect file nor other databases: those addresses go to the
    servers.
    """
    for name in ("spack-cache.inspect.json", "spack-cache.db-wal"):
        (site.folder / "published" / name).write_text("secret")

    for target in (
        "/spack-cache.inspect.json",
        "/spack-cache.db-wal",
        f"/files/first{FILE}",
    ):
        assert "from" in site.get(target).text


def test_one_address_has_four_downloads(site: Front) -> None:
    """The fifth is refused; when one has ended, the next may begin."""
    publish(site, "large", os.urandom(1000) * (SIZE // 1000))
    here = "127.0.0.1"

    with ExitStack() as stack:
        idle = [stack.enter_context(socket.socket()) for _ in range(4)]
        for visitor in idle:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            visitor.settimeout(30)
            visitor.connect((here, site.port))
            visitor.sendall(b"GET /spack-cache.db HTTP/1.1\r\nHost: x\r\n\r\n")
            assert visitor.recv(12) == b"HTTP/1.1 200"
        assert site.get(FILE, here).status_code == 429
        assert site.get("/", here).status_code == 200
        idle[0].close()
        deadline = time.monotonic() + PATIENCE
        while site.get(FILE, here, Range="bytes=0-1").status_code == 429:
            assert time.monotonic() < deadline
