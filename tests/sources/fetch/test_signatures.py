"""sources.fetch.remote_files: a fetched mirror shows whether its binaries are
signed.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import run
from tests.indexes import hash_of, index, node, old_node, record
from tests.indexes import signed as clear_signed
from tests.sources.fetch.mirrors import below, layout_2, layout_3, manifest
from tests.sources.fetch.server import Site, serve, status


@pytest.fixture
def site() -> Iterator[Site]:
    """A server without files."""
    with serve({}) as running:
        yield running


def mirror_3(**signed: bool) -> dict[str, bytes]:
    """Return a mirror of layout 3 with binaries that are signed or not."""
    files = layout_3(index(*(record(node(name)) for name in signed)))
    for name, has_signature in signed.items():
        text = manifest(b"x", kind="install.v2.tar+gzip").decode()
        path = f"v3/manifests/spec/{name}/{name}-1.0-{hash_of(name)}.spec.manifest.json"
        files[path] = (clear_signed(text) if has_signature else text).encode()
    return below("m", files)


def mirror_2(**signed: bool) -> dict[str, bytes]:
    """Return a mirror of layout 2 with binaries that are signed or not."""
    nodes = {name: old_node(name, "7") for name in signed}
    files = layout_2(index(*map(record, nodes.values()), version="7"))
    for name, has_signature in signed.items():
        text = json.dumps({"spec": {"_meta": {"version": 4}, "nodes": [nodes[name]]}})
        stem = f"build_cache/linux-debian12-x86_64_v3-gcc-12.2.0-{name}-1.0-{hash_of(name)}"
        if has_signature:
            files[f"{stem}.spec.json.sig"] = clear_signed(text).encode()
        else:
            files[f"{stem}.spec.json"] = text.encode()
    return below("m", files)


def found(site: Site, folder: Path, *options: str) -> object:
    """Fetch the mirror, and return `signed` in its address file; None without."""
    result = run("fetch", f"{site.url}/m", "-o", folder, *options)
    assert result.exit_code == 0, result.output
    return json.loads((folder / "m" / "root" / "mirror.json").read_text()).get("signed")


@pytest.mark.parametrize("layout", [mirror_3, mirror_2])
def test_a_few_binaries_show_it(layout: object, site: Site, tmp_path: Path) -> None:
    """All signed, none, or both; of the first binaries of the index by hash."""
    assert callable(layout)
    for at, (signatures, expected) in enumerate(
        [
            ({"a": True, "b": True}, True),
            ({"a": False}, False),
            ({"a": True, "b": False}, None),
            (dict.fromkeys("abcdefgh", True), True),
        ]
    ):
        site.serve(layout(**signatures))
        site.requests.clear()
        assert found(site, tmp_path / f"{at}") is expected
        asked = [
            path for path in site.paths("") if "/spec/" in path or ".spec." in path
        ]
        assert len(asked) <= 6


def test_more_binaries_are_read_on_this_machine(tmp_path: Path) -> None:
    """One binary without a signature is found among many, although it is not one of the
    first.
    """
    names = sorted("abcdefgh", key=hash_of)
    signatures = dict.fromkeys(names, True) | {names[-1]: False}
    for path, data in mirror_3(**signatures).items():
        target = tmp_path / "served" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    url = (tmp_path / "served" / "m").as_uri()

    assert run("fetch", url, "-o", tmp_path / "fetched").exit_code == 0

    record = json.loads(
        (tmp_path / "fetched" / "m" / "root" / "mirror.json").read_text()
    )
    assert "signed" not in record


def test_it_is_asked_for_again_if_the_mirror_changes(
    site: Site, tmp_path: Path
) -> None:
    """A mirror that has not changed is not asked, and keeps its answer."""
    site.serve(mirror_3(a=False))
    assert found(site, tmp_path / "m") is False

    site.requests.clear()
    assert found(site, tmp_path / "m") is False
    assert site.paths(".spec.manifest.json") == []

    site.serve(mirror_3(a=True, b=True))
    assert found(site, tmp_path / "m") is True


@pytest.mark.parametrize("broken", ["missing", "html", "403", "503"])
def test_a_mirror_that_shows_nothing_is_fetched(
    broken: str, site: Site, tmp_path: Path
) -> None:
    """No fault, no answer: a server may not have the file, or return a page for it."""
    files = mirror_3(a=True)
    (path,) = (path for path in files if path.endswith(".spec.manifest.json"))
    if broken == "missing":
        del files[path]
    if broken == "html":
        files[path] = b"<!doctype html>"
    site.serve(files)
    if broken.isdigit():
        site.always[f"/{path}"] = status(int(broken))

    assert found(site, tmp_path / "m", "--retries", "0") is None


def test_the_configuration_decides(site: Site, tmp_path: Path) -> None:
    """With `signed` in mirrors.yaml, nothing is asked for; its properties are
    stored.
    """
    site.serve(mirror_3(a=True))
    config = tmp_path / "mirrors.yaml"
    config.write_text(
        f"mirrors:\n  m: {{url: {site.url}/m, signed: false, profile: p, "
        "access_pair: {id_variable: HOME, secret_variable: PATH}}\n"
    )
    result = run("fetch", "--mirrors", config, "-o", tmp_path / "m")

    assert result.exit_code == 0, result.output
    assert site.paths(".spec.manifest.json") == []
    assert json.loads((tmp_path / "m" / "m" / "root" / "mirror.json").read_text()) == {
        "url": f"{site.url}/m",
        "signed": False,
        "profile": "p",
        "access_pair": {"id_variable": "HOME", "secret_variable": "PATH"},
    }
