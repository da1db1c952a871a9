"""query.install: the commands that install a spec."""

from __future__ import annotations

import pytest

from spack_cache_db.query.install import install_spec, mirror_command, shortest_prefix
from tests.conftest import Build
from tests.pagetexts import page


def test_commands_are_safe_to_paste() -> None:
    """A name from a page cannot smuggle a second command into the shell."""
    assert mirror_command("x; rm -rf ~") == (
        "spack mirror add 'x; rm -rf ~' 'https://binaries.spack.io/x; rm -rf ~'"
    )


def test_mirror_follows_the_tarball(built: Build) -> None:
    """Where a page gave a tarball, the mirror is where that tarball lies."""
    tarball = "https://binaries.spack.io/releases/v0.18/build_cache/a/b.spack"
    install = install_spec(built(page=page()), "hdf5", "abcdefg", "v0.18", tarball)

    assert install.mirror == "spack mirror add v0.18 https://binaries.spack.io/releases/v0.18"
    assert install.install == "spack install hdf5/abcdefg"


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [((), "abcdefg"), (("abcdefz",), "abcdefg"), (("abcdefgz", "abcdefgha"), "abcdefghi")],
)
def test_prefix_is_as_short_as_it_can_be(neighbours: tuple[str, ...], expected: str) -> None:
    """The hash in a command has 7 characters, more only where 7 mean two specs."""
    assert shortest_prefix("abcdefghij", neighbours) == expected
