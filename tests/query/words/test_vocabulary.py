"""query.words.vocabulary: names of packages in other package managers."""

import pytest

from spack_cache_db.query.words.vocabulary import PREFIXES, names_elsewhere


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("libhdf5-dev", "hdf5"),
        ("libhdf5-openmpi-dev", "hdf5"),
        ("python3-numpy", "py-numpy"),
        ("r-cran-dplyr", "r-dplyr"),
        ("libxml-parser-perl", "perl-xml-parser"),
        ("numpy", "py-numpy"),
        ("Py_Torch", "py-torch"),
        ("tf", "py-tensorflow"),
    ],
)
def test_a_name_of_another_package_manager_is_one_of_spack(
    text: str, name: str
) -> None:
    """Prefixes, endings and other names lead to the name in Spack."""
    assert name in names_elsewhere(text)


def test_the_own_name_comes_first() -> None:
    """Names are tried as written, then by other names, then with prefixes; each
    once.
    """
    names = names_elsewhere("libfftw3-dev")
    own_names = names[: len(names) // (len(PREFIXES) + 1)]

    assert own_names[0] == "libfftw3-dev"
    assert "fftw3" in own_names
    assert len(set(names)) == len(names)
    assert not any(name.startswith(PREFIXES) for name in own_names)
