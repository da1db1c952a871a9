"""cli.spec_words: a spec is typed as for Spack, in any number of words, before the
database.
"""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.cli.spec_words import spec_of_words
from spack_cache_db.spack.parser import parse_query
from tests.commands import run


@pytest.mark.parametrize("command", ["find", "history"])
@pytest.mark.parametrize(
    "spec",
    [
        "py-mpi4py",
        "py-mpi4py @4:",
        "py-mpi4py -hl",
        "-X target=x86_64_v3",
        "py-mpi4py build_system=python_pip % gcc @ 12:",
        "py-mpi4py @@",
        "spack install -j 8 --fresh py-mpi4py",
    ],
)
def test_words_are_one_spec(samples_file: Path, command: str, spec: str) -> None:
    """Without quotes a command prints what it prints with them, wherever its options
    stand.
    """
    expected = run(command, spec, samples_file, "--json", "--stack", "e4s")
    first, *others = spec.split()

    for words in (
        (first, *others, samples_file, "--json", "--stack", "e4s"),
        (first, "--json", *others, "--stack=e4s", samples_file),
        ("--stack", "e4s", "--json", first, *others, samples_file),
    ):
        found = run(command, *words)
        assert (found.exit_code, found.stdout) == (expected.exit_code, expected.stdout)
        assert found.stderr == expected.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zlib", "none.db"], "none.db: no such file"),
        (["a.db", "zlib"], "a.db is a database: give the spec first"),
        (["renamed", "zlib"], "renamed is a database: give the spec first"),
        (["zlib", "a.db", "renamed"], "a.db is a database: give the spec first"),
        (["zlib", "folder"], "folder: is a folder"),
        (["zlib", "notes.txt"], "notes.txt: is not a spack-cache-db database"),
        (["zlib", "~x", "other/cache.sqlite", "a.db"], "unexpected '.'"),
        ([], "Missing argument 'SPEC...'"),
        (["a.db"], "Missing argument 'SPEC...'"),
        (["renamed"], "Missing argument 'SPEC...'"),
        (["zlib", "--hashs", "a.db"], "No such option '--hashs'"),
    ],
)
def test_a_word_at_the_wrong_place(
    samples_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    """The message names the word, and what was expected there; nothing is answered."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(samples_file, "a.db")
    shutil.copy(samples_file, "renamed")
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("notes")
    result = run("find", *words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_without_a_database_all_words_are_the_spec(
    samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only word is the spec even if a file has its name; a path that is not a file
    is named.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copy(samples_file, "a.db")
    (tmp_path / "py-mpi4py").write_text("a file")
    expected = run("find", "py-mpi4py", "a.db")

    assert expected.exit_code == 0
    assert run("find", "py-mpi4py").stdout == expected.stdout

    monkeypatch.setenv("SPACK_CACHE_DB", "a.db")
    assert (
        run("find", "py-mpi4py", "@4:").stdout
        == run("find", "py-mpi4py@4:", "a.db").stdout
    )

    missing = run("find", "py-mpi4py", "other/cache.sqlite")
    assert missing.exit_code == 2
    assert (
        "if other/cache.sqlite is the database: there is no such file" in missing.stderr
    )


VALUES = st.builds(
    "{}{} {}".format,
    st.sampled_from("az$+-"),
    st.text("az$=+' -"),
    st.sampled_from("az"),
)


@given(VALUES)
def test_a_shell_takes_quotes_away(value: str) -> None:
    """A value with a blank in it, which a shell gives without its quotes, stays one
    value.
    """
    (flag,) = parse_query(spec_of_words(["zlib", f"cflags={value}", "+pic"])).flags
    assert flag.value == value
