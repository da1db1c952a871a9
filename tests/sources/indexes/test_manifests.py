"""sources.indexes.manifests: what a manifest of layout 3 names, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.sources.indexes.layouts import INDEX, SPEC, TARBALL, is_sum, read_manifest
from spack_cache_db.sources.indexes.spack_json import IndexFault
from tests.indexes import signed

BLOB: dict[str, Any] = {
    "contentLength": 3,
    "mediaType": "application/vnd.spack.spec.v5+json",
    "compression": "gzip",
    "checksumAlgorithm": "sha256",
    "checksum": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
}


def manifest(**changes: Any) -> str:
    """Return the text of a manifest of one blob."""
    return json.dumps({"version": 3, "data": [BLOB | changes]})


@pytest.mark.parametrize("text", [manifest(), signed(manifest())])
def test_blobs_are_known_by_their_media_type(text: str) -> None:
    """Clear-signed or not; a blob lies where its sum says."""
    found = read_manifest(text.encode())
    blob = found.blob(SPEC)
    assert blob is not None
    assert blob.path.as_posix() == f"blobs/sha256/ba/{BLOB['checksum']}"
    assert (found.blob(INDEX), found.blob(TARBALL)) == (None, None)
    blob.require(b"abc")


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"ab", "has 2 bytes, its manifest says 3"), (b"abd", "has the checksum a52d1")],
)
def test_other_bytes_are_not_the_blob(data: bytes, words: str) -> None:
    """Neither more nor fewer nor others."""
    blob = read_manifest(manifest().encode()).blob(SPEC)
    assert blob is not None
    with pytest.raises(IndexFault, match=words):
        blob.require(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[" * 100_000,
        manifest(contentLength="3"),
        manifest(checksum="../../etc/passwd"),
        manifest(checksum=BLOB["checksum"].upper()),
        manifest(checksumAlgorithm="md5"),
        manifest(checksumAlgorithm=None),
        manifest().replace('"version": 3', '"version": 2'),
        manifest()[:-5],
        "\ufffd",
    ],
)
def test_what_is_no_manifest_is_refused(text: str) -> None:
    """And with it any sum that would lead out of the mirror."""
    with pytest.raises(IndexFault, match=r"expected"):
        read_manifest(text.encode())


def test_a_sum_has_sixty_four_digits() -> None:
    """Of hexadecimal, in small letters."""
    assert is_sum("0" * 64)
    assert not is_sum("0" * 63)
    assert not is_sum("g" * 64)
