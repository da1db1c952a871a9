"""query.install: the commands that install a spec."""

from __future__ import annotations

import pytest

from spack_cache_db.query.find import find
from spack_cache_db.query.install import (
    install_found,
    install_spec,
    mirror_command,
    shortest_prefix,
)
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash


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


def test_the_current_spec_is_installed(built: Build) -> None:
    """A spec that a branch lists is taken before one that only an old snapshot lists."""
    connection = built(
        a=page("foo", "develop-2025-01-05", [spec(1), spec(2)]),
        b=page("foo", "develop", [spec(2)]),
    )
    (found,) = find(connection, "foo", with_hashes=True)

    current = install_found(connection, found, None)
    old = install_found(connection, found, "develop-2025-01-05")

    assert current is not None and old is not None
    assert (current.release, current.install) == ("develop", f"spack install foo/{spec_hash(2)}")
    assert old.release == "develop-2025-01-05"


def test_nothing_is_installed_without_a_hash(built: Build) -> None:
    """Without hashes there is nothing to install."""
    connection = built(a=page("foo"))
    (found,) = find(connection, "foo")

    assert install_found(connection, found, None) is None
