"""Environments that are pasted: the page says what the command says, within bounds."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from spack_cache_db.cli.main import cli
from spack_cache_db.environments.model import UnreadableEnvironment
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.http.checks import MOST_BODY
from spack_cache_db.site.pages.pasted_environment import LIMITS, LONGEST_LINK, covered
from tests.indexes import node

pytestmark = pytest.mark.slow

SPECS = "hdf5@1.14 +mpi\nhdf5@99\nhdf5 %gcc@13 target=zen3\nhdf6\nhdf5 ^mpich\nzlib  # small\n"
MANIFEST = """
spack:
  definitions:
  - packages: [hdf5, zlib]
  specs:
  - matrix: [[$packages], [target=:zen4], ['%gcc@13', '%gcc@99']]
  packages:
    hdf5: {require: +mpi, prefer: [+cxx]}
"""
LOCK = json.dumps(
    {
        "_meta": {"lockfile-version": 6},
        "roots": [],
        "concrete_specs": {each["hash"]: each for each in (node("hdf5"), node("zlib"))},
    }
)


async def get(datasette: Any, form: str = "", **fields: str) -> Any:
    """Ask by an address."""
    return await datasette.client.get(f"/cover{form}?{urlencode(fields)}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text", [SPECS, MANIFEST, LOCK], ids=["specs", "manifest", "lock"]
)
@pytest.mark.parametrize("fields", [{}, {"release": "v0.23.1", "host": "zen3"}])
async def test_the_answers_are_those_of_the_command(
    datasette: Any, database: Path, tmp_path: Path, text: str, fields: dict[str, str]
) -> None:
    """JSON and CSV are what the command prints of the same environment."""
    (tmp_path / "pasted").write_text(text)
    options = [part for name, value in fields.items() for part in (f"--{name}", value)]

    for form in ("json", "csv"):
        command = [
            "cover",
            str(tmp_path / "pasted"),
            str(database),
            f"--{form}",
            *options,
        ]
        printed = CliRunner().invoke(cli, command).stdout
        answer = await get(datasette, f".{form}", q=text, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.text.strip() == printed.strip()
        posted = await datasette.client.post(
            f"/cover.{form}", data={"q": text, **fields}
        )
        assert posted.text == answer.text


@pytest.mark.asyncio
async def test_the_page_says_which_lack_a_binary(datasette: Any) -> None:
    """What lacks one stands apart, with the reason and links to what is nearest."""
    answer = await get(datasette, q=SPECS)
    text = html.unescape(answer.text)

    assert answer.status_code == 200
    assert "<h1>2 of 6 specs have a binary</h1>" in text
    lacking, having = text.split('id="having"')
    assert "4 without a binary" in lacking and "2 with a binary" in having
    assert "No version 99 of hdf5: newest 1.14.10" in lacking
    assert "hdf5@99" not in having.partition("</table>")[0]
    assert 'Nearest: <a href="/find?q=hdf5' in lacking
    assert 'data-copy="spack install hdf5@99"' in lacking
    assert 'href="/find?q=hdf5%20target%3Dzen3%20%25gcc%4013"' in lacking
    assert re.search(r"Similar names: <a href=\"/package/hdf5\">", lacking)
    assert "spack install hdf6" not in lacking
    assert 'href="/find.atom?q=hdf5%4099">Feed that tells when it appears' in lacking
    (reason,) = re.findall(r'href="#(spec-1)">no binary</a>', text)
    assert f'<li id="{reason}">' in lacking
    assert "textarea" in text and "hdf5@1.14 +mpi\nhdf5@99" in text


@pytest.mark.asyncio
async def test_one_block_installs_all_that_have_a_binary(datasette: Any) -> None:
    """Each mirror is added once; each binary is named once, as the list of binaries
    names it.
    """
    answer = await get(datasette, q=SPECS + "zlib\nhdf5@1.14 +mpi\n")
    blocks = re.findall(r'data-copy="(spack mirror[^"]*)"', html.unescape(answer.text))
    found = await get(datasette, ".json", q=SPECS)
    having = [spec for spec in found.json()["specs"] if spec["status"] == "binary"]
    *mirrors, trust, install = blocks[0].splitlines()

    assert len(blocks) == 1
    mirror_of = {each["release"]: each["mirror"] for each in having}
    assert mirrors == [
        f"spack mirror add {release} {url}" for release, url in mirror_of.items()
    ]
    assert trust == "yes | spack buildcache keys --install --trust"
    words = install.removeprefix("spack install --cache-only ").split()
    assert len(words) == len(having) == 2
    for word, each in zip(words, having, strict=True):
        name, _, prefix = word.partition("/")
        assert name == each["configuration"]["package"]
        assert each["hash"].startswith(prefix) and len(prefix) >= 7


@pytest.mark.asyncio
async def test_a_form_leads_to_its_address(datasette: Any) -> None:
    """A short text can be shared; with a cookie, too, nothing but the text is asked
    for.
    """
    for cookies in ({}, {"ds_csrftoken": "x"}):
        answer = await datasette.client.post(
            "/cover",
            data={"q": "zlib\r\nhdf5", "host": "zen3", "release": ""},
            cookies=cookies,
        )
        assert answer.status_code == 303
        assert answer.headers["location"] == "/cover?q=zlib%0Ahdf5&host=zen3"


@pytest.mark.asyncio
async def test_a_long_form_is_answered_at_once(datasette: Any) -> None:
    """What no address can carry is answered where it was sent, and can be had as
    data.
    """
    text = "zlib\n" * 900 + "# " + "x" * LONGEST_LINK
    answer = await datasette.client.post("/cover", data={"q": text})

    assert answer.status_code == 200
    assert "900 of 900 specs have a binary" in answer.text
    assert 'formaction="/cover.json"' in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spack: {include: x}", "expected a list of paths"),
        ("spack: [", "pasted text:1: broken YAML"),
        ("zlib\n" * (LIMITS.specs + 1), "has more than 1,000 specs"),
        ("zlib " + "+x" * 1_000, None),
    ],
)
async def test_what_cannot_be_read(datasette: Any, text: str, said: str | None) -> None:
    """The page says what is wrong; JSON and CSV say it with status 400."""
    page = await get(datasette, q=text)
    data = await get(datasette, ".json", q=text)

    assert page.status_code == 200
    if said is None:
        assert "characters, expected at most 2,000" in page.text
        return
    assert said in html.unescape(page.text)
    assert data.status_code == 400 and said in data.json()["error"]
    assert (await get(datasette, ".csv", q=text)).text.startswith("Error: ")


@pytest.mark.asyncio
async def test_too_much_is_refused(datasette: Any) -> None:
    """A form is read up to its bound, whatever it says of its length."""
    answer = await datasette.client.post("/cover", data={"q": "x" * (MOST_BODY + 1)})
    assert answer.status_code == 413
    assert answer.headers["cache-control"] == "no-store"

    many = "&".join(f"a{number}=1" for number in range(50))
    answer = await datasette.client.post("/cover", content=many)
    assert answer.status_code == 413


@pytest.mark.asyncio
async def test_what_is_no_form_is_refused(datasette: Any) -> None:
    """A file sent as it is would be read as an empty form: the answer says how to send
    it.
    """
    headers = {"content-type": "application/yaml"}
    answer = await datasette.client.post(
        "/cover.json", content=b"spack: {}", headers=headers
    )
    allowed = await datasette.client.options("/cover.json")

    assert answer.status_code == 415
    assert "--data-urlencode q@spack.yaml" in answer.text
    assert allowed.headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_the_time_is_looked_at(lookups: Lookups) -> None:
    """When the time is over, the page says what to do, whatever is under way."""
    lookups.conn.set_progress_handler(lambda: 1, 50)

    try:
        with pytest.raises(UnreadableEnvironment, match="check fewer specs at once"):
            covered(lookups, "\n".join(f"none{n}" for n in range(500)))
    finally:
        lookups.conn.set_progress_handler(None, 0)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/find", "/find.json", "/cover", "/cover.json"])
async def test_specs_of_before_spack_1_0(datasette: Any, path: str) -> None:
    """The address says for which Spack specs are written; the form keeps it, and its
    links.
    """
    old = {"q": "hdf5 %gcc@13 target=:zen4", "spack": "0.23"}
    new = await datasette.client.get(
        f"{path}?{urlencode({'q': 'hdf5 target=:zen4 %gcc@13'})}"
    )
    answer = await datasette.client.get(f"{path}?{urlencode(old)}")
    wrong = await datasette.client.get(f"{path}?{urlencode(old | {'spack': 'new'})}")

    assert (answer.status_code, new.status_code) == (200, 200)
    assert "not a version of Spack" in html.unescape(wrong.text)
    if path == "/find.json":
        assert answer.json() == new.json()
    elif path == "/cover.json":
        assert [spec["status"] for spec in answer.json()["specs"]] == ["binary"]
    else:
        assert '<option value="0.23" selected>' in answer.text
        assert '<option value="0.23" selected>' not in new.text
