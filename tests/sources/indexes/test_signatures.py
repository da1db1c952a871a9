"""sources.indexes.mirror_folder: whether the binaries of a mirror are signed, and its
settings.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.sources.indexes.addresses import (
    Address,
    read_address,
    write_address,
)
from spack_cache_db.sources.indexes.faults import IndexFault
from tests.commands import run
from tests.indexes import (
    MIRRORS,
    VIEWS,
    index,
    node,
    record,
    signed,
    write_blob,
    write_layout3,
)
from tests.test_databases_as_sources import same
from tests.trees import installed, write_tree

URL = "https://cache.example.org/v1"


def facts(folder: Path, tmp_path: Path) -> tuple[int | None, str | None]:
    """Build a folder, and return what the database has of its only mirror, and of a
    second build.

    A build from the database has the same bytes.
    """
    first = tmp_path / "x.db"
    second = tmp_path / "y.db"
    build(folder, first)
    build(first, second)
    assert same(first, second)
    with closing(sqlite3.connect(first)) as db:
        rows = set(db.execute("SELECT is_signed, settings FROM mirrors"))
    (row,) = rows
    assert isinstance(row, tuple)
    return row


def layout_3(folder: Path, **is_signed: bool) -> Path:
    """Write a mirror with a spec manifest, signed or not, for each name."""
    write_layout3(folder, {None: index(*(record(node(name)) for name in is_signed))})
    blob = write_blob(folder, b"a binary", "application/vnd.spack.install.v2.tar+gzip")
    for name, has_signature in is_signed.items():
        manifests = folder / "v3" / "manifests" / "spec" / name
        manifests.mkdir(parents=True)
        text = json.dumps({"version": 3, "data": [blob]})
        path = manifests / f"{name}-1.0-{node(name)['hash']}.spec.manifest.json"
        if has_signature:
            text = signed(text)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("signatures", "expected"),
    [
        ({"a": True, "b": True}, 1),
        ({"a": False, "b": False}, 0),
        ({"a": True, "b": False}, None),
        ({}, None),
    ],
)
def test_manifests_show_signatures(
    signatures: dict[str, bool], expected: int | None, tmp_path: Path
) -> None:
    """All or none of layout 3; `layout.json` shows nothing."""
    folder = layout_3(tmp_path / "mirror", **signatures)
    assert facts(folder, tmp_path) == (expected, None)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (VIEWS, 0),
        (MIRRORS / "v3", None),
        (MIRRORS / "v2", None),
        (MIRRORS / "v2-0.20", 0),
        # The signatures of such old binaries are in their archives.
        (MIRRORS / "v2-0.16", None),
    ],
)
def test_mirrors_of_spack(folder: Path, expected: int | None, tmp_path: Path) -> None:
    """As several versions of Spack wrote them: unsigned, or both signed and
    unsigned.
    """
    assert facts(folder, tmp_path)[0] == expected


def test_signed_files_of_layout_2(tmp_path: Path) -> None:
    """A signed spec file has the suffix `.sig`, alone or beside the other."""
    source = next((MIRRORS / "v2" / "build_cache").glob("*.sig"))
    folder = tmp_path / "mirror" / "build_cache"
    folder.mkdir(parents=True)
    (folder / source.name).write_bytes(source.read_bytes())

    assert facts(folder.parent, tmp_path)[0] == 1

    plain = folder / source.name.removesuffix(".sig")
    plain.write_bytes(source.read_bytes())
    assert facts(folder.parent, tmp_path)[0] == 1


@pytest.mark.parametrize(
    "key", ["v3/manifests/key/ab.key.manifest.json", "build_cache/_pgp/a.pub"]
)
def test_keys_show_signatures_if_nothing_else_does(key: str, tmp_path: Path) -> None:
    """A copy of an index with the keys of its mirror is that of a signed mirror."""
    folder = tmp_path / "mirror"
    path = folder / key
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    if key.startswith("v3"):
        write_layout3(folder, {None: index(record(node("a")))})
    else:
        (folder / "build_cache" / "index.json").write_bytes(index(record(node("a"))))

    assert facts(folder, tmp_path)[0] == 1

    layout_3(folder, b=False)
    assert facts(folder, tmp_path)[0] == 0


def test_the_address_file_decides(tmp_path: Path) -> None:
    """`signed` comes before what the mirror shows, and the settings are stored with
    sorted keys.
    """
    folder = layout_3(tmp_path / "mirror", a=True)
    values: dict[str, Any] = {
        "url": "s3://bucket/spack",
        "signed": False,
        "endpoint_url": "https://store.example.org",
        "profile": "site",
        "access_pair": {"id": "me", "secret_variable": "OUR_SECRET"},
        "access_token_variable": "OUR_TOKEN",
        "view": "teams/physics",
    }
    (folder / "mirror.json").write_text(json.dumps(values))
    settings = (
        '{"access_pair":{"secret_variable":"OUR_SECRET"},"access_token_variable":"OUR_TOKEN",'
        '"endpoint_url":"https://store.example.org","profile":"site","view":"teams/physics"}'
    )

    assert facts(folder, tmp_path) == (0, settings)

    (folder / "mirror.json").write_text(
        json.dumps({"url": "s3://bucket/spack", "signed": True})
    )
    assert facts(folder, tmp_path) == (1, None)


def test_images_are_not_signed(tmp_path: Path) -> None:
    """Spack does not sign the images of a registry."""
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "index.json").write_bytes(index(record(node("a"))))
    (folder / "mirror.json").write_text(
        '{"url": "oci://registry.example.org/spack/cache"}'
    )

    assert facts(folder, tmp_path) == (0, None)


def test_an_installation_is_no_mirror(tmp_path: Path) -> None:
    """Nothing is installed from it."""
    write_tree(tmp_path / "opt", [installed(node("tool"))])
    assert facts(tmp_path / "opt", tmp_path) == (None, None)


@pytest.mark.parametrize(
    "values",
    [
        {"endpoint_url": "https://a b"},
        {"profile": "a\nb"},
        {"view": ""},
        {"signed": "no"},
        {"access_token_variable": "$(rm)"},
        {"access_pair": {"secret_variable": "a b"}},
        {"access_pair": {"secret": "x"}},
        {"password": "x"},
    ],
)
def test_a_setting_that_no_command_can_have(
    values: dict[str, Any], tmp_path: Path
) -> None:
    """Is a fault of the file; a command with it would be another command."""
    with pytest.raises(IndexFault):
        read_address(json.dumps({"url": URL, **values}).encode())

    folder = layout_3(tmp_path / "mirror", a=False)
    (folder / "mirror.json").write_text(json.dumps({"url": URL, **values}))
    result = run("build", folder, "-o", tmp_path / "x.db")

    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_an_address_is_read_back() -> None:
    """Files of earlier versions have a URL and filters only."""
    old = b'{"url": "https://cache.example.org/v1", "exclude_binary": ["x"]}'
    assert read_address(old) == Address(url=URL, exclude_binary=("x",))
    for address in (Address(url=URL), Address(url=URL, signed=False, profile="p")):
        assert read_address(write_address(address)) == address
