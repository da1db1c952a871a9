"""Manifests of releases and stacks."""

from __future__ import annotations

import json

import pytest

from spack_cache_db.sources.indexes.fetch.addresses import (
    FetchFault,
    Map,
    Wanted,
    is_release_manifest,
    read_release_manifest,
)

URL = "https://host/list.json"
SUM = "0123456789abcdef" * 4
MAPS = [Map("s3://bucket", "https://mirror")]
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
        Wanted("https://mirror/develop", "develop", "root", manifest=URL),
        Wanted("https://mirror/develop/e4s", "develop", "e4s", manifest=URL),
        Wanted("https://mirror/v0.21.0", "v0.21.0", "root", manifest=URL),
    )
    assert named.stacks == {("develop", "root"), ("develop", "e4s"), ("v0.21.0", "root")}


@pytest.mark.parametrize(
    ("release", "stack", "count"), [("develop", None, 2), (None, "root", 2), ("develop", "e4s", 1)]
)
def test_one_release_or_stack(release: str | None, stack: str | None, count: int) -> None:
    """Only what is wanted is fetched; what the manifest names stays known."""
    named = read_release_manifest(URL, data(PUBLIC), MAPS, release, stack)

    assert (len(named.mirrors), len(named.stacks)) == (count, 3)


def test_a_release_that_is_not_named() -> None:
    """What is not there is told with what is."""
    with pytest.raises(FetchFault) as caught:
        read_release_manifest(URL, data(PUBLIC), MAPS, "v9", None)

    assert str(caught.value) == "names no stack v9/*, it names develop, v0.21.0"


def test_stores_that_are_not_mapped() -> None:
    """However many stacks lie in a store, the advice to map it is one line."""
    named = read_release_manifest(URL, data(PUBLIC))

    assert named.mirrors == ()
    assert {str(each.fault()) for each in named.faults} == {
        "s3://bucket: cannot be asked, expected https://, http://, oci://; "
        "--map s3://bucket=https://…"
    }


@pytest.mark.parametrize("name", ["../../etc", "", "a/b", ".", "a\0b"])
def test_names_that_lead_elsewhere(name: str) -> None:
    """A name from the network that is no folder's is a fault; the others are fetched."""
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
    assert message.startswith("is no manifest of releases: ")
    assert message.endswith("expected a mirror, or a manifest {release: [{label, url}]}")


@pytest.mark.parametrize("empty", [{}, {"develop": []}])
def test_an_empty_manifest(empty: object) -> None:
    """A manifest without a stack is a fault, so that nothing is taken for vanished."""
    with pytest.raises(FetchFault, match=r"^names no stack "):
        read_release_manifest(URL, data(empty))


def test_manifests_look_like_one() -> None:
    """A list of files that a server writes is no manifest, JSON is one to be read."""
    assert is_release_manifest(b' \n{"')
    assert not is_release_manifest(b"<html>{")
    assert not is_release_manifest(b"")
