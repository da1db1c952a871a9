"""query.words.reader: graphics processors, words of several processors, and what no
database of pages records.
"""

from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.words.packages import find_packages
from spack_cache_db.query.words.reader import read_words
from spack_cache_db.query.words.reading import Meaning, Reading
from spack_cache_db.spack.facts import GPU_ARCHITECTURES, GPU_SWITCHES
from tests.pagetexts import page, spec, write

VARIANTS = {
    "py-torch": ["+cuda", "cuda_arch=80"],
    "kokkos": ["+rocm", "amdgpu_target=gfx90a"],
    # Its binaries do not show for which architecture they are.
    "py-tensorflow": ["+cuda"],
    "py-numpy": [],
    "python": [],
    "mesa": [],
    "netcdf-c": [],
    "netcdf-fortran": [],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a binary of each package, without dependency data."""
    folder = tmp_path_factory.mktemp("readings")
    pages = {}
    for number, (name, variants) in enumerate(VARIANTS.items()):
        pages[f"page{number}"] = page(name, specs=[spec(number, variants=variants)])
    output = folder / "x.db"
    build([write(folder / "pages", **pages)], output)
    return output


@pytest.fixture(scope="module")
def with_macos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with binaries of Linux and macOS."""
    folder = tmp_path_factory.mktemp("with-macos")
    platforms = ("linux", "darwin")
    specs = [spec(number, platform=name) for number, name in enumerate(platforms)]
    output = folder / "x.db"
    build([write(folder / "pages", python=page("python", specs=specs))], output)
    return output


def reading(file: Path, text: str) -> Reading:
    """Return the reading of words that have one."""
    with opened(file) as lookups:
        found = read_words(lookups, text)
    assert found is not None, text
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A100", "cuda_arch=80"),
        ("nvidia a100-80gb pytorch", "py-torch +cuda cuda_arch=80"),
        ("H100", "cuda_arch=90"),
        ("Tesla V100", "cuda_arch=70"),
        ("pytorch sm_90", "py-torch cuda_arch=90"),
        ("MI250", "amdgpu_target=gfx90a"),
        ("kokkos MI 300X", "kokkos amdgpu_target=gfx942"),
        ("kokkos gfx90a", "kokkos amdgpu_target=gfx90a"),
        ("tensorflow gpu", "py-tensorflow +cuda"),
        ("tensorflow-gpu", "py-tensorflow +cuda"),
    ],
)
def test_graphics_processors_are_variants(file: Path, text: str, expected: str) -> None:
    """By their names and by those of their architectures."""
    assert reading(file, text).spec == expected


def test_an_architecture_that_is_not_recorded_is_said(file: Path) -> None:
    """The switch for GPUs stands for it."""
    found = reading(file, "tensorflow A100")
    assert found.spec == "py-tensorflow +cuda"
    assert found.unrecorded == ("cuda_arch=80",)


def test_each_graphics_processor_has_a_known_variant() -> None:
    """The table names variants of Spack, and names as they are typed."""
    for name, condition in GPU_ARCHITECTURES.items():
        assert name == name.lower()
        assert condition.partition("=")[0] in GPU_SWITCHES


def test_a_dependency_that_is_not_recorded_is_named(file: Path) -> None:
    """With its version, which is not taken for a word of its own."""
    found = reading(file, "numpy python 3.11")
    assert (found.spec, found.unrecorded) == ("py-numpy", ("python@3.11",))
    assert found.nouns == ("py-numpy", "python")


@pytest.mark.parametrize(
    ("text", "generations"),
    [
        ("numpy graviton", ("neoverse_n1", "neoverse_v1", "neoverse_v2")),
        ("epyc", ("zen", "zen2", "zen3", "zen4", "zen5")),
        ("epyc milan", ()),
        ("numpy", ()),
    ],
)
def test_a_word_for_several_processors_names_them(
    file: Path, text: str, generations: tuple[str, ...]
) -> None:
    """Unless another word says which one is meant."""
    assert reading(file, text).generations == generations


@pytest.mark.parametrize(
    ("text", "on_linux", "expected"),
    [
        # Processors that no Mac has mean Linux, where there are binaries of macOS.
        ("python graviton", "target=aarch64:", "platform=linux target=aarch64:"),
        ("python neoverse", "target=aarch64:", "platform=linux target=aarch64:"),
        ("python epyc", "target=x86_64:", "platform=linux target=x86_64:"),
        # A machine has a platform of its own, and any Arm may be a Mac.
        ("python epyc milan", "target=:zen3", "target=:zen3"),
        ("python milan epyc", "target=:zen3", "target=:zen3"),
        ("python grace", "target=:neoverse_v2", "target=:neoverse_v2"),
        ("python m2", "target=:m2", "target=:m2"),
        ("python apple silicon", "target=:m1", "target=:m1"),
        ("python arm", "target=aarch64:", "target=aarch64:"),
        ("python xeon", "target=x86_64:", "target=x86_64:"),
        # What is said is not replaced.
        *(
            (f"python {words}", spec_of_words, spec_of_words)
            for words, spec_of_words in (
                ("linux graviton", "platform=linux target=aarch64:"),
                ("mac graviton", "platform=darwin target=aarch64:"),
                ("apple m2", "platform=darwin target=:m2"),
            )
        ),
    ],
)
def test_processors_without_macs_mean_linux(
    file: Path, with_macos: Path, text: str, on_linux: str, expected: str
) -> None:
    """Only in a database that also has binaries of macOS."""
    for database, conditions in ((file, on_linux), (with_macos, expected)):
        found = reading(database, text)
        parts = {meaning.text for meaning in found.meanings}
        assert parts == {"python", *conditions.split()}, found


def test_the_platform_of_a_processor_is_removed_with_it(with_macos: Path) -> None:
    """Both parts have its word."""
    found = reading(with_macos, "python graviton")
    assert found.meanings[1:] == (
        Meaning("target", "target=aarch64:", ("graviton",)),
        Meaning("platform", "platform=linux", ("graviton",)),
    )


def test_each_part_knows_its_words(file: Path) -> None:
    """A part is removed from a text with its words."""
    found = reading(file, "pytorch without mpi or cuda for milan gcc 13")

    assert found.meanings[:2] == (
        Meaning("package", "py-torch", ("pytorch",)),
        Meaning("compiler", "%gcc@13", ("gcc", "13")),
    )
    assert Meaning("target", "target=:zen3", ("milan",)) in found.meanings


def test_a_negated_name_of_several_words_is_not_wanted(file: Path) -> None:
    """It is left out as one name, wherever it stands."""
    alone = reading(file, "without netcdf fortran")
    assert (alone.spec, alone.left_out) == ("", ("without netcdf fortran",))
    beside = reading(file, "netcdf-c without netcdf fortran")
    assert (beside.spec, beside.left_out) == ("netcdf-c", ("without netcdf fortran",))


def test_one_of_two_words_is_no_misspelling(file: Path) -> None:
    """Packages with similar names are a guess only if each word has one."""
    with opened(file) as lookups:
        assert find_packages(lookups, ["messa"], ["messa"]).is_guess
        words = ["messa", "partitioner"]
        found = find_packages(lookups, words, words)
        assert dict(found.reasons) == {}
        assert found.is_guess is False
