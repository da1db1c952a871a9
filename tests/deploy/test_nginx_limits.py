"""What `deploy/nginx/spack-cache.conf` lets one visitor, and all together, take of the
servers.
"""

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest

from tests.deploy.conftest import Front
from tests.paths import ROOT
from tests.processes import PATIENCE
from tests.programs import open_files

NGINX = ROOT / "deploy" / "nginx"

pytestmark = pytest.mark.slow


def answered(
    waiting: list[Future[httpx.Response]], status: int, count: int
) -> list[httpx.Response]:
    """Wait until so many requests are answered with this status; return the answers."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = [future.result() for future in waiting if future.done()]
        found = [response for response in ended if response.status_code == status]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(
        f"{len(found)} of {count} requests were answered with {status}"
    )


VISITORS = (
    ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
    ("2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:3::1"),
    ("2001:db8::1", "2001:db8::2:3:4:a0a", "2001:db8:0:1::1"),
    ("2001:db9:0:0:1::", "2001:db9::ffff:0:0:0", "2001:db9:1::"),
    ("::1:0:0:a", "0:0:0:0:2:3:4:5", "0:0:0:1::"),
)
"""Two addresses of one visitor, and the address of another one."""


def test_one_visitor_cannot_ask_without_end(start: Callable[..., Front]) -> None:
    """After 60 at once the rest are told 429, and no server hears of them; others are
    answered.
    """
    site = start(limits=True)

    with site.client() as client:
        for number, (*addresses, other) in enumerate(VISITORS):
            before = len(site.targets())
            found = [
                client.get(
                    f"/spec/{number}-{n}", headers={"X-Visitor": addresses[n % 2]}
                )
                for n in range(120)
            ]
            statuses = [response.status_code for response in found]
            assert set(statuses) == {200, 429}, addresses
            assert statuses[:50] == [200] * 50
            assert len(site.targets()) - before == statuses.count(200)
            assert site.get(f"/spec/{number}", other).status_code == 200


def test_one_address_cannot_hold_all_connections(start: Callable[..., Front]) -> None:
    """Of 45 requests that wait, 32 are let in."""
    site = start(limits=True)
    with ThreadPoolExecutor(45) as crowd:
        waiting = [crowd.submit(site.get, f"/wait/{number}") for number in range(45)]
        answered(waiting, 429, 13)
        site.server.gate.set()
        found = [future.result().status_code for future in waiting]

    assert (found.count(200), found.count(429)) == (32, 13)


DEAR = (
    "/find?q=wait", "/cover?q=x", "/diff/a...b", "/coverage/develop?by=stack",
    "/spack-cache?sql=select+1", "/spack-cache.json?a=b&sql=x", "/spack-cache.csv?%73ql=x",
    "/spack-cache/builds?_facet=os", "/spack-cache/builds?_search_name=x",
    "/spack-cache/builds.json?_shape=array", "/spack-cache/builds.csv?_stream=on",
    "/spack-cache/builds.csv?x=1&%5Fstream=on", "/spack-cache/builds.csv?a=b",
    "/spack-cache/builds?_where=1", "/spack-cache/build_listings.json?variants__contains=zz",
    "/spack-cache/builds?a=b&stacks__arraycontains=e4s",
)  # fmt: skip
CHEAP = (
    "/",
    "/package/find",
    "/findings",
    "/spack-cache/builds?package=sql",
    "/spack-cache/builds?package=a__b&_sort=os",
    "/spec/a?page=2",
)


@pytest.mark.parametrize("target", DEAR)
def test_one_visitor_has_two_searches_at_once(
    target: str, start: Callable[..., Front]
) -> None:
    """A third request that may take seconds is refused; others and other visitors are
    answered.
    """
    site = start(limits=True)
    site.server.is_waiting = True
    with ThreadPoolExecutor(20) as crowd:
        waiting = [
            crowd.submit(site.get, f"{target}&n={number}") for number in range(5)
        ]
        answered(waiting, 429, 3)
        waiting += [crowd.submit(site.get, f"{target}&x=1", "192.0.2.2")]
        waiting += [crowd.submit(site.get, page) for page in CHEAP]
        site.server.gate.set()
        found = [future.result().status_code for future in waiting]

    assert (found[:5].count(200), found[:5].count(429)) == (2, 3)
    assert set(found[5:]) == {200}


def test_a_visitor_who_sends_nothing_is_let_go(site: Front) -> None:
    """Fifteen hundred connections with half a request keep nobody out, and are
    closed.
    """
    with open_files(4096), ExitStack() as crowd:
        visitors = []
        for _ in range(1500):
            visitor = crowd.enter_context(
                socket.create_connection(("127.0.0.1", site.port), 30)
            )
            visitor.sendall(b"GET / HTTP/1.1\r\nHost:")
            visitors.append(visitor)
        assert site.get("/").status_code == 200
        for visitor in visitors:
            with suppress(ConnectionResetError):
                assert b" 200 " not in visitor.recv(1000)


def test_a_slow_visitor_keeps_no_process(site: Front) -> None:
    """Nginx takes a stream as fast as the server makes it, and gives it as slowly as it
    is read.
    """
    with socket.socket() as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        visitor.connect(("127.0.0.1", site.port))
        visitor.sendall(b"GET /large.csv HTTP/1.1\r\nHost: x\r\n\r\n")
        assert visitor.recv(12) == b"HTTP/1.1 200"
        assert site.server.sent.wait(PATIENCE)
