"""URLs, their releases and stacks, maps of URLs, and manifests of releases."""

import json
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spack_cache_db.sources.fetch.addresses import (
    FetchFault,
    Mirror,
    mirror_place,
    shown,
)
from spack_cache_db.sources.fetch.release_manifests import read_release_manifest

SUM = "0123456789abcdef" * 4
ENDINGS = (
    "",
    "/",
    "//",
    "/build_cache",
    "/build_cache/",
    "/build_cache/index.json",
    "/v3/manifests/index/index.manifest.json",
    "/v3/manifests/index/e4s/index.manifest.json",
    f"/blobs/sha256/01/{SUM}",
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_mirror_is_known_by_its_index(ending: str) -> None:
    """The URL of an index is as good as that of its mirror."""
    assert mirror_place(f"https://host/a/b{ending}")[0] == "https://host/a/b"


NO_URL = "is not a URL, "
NO_SCHEME = "cannot be downloaded, "
QUERY = "has a query or a fragment, "


@pytest.mark.parametrize(
    ("message", "url"),
    [
        *(
            (NO_URL, url)
            for url in ("", "host/mirror", "https://", "https:///path", "https://[")
        ),
        *((NO_URL, f"https://host{end}") for end in (":port/a", "/a b", "/a\nb")),
        *((NO_URL, url) for url in ("file://", "s3:///path")),
        *(
            (NO_SCHEME, url)
            for url in ("ftp://host/a", "gs://bucket/a", "file://host/a")
        ),
        *((QUERY, f"https://host/a{end}") for end in ("?token=1", "#b")),
    ],
)
def test_what_cannot_be_fetched(message: str, url: str) -> None:
    """The message about a text that is not a URL of a mirror says what is wrong."""
    with pytest.raises(FetchFault) as caught:
        mirror_place(url)

    assert str(caught.value).startswith(f"{message}expected ")


def test_a_folder_of_this_machine_has_a_url() -> None:
    """The message about its path is the URL to type."""
    with pytest.raises(FetchFault, match="expected one such as file:///srv/mirror"):
        mirror_place("/srv/mirror")


@given(st.builds(str.__mul__, st.text(max_size=6), st.integers(1, 60)))
@example("..")
@example(".hidden")
@example("../../x")
@example("a\0b")
@example("a\\b")
@example("x" * 201)
def test_every_name_is_a_folder_or_refused(name: str) -> None:
    """Whatever the network says, a name is one part of a path or a fault that names
    it.
    """
    for names in ((name, None, ()), (None, name, ()), (None, None, (name,))):
        try:
            Mirror("https://host", *names).placed()
        except FetchFault as fault:
            assert str(fault.faults[0]).isprintable()
            assert " is not a name of a " in str(fault)
        else:
            # Only the name of a view may have slashes.
            for part in name.split("/") if names[2] else [name]:
                assert part not in ("", ".", "..")
                assert not {"/", "\0", "\\"} & set(part)
                assert len(part.encode()) < 256


def test_maps() -> None:
    """The longest address that fits counts, and only whole parts of a path fit."""
    maps = [
        ("s3://bucket", "https://host"),
        ("s3://bucket/a", "https://other/x"),
        ("https://old", "http://new"),
    ]

    for url, address in {
        "s3://bucket": "https://host",
        "s3://bucket/ab/c": "https://host/ab/c",
        "s3://bucket/a/c/build_cache/index.json": "https://other/x/c",
        "https://old/a": "http://new/a",
        "https://older/a": "https://older/a",
    }.items():
        assert mirror_place(url, maps)[0] == address


URL = "https://host/list.json"
PUBLIC = {
    "develop": [
        {"label": "root", "url": f"s3://bucket/develop/blobs/sha256/01/{SUM}"},
        {"label": "e4s", "url": f"s3://bucket/develop/e4s/blobs/sha256/01/{SUM}"},
    ],
    "v0.21.0": [{"label": "root", "url": "s3://bucket/v0.21.0/build_cache/index.json"}],
}


def test_the_manifest_of_the_public_cache() -> None:
    """It names indexes of layout 2 and blobs of layout 3 in a store: each is a
    mirror.
    """
    maps = [("s3://bucket", "https://mirror")]
    selected = read_release_manifest(URL, json.dumps(PUBLIC).encode(), maps)

    assert selected.faults == ()
    assert selected.mirrors == (
        Mirror("https://mirror/develop", "develop", "root", manifest=URL),
        Mirror("https://mirror/develop/e4s", "develop", "e4s", manifest=URL),
        Mirror("https://mirror/v0.21.0", "v0.21.0", "root", manifest=URL),
    )
    assert selected.stacks == {
        ("develop", "root"),
        ("develop", "e4s"),
        ("v0.21.0", "root"),
    }


def test_stores_that_are_not_mapped() -> None:
    """However many stacks lie in a store, the advice to map it is one line."""
    selected = read_release_manifest(
        URL, json.dumps(PUBLIC).replace("s3://", "gs://").encode()
    )

    assert selected.mirrors == ()
    assert set(map(str, selected.faults)) == {
        "gs://bucket: cannot be downloaded, expected https://, http://, oci://, s3://, file://, "
        "or --map gs://bucket=https://…"
    }


def test_names_of_a_manifest_that_lead_elsewhere() -> None:
    """A name from the network that is not a folder's is a fault; the others are
    fetched.
    """
    good = {"label": "root", "url": "https://host/a"}
    bad = {"label": "../x", "url": "https://b/c"}
    manifest = {"develop": [good, bad], "..": [good]}

    selected = read_release_manifest(URL, json.dumps(manifest).encode())

    assert [mirror.url for mirror in selected.mirrors] == ["https://host/a"]
    assert [(fault.path, fault.message.split()[0]) for fault in selected.faults] == [
        (URL, "'../x'"),
        (URL, "'..'"),
    ]


@pytest.mark.parametrize(
    "text",
    [b"[]", b'{"develop": [{"label": "root"}]}', b'{"\xff": []}', b'{"a": ' * 100_000],
)
def test_what_is_no_manifest(text: bytes) -> None:
    """Other JSON is refused, with what was expected."""
    with pytest.raises(
        FetchFault, match=r"^is not a manifest of releases: .*; expected a mirror"
    ):
        read_release_manifest(URL, text)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:se/cret@host/mirror",
        "https://user:secret@host/mirror",
        "https://user:/secret@host/mirror",
        "https://user:secret/@host/mirror",
        "https://user:s@e/c@ret@host/mirror",
        "https://user:12/34@host/mirror",
        "https://user:se#cret@host/mirror",
        "https://user:se?cret@host/mirror",
        "https://:secret/x@host/mirror",
        "https://token@host/mirror",
        "https://host/mirror?key=secret",
        "https://host/mirror#secret",
    ],
)
def test_no_message_has_a_password(url: str) -> None:
    """Whatever is before the host, and behind the path, is left out of messages."""
    assert shown(url) == "https://host/mirror"
    with pytest.raises(FetchFault) as caught:
        mirror_place(f"{url} ")
    fault = caught.value.faults[0]
    assert not [word for word in ("cret", "12/34", "token") if word in str(fault)]


@pytest.mark.parametrize(
    "url",
    [
        "oci://host:5000/name@sha256:abc",
        "https://host/a@b",
        "https://[::1]:80/a@b",
        "https://host:80/a@b",
        "http://minio:9000/bucket/view@2026/@x",
        "https://mirror.example.org:8443/a:b@c",
        "https://10.0.0.1:65535/@",
        "https://host:80/://@",
        "https://host:80/from://a@b",
    ],
)
def test_other_parts_of_a_url_are_shown(url: str) -> None:
    """A digest of an image, or a path with an `@`, is no login."""
    assert shown(url) == url


NAMES = st.text("abc019.-", min_size=1)
PATHS = st.text("ab01/@:.", max_size=20)
WEB_PORTS = st.sampled_from([80, 443]) | st.integers(1024, 65535)
PORT_LIKE = re.compile(r"(?:80|443|[1-9]\d{3,4})[/?#]")


@given(host=NAMES, port=WEB_PORTS, path=PATHS)
def test_a_port_is_no_password(host: str, port: int, path: str) -> None:
    """A URL of a web server is shown as it is, whatever its path."""
    url = f"https://{host}:{port}/{path}"
    assert shown(url) == url


@given(
    user=st.text("abc.1-", max_size=5),
    password=st.text("01289sS!/?#:@%", min_size=1, max_size=20),
    host=st.text("xyz", min_size=1),
    path=st.text("xyz/", max_size=9),
)
def test_no_password_is_shown(user: str, password: str, host: str, path: str) -> None:
    """Nothing between the colon and the last `@` is shown, unless it begins like a
    port.
    """
    assume(not PORT_LIKE.match(password))
    assert shown(f"https://{user}:{password}@{host}/{path}") == f"https://{host}/{path}"


def test_a_bucket_with_capitals_keeps_them() -> None:
    """Old buckets have capitals, and another spelling is another bucket."""
    assert mirror_place("s3://MyBucket/a/B") == ("s3://MyBucket/a/B", None)
    for url in ("s3://me@Bucket/a", "s3://Bucket:80/a"):
        with pytest.raises(FetchFault, match="cannot be downloaded"):
            mirror_place(url)
