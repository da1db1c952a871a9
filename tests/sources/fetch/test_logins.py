"""No login leaves the server that it is for, wherever redirects and challenges lead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.sources.fetch import FetchOptions, FetchReport, fetch
from tests.sources.fetch.mirrors import QUICK, below, index, layout_2, layout_3, sha256
from tests.sources.fetch.server import Answer, Handler, Site, serve, status

pytestmark = pytest.mark.slow

DATA = index("zlib")
USER, SECRET, SESSION = "me", "hunter2", "a-session-token"
IMAGE = "/v2/caches/mine"
MANIFEST, BLOB = f"{IMAGE}/manifests/index.spack", f"{IMAGE}/blobs/sha256:{sha256(DATA)}"
LAYER = {"digest": f"sha256:{sha256(DATA)}", "size": len(DATA)}


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


def secrets_of(stranger: Site) -> dict[str, str]:
    """Return the headers with a login that a server was sent."""
    return {
        name: value
        for each in stranger.asked
        for name, value in each.headers.items()
        if name in ("authorization", "cookie") or name.startswith("x-amz-")
    }


def wants(*logins: str, challenge: str) -> Answer:
    """Return the answer of a registry that takes these headers, and asks others for a login."""

    def answer(handler: Handler, data: bytes) -> None:
        if handler.headers.get("Authorization", "").startswith(logins):
            handler.send(200, data)
        else:
            handler.send(401, b"", www_authenticate=challenge)

    return answer


def bring(output: Path, **mirror: object) -> FetchReport:
    """Fetch a configured mirror with a login."""
    output.parent.mkdir(exist_ok=True)
    path = output.parent / "mirrors.yaml"
    given = {"access_pair": [USER, SECRET], "access_token": SESSION, **mirror}
    path.write_text(json.dumps({"mirrors": {"mine": given}}))
    return fetch([], output, FetchOptions(plain_http=True, mirrors=path), QUICK)


def bring_image(site: Site, output: Path) -> FetchReport:
    """Fetch the image of a registry with a login."""
    return bring(output, url=f"oci://{site.url.removeprefix('http://')}/caches/mine")


@pytest.mark.parametrize("kind", ["Bearer", "Basic"])
@pytest.mark.parametrize("path", [MANIFEST, BLOB])
def test_a_registry_that_redirects(
    site: Site, stranger: Site, output: Path, kind: str, path: str
) -> None:
    """A challenge counts only if the registry itself sent it, before and after the login."""
    realm = f'{kind} realm="{site.url}/token"'
    site.files = {
        MANIFEST: json.dumps({"layers": [LAYER]}).encode(),
        BLOB: DATA,
        "/token": b'{"token": "abc"}',
    }
    for name in (MANIFEST, BLOB):
        site.always[name] = wants("Basic", "Bearer abc", challenge=realm)
    site.always[path] = leads_to(stranger)

    (fault,) = bring_image(site, output).faults

    assert fault.message == (
        f"redirects to {stranger.url}, which requires a login, "
        "but a login is sent only to the mirror's own server"
    )
    assert [each.path for each in stranger.asked] == ["/x"]
    assert secrets_of(stranger) == {}


def test_a_realm_that_redirects(site: Site, stranger: Site, output: Path) -> None:
    """The server of tokens that the registry names is given the login, and none behind it."""
    site.always[MANIFEST] = status(401, www_authenticate=f'Bearer realm="{site.url}/token"')
    site.always["/token"] = leads_to(stranger)

    (fault,) = bring_image(site, output).faults

    assert fault.message.startswith(f"redirects to {stranger.url}, which requires a login")
    assert [each.headers.get("authorization", "")[:6] for each in site.asked] == ["", "Basic "]
    assert secrets_of(stranger) == {}


@pytest.mark.parametrize("layout", [layout_3, layout_2])
def test_a_password_in_a_url(site: Site, stranger: Site, output: Path, layout: object) -> None:
    """A user and a password of a URL go to its server alone, whichever file redirects."""
    assert callable(layout)
    files = below("m", layout(DATA))
    url = site.url.replace("://", f"://{USER}:{SECRET}@") + "/m"
    for number, path in enumerate(("m", *files)):
        site.serve(files)
        site.always = {f"/{path}": leads_to(stranger)}
        fetch(url, output / str(number), limits=QUICK)

    assert {each.headers["authorization"][:6] for each in site.asked} == {"Basic "}
    assert len(stranger.asked) == 1 + len(files)
    assert secrets_of(stranger) == {}
