"""environments.formats: each kind is known by its content, and specs are found in any
text.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments.known_names import KnownNames
from spack_cache_db.environments.model import (
    Environment,
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import MAX_BYTES, read_environment
from tests.environments.required import required_text
from tests.indexes import edge, hash_of, node, old_node

LOCK = {"_meta": {"lockfile-version": 6}, "roots": [], "concrete_specs": {}}


@pytest.mark.parametrize(
    ("text", "is_lock"),
    [
        ("hdf5\n", False),
        ("", False),
        ("{spack: {specs: [hdf5]}}", False),
        ('# mine\n"spack":\n  "specs": [hdf5]\n', False),
        (" spack:\n   specs: [hdf5]\n", False),
        (json.dumps(LOCK), True),
        ("\ufeff" + json.dumps(LOCK, indent=2), True),
    ],
)
def test_a_kind_is_known_by_its_content(text: str, is_lock: bool) -> None:
    """No name is looked at: JSON with specs is a lockfile, YAML with `spack` a
    manifest.
    """
    found = read_environment(text.encode(), "-")

    assert found.is_lock == is_lock
    assert [each.error for each in found.specs] == [None] * text.count("hdf5")


def test_a_list_of_specs() -> None:
    """One spec a line, with comments, blank lines, quotes and the dashes of a YAML
    list.
    """
    text = "# mine\nhdf5@1.14: +mpi  # with MPI\n\n  - zlib\r\n- 'py-torch +cuda'\nhdf5 zlib\n"
    found = read_environment(text.encode(), "mine.txt")

    assert [(each.text, each.line) for each in found.specs] == [
        ("hdf5@1.14: +mpi", 2),
        ("zlib", 4),
        ("py-torch +cuda", 5),
        ("hdf5", 6),
        ("zlib", 6),
    ]
    assert all(each.error is None for each in found.specs)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe", "mine:1: is not UTF-8"),
        (b"hdf5\nz\0lib", "mine:2: has a NUL byte"),
        (b"[" * 10, "there is no spec in this text"),
        (
            b'{"concrete_specs":\n[\n',
            "mine:2: broken JSON at column 1: Expecting value, expected",
        ),
        (b'{"concrete_specs":\n' + b"9" * 5000, "mine: broken JSON: Exceeds the limit"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"specs:\n- hdf5\n", "mine:1: has no key spack:"),
        (b"x" * (MAX_BYTES + 1), "bytes"),
    ],
)
def test_what_cannot_be_read(data: bytes, said: str) -> None:
    """The message says where and what."""
    with pytest.raises(UnreadableEnvironment, match=said):
        read_environment(data, "mine")


WORDS = """spack: specs: - hdf5 [ ] { } *a &a matrix: $x ' " concrete_specs : packages: require:
+mpi %gcc@13 --- #"""
PIECES = [
    *(*WORDS.split(), '{"concrete_specs": ', "- ", "\t", "\ufeff", "\0"),
    *("\n", "\n  ", "\r", "\r\n", "\x85", "\u2028"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    """By the one error that says why; what names a line, names one that the text
    has.
    """
    text = "".join(pieces)
    lines = text.removesuffix("\n").count("\n") + 1
    try:
        found = read_environment(text.encode(), "-")
    except UnreadableEnvironment as error:
        assert error.faults
        assert all(0 <= fault.line <= lines for fault in error.faults)
    else:
        assert all(1 <= spec.line <= lines for spec in found.specs)


TEXTS = Path(__file__).parents[1] / "data" / "pasted_texts.txt"
CASES = re.findall(
    r"^=== (.+)\n((?:(?!--- specs).*\n)*)--- specs\n((?:(?!=== ).*\n)*)",
    TEXTS.read_text("utf-8"),
    re.MULTILINE,
)
"""Output of Spack 1.2, lists of modules, logs and READMEs; the specs of each with their
lines.
"""

KNOWN_PACKAGES = """
callpath cmake compiler-wrapper dyninst externaltool gcc gcc-runtime glibc hdf5 libdwarf libelf
mpich mpileaks ncurses openmpi python slurm zlib zlib-ng
"""
KNOWN = KnownNames(
    set(KNOWN_PACKAGES.split()).__contains__, {"nekvq6z", "n3bpxms"}.__contains__
)


def read_pasted(text: str) -> Environment:
    """Return what a text asks for, of a database with a few packages."""
    return read_environment(
        text.encode(), "pasted", surroundings=Surroundings(known=KNOWN)
    )


def read_texts(text: str) -> str:
    """Return what a text asks for, as the data has it."""
    try:
        found = read_pasted(text)
    except UnreadableEnvironment as error:
        return f"error: {error.faults[0].message}\n"
    lines = []
    for spec in found.specs:
        group = f" [{spec.group}]" if spec.group else ""
        external = " (external)" if spec.external else ""
        fault = f" ({spec.error})" if spec.error else ""
        lines.append(f"{spec.line} {spec.text}{group}{external}{fault}")
    lines += [f"note: {note}" for note in found.notes]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_specs_of_pasted_texts(text: str, expected: str) -> None:
    """Only specs count: other lines are named in one note, headings are applied or
    named.
    """
    assert len(CASES) > 20
    assert read_texts(text) == expected
    assert read_texts(text.replace("\n", "\r\n")) == expected


SPECS = st.sampled_from(
    [
        "zlib",
        "hdf5 +mpi",
        "cmake@3: %gcc@13",
        "unknown@1.2",
        "- ncurses",
        "$ hdf5@1.14",
        "/nekvq6z",
    ]
)
OTHERS = st.sampled_from(
    [
        *(
            "cd spack",
            "export CC=gcc",
            "| hdf5 |",
            "make -j8",
            "gcc --version",
            "Done!",
            "```",
        ),
        *(
            "hdf5 is a library",
            "$ ls -l",
            "https://example.org/hdf5",
            "spack compiler find",
        ),
        *("100%", "<hdf5>", "git clone x", "ftp://x@y", "spack mirror add hdf5 /x"),
    ]
)


@given(st.lists(st.one_of(SPECS, OTHERS.map(lambda line: f"!{line}")), max_size=12))
def test_other_lines_change_nothing(lines: list[str]) -> None:
    """Whatever stands between specs, the same specs count, and all other lines are
    named.
    """
    specs = [line for line in lines if line[0] != "!"]
    others = [line[1:] for line in lines if line[0] == "!"]
    if not specs and others:
        with pytest.raises(
            UnreadableEnvironment, match="there is no spec in this text"
        ):
            read_pasted("\n".join(others))
        return
    found = read_pasted("\n".join(line.removeprefix("!") for line in lines))

    alone = read_pasted("\n".join(specs))
    assert [spec.text for spec in found.specs] == [spec.text for spec in alone.specs]
    assert len(alone.specs) == len(specs)
    assert sorted(found.others) == sorted(others)
    assert alone.others == ()
    assert any(f"{len(others):,} line" in note for note in found.notes) == bool(others)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version https://git-lfs.github.com/spec/v1\nsize 1\n", "Git LFS pointer"),
        (
            "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>",
            "an XML document",
        ),
        ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{}\n", "spec.json.sig"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "a PGP key"),
        (
            "spack:\n<<<<<<< HEAD\n  a: 1\n=======\n>>>>>>> x\n",
            ":2: has an unresolved merge",
        ),
        (
            "hdf5\n<<<<<<< HEAD\nzlib\n=======\nzlib-ng\n>>>>>>> main\n",
            ":2: has an unresolved merge conflict (<<<<<<<): choose one side",
        ),
        ('[{"name": "zlib", "arch": {}}]', "without their hashes"),
        ('{"database": {"version": "8"}}', "the index of a build cache"),
        ('{"version": 3, "data": []}', "a manifest of a build cache"),
        ('["zlib"]', "is JSON, but neither"),
        ('[{"name": "zlib", ', ":1: broken JSON at column 19"),
    ],
)
def test_other_files_are_named(text: str, said: str) -> None:
    """A file that was given by mistake is named for what it is, not for what it
    lacks.
    """
    with pytest.raises(UnreadableEnvironment, match=re.escape(said)):
        read_pasted(text)


def test_typed_lines_are_no_output() -> None:
    """A list may have commands among its specs; what stands around them is told
    once.
    """
    text = "# mine\n$ spack install -j 8 hdf5\n- 'zlib +pic'\n`spack load bzip2`\n"
    text += "spack install -j 8 x y@1 %gcc\n"
    found = read_environment(text.encode(), "-")

    assert [(each.text, each.line) for each in found.specs] == [
        *(("hdf5", 2), ("zlib +pic", 3), ("bzip2", 4), ("x", 5), ("y@1 %gcc", 5)),
    ]
    assert found.notes == ("skipped: install -j 8; load",)


def test_headings_without_end_are_too_much() -> None:
    """Lines that are no specs are bounded as well."""
    with pytest.raises(
        UnreadableEnvironment, match="has more than 50 lines that are not"
    ):
        read_environment(b"[+]  ^zlib\n" * 100, "x", Limits(specs=10, nodes=50))


def found_json(data: Any) -> Environment:
    """Return what is read from JSON."""
    return read_environment(json.dumps(data).encode(), "-")


def test_nodes_in_json() -> None:
    """`spack find --json` and `spack spec --json` give nodes, which are known by their
    hashes.
    """
    hdf5 = node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",)))
    nodes = [hdf5, node("zlib"), old_node("bzip2", "7")]
    found = found_json(nodes)

    assert [(each.hash, each.is_root) for each in found.locked] == [
        (hash_of(name), True) for name in ("hdf5", "zlib", "bzip2")
    ]
    assert found.locked[0].needs == (hash_of("zlib"),)
    assert [each.configuration.compiler for each in found.locked] == [
        "gcc",
        "none",
        "gcc@12.2.0",
    ]
    assert found_json({"spec": {"_meta": {"version": 5}, "nodes": nodes}}) == found
    with pytest.raises(UnreadableEnvironment, match="has 3 specs, expected at most 2"):
        read_environment(json.dumps(nodes).encode(), "-", Limits(nodes=2))
    with pytest.raises(UnreadableEnvironment, match="spec is not an object"):
        found_json([{"hash": "x"}])


OF_PACKAGES = """
packages:
  all: {require: target=zen3}
  hdf5: {require: [{one_of: [+mpi, ~mpi]}, '@1.14:']}
  zlib: {require: '@1:', conflict: ['@2']}
  bad: {require: ['@1', '@2']}
  cray-mpich: {externals: [{spec: cray-mpich@8.1%gcc@12, prefix: /opt}, {spec: '@9', prefix: /x}]}
"""


def test_a_configuration_of_packages() -> None:
    """Of a `packages.yaml`, the specs are the ways to do what it requires, and its
    externals.
    """
    found = read_environment(OF_PACKAGES.encode(), "packages.yaml")

    assert [(each.text, each.group, each.line) for each in found.specs] == [
        ("hdf5@1.14: +mpi", "require", 4),
        ("hdf5@1.14: ~mpi", "require", 4),
        ("zlib@1:", "require", 5),
        ("bad", "require", 6),
        ("cray-mpich@8.1%gcc@12", "externals", 0),
        ("@9", "externals", 0),
    ]
    assert found.specs[3].error
    assert [each.query and each.query.name for each in found.specs[4:]] == [
        "cray-mpich"
    ] * 2


ENVIRONMENT = (
    "spack: {specs: [$mine], include: [../site/packages.yaml, lists.yaml, scope]}\n"
)
INCLUDED = "packages: {all: {require: target=zen3}}\n"
LISTS = "definitions: [{mine: [hdf5, zlib]}]\n"
SCOPE = "packages: {hdf5: {require: +mpi}}\n"


def read_joined(
    text: str, path: str = "what you pasted"
) -> tuple[list[str], tuple[str, ...]]:
    """Return what specs are asked for with what is required of them, and the notes."""
    found = read_environment(text.encode(), path)
    return [required_text(spec) for spec in found.specs], found.notes


@pytest.mark.parametrize("form", ["--- # {}", "---  #{}  ", "==> {} <=="])
@pytest.mark.parametrize("is_named", [True, False])
def test_files_include_each_other(form: str, is_named: bool) -> None:
    """In either form, in any order, with paths or with names alone; other files stay
    missing.
    """
    parts = [
        ("packages.yaml", INCLUDED),
        ("x/lists.yaml", LISTS),
        ("scope/packages.yaml", SCOPE),
        ("scope/more.yaml", "packages: {zlib: {require: +wrong}}\n"),
        ("spack.yaml", ENVIRONMENT.replace("scope]", "scope, other.yaml]")),
    ]
    text = "".join(f"{form.format(name)}\n{part}" for name, part in parts[:-1])
    last = parts[-1][1]
    text = text + form.format("spack.yaml") + "\n" + last if is_named else last + text

    specs, notes = read_joined(text)

    assert specs == ["hdf5 +mpi", "zlib target=zen3"]
    assert notes[0].startswith("one include is missing") and notes[0].endswith(
        "other.yaml"
    )


def test_a_fault_is_in_its_file() -> None:
    """Messages name the file of the text, and the line in it."""
    text = f"--- # spack.yaml\n{ENVIRONMENT}--- # lists.yaml\n\ndefinitions: 1\n"
    with pytest.raises(UnreadableEnvironment) as caught:
        read_joined(text)
    assert "lists.yaml:2: " in str(caught.value)


@pytest.mark.parametrize(
    "line", ["cd /storage", "ls /project", "$ mkdir /scratch", "source /archive"]
)
def test_a_command_of_a_shell_is_no_spec_with_a_hash(line: str) -> None:
    """The path of a command is not the hash of a spec, and a package of the name is
    one.
    """
    known = KnownNames({"hdf5", "find"}.__contains__, lambda prefix: False)
    around = Surroundings(known=known)
    found = read_environment(
        f"{line}\nspack install hdf5\n".encode(), "t.txt", surroundings=around
    )
    assert [spec.text for spec in found.specs] == ["hdf5"]
    assert found.others == (line,)
    found = read_environment(b"find /storage\n", "t.txt", surroundings=around)
    assert [spec.text for spec in found.specs] == ["find /storage"]
