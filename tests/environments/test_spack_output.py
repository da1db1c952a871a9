"""What commands of Spack print, as lists of specs: 0.17 to 1.2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.environments import Environment, Limits, UnreadableEnvironment
from spack_cache_db.environments.formats import read_environment
from spack_cache_db.spack.constraints import spec_text
from spack_cache_db.spack.parser import parse_query
from tests.indexes import edge, hash_of, node, old_node

ARCH = "platform=linux os=ubuntu22.04 target=x86_64_v3"

SPEC_0_17 = """\
$ spack spec -l hypre
Input spec
--------------------------------
hypre+mpi

Concretized
--------------------------------
tomdxfb  hypre@2.23.0%gcc@7.5.0~cuda+mpi cuda_arch=none arch=linux-ubuntu22.04-x86_64_v3
vr5k3xn      ^openblas@0.3.18%gcc@7.5.0~ilp64+shared threads=none arch=linux-ubuntu22.04-x86_64_v3
6km3c52          ^perl@5.34.0%gcc@7.5.0+threads patches=b231fcc arch=linux-ubuntu22.04-x86_64_v3

"""
SPEC_0_23 = """\
[user@login-01 ~]$ spack spec -I hdf5
 -   hdf5@1.14.5%gcc@11.4.0~cxx+mpi api=default build_system=cmake arch=linux-ubuntu22.04-x86_64_v3
 -\t ^cmake@3.30.5%gcc@11.4.0~doc patches=dbc3892 arch=linux-ubuntu22.04-x86_64_v3
[+]\t     ^curl@8.10.1%gcc@11.4.0 libs=shared,static arch=linux-ubuntu22.04-x86_64_v3
[e]\t ^glibc@2.35%gcc@11.4.0 build_system=autotools arch=linux-ubuntu22.04-x86_64_v3

"""
CONCRETIZE_1_1 = f"""\
==> Concretized 2 specs:
[+]  d4ibosb  tcl@8.6.17 build_system=autotools {ARCH} %c,cxx=gcc@15.2.0
[e]  yjlog5x\t  ^gcc@15.2.0~binutils languages:='c,c++,fortran' {ARCH}
[b]  r4lhaok\t  ^gmake@4.4.1~guile patches:=26090f4,b231fcc {ARCH} %c=gcc@15.2.0
 -   3sqhxga  kokkos@5.1.1~cuda build_system=cmake patches:=440b954 {ARCH} %cxx=gcc@15.2.0

==> Updating view at /home/user/spack/var/spack/environments/x/.spack-env/view
"""
FIND_0_17 = """\
==> 4 installed packages
-- linux-ubuntu22.04-x86_64_v3 / clang@14.0.0 -------------------
gephbce zlib@1.2.13

-- linux-ubuntu22.04-x86_64_v3 / gcc@11.3.0 ---------------------
iswfldx zlib@1.2.8  mntflxr zlib@1.2.13
openmpi hdf5@1.12.2
"""
FIND_LV_0_23 = """\
$ spack find -lvf
-- linux-ubuntu22.04-x86_64_v3 / gcc@11.4.0 ---------------------
6ddnwva hdf5@1.14.5%gcc~cxx+mpi api=default
iswfldx zlib@1.2.8%gcc\tcflags="-O3 -g"   mntflxr zlib@1.2.13%gcc+pic
==> 3 installed packages
"""
FIND_LD_0_23 = """\
-- linux-ubuntu22.04-x86_64_v3 / gcc@11.4.0 ---------------------
lvfqvn3 tcl@8.6.12
a7drdl4\t    glibc@2.35
fhud6vq\t\tzlib-ng@2.2.1

srkzfjr gmake@4.4.1
a7drdl4\t    glibc@2.35

==> 2 installed packages
"""
FIND_1_1 = """\
==> In environment myproject (2 root specs)
[+] 6t26kli py-numpy  [+] zia4bn3 quantum-espresso

-- linux-ubuntu22.04-x86_64_v3 / no compilers -------------------
rpza6xq gcc@15.2.0

-- linux-ubuntu22.04-x86_64_v3 / %c,cxx,fortran=gcc@15.2.0 ------
k3wh5o7 openmpi@5.0.10  zia4bn3 quantum-espresso@7.5
==> 3 installed packages
==> 36 concretized packages to be installed (show with `spack find -c`)
"""
FIND_P = """\
-- linux-ubuntu22.04-x86_64_v3 / gcc@11.4.0 ---------------------
gmake@4.4.1\t /home/user/spack/opt/gmake-4.4.1-srkzfjru5z55bl5gy24dbjsrvqwg5fom
tcl@8.6.12  /home/user/spack/opt/tcl-8.6.12-imrm45j44xmboxdqpj7akq2lwkwza4vo
"""
FIND_0_12 = """\
==> 1 installed package
-- linux-ubuntu22.04-x86_64_v3 / gcc@11.4.0 ---------------------
    m4@1.4.18
        ^libsigsegv@2.11
"""
BUILDCACHE_LIST = """\
==> 2 cached builds.
-- linux-ubuntu22.04-x86_64_v3 / gcc@11.4.0 ---------------------
2feova4 py-mpi4py@4.0.1 build_system=python_pip
6km3c52 cmake@3.27.7~doc+ncurses build_system=generic patches=dbc3892
"""
GCC = f"{ARCH} %gcc@11.4.0"


@pytest.mark.parametrize(
    ("text", "specs", "below"),
    [
        (SPEC_0_17, [f"hypre@2.23.0 ~cuda+mpi cuda_arch=none {ARCH} /tomdxfb %gcc@7.5.0"], 2),
        (SPEC_0_23, [f"hdf5@1.14.5~cxx+mpi api=default build_system=cmake {GCC}"], 3),
        (
            CONCRETIZE_1_1,
            [
                f"tcl@8.6.17 build_system=autotools {ARCH} /d4ibosb %c,cxx=gcc@15.2.0",
                "kokkos@5.1.1~cuda build_system=cmake patches=440b954"
                f" {ARCH} /3sqhxga %cxx=gcc@15.2.0",
            ],
            2,
        ),
        (
            FIND_0_17,
            [
                f"zlib@1.2.13 {ARCH} /gephbce %clang@14.0.0",
                f"zlib@1.2.8 {ARCH} /iswfldx %gcc@11.3.0",
                f"zlib@1.2.13 {ARCH} /mntflxr %gcc@11.3.0",
                f"hdf5@1.12.2 {ARCH} /openmpi %gcc@11.3.0",
            ],
            0,
        ),
        (
            FIND_LV_0_23,
            [
                f"hdf5@1.14.5~cxx+mpi api=default {ARCH} /6ddnwva %gcc",
                f'zlib@1.2.8 cflags="-O3 -g" {ARCH} /iswfldx %gcc',
                f"zlib@1.2.13+pic {ARCH} /mntflxr %gcc",
            ],
            0,
        ),
        (
            FIND_LD_0_23,
            [f"tcl@8.6.12 /lvfqvn3 {GCC}", f"gmake@4.4.1 /srkzfjr {GCC}"],
            3,
        ),
        (
            FIND_1_1,
            [
                "py-numpy/6t26kli",
                "quantum-espresso/zia4bn3",
                f"gcc@15.2.0 {ARCH} /rpza6xq",
                f"openmpi@5.0.10 {ARCH} /k3wh5o7 %c,cxx,fortran=gcc@15.2.0",
            ],
            0,
        ),
        (FIND_0_12, [f"m4@1.4.18 {GCC}"], 1),
        (
            "==> 2 root specs\n[+] openmpi ^zlib@1  [+] libxml2 os=rhel8\n - gcc %llvm\n",
            ["openmpi ^zlib@1", "libxml2 os=rhel8", "gcc %llvm"],
            0,
        ),
        (
            FIND_P,
            [
                f"gmake@4.4.1 /srkzfjru5z55bl5gy24dbjsrvqwg5fom {GCC}",
                f"tcl@8.6.12 /imrm45j44xmboxdqpj7akq2lwkwza4vo {GCC}",
            ],
            0,
        ),
        (
            BUILDCACHE_LIST,
            [
                f"py-mpi4py@4.0.1 build_system=python_pip /2feova4 {GCC}",
                f"cmake@3.27.7~doc+ncurses build_system=generic patches=dbc3892 /6km3c52 {GCC}",
            ],
            0,
        ),
    ],
)
def test_an_output_is_a_list(text: str, specs: list[str], below: int) -> None:
    """Headings and dependencies are no specs; what a heading says is asked of those below it."""
    found = read_environment(text.encode(), "-")

    assert [each.text for each in found.specs] == [spec_text(parse_query(each)) for each in specs]
    assert all(each.error is None for each in found.specs)
    lines = text.splitlines()
    assert all((parse_query(each.text).name or "") in lines[each.line - 1] for each in found.specs)
    assert ("other specs in a tree" in " ".join(found.notes)) == bool(below)
    assert not below or found.notes[0].startswith(f"{below} ")
    assert read_environment(text.replace("\n", "\r\n").encode(), "-") == found


def test_typed_lines_are_no_output() -> None:
    """A list may have commands among its specs; what stands around them is told once."""
    text = "# mine\n$ spack install -j 8 hdf5\n- 'zlib +pic'\n`spack load bzip2`\n"
    text += "spack install -j 8 x y@1 %gcc\n"
    found = read_environment(text.encode(), "-")

    assert [(each.text, each.line) for each in found.specs] == [
        *(("hdf5", 2), ("zlib +pic", 3), ("bzip2", 4), ("x", 5), ("y@1 %gcc", 5)),
    ]
    assert found.notes == ("skipped: install -j 8; load",)


def test_headings_without_end_are_too_much() -> None:
    """Lines that are no specs are bounded as well."""
    with pytest.raises(UnreadableEnvironment, match="has more than 50 lines that are not"):
        read_environment(b"[+]  ^zlib\n" * 100, "x", Limits(specs=10, nodes=50))


def found_json(data: Any) -> Environment:
    """Return what is read from JSON."""
    return read_environment(json.dumps(data).encode(), "-")


def test_nodes_in_json() -> None:
    """`spack find --json` and `spack spec --json` give nodes, which are looked up by their hashes.

    Of what a node needs that is not among them, such as its compiler, the name is known.
    """
    hdf5 = node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",)))
    nodes = [hdf5, node("zlib"), old_node("bzip2", "7")]
    found = found_json(nodes)

    assert [(each.hash, each.is_root) for each in found.locked] == [
        (hash_of(name), True) for name in ("hdf5", "zlib", "bzip2")
    ]
    assert found.locked[0].needs == (hash_of("zlib"),)
    assert [each.configuration.compiler for each in found.locked] == ["gcc", "none", "gcc@12.2.0"]
    assert found_json({"spec": {"_meta": {"version": 5}, "nodes": nodes}}) == found
    with pytest.raises(UnreadableEnvironment, match="has 3 specs, expected at most 2"):
        read_environment(json.dumps(nodes).encode(), "-", Limits(nodes=2))
    with pytest.raises(UnreadableEnvironment, match="spec is not an object"):
        found_json([{"hash": "x"}])


PACKAGES = """
packages:
  all: {require: target=zen3}
  hdf5: {require: [{one_of: [+mpi, ~mpi]}, '@1.14:']}
  zlib: {require: '@1:', conflict: ['@2']}
  bad: {require: ['@1', '@2']}
  cray-mpich: {externals: [{spec: cray-mpich@8.1%gcc@12, prefix: /opt}, {spec: '@9', prefix: /x}]}
"""


def test_a_configuration_of_packages() -> None:
    """Of a `packages.yaml`, the specs are the ways to do what it requires, and its externals."""
    found = read_environment(PACKAGES.encode(), "packages.yaml")

    assert [(each.text, each.group, each.line) for each in found.specs] == [
        ("hdf5@1.14: +mpi", "require", 4),
        ("hdf5@1.14: ~mpi", "require", 4),
        ("zlib@1:", "require", 5),
        ("bad", "require", 6),
        ("cray-mpich@8.1%gcc@12", "externals", 0),
        ("@9", "externals", 0),
    ]
    assert found.specs[3].error
    assert [each.query and each.query.name for each in found.specs[4:]] == ["cray-mpich"] * 2
