"""What searches answer that people type: packages with the processors they run on."""

import html
import re
from typing import Any
from urllib.parse import quote_plus

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.pages.processor_columns import processor_columns
from spack_cache_db.spack.processors import processor_of
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.conftest import site

V3 = "x86_64_v3"
# The targets, compilers and variants of the binaries of each package.
BINARIES: dict[str, list[tuple[str, str, list[str]]]] = {
    "openblas": [(V3, "gcc@13.2.0", []), ("neoverse_v2", "gcc@13.2.0", [])],
    "intel-oneapi-mkl": [(V3, "gcc@11.4.0", [])],
    "py-tensorflow": [(V3, "gcc@13.2.0", ["+cuda"]), (V3, "gcc@13.2.0", ["~cuda"])],
    "py-torch": [
        (V3, "gcc@13.2.0", ["+cuda", "cuda_arch=80"]),
        ("aarch64", "gcc@13.2.0", ["~cuda"]),
    ],
    "kokkos": [(V3, "gcc@13.2.0", ["+rocm", "amdgpu_target=gfx90a"])],
    "hdf5": [(V3, "gcc@13.2.0", ["+mpi"]), ("zen4", "gcc@11.4.0", ["~mpi"])],
    "gcc": [(V3, "gcc@11.4.0", [])],
    "cmake": [(V3, "gcc@13.2.0", [])],
    "py-numpy": [(V3, "gcc@13.2.0", [])],
    "python": [(V3, "gcc@13.2.0", [])],
    "mesa": [(V3, "gcc@13.2.0", [])],
}
ROW = re.compile(
    r'<tr class="package[^"]*">(.*?)(?=<tr class="package|</tbody>)', re.DOTALL
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of these packages."""
    folder = tmp_path_factory.mktemp("answers")
    pages = {}
    number = 0
    for name, binaries in BINARIES.items():
        specs = []
        for target, compiler, variants in binaries:
            number += 1
            specs.append(
                spec(
                    number,
                    target=target,
                    compiler=compiler,
                    variants=variants,
                    os="ubuntu22.04",
                )
            )
        pages[name.replace("-", "_")] = page(name, specs=specs)
    build([write(folder / "pages", **pages)], folder / "x.db")
    return site(folder / "x.db")


async def answer(cache: Any, text: str, more: str = "") -> tuple[str, str]:
    """Return the page to which a search leads, without tags, and its source."""
    address = f"/find?q={quote_plus(text)}{more}"
    found = await get(cache, address)
    while found.status_code == 302:
        found = await get(cache, found.headers["location"])
    assert found.status_code == 200, found.text
    words = re.sub(r"<[^>]*>", "", found.text)
    return " ".join(html.unescape(words).split()), found.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lapack for neoverse", "1 of 2 packages has a binary for any aarch64"),
        ("lapack for neoverse", "Not used: “for”."),
        ("lapack for neoverse", "no binary for any aarch64 · 1 binary in all"),
        ("gcc 13", "have a binary built with gcc 13"),
        ("gcc 13", "The package gcc"),
        ("zen3 gcc 13", "compilergcc 13✕ machinezen3✕"),
        ("arm", "2 packages have a binary for any aarch64"),
        ("graviton", "any aarch64neoverse_n1neoverse_v1neoverse_v2"),
        ("epyc", "any x86_64zenzen2zen3zen4zen5"),
        ("sapphire rapids", "11 packages have a binary for sapphirerapids"),
        ("A100", "1 package has a binary with cuda_arch=80"),
        ("A100", "“A100” is cuda_arch=80."),
        ("MI250", "1 package has a binary with amdgpu_target=gfx90a"),
        ("H100", "No binary for cuda_arch=90"),
        ("V100", "there is cuda_arch=80"),
        ("numpy python 3.11", "so “python 3.11” is not checked."),
        (
            "cmake %gcc@13.2.0 os=ubuntu22.04 target=x86_64_v3",
            "this is the answer for cmake os=ubuntu22.04 target=x86_64_v3 %gcc@13.2.0",
        ),
        ("mesa partitioner", "no binary matches: “partitioner”."),
        ("mush partitioner", "No package is called “mush partitioner”"),
        ("mush partitioner", "and not their descriptions"),
        ("pytorch cuda zen3 gcc 13", "Read as py-torch +cuda %gcc@13"),
        ("py-torch +cuda", "Read as py-torch +cuda"),
    ],
)
async def test_a_search_is_answered(cache: Any, text: str, expected: str) -> None:
    """The box keeps the text, and the page says what it found or left out."""
    words, source = await answer(cache, text)

    assert expected in words
    assert f'name="q" value="{html.escape(text)}"' in source


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("parallel hdf5", "+mpi"),
        ("tensorflow gpu", "+cuda"),
        ("tensorflow-gpu", "+cuda"),
    ],
)
async def test_a_package_with_options_leads_to_its_page(
    cache: Any, text: str, option: str
) -> None:
    """With the option as a filter."""
    found = await get(cache, f"/find?q={quote_plus(text)}")
    assert found.headers["location"].endswith(f"?variant=%2B{option[1:]}")


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["arm", "gcc 13", "epyc", "%gcc", "os=ubuntu22.04"])
async def test_a_search_without_a_package_lists_packages(cache: Any, text: str) -> None:
    """Each with its own command, and no card that installs the first of them."""
    _, source = await answer(cache, text)

    assert 'id="install"' not in source and 'id="configurations"' not in source
    for row in ROW.findall(source):
        if "data-copy" in row:
            (name,) = re.findall(r'<th scope="row"><a href="/package/([^"?]*)', row)
            (command,) = re.findall(r'data-copy="([^"]*)"', row)
            assert command.splitlines()[-1].startswith(
                f"spack install --cache-only {name}/"
            )


@pytest.mark.asyncio
async def test_only_what_runs_there_is_copied(cache: Any) -> None:
    """A row has the counts of all processors, and a command only if it satisfies the
    search.
    """
    _, source = await answer(cache, "lapack for neoverse", "&host=zen3")
    openblas, mkl = ROW.findall(source)

    assert "neoverse_v2" in openblas and "data-copy" in openblas
    assert 'aria-label="1 binary: intel-oneapi-mkl, x86-64-v3"' in mkl
    assert "data-copy" not in mkl
    chosen = re.findall(r'<th scope="col" class="heat chosen">.*?>([^<]+)<', source)
    assert chosen == ["aarch64", "neoverse v1", "neoverse v2"]


def test_each_binary_has_one_column(lookups: Lookups) -> None:
    """Columns are chosen by the machine, or by the target of a spec."""
    assert processor_of("darwin", "m1").name == "macOS"
    assert processor_of("linux", "zen4").name == "other"

    def chosen(kind: str, value: str) -> list[str]:
        found = processor_columns(lookups, (), (Condition(kind, value, value),))
        return [part.processor.short for part in found.columns if part.is_chosen]

    assert chosen("host", "zen3") == ["x86 v3"]
    assert chosen("target", "aarch64:") == ["arm", "nv1", "nv2"]
    assert chosen("os", "ubuntu22.04") == []


def cells(row: str) -> list[str]:
    """Return the texts of a row's cells for processors."""
    found = re.findall(r'<td class="heat[^>]*>\s*<[^>]*>([^<]+)<', row)
    assert found
    return found


@pytest.mark.asyncio
async def test_the_list_of_packages_has_the_columns_of_a_search(cache: Any) -> None:
    """Both count a package's binaries by processor, and mark those of a machine."""
    source = (await get(cache, "/packages?compiler=gcc@13.2.0&host=zen3")).text
    rows = re.findall(r'<tr><th scope="row"><a [^>]*>([^<]+)</a>(.*?)</tr>', source)
    listed = {name: cells(row) for name, row in rows}
    _, answered = await answer(cache, "%gcc@13.2.0", "&host=zen3")
    found = {}
    for row in ROW.findall(answered):
        (name,) = re.findall(r'<a href="/package/[^>]*>([^<]+)</a>', row)[:1]
        found[name] = cells(row)

    assert listed == {name: found[name] for name in listed}
    assert listed["py-torch"] == ["1", "none", "1", "none", "none", "none"]
    chosen = r'<th scope="col" class="heat chosen">.*?>([^<]+)</span></th>'
    assert re.findall(chosen, source) == re.findall(chosen, answered) == ["x86 v3"]

    every = (await get(cache, "/packages")).text
    # The binary of hdf5 for a zen4 has no column of its own.
    (hdf5,) = re.findall(r">hdf5</a>(.*?)</tr>", every)
    assert cells(hdf5) == ["1", "none", "none", "none", "none", "none", "1"]
