"""What was asked for: URLs, their releases and stacks, addresses that are others here."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.fetch.addresses import (
    FetchFault,
    Mirror,
    mirror_place,
    read_release_manifest,
)

SUM = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "/",
        "//",
        "/build_cache",
        "/build_cache/",
        "/build_cache/index.json",
        "/v3/manifests/index/index.manifest.json",
        "/v3/manifests/index/e4s/index.manifest.json",
        f"/blobs/sha256/01/{SUM}",
    ],
)
def test_a_mirror_is_known_by_its_index(ending: str) -> None:
    """The URL of an index is as good as that of its mirror."""
    assert mirror_place(f"https://host/a/b{ending}")[0] == "https://host/a/b"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "is not a URL, expected one such as https://host/mirror"),
        ("host/mirror", "is not a URL, "),
        ("https://", "is not a URL, "),
        ("https:///path", "is not a URL, "),
        ("https://[", "is not a URL, "),
        ("https://host:port/a", "is not a URL, "),
        ("https://host/a b", "is not a URL, "),
        ("https://host/a\nb", "is not a URL, "),
        (
            "ftp://host/a",
            "cannot be downloaded, expected https://, http://, oci://, s3://, file://, ",
        ),
        ("gs://bucket/a", "cannot be downloaded, expected https://, "),
        ("file://host/a", "cannot be downloaded, expected https://, "),
        ("file://", "is not a URL, "),
        ("s3:///path", "is not a URL, "),
        (
            "https://host/a?token=1",
            "has a query or a fragment, expected a mirror's address without",
        ),
        ("https://host/a#b", "has a query or a fragment, expected a mirror's address without"),
    ],
)
def test_what_cannot_be_fetched(url: str, message: str) -> None:
    """What is not a URL of a mirror is refused by what is wrong with it."""
    with pytest.raises(FetchFault) as caught:
        mirror_place(url)

    assert str(caught.value).startswith(message)


def test_no_password_is_told() -> None:
    """Users, passwords and queries of URLs stay out of messages."""
    for url in ("https://me:secret@host/a b", "https://host/a?secret", "s3://me:secret@bucket/a"):
        with pytest.raises(FetchFault) as caught:
            mirror_place(url)
        assert "secret" not in str(caught.value.faults[0])


BAD_NAMES = ["", ".", "..", ".hidden", "a/b", "/", "../../x", "a\0b", "a\nb", "a\\b", "x" * 201]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_elsewhere(name: str) -> None:
    """No name leads out of its folder, hides a folder, or is none; the message names it."""
    # Only the name of a view may have slashes.
    views = () if name == "a/b" else (name,)
    for asked in ((name, None, ()), (None, name, ()), *((None, None, (view,)) for view in views)):
        with pytest.raises(
            FetchFault, match=r"is not a name of a (release|stack|view), expected one"
        ):
            Mirror("https://host/a", *asked).placed()


@given(st.builds(str.__mul__, st.text(max_size=6), st.integers(1, 60)))
def test_every_name_is_a_folder_or_refused(name: str) -> None:
    """Whatever the network says, a name is one part of a path or a fault."""
    try:
        Mirror("https://host", None, name).placed()
    except FetchFault as fault:
        assert str(fault.faults[0]).isprintable()
    else:
        assert name not in ("", ".", "..")
        assert not {"/", "\0", "\\"} & set(name)
        assert len(name.encode()) < 256


def test_maps() -> None:
    """The longest address that fits counts, and only whole parts of a path fit."""
    maps = [
        ("s3://bucket", "https://host"),
        ("s3://bucket/a", "https://other/x"),
        ("https://old", "http://new"),
    ]

    assert mirror_place("s3://bucket", maps)[0] == "https://host"
    assert mirror_place("s3://bucket/ab/c", maps)[0] == "https://host/ab/c"
    assert mirror_place("s3://bucket/a/c/build_cache/index.json", maps)[0] == "https://other/x/c"
    assert mirror_place("https://old/a", maps)[0] == "http://new/a"
    assert mirror_place("https://older/a", maps)[0] == "https://older/a"


URL = "https://host/list.json"
SUM = "0123456789abcdef" * 4
MAPS = [("s3://bucket", "https://mirror")]
PUBLIC = {
    "develop": [
        {"label": "root", "url": f"s3://bucket/develop/blobs/sha256/01/{SUM}"},
        {"label": "e4s", "url": f"s3://bucket/develop/e4s/blobs/sha256/01/{SUM}"},
    ],
    "v0.21.0": [{"label": "root", "url": "s3://bucket/v0.21.0/build_cache/index.json"}],
}


def data(value: object) -> bytes:
    """Return a manifest."""
    return json.dumps(value).encode()


def test_the_manifest_of_the_public_cache() -> None:
    """It names indexes of layout 2 and blobs of layout 3 in a store: each is a mirror."""
    named = read_release_manifest(URL, data(PUBLIC), MAPS)

    assert named.faults == ()
    assert named.mirrors == (
        Mirror("https://mirror/develop", "develop", "root", manifest=URL),
        Mirror("https://mirror/develop/e4s", "develop", "e4s", manifest=URL),
        Mirror("https://mirror/v0.21.0", "v0.21.0", "root", manifest=URL),
    )
    assert named.stacks == {("develop", "root"), ("develop", "e4s"), ("v0.21.0", "root")}


def test_stores_that_are_not_mapped() -> None:
    """However many stacks lie in a store, the advice to map it is one line."""
    named = read_release_manifest(URL, data(PUBLIC).replace(b"s3://", b"gs://"))

    assert named.mirrors == ()
    assert {*map(str, named.faults)} == {
        "gs://bucket: cannot be downloaded, expected https://, http://, oci://, s3://, file://, "
        "or --map gs://bucket=https://…"
    }


@pytest.mark.parametrize("name", ["../../etc", "", "a/b", ".", "a\0b"])
def test_names_of_a_manifest_that_lead_elsewhere(name: str) -> None:
    """A name from the network that is not a folder's is a fault; the others are fetched."""
    good = {"label": "root", "url": "https://host/a"}
    for manifest in (
        {"develop": [good, {"label": name, "url": "https://host/b"}]},
        {"develop": [good], name: [{"label": "root", "url": "https://host/b"}]},
    ):
        named = read_release_manifest(URL, data(manifest))

        assert [each.url for each in named.mirrors] == ["https://host/a"]
        (fault,) = named.faults
        assert repr(name) in str(fault)


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[]",
        b'{"develop": {}}',
        b'{"develop": [{"label": "root"}]}',
        b'{"database": {"version": "8", "installs": {}}}',
        b'{"\xff": []}',
        b'{"a": ' * 100_000,
    ],
)
def test_what_is_no_manifest(text: bytes) -> None:
    """Other JSON is refused, with what was expected."""
    with pytest.raises(FetchFault) as caught:
        read_release_manifest(URL, text)

    message = str(caught.value)
    assert message.startswith("is not a manifest of releases: ")
    assert message.endswith("expected a mirror, or a manifest {release: [{label, url}]}")
