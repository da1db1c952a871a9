"""Mirrors in object stores, with and without a login, and mirrors on this machine."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.sources.fetch.addresses import Login, Mirror
from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchOptions
from spack_cache_db.sources.fetch.web import Web
from spack_cache_db.sources.indexes.addresses import read_address
from tests.indexes import MIRRORS, real
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    blob_path,
    bring_mine,
    changes,
    files_in,
    index,
    layout_2,
    layout_3,
    says,
    written,
)
from tests.sources.fetch.object_store import for_login
from tests.sources.fetch.server import Site, serve, status

OLD = index("zlib")
NEW = index("zlib", "hdf5", size=200_000)
KEY = "AKIDEXAMPLE"
SECRET = "a/secret+key="
SESSION = "a-session-token=="
AMAZON = (
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_DEFAULT_REGION AWS_REGION "
    "S3_ENDPOINT_URL"
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine that runs the tests."""
    for name in AMAZON.split():
        monkeypatch.delenv(name, raising=False)


def signed_bucket(
    site: Site, files: dict[str, bytes], session: str = "", region: str = ""
) -> None:
    """Serve the files of a bucket to whoever signs, and nothing to others."""
    site.serve(below("bucket", files))
    for path in site.files:
        site.always[path] = for_login(KEY, SECRET, session or None, region)


@pytest.mark.parametrize(
    ("url", "endpoint", "address"),
    [
        ("s3://b/m/x.json", None, "https://b.s3.amazonaws.com/m/x.json"),
        ("s3://b.c/m", None, "https://s3.amazonaws.com/b.c/m"),
        ("s3://MyBucket/m", None, "https://s3.amazonaws.com/MyBucket/m"),
        ("s3://my_bucket/m", None, "https://s3.amazonaws.com/my_bucket/m"),
        ("s3://b/m", "https://store.example.org/", "https://store.example.org/b/m"),
        ("s3://b/a+b%20=", None, "https://b.s3.amazonaws.com/a%2Bb%2520%3D"),
        ("https://host/a", "https://store.example.org", "https://host/a"),
    ],
)
def test_addresses_of_objects(url: str, endpoint: str | None, address: str) -> None:
    """A bucket is a host of Amazon's, or a folder of another store; names are names as
    they are.
    """
    assert Web(QUICK, mirrors=[Mirror(url, endpoint=endpoint)]).address(url) == (
        address,
        None,
    )


def test_the_nearest_login() -> None:
    """The nearest mirror above an address counts, and no mirror that only begins so."""
    outer = Login("outer", "a")
    inner = Login("inner", "b")
    mirrors = [
        Mirror("oci://host/a", login=outer),
        Mirror("oci://host/a/b", login=inner),
    ]

    found = [
        Web(QUICK, mirrors=mirrors).mirror(f"oci://{path}").login
        for path in ("host/a", "host/a/x", "host/a/b", "host/ab", "other/a")
    ]

    assert found == [outer, outer, inner, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("session", ["", SESSION])
def test_a_bucket_with_a_login(
    site: Site, output: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    """A signed mirror comes, is asked for anew, and leaves no secret on disk."""
    signed_bucket(site, below("a%2Bb", layout_3(NEW)), session)
    monkeypatch.setenv("MY_SECRET", SECRET)
    monkeypatch.setenv("MY_SESSION", session)
    mirror: dict[str, object] = {"url": "s3://bucket/a+b", "endpoint_url": site.url}
    mirror |= {"access_pair": {"id": KEY, "secret_variable": "MY_SECRET"}}
    mirror |= {"access_token_variable": "MY_SESSION"} if session else {}

    reports = [bring_mine(output, **mirror) for _ in range(2)]

    files = files_in(output / "mine" / "root", hidden=True)
    assert changes(reports) == [1, 0]
    assert files[blob_path(NEW)] == NEW
    assert read_address(files["mirror.json"]).url == "s3://bucket/a+b"
    for secret in (SECRET, SESSION, "Signature"):
        assert secret.encode() not in b"".join(files.values()) + repr(reports).encode()


@pytest.mark.slow
def test_another_region(
    site: Site, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket of another region is told with its region, and comes with it."""
    signed_bucket(site, layout_3(NEW), region="eu-north-1")
    mirror = {
        "url": "s3://bucket",
        "endpoint_url": site.url,
        "access_pair": [KEY, SECRET],
    }

    assert says(bring_mine(output, **mirror)) == (
        "answers 400, expected 200 and the bucket's region, eu-north-1, in AWS_DEFAULT_REGION"
    )
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert bring_mine(output, **mirror).faults == ()


@pytest.mark.slow
def test_a_redirect_takes_no_signature_along(site: Site, output: Path) -> None:
    """The target of a redirect, in the store or elsewhere, gets neither signature nor
    session.
    """
    with serve({"elsewhere": NEW}) as other:
        signed_bucket(site, layout_3(NEW), SESSION)
        site.always[f"/bucket/{blob_path(NEW)}"] = status(307, location="/inside")
        site.always["/inside"] = status(307, location=f"{other.url}/elsewhere")
        mirror = {
            "url": "s3://bucket",
            "endpoint_url": site.url,
            "access_token": SESSION,
        }

        assert bring_mine(output, access_pair=[KEY, SECRET], **mirror).faults == ()

        assert [len(site.paths("/inside")), len(other.requests)] == [1, 1]
        site.requests = [
            request for request in site.requests if request.path == "/inside"
        ]
        assert site.secrets() | other.secrets() == {}


@pytest.mark.slow
@pytest.mark.parametrize("layout", [layout_3, layout_2])
def test_a_folder_of_this_machine(
    tmp_path: Path, output: Path, layout: Callable[[bytes], dict[str, bytes]]
) -> None:
    """A mirror in a folder comes as one of a server, and again when it is another."""
    for data, changed in ((OLD, 1), (OLD, 0), (NEW, 1)):
        folder = written(tmp_path / "a mirror", layout(data))
        report = fetch(folder.as_uri(), output, FetchOptions(release="r"), QUICK)

        assert changes([report]) == [changed]
        assert data in files_in(output / "r" / "root").values()


@pytest.mark.slow
def test_a_file_that_the_network_names(
    site: Site, tmp_path: Path, output: Path
) -> None:
    """Only a manifest of releases of this machine chooses which files of ours are
    read.
    """
    folder = written(tmp_path / "m", layout_2(NEW)).as_uri()
    manifest = json.dumps({"r": [{"label": "s", "url": folder}]}).encode()
    site.files["/list.json"] = manifest
    written(tmp_path, {"list.json": manifest})

    message = says(fetch(f"{site.url}/list.json", output, limits=QUICK))

    assert message == f"is named by {site.url}/list.json, expected no file from there"
    assert fetch((tmp_path / "list.json").as_uri(), output, limits=QUICK).faults == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v2", "v2-0.17", "v3", ".spack-db", "alone"])
def test_a_folder_without_an_index(tmp_path: Path, output: Path, name: str) -> None:
    """Whatever `build` reads of a folder without a mirror's index is fetched, once."""
    folder = tmp_path / "mirror"
    if name == ".spack-db":
        written(folder / name, {"index.json": real()})
    elif name == "alone":
        written(folder, {"index.json": real()})
    else:
        shutil.copytree(MIRRORS / name, folder)

    assert changes(
        [fetch(folder.as_uri(), output, limits=QUICK) for _ in range(2)]
    ) == [1, 0]

    built = [build(path, tmp_path / "x.db", release="r") for path in (folder, output)]
    assert built[0].specs == built[1].specs > 0
