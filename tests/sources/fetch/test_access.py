"""Mirrors in object stores, with and without a login, and mirrors on this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.sources.fetch import FetchOptions, FetchReport, fetch
from spack_cache_db.sources.fetch.addresses import Login, Mirror
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.indexes import read_address
from tests.indexes import MIRRORS, real
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    blob_path,
    files_in,
    index,
    layout_2,
    layout_3,
    written,
)
from tests.sources.fetch.object_store import for_login, signature
from tests.sources.fetch.runs import says
from tests.sources.fetch.server import Site, serve, status

OLD, NEW = index("zlib"), index("zlib", "hdf5", size=200_000)
KEY, SECRET, SESSION = "AKIDEXAMPLE", "a/secret+key=", "a-session-token=="
AMAZON = (
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_DEFAULT_REGION AWS_REGION "
    "S3_ENDPOINT_URL"
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine that runs the tests."""
    for name in AMAZON.split():
        monkeypatch.delenv(name, raising=False)


def configured(folder: Path, **mirror: object) -> Path:
    """Write a configuration with one mirror, `mine`."""
    path = folder / "mirrors.yaml"
    path.write_text(json.dumps({"mirrors": {"mine": mirror}}))
    return path


def bring(path: Path, output: Path) -> FetchReport:
    """Fetch what a configuration names."""
    return fetch([], output, FetchOptions(mirrors=path, plain_http=True), QUICK)


def signed_bucket(site: Site, files: dict[str, bytes], session: str | None = None) -> None:
    """Serve the files of a bucket to whoever signs, and nothing to others."""
    site.serve(below("bucket", files))
    for path in site.files:
        site.always[path] = for_login(KEY, SECRET, session)


def test_the_published_signature() -> None:
    """The store of these tests makes the signature of Amazon's own example, "GET Object"."""
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "x-amz-date": "20130524T000000Z",
    }
    made = signature(
        "/test.txt",
        headers,
        ";".join(headers),
        "20130524/us-east-1/s3/aws4_request",
        "20130524T000000Z",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )

    assert made == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


@pytest.mark.parametrize(
    ("url", "endpoint", "address"),
    [
        ("s3://b/m/x.json", None, "https://b.s3.amazonaws.com/m/x.json"),
        ("s3://b.c/m", None, "https://s3.amazonaws.com/b.c/m"),
        ("s3://b/m", "https://store.example.org/", "https://store.example.org/b/m"),
        ("s3://b/a+b%20=", None, "https://b.s3.amazonaws.com/a%2Bb%2520%3D"),
        ("https://host/a", "https://store.example.org", "https://host/a"),
    ],
)
def test_addresses_of_objects(url: str, endpoint: str | None, address: str) -> None:
    """A bucket is a host of Amazon's, or a folder of another store; names are names as they are."""
    assert Web(QUICK, mirrors=[Mirror(url, endpoint=endpoint)]).address(url) == (address, None)


def test_the_nearest_login() -> None:
    """Of several mirrors above an address the nearest counts, and none that only begins so."""
    outer, inner = Login("outer", "a"), Login("inner", "b")
    mirrors = [Mirror("oci://host/a", login=outer), Mirror("oci://host/a/b", login=inner)]
    web = Web(QUICK, mirrors=mirrors)

    for url, login in {
        "oci://host/a": outer,
        "oci://host/a/x": outer,
        "oci://host/a/b": inner,
        "oci://host/ab": None,
        "oci://other/a": None,
    }.items():
        assert web.mirror(url).login == login, url


@pytest.mark.slow
@pytest.mark.parametrize("session", [None, SESSION])
def test_a_bucket_with_a_login(
    site: Site, output: Path, monkeypatch: pytest.MonkeyPatch, session: str | None
) -> None:
    """A signed mirror comes, is asked for anew, and leaves no secret on disk."""
    signed_bucket(site, below("a%2Bb", layout_3(NEW)), session)
    monkeypatch.setenv("MY_SECRET", SECRET)
    given: dict[str, object] = {"url": "s3://bucket/a+b", "endpoint_url": site.url}
    given |= {"access_pair": {"id": KEY, "secret_variable": "MY_SECRET"}}
    if session is not None:
        monkeypatch.setenv("MY_SESSION", session)
        given["access_token_variable"] = "MY_SESSION"
    path = configured(output.parent, **given)

    reports = [bring(path, output) for _ in range(2)]

    files = files_in(output / "mine" / "root", hidden=True)
    assert [(each.faults, each.changed) for each in reports] == [((), 1), ((), 0)]
    assert files[blob_path(NEW)] == NEW
    assert read_address(files["mirror.json"]).url == "s3://bucket/a+b"
    for secret in (SECRET, SESSION, "Signature"):
        assert secret.encode() not in b"".join(files.values()) + repr(reports).encode()


@pytest.mark.slow
def test_another_region(site: Site, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket of another region is told with its region, and comes with it."""
    signed_bucket(site, layout_3(NEW))
    for name in site.files:
        site.always[name] = for_login(KEY, SECRET, region="eu-north-1")
    pair = {"url": "s3://bucket", "endpoint_url": site.url, "access_pair": [KEY, SECRET]}
    path = configured(output.parent, **pair)

    assert says(bring(path, output)) == (
        "answers 400, expected 200 and the bucket's region, eu-north-1, in AWS_DEFAULT_REGION"
    )
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert bring(path, output).faults == ()


@pytest.mark.slow
def test_a_redirect_takes_no_signature_along(site: Site, output: Path) -> None:
    """What a store leads on to, elsewhere or within it, learns neither signature nor session."""
    blob = blob_path(NEW)
    with serve({"elsewhere": NEW}) as other:
        signed_bucket(site, layout_3(NEW), SESSION)
        site.always[f"/bucket/{blob}"] = status(307, location="/inside")
        site.always["/inside"] = status(307, location=f"{other.url}/elsewhere")
        pair = {"url": "s3://bucket", "endpoint_url": site.url, "access_token": SESSION}
        path = configured(output.parent, access_pair=[KEY, SECRET], **pair)

        assert bring(path, output).faults == ()

        led = [*other.asked, *(each for each in site.asked if each.path == "/inside")]
        names = {name for each in led for name in each.headers}
        assert len(led) == 2
        assert not {each for each in names if each == "authorization" or each.startswith("x-amz")}


@pytest.mark.slow
@pytest.mark.parametrize("layout", [layout_3, layout_2])
def test_a_folder_of_this_machine(tmp_path: Path, output: Path, layout: object) -> None:
    """A mirror in a folder comes as one of a server, and again when it is another."""
    assert callable(layout)
    folder = written(tmp_path / "a mirror", layout(OLD))
    for data, changed in ((OLD, 1), (OLD, 0), (NEW, 1)):
        written(folder, layout(data))
        report = fetch(folder.as_uri(), output, FetchOptions(release="r"), QUICK)

        assert (report.faults, report.changed) == ((), changed)
        assert data in files_in(output / "r" / "root").values()


@pytest.mark.slow
def test_a_file_that_the_network_names(site: Site, tmp_path: Path, output: Path) -> None:
    """Neither a manifest of releases nor a redirect chooses which files of ours are read."""
    folder = written(tmp_path / "m", layout_2(NEW)).as_uri()
    manifest = json.dumps({"r": [{"label": "s", "url": folder}]}).encode()
    site.files["/list.json"] = manifest
    site.always["/m/build_cache/index.json"] = status(
        307, location=f"{folder}/build_cache/index.json"
    )

    report = fetch([f"{site.url}/list.json", f"{site.url}/m"], output, limits=QUICK)

    messages = sorted(each.message for each in report.faults)
    assert [each.partition(", expected")[0] for each in messages] == [
        f"is named by {site.url}/list.json",
        "leads to file://",
    ]
    written(tmp_path, {"list.json": manifest})
    assert fetch((tmp_path / "list.json").as_uri(), output, limits=QUICK).faults == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["v2", "v2-0.16", "v2-0.17", "v2-0.20", "v3", ".spack-db", "alone"]
)
def test_a_folder_without_an_index(tmp_path: Path, output: Path, name: str) -> None:
    """Whatever `build` reads of a folder without a mirror's index is fetched, once."""
    folder = tmp_path / "mirror"
    if name in (".spack-db", "alone"):
        place = folder / name if name == ".spack-db" else folder
        place.mkdir(parents=True)
        (place / "index.json").write_bytes(real())
    else:
        shutil.copytree(MIRRORS / name, folder)

    reports = [fetch(folder.as_uri(), output, limits=QUICK) for _ in range(2)]

    assert [(each.faults, each.changed) for each in reports] == [((), 1), ((), 0)]
    built = [build(path, tmp_path / "x.db", release="r") for path in (folder, output)]
    assert built[0].specs == built[1].specs > 0
