"""The section `mirrors` of Spack's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db.sources.fetch.addresses import (
    Login,
    Mirror,
    NamedMirrors,
    read_mirror_config,
)


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables with secrets and a path."""
    for name, value in {
        "USER_NAME": "me",
        "SECRET": "s3cret",
        "TOKEN": "t0ken",
        "SITE": "/srv",
    }.items():
        monkeypatch.setenv(name, value)


def config(folder: Path, text: str) -> NamedMirrors:
    """Read a configuration."""
    path = folder / "mirrors.yaml"
    path.write_text(text)
    return read_mirror_config(path)


def mirror(folder: Path, text: str) -> Mirror:
    """Return the only mirror, from its value."""
    found = config(folder, f"mirrors:\n  m: {text}\n")
    assert found.faults == ()
    (only,) = found.mirrors
    return only


@pytest.mark.parametrize(
    ("text", "url", "endpoint"),
    [
        ("https://host/a", "https://host/a", None),
        ("{url: oci://host/a}", "oci://host/a", None),
        ("{url: https://a, fetch: https://b}", "https://b", None),
        ("{url: https://a, push: https://b}", "https://a", None),
        ("{fetch: {url: s3://b, endpoint_url: https://e}}", "s3://b", "https://e"),
        ("{url: s3://a, endpoint_url: https://e, fetch: s3://b}", "s3://b", "https://e"),
        ("{url: s3://a, endpoint_url: https://e, fetch: {url: s3://b}}", "s3://b", "https://e"),
        ("{url: s3://a, fetch: {endpoint_url: https://e}}", "s3://a", "https://e"),
        ("{fetch: {url: s3://b, endpoint_url: null, access_pair: [null, null]}}", "s3://b", None),
        ("{url: s3://b, endpoint_url: https://e, fetch: {endpoint_url: null}}", "s3://b", None),
        ("{url: s3://b, access_pair: [a, b], fetch: {access_pair: [null, null]}}", "s3://b", None),
        ("{url: s3://b, signed: false, source: no, autopush: true, other: [1]}", "s3://b", None),
        ("/srv/mirror", "file:///srv/mirror", None),
        ("$SITE/a b", "file:///srv/a%20b", None),
        ("'${SITE}/../x'", "file:///x", None),
    ],
)
def test_addresses(tmp_path: Path, text: str, url: str, endpoint: str | None) -> None:
    """What is fetched from counts before what stands beside it, whatever form it has."""
    assert mirror(tmp_path, text) == Mirror(url, "m", endpoint=endpoint)


@pytest.mark.parametrize(
    ("text", "view", "include", "exclude"),
    [
        ("{url: https://a}", None, (), ()),
        ("{url: https://a, view: a/b}", "a/b", (), ()),
        ("{url: https://a, view: a, fetch: {view: b}}", "b", (), ()),
        ("{url: https://a, view: a, push: {view: b}}", "a", (), ()),
        ("{url: https://a, view: a, fetch: https://b}", "a", (), ()),
        (
            "{url: https://a, include_binary: [zlib, +x], exclude_binary: [y]}",
            None,
            ("zlib", "+x"),
            ("y",),
        ),
        ("{url: https://a, include_binary: [x], fetch: {include_binary: [y]}}", None, ("y",), ()),
        ("{url: https://a, include_binary: [x], fetch: {include_binary: []}}", None, (), ()),
        ("{url: https://a, exclude_binary: [x], push: {exclude_binary: [y]}}", None, (), ("x",)),
    ],
)
def test_views_and_filters(
    tmp_path: Path, text: str, view: str | None, include: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    """What `fetch` has counts before what the mirror has, also if it is empty."""
    found = mirror(tmp_path, text)

    assert (found.include_binary, found.exclude_binary) == (include, exclude)
    assert (found.views, found.has_index) == ((view,) if view else (), not view)


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("access_pair: [me, s3cret]", Login("me", "s3cret")),
        ("access_pair: {id: me, secret_variable: SECRET}", Login("me", "s3cret")),
        ("access_pair: {id_variable: USER_NAME, secret_variable: SECRET}", Login("me", "s3cret")),
        ("access_pair: [me, s3cret], access_token: t0ken", Login("me", "s3cret", "t0ken")),
        (
            "access_pair: [me, s3cret], access_token_variable: TOKEN",
            Login("me", "s3cret", "t0ken"),
        ),
        ("access_pair: null", None),
    ],
)
def test_logins(tmp_path: Path, text: str, login: Login | None) -> None:
    """Secrets come from variables or the file, for a mirror or for fetching alone."""
    assert mirror(tmp_path, f"{{url: s3://b, {text}}}").login == login
    assert mirror(tmp_path, f"{{fetch: {{url: s3://b, {text}}}}}").login == login
    assert mirror(tmp_path, f"{{url: s3://b, push: {{{text}}}}}").login is None


@pytest.mark.parametrize(
    "text",
    [
        "mirrors:\n  b: https://b\n  a: https://a\n",
        "mirrors::\n  b: https://b\n  a:: https://a\n",
        "spack:\n  specs: [zlib]\n  mirrors:\n    b: https://b\n    a: https://a\n",
        "x: &u https://b\nmirrors:\n  b: *u\n  a: https://a\n  s: {url: /s, binary: false}\n",
    ],
)
def test_files(tmp_path: Path, text: str) -> None:
    """A `mirrors.yaml` and an environment name the same mirrors, in their order."""
    found = config(tmp_path, text)

    assert found.faults == ()
    assert [(each.release, each.url) for each in found.mirrors] == [
        ("b", "https://b"),
        ("a", "https://a"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{fetch: {}}", 3, "the mirror m has no url to fetch from, expected url: or fetch:"),
        ("[a]", 3, "the mirror m cannot be read: Expected `str | null`, got `array` - at"),
        ("{url: [a]}", 3, "the mirror m cannot be read: Expected `str | null`, got `array` - at"),
        ("{url: s3://b, profile: x}", 3, "the mirror m has a profile, which cannot be read"),
        (
            "{url: s3://b, access_pair: {id: me, secret_variable: NOT_SET}}",
            3,
            "the mirror m needs the environment variable NOT_SET, which is not set",
        ),
        ("{url: s3://b, access_pair: {secret_variable: SECRET}}", 3, "the mirror m has an access"),
        ("{url: s3://b, access_pair: [a, b, c]}", 3, "the mirror m has 3 values in access_pair"),
        ("$nothing/a", 3, "the mirror m needs the environment variable nothing"),
    ],
)
def test_faults(tmp_path: Path, text: str, line: int, message: str) -> None:
    """Every mirror that cannot be read is told, with its line; the others are read."""
    found = config(tmp_path, f"mirrors:\n  first: https://a\n  m: {text}\n")

    assert [each.release for each in found.mirrors] == ["first"]
    (fault,) = found.faults
    assert (fault.line, fault.message[: len(message)]) == (line, message)
    assert "s3cret" not in str(fault)


@pytest.mark.parametrize(
    "text",
    ["", "a: b", "mirrors: [a]", "mirrors: {", "mirrors: {s: {url: https://s, binary: false}}"],
)
def test_no_configuration(tmp_path: Path, text: str) -> None:
    """A file that names nothing to fetch is a fault."""
    found = config(tmp_path, text)

    assert found.mirrors == ()
    assert len(found.faults) == 1
