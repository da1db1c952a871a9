"""Indexes in OCI registries, and logins, which go to no other server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchOptions
from spack_cache_db.sources.fetch.registry import Registry
from spack_cache_db.sources.fetch.report import FetchReport
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.indexes.addresses import read_address
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    bring_mine,
    changes,
    files_in,
    index,
    layout_2,
    layout_3,
    says,
    sha256,
)
from tests.sources.fetch.registries import push, registry
from tests.sources.fetch.server import Answer, Site, serve, status, wants

pytestmark = pytest.mark.slow

NEW = index("zlib", "hdf5", size=200_000)
IMAGE = "/v2/caches/mine"
MANIFEST = f"{IMAGE}/manifests/index.spack"
BLOB = f"{IMAGE}/blobs/sha256:{sha256(NEW)}"


def bring(host: str, output: Path) -> FetchReport:
    """Fetch the index of an image."""
    return fetch(
        [f"oci://{host}/caches/mine"], output, FetchOptions(plain_http=True), QUICK
    )


def image(data: bytes, **changes: object) -> bytes:
    """Return the manifest of an image whose one layer is `data`."""
    layer = {"digest": f"sha256:{sha256(data)}", "size": len(data)} | changes
    return json.dumps({"schemaVersion": 2, "layers": [layer]}).encode()


def serve_image(site: Site) -> str:
    """Let the site be a registry with an image; return its host."""
    site.files = {MANIFEST: image(NEW), BLOB: NEW}
    return site.url.removeprefix("http://")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"<html>", "is not an image: "),
        (b'{"manifests": []}', "is not an image: "),
        (
            image(NEW, digest="sha256:../../x"),
            "has a layer without a sha256, expected one",
        ),
        (image(NEW, digest="md5:abc"), "has a layer without a sha256, expected one"),
        (
            image(NEW, size=2**40),
            "has more than 1,073,741,824 bytes, expected less (--max-size)",
        ),
    ],
)
def test_a_broken_manifest(
    site: Site, output: Path, manifest: bytes, message: str
) -> None:
    """A manifest that names no layer to fetch is refused by what is wrong with it."""
    host = serve_image(site)
    site.files[MANIFEST] = manifest

    assert says(bring(host, output)).startswith(message)


@pytest.mark.parametrize(("key", "login"), [("token", False), ("access_token", True)])
def test_a_token_goes_to_the_registry_alone(
    site: Site, output: Path, key: str, login: bool
) -> None:
    """The server of tokens gets the login, the registry a token, a store elsewhere
    neither.
    """
    with serve({"layer": NEW}) as store:
        host = serve_image(site)
        challenge = (
            f'Bearer realm="{site.url}/token",service="a,b",scope="repository:x:pull"'
        )
        site.always[MANIFEST] = wants("Bearer abc", challenge=challenge)
        site.always[BLOB] = status(307, location=f"{store.url}/layer?signed=1")
        site.files["/token"] = json.dumps({key: "abc"}).encode()

        assert (bring_with_login if login else bring)(host, output).faults == ()

        assert files_in(output / "mine" / "root")["index.json"] == NEW
        assert site.paths()[1] == "/token?service=a%2Cb&scope=repository%3Ax%3Apull"
        sent = [
            request.headers.get("authorization")
            for request in (*site.requests, *store.requests)
        ]
        assert sent == [
            None,
            BASIC if login else None,
            "Bearer abc",
            "Bearer abc",
            None,
        ]


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="x"',
        "",
        "Bearer",
        'Bearer realm="nothing"',
        'Bearer realm="http://example.org/token"',
        'Bearer realm="file:///etc/passwd"',
        'Bearer realm="https://["',
    ],
)
def test_a_login(site: Site, output: Path, challenge: str) -> None:
    """A registry that wants a password, or a token from where anybody can listen, is
    refused.
    """
    host = serve_image(site)
    site.always[MANIFEST] = status(401, www_authenticate=challenge)

    assert says(bring(host, output)) == (
        "is in a registry that requires a login, "
        "expected one that issues tokens over https, or a login in --mirrors"
    )


BASIC = "Basic bWU6aHVudGVyMiBpczpsb25n"
HASHED = "me:$2b$04$abcdefghijklmnopqrstuuuS/NGErcdMNmoqPaj73zzPpNpbNDASe"


def bring_with_login(
    host: str, output: Path, secret: str = "hunter2 is:long"
) -> FetchReport:
    """Fetch the index of an image of a configured mirror, as its user."""
    return bring_mine(
        output, url=f"oci://{host}/caches/mine", access_pair=["me", secret]
    )


def test_an_index(tmp_path: Path, output: Path) -> None:
    """The layer comes, whole and verified; the second time nothing but the manifest
    does.

    A registry that wants a password is given that of its mirror; a wrong one is told.
    """
    with registry(tmp_path / "registry") as host:
        push(host, "caches/mine", [NEW])
        reports = [bring(host, output) for _ in range(2)]
    (tmp_path / "passwords").write_text(f"{HASHED}\n")
    auth = f"auth: {{htpasswd: {{realm: here, path: {tmp_path}/passwords}}}}\n"
    with registry(tmp_path / "registry", auth) as closed:
        refused = bring_with_login(closed, output / "closed", "wrong")
        reports.append(bring_with_login(closed, output / "closed"))

    assert changes(reports) == [1, 0, 1]
    assert reports[1].size < 1000
    assert (
        says(refused) == "refuses the login of its mirror, expected one that may read"
    )
    files = files_in(output, hidden=True)
    assert files["mine/root/index.json"] == files["closed/mine/root/index.json"] == NEW
    assert (
        read_address(files["mine/root/mirror.json"]).url == f"oci://{host}/caches/mine"
    )
    assert [name for name, data in files.items() if b"hunter2" in data] == [
        "mirrors.yaml"
    ]


def opened(url: str, *, plain_http: bool = True) -> Registry:
    """Return the image of a URL, without reading it."""
    return Registry(Web(QUICK), url, plain_http=plain_http)


def test_only_this_machine_is_asked_by_http() -> None:
    """The option means registries on this machine."""
    for host in ("localhost:5000", "[::1]:5000", "127.0.1.1"):
        assert opened(f"oci://{host}/a:t").address == f"http://{host}/v2/a"
    for host in ("ghcr.io", "localhost.example.org", "127.0.0.1.example.org"):
        assert opened(f"oci://{host}/a").address == f"https://{host}/v2/a"
    assert (
        opened("oci://localhost/a", plain_http=False).address
        == "https://localhost/v2/a"
    )


@pytest.mark.parametrize(
    "image",
    [
        "ghcr.io",
        "ghcr.io/",
        "ghcr.io/A",
        "ghcr.io/../x",
        "ghcr.io/a//b",
        "ghcr.io/a:",
        "ghcr.io/a@sha256:00",
        "user:secret@ghcr.io/a",
    ],
)
def test_no_references(image: str) -> None:
    """A URL that does not name an image is refused, above all one with a password."""
    with pytest.raises(
        FetchFault, match=r"^does not name an image, expected oci://host/name"
    ):
        opened(f"oci://{image}")


@pytest.fixture(params=["Bearer", "Basic"])
def stranger(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A server that asks everybody for a login, and gives a token for any."""
    with serve() as running:
        challenge = f'{request.param} realm="{running.url}/token"'
        running.always["/x"] = status(401, www_authenticate=challenge)
        running.files["/token"] = b'{"token": "given-by-the-stranger"}'
        yield running


def leads_to(stranger: Site) -> Answer:
    """Return the answer of a server that redirects to the stranger."""
    return status(307, location=f"{stranger.url}/x")


@pytest.mark.parametrize("kind", ["Bearer", "Basic"])
@pytest.mark.parametrize("path", [MANIFEST, BLOB])
def test_a_registry_that_redirects(
    site: Site, stranger: Site, output: Path, kind: str, path: str
) -> None:
    """A challenge counts only if the registry itself sent it, before and after the
    login.
    """
    realm = f'{kind} realm="{site.url}/token"'
    host = serve_image(site)
    site.files["/token"] = b'{"token": "abc"}'
    for name in (MANIFEST, BLOB):
        site.always[name] = wants("Basic", "Bearer abc", challenge=realm)
    site.always[path] = leads_to(stranger)

    assert says(bring_with_login(host, output)) == (
        f"redirects to {stranger.url}, which requires a login, "
        "but a login is sent only to the mirror's own server"
    )
    assert [request.path for request in stranger.requests] == ["/x"]
    assert stranger.secrets() == {}


def test_a_realm_on_another_port_gets_no_login(
    site: Site, stranger: Site, output: Path
) -> None:
    """Another port of this machine is another program; without a login, it may give a
    token.
    """
    realm = f'Bearer realm="{stranger.url}/token"'
    site.always[MANIFEST] = status(401, www_authenticate=realm)

    assert "requires a login" in says(bring_with_login(serve_image(site), output))
    assert stranger.requests == []


def test_a_realm_that_redirects(site: Site, stranger: Site, output: Path) -> None:
    """The server of tokens that the registry names is given the login, and none behind
    it.
    """
    site.always[MANIFEST] = status(
        401, www_authenticate=f'Bearer realm="{site.url}/token"'
    )
    site.always["/token"] = leads_to(stranger)

    message = says(bring_with_login(serve_image(site), output))

    assert message.startswith(f"redirects to {stranger.url}, which requires a login")
    assert [
        request.headers.get("authorization", "")[:6] for request in site.requests
    ] == [
        "",
        "Basic ",
    ]
    assert stranger.secrets() == {}


@pytest.mark.parametrize("layout", [layout_3, layout_2])
def test_a_password_in_a_url(
    site: Site,
    stranger: Site,
    output: Path,
    layout: Callable[[bytes], dict[str, bytes]],
) -> None:
    """A user and a password of a URL go to its server alone, whichever file
    redirects.
    """
    files = below("m", layout(NEW))
    url = site.url.replace("://", "://me:hunter2@") + "/m"
    for number, path in enumerate(("m", *files)):
        site.serve(files)
        site.always = {f"/{path}": leads_to(stranger)}
        fetch(url, output / str(number), limits=QUICK)

    assert {request.headers["authorization"][:6] for request in site.requests} == {
        "Basic "
    }
    assert len(stranger.requests) == 1 + len(files)
    assert stranger.secrets() == {}
