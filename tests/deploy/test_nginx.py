"""What `deploy/nginx/spack-cache.conf` passes on and keeps, with a real nginx."""

from pathlib import Path

import pytest

from benchmarks.nginx import write_config
from benchmarks.server import free_port
from tests.deploy.conftest import Front
from tests.processes import completed
from tests.programs import needed

pytestmark = pytest.mark.slow

NAME = "spack-cache.example.org"


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """`nginx -t` accepts the file, with its limits, and warns of nothing."""
    program = needed("nginx", "nginx-light")
    config = write_config(
        tmp_path, free_port(), 8001, cache=True, limits=True, published=tmp_path
    )
    said = completed([program, "-t", "-e", "stderr", "-c", config])

    assert said.returncode == 0, said.stderr
    assert "warn" not in said.stderr


def test_nothing_of_the_visitor_reaches_the_servers(site: Front) -> None:
    """Neither headers nor cookies: only the target, and nginx's own words."""
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
    (seen,) = (request for request in site.server.seen if "package" in request.target)

    assert (seen.method, seen.target) == ("GET", "/package/x?version=1")
    assert seen.headers == {
        "host": f"{NAME}:{site.port}",
        "x-forwarded-proto": "http",
        "x-forwarded-for": "192.0.2.1",
        "connection": "close",
    }


def test_a_form_with_an_environment_is_passed_on(site: Front) -> None:
    """Its text and type, and nothing else of the visitor; no other page takes one."""
    body = b"q=zlib%0Ahdf5"
    kind = "application/x-www-form-urlencoded"
    with site.client() as client:
        headers = {"Content-Type": kind, "Cookie": "a=1", "Host": "evil.example"}
        answers = [
            client.post(path, content=body, headers=headers).status_code
            for path in (
                "/cover",
                "/cover.json",
                "/coverx",
                "/cover/x",
                "/package/cover",
            )
        ]
        large = client.post("/cover", content=b"x" * 1_100_000).status_code

    assert answers[2:] == [405, 405, 405]
    assert large == 413
    seen = [each for each in site.server.seen if each.body]
    assert {(each.method, each.target, each.body) for each in seen} == {
        ("POST", "/cover", body),
        ("POST", "/cover.json", body),
    }
    for request in seen:
        assert request.headers == {
            "host": f"{NAME}:{site.port}",
            "x-forwarded-proto": "http",
            "x-forwarded-for": "127.0.0.1",
            "content-type": kind,
            "content-length": str(len(body)),
            "connection": "close",
        }


HEADERS: tuple[dict[str, str], ...] = (
    {"Host": "evil.example"},
    {"Host": "evil.example:99"},
    {"X-Forwarded-Proto": "wss"},
    {"Cookie": "a=1"},
    {"User-Agent": "x", "Accept": "application/json", "Accept-Language": "de"},
    {"Range": "bytes=0-3"},
    {"Cache-Control": "no-cache", "Pragma": "no-cache"},
    {"Accept-Encoding": "gzip;q=0, br"},
)


def test_a_header_leads_to_the_same_copy(site: Front) -> None:
    """Whatever headers a visitor sends, the next one gets the copy of a plain
    request.
    """
    plain = {"Accept-Encoding": "identity"}
    pages = []

    with site.client() as client:
        for number, first in enumerate(HEADERS):
            pages.append(f"/spec/{number}")
            client.get(pages[-1], headers={**plain, **first})
            second = client.get(pages[-1], headers=plain)
            assert second.status_code == 200, first
            assert second.headers["x-cache-status"] == "HIT", first
    assert sorted(site.targets()) == pages


@pytest.mark.parametrize("page", ["/spec/abc", "/spack-cache/x.csv"])
def test_pages_are_compressed(site: Front, page: str) -> None:
    """A visitor who takes no gzip is not given it; one copy of a page serves both."""
    accepted = {
        "gzip": True,
        "br;q=1, GZIP;q=0.5": True,
        "gzip; q=0.0": False,
        "identity": False,
    }
    replies = {text: site.get(page, Accept_Encoding=text) for text in accepted}

    for text, is_packed in accepted.items():
        assert (replies[text].headers.get("content-encoding") == "gzip") is is_packed
        assert "Accept-Encoding" in replies[text].headers.get_list("vary")
        assert replies[text].text.startswith(f"{page} from ")
        packed_bytes = replies[text].num_bytes_downloaded
        assert (packed_bytes < len(replies[text].content) / 2) is is_packed
    assert len(site.targets()) == (1 if page == "/spec/abc" else len(accepted))


def test_fields_that_no_page_reads_lead_to_the_same_copy(site: Front) -> None:
    """`?x=` does not go round the cache where a page reads no fields; no cookie is
    kept.
    """
    pages = ("/", "/release/develop", "/robots.txt", "/stack/a%2Fb")

    for page in pages:
        replies = [site.get(f"{page}{end}") for end in ("", "?", "?x=1", "?x=2&y=%20")]
        assert [response.headers["x-cache-status"] for response in replies] == [
            "MISS",
            "HIT",
            "HIT",
            "HIT",
        ]
        assert not any("set-cookie" in each.headers for each in replies)
    assert sorted(site.targets()) == list(pages)


def test_missing_pages_are_cached_and_errors_are_not(site: Front) -> None:
    """A missing page for a minute, which visitors do not keep; no errors, no private
    pages.
    """
    replies = [site.get("/missing") for _ in range(3)]
    assert [response.status_code for response in replies] == [404] * 3
    assert {each.headers["cache-control"] for each in replies} == {"no-store"}

    for page in ("/private", "/broken") * 3:
        site.get(page)
    assert sorted(site.targets()) == ["/broken"] * 3 + ["/missing"] + ["/private"] * 3


def test_a_fatal_request_is_passed_on_once(site: Front) -> None:
    """A request that ended a process would end another; methods that write reach
    none.
    """
    for number in range(1, 4):
        for page in ("/die", "/die.csv"):
            assert site.get(page).status_code == 503
        assert len(site.targets()) == 2 * number
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        reply = site.client().request(method, "/")
        assert reply.status_code == 405, method
    assert len(site.targets()) == 6


def test_other_sites_may_ask_what_they_may_do(site: Front) -> None:
    """OPTIONS reaches the server, which knows whether other websites may read its
    data.
    """
    assert site.client().options("/find.json").status_code == 204
    assert site.targets() == ["/find.json"]


def test_without_a_server_visitors_are_told_to_come_back(site: Front) -> None:
    """Pages that are kept are still shown."""
    site.get("/spec/kept")
    site.server.stop()

    assert site.get("/spec/kept").status_code == 200
    for page in ("/spec/new", "/new.csv", "/cover"):
        reply = site.get(page)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
