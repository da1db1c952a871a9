"""What `deploy/nginx/spack-cache.conf` does, with a real nginx in front of two tiny servers."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from benchmarks.nginx import nginx, run_folder, write_config
from benchmarks.server import free_port
from tests.deploy.tools import needed
from tests.deploy.upstream import Upstream, upstream

pytestmark = pytest.mark.slow

NAME = "spack-cache.example.org"


@dataclass
class Site:
    """An nginx with what stands behind it."""

    folder: Path
    port: int
    servers: list[Upstream]

    def get(self, target: str, visitor: int = 1, **headers: str) -> httpx.Response:
        """Ask for a target as it stands, with these headers; `_` in their names is `-`.

        Args:
            target: path and query.
            visitor: visitors of different numbers have different addresses.
            headers: what is sent beside what httpx sends.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        transport = httpx.HTTPTransport(verify=False, local_address=f"127.0.0.{visitor}")
        with httpx.Client(timeout=20, transport=transport, trust_env=False) as client:
            return client.get(f"http://127.0.0.1:{self.port}{target}", headers=named)

    def targets(self) -> list[str]:
        """Return what reached either server."""
        return [target for server in self.servers for target in server.targets()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start the site; `dead` of its two servers refuse connections."""
    needed("nginx", "nginx-light")
    with ExitStack() as stack:

        def started(*, limits: bool = False, dead: int = 0) -> Site:
            servers = [stack.enter_context(upstream()) for _ in range(2 - dead)]
            ports = [*(free_port() for _ in range(dead)), *(each.port for each in servers)]
            front = stack.enter_context(nginx(tmp_path, ports, limits=limits))
            return Site(tmp_path, front, servers)

        yield started


@pytest.fixture
def site(start: Callable[..., Site]) -> Site:
    """The site, without limits on what one address may ask for."""
    return start()


def answered(
    waiting: list[Future[httpx.Response]], status: int, count: int
) -> list[httpx.Response]:
    """Wait until so many requests are answered with this status; return the answers."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        ended = [each.result() for each in waiting if each.done()]
        found = [each for each in ended if each.status_code == status]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{len(found)} of {count} requests were answered with {status}")


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """`nginx -t` accepts the file, with its limits, and warns of nothing."""
    program = needed("nginx", "nginx-light")
    config = write_config(
        tmp_path, free_port(), [8001, 8002], cache=True, limits=True, published=tmp_path
    )
    said = subprocess.run(
        [program, "-t", "-e", "stderr", "-c", config], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "warn" not in said.stderr


def test_nothing_of_the_visitor_reaches_the_servers(site: Site) -> None:
    """Neither headers nor cookies: only the target, gzip or not, and nginx's own words."""
    site.get(
        "/package/x?version=1",
        Host="evil.example:99",
        X_Forwarded_Proto="wss",
        X_Forwarded_For="10.9.9.9",
        X_Forwarded_Host="evil.example",
        Forwarded="host=evil.example;proto=wss",
        X_Original_URL="/-/threads",
        Cookie="a=1",
        Authorization="Bearer x",
        Accept_Encoding="br, gzip;q=0.9",
        If_None_Match='"x"',
        Range="bytes=0-1",
        User_Agent="x",
    )
    (seen,) = (each for server in site.servers for each in server.seen if "package" in each.target)
    assert (seen.method, seen.target) == ("GET", "/package/x?version=1")
    assert seen.headers == {
        "host": f"{NAME}:{site.port}",
        "x-forwarded-proto": "http",
        "x-forwarded-for": "127.0.0.1",
        "accept-encoding": "gzip",
        "connection": "close",
    }


def test_a_body_does_not_reach_the_servers(site: Site) -> None:
    """A GET may have one; it stays where it is."""
    with httpx.Client(verify=False) as client:
        client.request("GET", f"http://127.0.0.1:{site.port}/package/x", content=b"body")
    seen = [each for server in site.servers for each in server.seen]
    assert {each.body for each in seen} == {b""}
    assert "/package/x" in {each.target for each in seen}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_only_reading_is_passed_on(site: Site, method: str) -> None:
    """Other methods are refused before they cost a server anything."""
    with httpx.Client(verify=False) as client:
        assert client.request(method, f"http://127.0.0.1:{site.port}/").status_code == 405
    assert site.targets() == []


@pytest.mark.parametrize(
    "first",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:99"},
        {"X-Forwarded-Proto": "wss"},
        {"Cookie": "a=1"},
        {"User-Agent": "x", "Accept": "application/json", "Accept-Language": "de"},
        {"Range": "bytes=0-3"},
        {"Cache-Control": "no-cache", "Pragma": "no-cache"},
        {"Accept-Encoding": "gzip;q=0, br"},
    ],
)
def test_a_header_leads_to_the_same_copy(site: Site, first: dict[str, str]) -> None:
    """Whatever a visitor sends, the next one gets the page that a plain request filled."""
    plain = {"Accept-Encoding": "identity"}
    with httpx.Client(verify=False, base_url=f"http://127.0.0.1:{site.port}") as client:
        client.get("/spec/abc", headers={**plain, **first})
        second = client.get("/spec/abc", headers=plain)
    assert second.headers["x-cache-status"] == "HIT"
    assert second.status_code == 200
    assert site.targets() == ["/spec/abc"]


def test_packed_and_plain_are_two_copies(site: Site) -> None:
    """A visitor who takes no gzip is not given it, and all who do share a copy."""
    for asked in ("gzip", "gzip, br", "br;q=1, GZIP;q=0.5", "identity", "gzip;q=0", "gzip; q=0.0"):
        site.get("/spec/abc", Accept_Encoding=asked)
    seen = [
        each.headers.get("accept-encoding", "")
        for server in site.servers
        for each in server.seen
        if each.target == "/spec/abc"
    ]
    assert sorted(seen) == ["", "gzip"]


@pytest.mark.parametrize("page", ["/", "/robots.txt", "/release/develop", "/stack/a%2Fb"])
def test_fields_that_no_page_reads_lead_to_the_same_copy(site: Site, page: str) -> None:
    """`?x=` does not go round the cache where a page reads no fields."""
    replies = [site.get(f"{page}{end}") for end in ("", "?", "?x=1", "?x=2&y=%20")]
    assert [each.headers["x-cache-status"] for each in replies] == ["MISS", "HIT", "HIT", "HIT"]
    assert site.targets() == [page]


def test_fields_of_other_pages_are_passed_on_as_they_stand(site: Site) -> None:
    """Spelling and all."""
    targets = ["/find?q=%2Bcuda+a%26b", "/package/a%2Fb?version=1&version=2", "/x/release/a?b=1"]
    for target in targets:
        site.get(target)
    assert sorted(site.targets()) == sorted(targets)


def test_a_target_may_be_a_whole_address(site: Site) -> None:
    """As proxies send it (RFC 9112, 3.2.2): the path is what counts."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as visitor:
        visitor.sendall(b"GET http://evil.example/spec/a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert visitor.recv(100).startswith(b"HTTP/1.1 200")
    assert site.targets() == ["/spec/a?b=1"]


def test_a_missing_page_is_kept(site: Site) -> None:
    """The servers say `no-store`; nginx keeps the news for a minute, visitors do not."""
    replies = [site.get("/missing") for _ in range(3)]
    assert [each.status_code for each in replies] == [404] * 3
    assert {each.headers["cache-control"] for each in replies} == {"no-store"}
    assert site.targets() == ["/missing"]


@pytest.mark.parametrize("page", ["/private", "/broken"])
def test_what_is_not_to_be_kept_is_not(site: Site, page: str) -> None:
    """Neither errors nor pages that say so."""
    for _ in range(3):
        site.get(page)
    assert site.targets() == [page] * 3


def test_no_cookie_reaches_a_visitor(site: Site) -> None:
    """A kept page would give the first visitor's cookie to all."""
    assert "set-cookie" not in site.get("/").headers


@pytest.mark.parametrize("page", ["/die", "/die.csv"])
def test_a_request_that_broke_off_is_not_tried_elsewhere(site: Site, page: str) -> None:
    """What has ended one server would end the other."""
    for number in range(1, 4):
        assert site.get(page).status_code == 502
        assert len(site.targets()) == number


@pytest.mark.parametrize("page", ["/spec/{}", "/spack-cache/x.csv?n={}"])
def test_a_server_that_is_not_there_is_stepped_over(start: Callable[..., Site], page: str) -> None:
    """No server has seen a request whose connection was refused: the other one answers."""
    site = start(dead=1)
    replies = [site.get(page.format(number)) for number in range(20)]
    assert {each.status_code for each in replies} == {200}
    assert sorted(site.targets()) == sorted(page.format(number) for number in range(20))


def test_a_page_that_the_other_server_gave_is_kept(start: Callable[..., Site]) -> None:
    """A dead server costs no copies."""
    site = start(dead=1)
    for _ in range(5):
        for number in range(5):
            assert site.get(f"/spec/{number}").status_code == 200
    assert len(site.targets()) == 5


def test_without_servers_there_is_an_error(site: Site) -> None:
    """Both are asked, once; what is kept is still shown."""
    site.get("/spec/kept")
    for server in site.servers:
        server.stop()
    assert site.get("/spec/kept").status_code == 200
    assert site.get("/spec/new").status_code == 502
    assert site.get("/new.csv").status_code == 502


def test_a_server_that_drains_gets_no_requests(site: Site) -> None:
    """`swap.sh` names it by a file; when the file goes, it gets its share again."""
    folder = run_folder(site.folder) / "draining"
    folder.mkdir(parents=True)
    for server in site.servers:
        mark = folder / str(server.port)
        mark.touch()
        before = len(server.seen)
        for number in range(10):
            assert site.get(f"/spec/{server.port}-{number}").status_code == 200
            assert site.get(f"/x.csv?{server.port}-{number}").status_code == 200
        assert len(server.seen) == before
        mark.unlink()
    for number in range(4):
        site.get(f"/spec/again-{number}")
    assert all(any("again" in each for each in server.targets()) for server in site.servers)


def test_one_address_cannot_ask_without_end(start: Callable[..., Site]) -> None:
    """After 60 at once the rest are told 429, and no server hears of them."""
    site = start(limits=True)
    with httpx.Client(verify=False, base_url=f"http://127.0.0.1:{site.port}") as client:
        found = [client.get(f"/spec/{number}").status_code for number in range(120)]
    assert set(found) == {200, 429}
    assert found[:50] == [200] * 50
    assert len(site.targets()) == found.count(200)


def test_one_address_cannot_hold_all_connections(start: Callable[..., Site]) -> None:
    """Of 45 requests that wait, 32 are let in."""
    site = start(limits=True)
    with ThreadPoolExecutor(45) as crowd:
        waiting = [crowd.submit(site.get, f"/wait/{number}") for number in range(45)]
        answered(waiting, 429, 13)
        for server in site.servers:
            server.gate.set()
        found = [each.result().status_code for each in waiting]
    assert (found.count(200), found.count(429)) == (32, 13)


def test_streams_are_few(start: Callable[..., Site]) -> None:
    """At most eight at once; pages are answered meanwhile."""
    site = start(limits=True)
    with ThreadPoolExecutor(20) as crowd:
        waiting = [crowd.submit(site.get, f"/wait/{number}.csv") for number in range(20)]
        answered(waiting, 429, 12)
        assert site.get("/").status_code == 200
        for server in site.servers:
            server.gate.set()
        found = [each.result().status_code for each in waiting]
    assert (found.count(200), found.count(429)) == (8, 12)


def test_when_all_are_busy_visitors_are_told(start: Callable[..., Site]) -> None:
    """Each server has 32 requests at most, from however many visitors; kept pages are shown."""
    site = start(limits=True)
    site.get("/spec/kept")
    with ThreadPoolExecutor(70) as crowd:
        waiting = [crowd.submit(site.get, f"/wait/{n}", 2 + n % 5) for n in range(70)]
        refused = answered(waiting, 503, 6)
        assert site.get("/spec/kept").status_code == 200
        for server in site.servers:
            assert sum("wait" in each for each in server.targets()) == 32
            server.gate.set()
        found = [each.result().status_code for each in waiting]
    assert (found.count(200), found.count(503)) == (64, 6)
    assert refused[0].headers["retry-after"] == "2"


def test_a_visitor_who_sends_nothing_is_let_go(site: Site) -> None:
    """Fifteen hundred connections with half a request keep nobody out, and are closed."""
    crowd = []
    for _ in range(1500):
        visitor = socket.create_connection(("127.0.0.1", site.port), timeout=30)
        visitor.sendall(b"GET / HTTP/1.1\r\nHost:")
        crowd.append(visitor)
    assert site.get("/").status_code == 200
    for visitor in crowd:
        with visitor, suppress(ConnectionResetError):
            assert b" 200 " not in visitor.recv(1000)


@pytest.mark.parametrize("leaves", [True, False])
def test_a_stream_that_nobody_reads_ends(site: Site, leaves: bool) -> None:
    """The server that writes it is told: at once if the visitor left, else after ten seconds."""
    with socket.socket() as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        visitor.connect(("127.0.0.1", site.port))
        visitor.sendall(b"GET /large.csv HTTP/1.1\r\nHost: x\r\n\r\n")
        assert visitor.recv(12) == b"HTTP/1.1 200"
        if leaves:
            visitor.close()
        (server,) = (each for each in site.servers if "/large.csv" in each.targets())
        assert server.gone.wait(30)
