"""Completion in shells: commands, options, and the names of the file that is
queried.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from tests.package_data import REPOLOGY
from tests.processes import completed
from tests.programs import needed

COMMAND = Path(sys.executable).with_name("spack-cache-db")


def offered(words: str, folder: Path, shell: str = "bash") -> set[str]:
    """Return what Click offers a shell for the last of some words."""
    typed = ["spack-cache-db", *words.split(" ")]
    last = typed[-1] if shell == "fish" else str(len(typed) - 1)
    ran = completed(
        [COMMAND],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "COMP_WORDS": " ".join(typed),
            "COMP_CWORD": last,
            "_SPACK_CACHE_DB_COMPLETE": f"{shell}_complete",
        },
        check=True,
    )
    assert ran.stderr == ""
    lines = ran.stdout.split("\n")
    return (
        set(lines[1::3])
        if shell == "zsh"
        else {line.rpartition(",")[2] for line in lines}
    )


@pytest.fixture
def folder(tmp_path: Path, samples_file: Path) -> Path:
    """A folder with a database that has another name."""
    shutil.copy(samples_file, tmp_path / "other.db")
    return tmp_path


@pytest.mark.slow
def test_names_of_the_file_are_offered(folder: Path) -> None:
    """Releases, stacks and targets, of the file that stands before the option, in each
    shell.
    """
    for shell in ("bash", "zsh", "fish"):
        releases = offered("find hdf5 other.db --release dev", folder, shell)
        assert releases - {""} == {"develop", "develop-2025-04-20"}
    assert "e4s-oneapi" in offered(
        "cover specs.txt other.db --here --stack e4s", folder
    )
    assert "x86_64_v3" in offered("find hdf5 other.db --host x86", folder)


@pytest.mark.slow
def test_without_a_file_the_one_of_this_folder_counts(folder: Path) -> None:
    """The option may stand before the file; where there is no database, nothing is
    offered.
    """
    assert offered("find hdf5 --release ", folder) == {""}

    (folder / "other.db").rename(folder / "spack-cache.db")
    assert "develop" in offered("find hdf5 --release ", folder)
    assert offered("diff develop-", folder) - {""} == {"develop-2025-04-20"}
    assert "x86_64_v3" in offered(
        "diff develop develop spack-cache.db --host x86", folder
    )


@pytest.mark.slow
def test_maintainers_and_tags_are_offered(tmp_path: Path) -> None:
    """Of the package data in the database."""
    build(REPOLOGY, tmp_path / "x.db")
    assert offered("behind x.db --maintainer v", tmp_path) - {""} == {"vlkale"}
    assert offered("behind x.db --tag e", tmp_path) - {""} == {"e4s"}


@pytest.mark.slow
def test_bash_completes(folder: Path) -> None:
    """The script that `docs/install.md` tells to load works in a real Bash."""
    script = """
        eval "$(_SPACK_CACHE_DB_COMPLETE=bash_source spack-cache-db)"
        COMP_WORDS=(spack-cache-db find hdf5 other.db --release develop-)
        COMP_CWORD=5
        $(complete -p spack-cache-db | sed 's/.*-F \\([^ ]*\\).*/\\1/') spack-cache-db
        echo "${COMPREPLY[@]}"
    """
    needed("bash", "bash")
    path = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    ran = completed(["bash", "-c", script], cwd=folder, env=path, check=True)

    assert ran.stdout == "develop-2025-04-20\n", ran.stderr
