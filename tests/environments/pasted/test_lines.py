"""Specs as people copy them: the spec is found, and what is around it is told."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.pasted.lines import (
    LONGEST,
    pasted_line,
    pasted_spec,
    separate_specs,
)
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from tests.paths import ROOT

HASH = f"/{'2feova4' * 4}abcd"
PRINTED = "py-mpi4py@4.0.1%gcc@11.4.0~x arch=linux-ubuntu22.04-x86_64_v3"
MEANT = "py-mpi4py@4.0.1 ~x arch=linux-ubuntu22.04-x86_64_v3 %gcc@11.4.0"


@pytest.mark.parametrize(
    ("text", "spec", "left_out"),
    [
        ("$ spack install hdf5", "hdf5", "install"),
        (
            "[user@login-01 ~]$ spack install --fresh -j 8 hdf5 +mpi",
            "hdf5 +mpi",
            "install --fresh -j 8",
        ),
        ("(base) user@host:~/x$ spack install -j8 -y hdf5", "hdf5", "install -j8 -y"),
        ("spack install hdf5 -j8", "hdf5", "install -j8"),
        ("spack install hdf5; cd x", "hdf5", "install"),
        ("spack install hdf5 zlib; spack find", "hdf5 zlib", "install"),
        ("spack spec -I 'hdf5@1.14 ~mpi'", "hdf5@1.14 ~mpi", "spec -I"),
        ("spack -e my/env --debug install hdf5", "hdf5", "-e my/env --debug install"),
        ("time srun -n 8 spack install hdf5 && echo done", "hdf5", "install"),
        (
            "spack install hdf5 --no-cache --test root 2>&1 | tee log",
            "hdf5",
            "install --no-cache --test root",
        ),
        ('spack install "hdf5 cflags=-g" ^zlib', "hdf5 cflags=-g ^zlib", "install"),
        ('spack install hdf5 cflags="-O2 -g"', 'hdf5 cflags="-O2 -g"', "install"),
        ("spack install hdf5 -mpi", "hdf5 -mpi", "install"),
        ("spack buildcache list -alv hdf5", "hdf5", "buildcache list -alv"),
        ("spack load hdf5/2n5vkkl;", "hdf5/2n5vkkl", "load"),
        ("cd spack && bin/spack -k install hdf5", "hdf5", "-k install"),
        (
            "spack install -v --test=root a@1.26 ^b c=d",
            "a@1.26 ^b c=d",
            "install -v --test=root",
        ),
        (
            "spack install -j 8 --only dependencies x",
            "x",
            "install -j 8 --only dependencies",
        ),
        ("spack install \\\n  hdf5 +mpi", "hdf5 +mpi", "install"),
        ("Could you try `spack install hdf5+cxx`?", "hdf5+cxx", "install"),
        ("run “hdf5 +mpi” there", "hdf5 +mpi", ""),
        ('"hdf5 +mpi"', "hdf5 +mpi", ""),
        ("$ hdf5@1.14", "hdf5@1.14", ""),
        ("- 'hdf5 +mpi'", "hdf5 +mpi", ""),
        ("\x1b[0;92mhdf5\x1b[0m@1.14", "hdf5@1.14", ""),
        # From a web page or a word processor.
        ("hdf5\u00a0+mpi", "hdf5 +mpi", ""),
        ("spack install hdf5 \u2013mpi", "hdf5 -mpi", "install"),
        ("py\u2011mpi4py\u200b", "py-mpi4py", ""),
    ],
)
def test_text_around_a_spec_is_left_out(text: str, spec: str, left_out: str) -> None:
    """Prompts, commands with their options, quotes, and what follows the command."""
    found = pasted_spec(text)
    assert (found.spec, found.left_out) == (spec, left_out)
    assert not found.is_dependency
    assert (left_out or "read as") in found.notes_on(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "hdf5@1.14: +mpi %gcc@13 target=zen3",
        "hdf5 -mpi",
        "libxml2 zlib",
        "libxml2 @2.9 +python",
        "openmpi ^zlib@1.3",
        "how to spack hdf5",
        'x cflags="-O2 -g"',
        "/2feova4",
        "a #b",
        "x" * (LONGEST + 1),
    ],
)
def test_a_spec_alone_stays(text: str) -> None:
    """What has no command, quote or mark of Spack's is left to the parser."""
    found = pasted_spec(text)
    assert (found.spec, found.left_out, found.notes_on(text)) == (text, "", ())


@pytest.mark.parametrize(
    ("line", "spec", "is_dependency"),
    [
        (f"[+]  2feova4  {PRINTED}", MEANT.replace("%", "/2feova4 %"), False),
        (f"[+]  {PRINTED}", MEANT, False),
        (" -   6km3c52      ^cmake@3.27.7", "cmake@3.27.7 /6km3c52", True),
        ("[e]\t ^glibc@2.35%gcc", "glibc@2.35 %gcc", True),
        (
            "[b]  a4wqsr7\t  ^x@1 +a %c,cxx=gcc@15",
            "x@1 +a /a4wqsr7 %c,cxx=gcc@15",
            True,
        ),
        (f"[+] /opt/spack/linux-zen3/zlib-ng-2.2.1-{'2feova4' * 4}abcd", HASH, False),
        (f"==> Installing zlib-1.2-{'2feova4' * 4}abcd [3/5]", HASH, False),
        (f"/opt/x/hdf5-1.14.3-{'2feova4' * 4}abcd/lib/libhdf5.so", HASH, False),
        (f"{'2feova4' * 4}abcd zlib", f"zlib /{'2feova4' * 4}abcd", False),
        ("x2zs3nk     zlib@1.3", "zlib@1.3 /x2zs3nk", True),
        (
            "[^]  x2zs3nk  x@1 patches:=7a351bc libs:=a,b",
            "x@1 patches=7a351bc libs:=a,b /x2zs3nk",
            False,
        ),
        (
            "[-]  x2zs3nk  x@1 patches:=" + "a" * 64,
            f"x@1 patches:={'a' * 64} /x2zs3nk",
            False,
        ),
    ],
)
def test_a_line_of_spack(line: str, spec: str, is_dependency: bool) -> None:
    """The state is left out, the hash is read, variants behind a compiler are the
    package's.
    """
    found = pasted_spec(line)

    assert parse_query(found.spec) == parse_query(spec_text(parse_query(spec)))
    assert found.is_dependency == is_dependency
    assert found.is_printed or found.is_certain


@pytest.mark.parametrize(
    ("module", "spec"),
    [
        ("hdf5/1.14.5-gcc-13.2.0-nekvq6z", "hdf5/nekvq6z"),
        ("hdf5-1.14.5-gcc-13.2.0-nekvq6z", "hdf5/nekvq6z"),
        ("hdf5/1.14.5-gcc-13.2.0-openmpi", "hdf5@1.14.5"),
        ("hdf5/1.14.5-intel-oneapi-compilers-2024.2-openmpi-5.0.1", "hdf5@1.14.5"),
        ("hdf5/1.14.5", "hdf5@1.14.5"),
        ("hdf5/1.14.5-rc1-gcc-13.2.0", "hdf5@1.14.5-rc1"),
        ("hdf5/develop-none-none-nekvq6z", "hdf5/nekvq6z"),
        ("py-2to3-1.0-gcc-13.2.0", "py-2to3@1.0"),
        ("new/1.2-gcc-13.2.0", "new@1.2"),
        ("hdf5/nekvq6z", None),
        ("hdf5-1.14.5", "hdf5@1.14.5"),
        ("new-1.14.5", None),
        ("hdf5/1.14+mpi", None),
        ("new/1.2", None),
    ],
)
def test_modules_are_read(module: str, spec: str | None) -> None:
    """A module is read by its hash if that is known, else by name and version."""
    known = KnownNames({"hdf5", "py-2to3"}.__contains__, {"nekvq6z"}.__contains__)
    found = pasted_spec(module, known)

    assert found.spec == (spec or module)
    assert found.is_certain == bool(spec)

    row = pasted_line(f"module load {module}  {module} (D)", known)
    if spec:
        assert [each.spec for each in row] == [spec, spec]


def test_examples_of_the_documentation_are_read() -> None:
    """Each text in the documentation is read as the spec beside it."""
    text = (ROOT / "docs" / "spec-language.md").read_text()
    section = text.partition("## Copy a spec")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`.+`) \| `(.+)` \|$", section, re.MULTILINE)

    assert len(rows) > 5
    for texts, spec in rows:
        for copied in re.findall(r"`([^`]+)`", texts):
            assert pasted_spec(copied).spec == spec


NAMES = st.builds("{}{}".format, st.sampled_from("axz"), st.text("az09", max_size=5))
OPTIONS = st.lists(
    st.sampled_from(["+a", "~b", "@1.2:", "k=v", "os=rhel8", "%gcc@12", "^zlib+c"])
)


SPECS = st.lists(st.tuples(NAMES, OPTIONS), min_size=1, max_size=4)


@given(SPECS)
def test_several_specs_of_a_command(specs: list[tuple[str, list[str]]]) -> None:
    """A command may take several specs, each with its dependencies and compilers."""
    texts = [" ".join((name, *options)) for name, options in specs]
    assert separate_specs(" ".join(texts)) == texts
    assert separate_specs("x @@ y") == ["x @@ y"]


def test_long_texts_take_no_longer() -> None:
    """Quotes, prompts, escapes and blanks in any number are read in one pass."""
    parts = (
        "'",
        '"',
        "`",
        "[] ",
        "$ ",
        "spack ",
        "\x1b[",
        " ",
        "\\\n",
        "a\"'",
        "“",
        "-a",
        "/a-1",
    )
    for part in (
        *parts,
        "[+] ",
        "aaaaaaa  ",
        "\x1b]",
        "(external ",
        "1-",
        "a@1 ",
        "module load ",
    ):
        text = part * (LONGEST // len(part))
        pasted_spec(text)
        pasted_line(text)


KNOWN = KnownNames({"hdf5", "zlib", "netcdf-c"}.__contains__, {"nekvq6z"}.__contains__)


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("/opt/hdf5-1.14.5-nekvq6z", "/nekvq6z"),
        (
            "/opt/linux-rocky8-zen3/gcc-12.2.0/hdf5-1.14.5-nekvq6z/bin/h5dump",
            "/nekvq6z",
        ),
        ("opt/spack/hdf5/1.14.5-nekvq6z", "/nekvq6z"),
        ("[+] /tank/netcdf-c-4.9.2-abcdef2", "netcdf-c@4.9.2"),
        ("~/spack/zlib/1.3.1/abcdef2ghi", "zlib@1.3.1"),
        ("$HOME/spack/zlib-1.3.1-abcdef2", "zlib@1.3.1"),
        ("/src/zlib-1.3.1-patched", None),
        ("/src/zlib-1.3.1-release/README", None),
        ("/opt/unknown-1.3.1-abcdef2", None),
        ("/opt/zlib-1.3.1", None),
        ("/scratch/project/archive", None),
    ],
)
def test_a_prefix_with_the_beginning_of_a_hash_is_read(
    path: str, spec: str | None
) -> None:
    """It is the binary with that hash, else the known package and version; words are no
    hashes.
    """
    (found,) = pasted_line(path, KNOWN)
    assert (found.spec, found.is_certain) == (spec or path, bool(spec))


@pytest.mark.parametrize(
    ("command", "spec"),
    [
        ("spack view symlink /path/view hdf5", "hdf5"),
        ("spack view -d yes -e zlib hardlink view hdf5@1.14", "hdf5@1.14"),
        ("spack -e env view copy --projection-file p.yaml -i ./v hdf5+mpi", "hdf5+mpi"),
        ("spack view rm --no-remove-dependents view hdf5", "hdf5"),
    ],
)
def test_the_path_of_a_view_is_no_spec(command: str, spec: str) -> None:
    """The action and the path come before the specs."""
    (found,) = pasted_line(command, KNOWN)
    assert found.spec == spec


def test_a_hash_needs_no_slash() -> None:
    """If it is one in the database, and no package has its name."""
    names = KnownNames(
        is_package=lambda name: name in ("openmpi", "openssh"),
        is_hash=lambda prefix: prefix in ("2feova4", "openssh"),
    )

    assert pasted_spec("2FEOVA4", names).spec == "/2feova4"
    for text in ("openmpi", "openssh", "7feova4", "2feova4 +mpi"):
        assert pasted_spec(text, names).spec == text
