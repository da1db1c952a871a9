"""build.rows: words find what docs/site.md says that they mean, and no more."""

import sqlite3
from collections.abc import Iterator

import pytest
from datasette.utils import escape_fts

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.search_words import configuration_tokens
from tests.configurations import configuration
from tests.pagetexts import page, spec, write

HDF5 = spec(
    1,
    versions=["1.14.3"],
    compiler="gcc@12.2.0",
    os="ubuntu22.04",
    target="zen3",
    variants=[
        "+cuda",
        "++pic",
        "~java",
        "mpi=True",
        "build_type=Release",
        "cuda_arch=80,90",
        "libs=shared,static",
        "languages='c,c++'",
        "k='two words'",
        "prefix=/usr/local",
    ],
)
TORCH = spec(
    2,
    versions=["1.12"],
    compiler="llvm@17.0.6",
    os="sequoia",
    platform="darwin",
    target="aarch64",
    variants=["~cuda", "java=false", "odd='a:b%c'"],
)
FOUND = {
    (
        "hdf5",
    ): """hdf5 HDF5 1.14 @1.14 1.14.3 hdf5@1.14 gcc %gcc gcc@12 %gcc@12.2 gcc@12.2.0 zen3
        target=zen3 x86_64 ubuntu22.04 os=ubuntu22.04 platform=linux +cuda cuda ++pic +pic pic mpi
        +mpi mpi=true mpi=True build_type=Release release cuda_arch=80 cuda_arch=80,90 cuda_arch=90
        90 libs=static static languages=c++ c++ two k=two prefix=/usr/local /usr/local""",
    (
        "py-torch",
    ): """torch py-torch py-torch@1.12 aarch64 os=sequoia darwin platform=darwin ~cuda
        a:b%c""",
    ("hdf5", "py-torch"): "1 ~java",
    (): """1.1 hdf5@1.12 @=1.14.3 gcc@12.2.1 gcc@1 %gcc@17 %@12 @12.2.0 ^gcc ~pic java +java ~mpi
        cuda_arch=70 odd cuda_arch""",
}
"""Packages by the words that find them; search does not tell cases apart."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of the two packages."""
    folder = tmp_path_factory.mktemp("words")
    pages = write(
        folder, a=page("hdf5", specs=[HDF5]), b=page("py-torch", specs=[TORCH])
    )
    build(pages, folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


@pytest.mark.parametrize("packages", FOUND, ids=str)
def test_a_word_finds_what_it_means(
    database: sqlite3.Connection, packages: tuple[str]
) -> None:
    """One word, quoted as Datasette quotes it, finds these packages; two words find
    both's.
    """
    sql = (
        "SELECT packages.name FROM configurations_fts "
        "JOIN configurations ON configurations.id = configurations_fts.rowid "
        "JOIN packages ON packages.id = package_id WHERE configurations_fts MATCH ? ORDER BY 1"
    )

    for word in FOUND[packages].split():
        for more in ("", " 1"):
            found = database.execute(sql, [escape_fts(word + more)]).fetchall()
            assert tuple(name for (name,) in found) == packages, word


def test_a_long_version_does_not_grow_as_its_square() -> None:
    """Of a version with many dots the first parts are searched for one by one, and the
    whole.
    """
    version = ".".join("1" * 100)
    words = configuration_tokens(
        configuration(version=version, compiler=f"gcc@{version}", os="os")
    )

    assert {f"zlib@{version}", "zlib@1.1.1", f"%gcc@{version}", "%gcc@1.1.1"} <= set(
        words.split()
    )
    assert len(words) < 12 * len(version)
