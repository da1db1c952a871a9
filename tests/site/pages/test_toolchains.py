"""`/cover` by toolchain: binaries of several compilers are never mixed silently."""

import html
import json
import re
import sqlite3
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from click.testing import CliRunner

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.main import cli
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import (
    answered_environment,
    cover,
    cover_environment,
)
from spack_cache_db.query.answers.toolchains import (
    Toolchain,
    ToolchainCount,
    toolchain_counts,
)
from spack_cache_db.query.open.lookups import read_lookups
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.conftest import site

GCC = ("gcc@13.2.0", "ubuntu24.04")
ONEAPI = ("intel-oneapi-compilers@2025.1.0", "ubuntu22.04")
# The compilers and systems of the binaries of each package.
BINARIES = {
    "hdf5": [GCC, ONEAPI],
    "petsc": [GCC],
    "zlib": [GCC],
    "trilinos": [ONEAPI],
    # No compiler built it: it belongs to both.
    "py-six": [("none", "ubuntu24.04"), ("none", "ubuntu22.04")],
}
SPECS = "hdf5\npetsc\nzlib\ntrilinos\npy-six\nnwchem\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of these binaries."""
    folder = tmp_path_factory.mktemp("toolchains")
    pages = {}
    number = 0
    for name, builds in BINARIES.items():
        specs = []
        for compiler, system in builds:
            number += 1
            specs.append(spec(number, compiler=compiler, os=system))
        pages[name.replace("-", "_")] = page(name, specs=specs)
    build([write(folder / "pages", **pages)], folder / "x.db")
    return folder / "x.db"


async def answer(file: Path, **fields: str) -> str:
    """Return the page of an environment."""
    found = await get(site(file), f"/cover?{urlencode({'q': SPECS, **fields})}")
    assert found.status_code == 200, found.text
    return html.unescape(found.text)


def installed(text: str) -> set[str]:
    """Return the packages that the command of a page installs."""
    (block,) = re.findall(r'data-copy="(spack mirror[^"]*)"', text)
    words = block.splitlines()[-1].removeprefix("spack install --cache-only ")
    return {word.partition("/")[0] for word in words.split()}


@pytest.mark.asyncio
async def test_the_command_has_binaries_of_one_compiler(file: Path) -> None:
    """Those of the column of most specs; the page names what only others have."""
    text = await answer(file)

    assert "<h1>4 of 6 specs have a binary with gcc 13.2.0</h1>" in text
    assert installed(text) == {"hdf5", "petsc", "zlib", "py-six"}
    assert "only with oneAPI 2025.1.0" in text
    assert "mix 2 compilers" not in text
    assert 'aria-current="true">gcc 13.2.0</a>' in text
    assert "Ubuntu 24.04</small> <small>x86-64-v3</small>" in text
    assert "Mix compilers</a>: 5 of 6" in " ".join(text.split())


@pytest.mark.asyncio
async def test_another_column_can_be_chosen(file: Path) -> None:
    """By a link of the page, which keeps the environment."""
    text = await answer(file)
    links = re.findall(r'href="(/cover\?[^"]*toolchain=intel[^"]*)"', text)
    chosen = await get(site(file), links[0])

    assert installed(chosen.text) == {"hdf5", "trilinos", "py-six"}
    assert "only with gcc 13.2.0" in chosen.text


@pytest.mark.asyncio
async def test_the_data_of_a_page_are_those_of_its_toolchain(file: Path) -> None:
    """The buttons for JSON and CSV send the chosen toolchain, which JSON names."""
    served = site(file)
    text = await answer(file)
    sent = re.findall(
        r'formaction="/cover.json" name="toolchain" value="([^"]*)"', text
    )
    chosen = {"q": SPECS, "toolchain": sent[0]}
    found = (await served.client.post("/cover.json", data=chosen)).json()
    rows = (await served.client.post("/cover.csv", data=chosen)).text
    mixed = (await get(served, f"/cover.json?{urlencode({'q': SPECS})}")).json()
    wrong = await get(served, "/cover.json?q=hdf5&toolchain=gcc@99,ubuntu24.04,zen3")

    assert "<h1>4 of 6 specs have a binary with gcc 13.2.0</h1>" in text
    assert (found["binary"], found["total"]) == (4, 6)
    assert found["toolchain"]["compiler"] == "gcc@13.2.0"
    assert len(re.findall(r"^.*,binary,", rows, re.MULTILINE)) == 4
    assert mixed["binary"] == 5
    assert "toolchain" not in mixed
    assert wrong.status_code == 400
    assert "close: gcc@13.2.0,ubuntu24.04,x86_64_v3" in wrong.json()["error"]


@pytest.mark.asyncio
async def test_compilers_are_mixed_on_demand(file: Path) -> None:
    """The page and the command say so."""
    text = await answer(file, toolchain="any")

    assert installed(text) == {"hdf5", "petsc", "zlib", "trilinos", "py-six"}
    assert "These binaries mix 2 compilers: " in text


@pytest.mark.asyncio
async def test_a_spack_yaml_has_the_binaries_and_what_spack_builds(file: Path) -> None:
    """The binaries are those of the command, exactly; the other specs are as typed."""
    text = await answer(file)
    pattern = r'data-copy="(# Once[\s\S]*?)" aria-label="Copy: the spack.yaml"'
    (copied,) = re.findall(pattern, text)
    environment = yaml.safe_load(copied)["spack"]
    binaries = [spec for spec in environment["specs"] if "@=" in spec]
    others = [spec for spec in environment["specs"] if "@=" not in spec]

    assert {spec.partition("@")[0] for spec in binaries} == installed(text)
    assert all("%gcc@=13.2.0" in spec for spec in binaries if "py-six" not in spec)
    assert others == ["trilinos", "nwchem"]
    assert list(environment["mirrors"]) == ["develop"]


@pytest.mark.asyncio
async def test_other_machines_are_beside_the_readers(tmp_path: Path) -> None:
    """Their columns are pale, and a link to one leaves the reader's machine out."""
    specs = [spec(1, target="x86_64_v3"), spec(2, target="neoverse_v2")]
    pages = write(tmp_path / "pages", hdf5=page("hdf5", specs=specs))
    build([pages], tmp_path / "x.db")
    text = await answer(tmp_path / "x.db", host="zen3")
    headings = re.findall(r'<th scope="col" class="(\w+)">\s*<a href="([^"]*)"', text)
    (_, chosen), (_, elsewhere) = headings

    assert [style for style, _ in headings] == ["chosen", "elsewhere"]
    assert "host=zen3" in chosen and "host=" not in elsewhere
    assert "do not run on zen3" in text
    assert installed(await answer(tmp_path / "x.db", host="zen3")) == {"hdf5"}


@pytest.mark.asyncio
@pytest.mark.parametrize("toolchain", ["x", "gcc@1,rhel8,zen3", ",,", "a,b,c,d"])
async def test_an_unknown_toolchain_is_not_chosen(file: Path, toolchain: str) -> None:
    """The one of most specs is."""
    assert installed(await answer(file, toolchain=toolchain)) >= {"petsc"}


def test_the_command_and_python_say_so(file: Path, tmp_path: Path) -> None:
    """In a sentence, and in the JSON."""
    environment = tmp_path / "specs.txt"
    environment.write_text(SPECS)
    run = CliRunner().invoke(cli, ["cover", str(environment), str(file)])
    document = json.loads(
        CliRunner().invoke(cli, ["cover", str(environment), str(file), "--json"]).stdout
    )

    assert document["mixed"] in run.stdout
    assert document["mixed"].endswith(
        "; gcc@13.2.0 on ubuntu24.04 for x86_64_v3 alone has 4 of 6"
    )
    assert document["toolchains"][0] == {
        "compiler": "gcc@13.2.0",
        "os": "ubuntu24.04",
        "target": "x86_64_v3",
        "binary": 4,
    }
    assert cover(file, ["hdf5", "petsc"]).mixed is None


def test_binaries_of_one_toolchain_are_those_of_its_scope(
    real_index: sqlite3.Connection,
) -> None:
    """Answers within a toolchain are as if there were no other; what other toolchains
    have is built.
    """
    lookups = read_lookups(real_index)
    environment = read_environment("\n".join(lookups.packages).encode(), "-")
    answered = answered_environment(lookups, environment)
    everything = answered.cover
    assert len(everything.toolchains) > 1
    for toolchain, _ in everything.toolchains:
        found = answered.within_toolchain(toolchain)
        alone = cover_environment(lookups, environment, toolchain.conditions)

        assert found.available == alone.available
        assert found.download == alone.download
        for answer, answer_alone in zip(found.specs, alone.specs, strict=True):
            assert answer.is_met == answer_alone.is_met
            if answer.is_met:
                assert answer.hash == answer_alone.hash
                assert answer.mirror == answer_alone.mirror
            elif answer.toolchains and not answer_alone.toolchains:
                # Only other toolchains have it.
                assert answer.spec in found.to_build


def test_a_binary_without_a_compiler_belongs_to_all() -> None:
    """Of its system and target."""
    gcc = Toolchain("gcc@13", "rhel8", "zen3")
    without_compiler = Toolchain("none", "rhel8", "zen3")
    elsewhere = Toolchain("none", "rhel9", "zen3")
    counts = toolchain_counts([{gcc}, {without_compiler}, {elsewhere}], [gcc])

    assert counts == (ToolchainCount(gcc, 2),)
    only = toolchain_counts([{without_compiler}], [])
    assert only == (ToolchainCount(without_compiler, 1),)
