"""Indexes in OCI registries: Debian's docker-registry, and one that behaves badly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch import FetchOptions, FetchReport, fetch
from spack_cache_db.sources.fetch.addresses import FetchFault, Login
from spack_cache_db.sources.fetch.remote_files import Registry, is_loopback
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.indexes import read_address
from tests.sources.fetch.mirrors import QUICK, files_in, index, litter, sha256
from tests.sources.fetch.registries import Tokens, push, registry
from tests.sources.fetch.runs import says
from tests.sources.fetch.server import Answer, Handler, Site, instead, serve, status

pytestmark = pytest.mark.slow

OLD, NEW = index("zlib"), index("zlib", "hdf5", size=200_000)
IMAGE = "/v2/caches/mine"
MANIFEST, BLOB = f"{IMAGE}/manifests/index.spack", f"{IMAGE}/blobs/sha256:{sha256(NEW)}"


def bring(
    host: str, output: Path, *, name: str = "caches/mine", plain_http: bool = True
) -> FetchReport:
    """Fetch the index of an image."""
    options = FetchOptions(plain_http=plain_http)
    return fetch([f"oci://{host}/{name}"], output, options, QUICK)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The host of a registry that anybody may read and write."""
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


def test_an_index(host: str, output: Path) -> None:
    """The layer comes, whole and verified; the second time nothing but the manifest does."""
    push(host, "caches/mine", [NEW])

    first = bring(host, output)
    second = bring(host, output)

    fetched = files_in(output / "mine" / "root")
    assert read_address(fetched.pop("mirror.json")).url == f"oci://{host}/caches/mine"
    assert (first.faults, first.changed, fetched) == ((), 1, {"index.json": NEW})
    assert (second.faults, second.changed, second.size < 1000) == ((), 0, True)


def test_tokens(tmp_path: Path, site: Site, output: Path) -> None:
    """A registry that wants a token is given one that anybody can have, for reading."""
    tokens = Tokens(tmp_path)
    site.always["/token"] = tokens.answer()
    with registry(tmp_path / "registry") as running:
        push(running, "caches/mine", [NEW])
    with registry(tmp_path / "registry", tokens.auth(f"{site.url}/token")) as running:
        report = bring(running, output)

    assert (report.faults, files_in(output / "mine" / "root")["index.json"]) == ((), NEW)
    assert site.paths() == ["/token?service=here&scope=repository%3Acaches%2Fmine%3Apull"]


def image(data: bytes, **changes: object) -> bytes:
    """Return the manifest of an image whose one layer is `data`."""
    layer = {"digest": f"sha256:{sha256(data)}", "size": len(data)} | changes
    return json.dumps({"schemaVersion": 2, "layers": [layer]}).encode()


def serve_image(site: Site) -> str:
    """Let the site be a registry with an image; return its host."""
    site.files = {MANIFEST: image(NEW), BLOB: NEW}
    return site.url.removeprefix("http://")


def test_a_layer_with_another_sum(site: Site, output: Path) -> None:
    """A layer that is not what its digest says is refused."""
    host = serve_image(site)
    site.always[BLOB] = instead(OLD)

    assert says(bring(host, output)).startswith(f"has the checksum {sha256(OLD)}, expected")
    assert (files_in(output), litter(output)) == ({}, [])


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"<html>", "is not an image: "),
        (b'{"manifests": []}', "is not an image: "),
        (image(NEW, digest="sha256:../../x"), "has a layer without a sha256, expected one"),
        (image(NEW, digest="md5:abc"), "has a layer without a sha256, expected one"),
        (image(NEW, size=2**40), "has more than 1,073,741,824 bytes, expected less (--max-size)"),
    ],
)
def test_a_broken_manifest(site: Site, output: Path, manifest: bytes, message: str) -> None:
    """A manifest that names no layer to fetch is refused by what is wrong with it."""
    host = serve_image(site)
    site.files[MANIFEST] = manifest

    assert says(bring(host, output)).startswith(message)


def needs_token(challenge: str, token: str) -> Answer:
    """Return the answer of a registry that wants this token."""

    def answer(handler: Handler, data: bytes) -> None:
        if handler.headers.get("Authorization") == f"Bearer {token}":
            handler.send(200, data)
        else:
            handler.send(401, b"", www_authenticate=challenge)

    return answer


@pytest.mark.parametrize(("key", "login"), [("token", False), ("access_token", True)])
def test_a_token_goes_to_the_registry_alone(
    site: Site, output: Path, key: str, login: bool
) -> None:
    """The server of tokens gets the login, the registry a token, a store elsewhere neither."""
    with serve({"layer": NEW}) as store:
        host = serve_image(site)
        challenge = f'Bearer realm="{site.url}/token",service="a,b",scope="repository:x:pull"'
        site.always[MANIFEST] = needs_token(challenge, "abc")
        site.always[BLOB] = status(307, location=f"{store.url}/layer?signed=1")
        site.files["/token"] = json.dumps({key: "abc"}).encode()

        assert (bring_with_login if login else bring)(host, output).faults == ()

        assert files_in(output / "mine" / "root")["index.json"] == NEW
        assert site.paths()[1] == "/token?service=a%2Cb&scope=repository%3Ax%3Apull"
        sent = [each.headers.get("authorization") for each in (*site.asked, *store.asked)]
        own = BASIC if login else None
        assert sent == [None, own, "Bearer abc", "Bearer abc", None]


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
    """A registry that wants a password, or a token from where anybody can listen, is refused."""
    host = serve_image(site)
    site.always[MANIFEST] = status(401, www_authenticate=challenge)

    assert says(bring(host, output)) == (
        "is in a registry that requires a login, "
        "expected one that issues tokens over https, or a login in --mirrors"
    )


LOGIN = Login("me", "hunter2 is:long")
BASIC = "Basic bWU6aHVudGVyMiBpczpsb25n"
HASHED = "me:$2b$04$abcdefghijklmnopqrstuuuS/NGErcdMNmoqPaj73zzPpNpbNDASe"


def bring_with_login(host: str, output: Path, secret: str = LOGIN.secret) -> FetchReport:
    """Fetch the index of an image of a configured mirror, as its user."""
    mirror = {"url": f"oci://{host}/caches/mine", "access_pair": [LOGIN.user, secret]}
    path = output.parent / "mirrors.yaml"
    path.write_text(json.dumps({"mirrors": {"mine": mirror}}))
    return fetch([], output, FetchOptions(plain_http=True, mirrors=path), QUICK)


def test_a_registry_with_passwords(tmp_path: Path, output: Path) -> None:
    """A registry that wants a password is given that of its mirror; a wrong one is told."""
    with registry(tmp_path / "registry") as running:
        push(running, "caches/mine", [NEW])
    (tmp_path / "passwords").write_text(f"{HASHED}\n")
    auth = f"auth: {{htpasswd: {{realm: here, path: {tmp_path}/passwords}}}}\n"
    with registry(tmp_path / "registry", auth) as running:
        refused = bring_with_login(running, output, "wrong")
        report = bring_with_login(running, output)

    assert says(refused) == "refuses the login of its mirror, expected one that may read"
    assert (report.faults, files_in(output / "mine" / "root")["index.json"]) == ((), NEW)
    assert all(LOGIN.secret.encode() not in each for each in files_in(output, hidden=True).values())


def opened(url: str, *, plain_http: bool = True) -> Registry:
    """Return the image of a URL, without reading it."""
    return Registry(Web(QUICK), url, plain_http=plain_http)


def test_only_this_machine_is_asked_by_http() -> None:
    """The option means registries on this machine."""
    assert opened("oci://localhost:5000/a:t").address == "http://localhost:5000/v2/a"
    assert opened("oci://[::1]:5000/a").address == "http://[::1]:5000/v2/a"
    assert opened("oci://ghcr.io/a").address == "https://ghcr.io/v2/a"
    assert opened("oci://localhost/a", plain_http=False).address == "https://localhost/v2/a"
    assert not is_loopback("http://localhost.example.org")


@pytest.mark.parametrize(
    "url",
    [
        "oci://ghcr.io",
        "oci://ghcr.io/",
        "oci://ghcr.io/A",
        "oci://ghcr.io/../x",
        "oci://ghcr.io/a//b",
        "oci://ghcr.io/a:",
        "oci://ghcr.io/a@sha256:00",
        "oci://user:secret@ghcr.io/a",
    ],
)
def test_no_references(url: str) -> None:
    """A URL that does not name an image is refused, above all one with a password."""
    with pytest.raises(FetchFault, match=r"^does not name an image, expected oci://host/name"):
        opened(url)
