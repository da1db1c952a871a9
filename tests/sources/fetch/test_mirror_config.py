"""The section `mirrors` of Spack's configuration."""

from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.sources.fetch.addresses import Login, Mirror, NamedMirrors
from spack_cache_db.sources.fetch.mirrors_yaml import read_mirror_config
from spack_cache_db.sources.indexes.addresses import (
    LoginVariables,
    Properties,
    settings_of,
)

VARIABLES = {"USER_NAME": "me", "SECRET": "s3cret", "TOKEN": "t0ken", "SITE": "/srv"}


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables with secrets and a path."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)


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


E = {"endpoint": "https://e", "properties": Properties(endpoint_url="https://e")}


@pytest.mark.parametrize(
    ("text", "url", "more"),
    [
        ("https://host/a", "https://host/a", {}),
        ("{url: oci://host/a}", "oci://host/a", {}),
        ("{url: https://a, fetch: https://b}", "https://b", {}),
        ("{url: https://a, push: https://b}", "https://a", {}),
        ("{url: s3://a, endpoint_url: https://e, fetch: s3://b}", "s3://b", E),
        ("{url: s3://a, fetch: {endpoint_url: https://e}}", "s3://a", E),
        (
            "{fetch: {url: s3://b, endpoint_url: null, access_pair: [null, null]}}",
            "s3://b",
            {},
        ),
        (
            "{url: s3://b, endpoint_url: https://e, fetch: {endpoint_url: null}}",
            "s3://b",
            {},
        ),
        ("{url: s3://b, source: no, autopush: true, other: [1]}", "s3://b", {}),
        (
            "{url: s3://b, signed: false, autopush: true}",
            "s3://b",
            {"properties": Properties(signed=False)},
        ),
        ("/srv/mirror", "file:///srv/mirror", {}),
        ("$SITE/a b", "file:///srv/a%20b", {}),
        ("'${SITE}/../x'", "file:///x", {}),
        (
            "{url: s3://b, view: a/b}",
            "s3://b",
            {"views": ("a/b",), "properties": Properties(view="a/b")},
        ),
        (
            "{url: s3://a, view: a, fetch: s3://b}",
            "s3://b",
            {"views": ("a",), "properties": Properties(view="a")},
        ),
        (
            "{url: s3://b, include_binary: [zlib, +x], exclude_binary: [y]}",
            "s3://b",
            {"include_binary": ("zlib", "+x"), "exclude_binary": ("y",)},
        ),
        (
            "{url: s3://b, include_binary: [x], fetch: {include_binary: []}}",
            "s3://b",
            {},
        ),
        (
            "{url: s3://b, exclude_binary: [x], push: {exclude_binary: [y]}}",
            "s3://b",
            {"exclude_binary": ("x",)},
        ),
    ],
)
def test_mirrors(tmp_path: Path, text: str, url: str, more: dict[str, Any]) -> None:
    """Keys below `fetch` count before keys beside it, also if they are empty."""
    assert mirror(tmp_path, text) == Mirror(
        url, "m", has_index="views" not in more, **more
    )


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("access_pair: [me, s3cret]", Login("me", "s3cret")),
        ("access_pair: {id: me, secret_variable: SECRET}", Login("me", "s3cret")),
        (
            "access_pair: {id_variable: USER_NAME, secret_variable: SECRET}",
            Login("me", "s3cret"),
        ),
        (
            "access_pair: [me, s3cret], access_token: t0ken",
            Login("me", "s3cret", "t0ken"),
        ),
        (
            "access_pair: [me, s], access_token_variable: TOKEN",
            Login("me", "s", "t0ken"),
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
    ("text", "properties"),
    [
        ("access_pair: [me, s3cret], access_token: t0ken", Properties()),
        (
            "access_pair: {id: me, secret_variable: SECRET}",
            Properties(access_pair=LoginVariables(secret_variable="SECRET")),
        ),
        (
            "access_pair: {id_variable: USER_NAME, secret_variable: SECRET}, profile: p",
            Properties(
                profile="p",
                access_pair=LoginVariables(
                    id_variable="USER_NAME", secret_variable="SECRET"
                ),
            ),
        ),
        ("access_token_variable: TOKEN", Properties(access_token_variable="TOKEN")),
        (
            "endpoint_url: 'https://me:s3cret@host/?a=t0ken'",
            Properties(endpoint_url="https://host/"),
        ),
    ],
)
def test_properties_that_users_need(
    tmp_path: Path, text: str, properties: Properties
) -> None:
    """Names of variables are kept; values of logins are not, wherever they are."""
    found = mirror(tmp_path, f"{{url: s3://b, {text}}}").properties
    assert found == properties
    for secret in VARIABLES.values():
        assert f'"{secret}' not in (settings_of(found) or "")


@pytest.mark.parametrize("url", ["/srv/mirror", "https://host/a", "oci://host/a"])
def test_a_profile_that_is_not_needed_is_accepted(tmp_path: Path, url: str) -> None:
    """Only an object store needs the login of a profile."""
    assert mirror(tmp_path, f"{{url: '{url}', profile: x}}").properties.profile == "x"


def test_a_profile_beside_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login, or the variables of an exported profile, replace a profile."""
    pair = "access_pair: {id_variable: USER_NAME, secret_variable: SECRET}"
    found = mirror(tmp_path, f"{{url: s3://b, profile: x, {pair}}}")
    assert (found.login, found.properties.profile) == (Login("me", "s3cret"), "x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    assert mirror(tmp_path, "{url: s3://b, profile: x}").properties.profile == "x"


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
    assert found.mirrors == (Mirror("https://b", "b"), Mirror("https://a", "a"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{fetch: {}}", "has no url to fetch from, expected url: or fetch:"),
        ("[a]", "cannot be read: Expected `str | null`, got `array` - at"),
        ("{url: [a]}", "cannot be read: Expected `str | null`, got `array` - at"),
        ("{url: s3://b, profile: x}", "has a profile, which cannot be read"),
        (
            "{url: s3://b, access_pair: {id: me, secret_variable: NOT_SET}}",
            "needs the environment variable NOT_SET, which is not set",
        ),
        (
            "{url: s3://b, access_pair: {secret_variable: SECRET}}",
            "has an access_pair without id:",
        ),
        ("{url: s3://b, access_pair: [a, b, c]}", "has 3 values in access_pair"),
        ("$nothing/a", "needs the environment variable nothing"),
    ],
)
def test_faults(tmp_path: Path, text: str, message: str) -> None:
    """Every mirror that cannot be read is told, with its line; the others are read."""
    found = config(tmp_path, f"mirrors:\n  first: https://a\n  m: {text}\n")

    assert [mirror.release for mirror in found.mirrors] == ["first"]
    (fault,) = found.faults
    assert fault.line == 3
    assert fault.message.startswith(f"the mirror m {message}")
    assert "s3cret" not in str(fault)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: b",
        "mirrors: [a]",
        "mirrors: {",
        "mirrors: {s: {url: https://s, binary: false}}",
    ],
)
def test_no_configuration(tmp_path: Path, text: str) -> None:
    """A file that names nothing to fetch is a fault."""
    found = config(tmp_path, text)

    assert (found.mirrors, len(found.faults)) == ((), 1)
