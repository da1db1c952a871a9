"""environments.reading: each format is known by its content, and specs are found in any
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

EMPTY_LOCK = {"_meta": {"lockfile-version": 6}, "roots": [], "concrete_specs": {}}


@pytest.mark.parametrize(
    ("text", "is_lock", "specs"),
    [
        ("hdf5\n", False, ["hdf5"]),
        ("", False, []),
        ("{spack: {specs: [hdf5]}}", False, ["hdf5"]),
        ('# mine\n"spack":\n  "specs": [hdf5]\n', False, ["hdf5"]),
        (" spack:\n   specs: [hdf5]\n", False, ["hdf5"]),
        (json.dumps(EMPTY_LOCK), True, []),
        ("\ufeff" + json.dumps(EMPTY_LOCK, indent=2), True, []),
    ],
)
def test_a_format_is_known_by_its_content(
    text: str, is_lock: bool, specs: list[str]
) -> None:
    """The name of the file is not used: YAML with the key `spack` is an environment,
    JSON with `concrete_specs` a lockfile, and other text a list.
    """
    environment = read_environment(text.encode(), "-")

    assert environment.is_lock == is_lock
    assert [spec.text for spec in environment.specs] == specs
    assert all(spec.error is None for spec in environment.specs)


def test_a_list_of_specs() -> None:
    """One spec a line, with comments, blank lines, quotes and the dashes of a YAML
    list; a line may also have several specs.
    """
    lines = (
        "# mine",
        "hdf5@1.14: +mpi  # with MPI",
        "",
        "  - zlib\r",
        "- 'py-torch +cuda'",
        "hdf5 zlib",
    )
    text = "".join(f"{line}\n" for line in lines)
    environment = read_environment(text.encode(), "mine.txt")

    assert [(spec.text, spec.line) for spec in environment.specs] == [
        ("hdf5@1.14: +mpi", 2),
        ("zlib", 4),
        ("py-torch +cuda", 5),
        ("hdf5", 6),
        ("zlib", 6),
    ]
    assert all(spec.error is None for spec in environment.specs)


@pytest.mark.parametrize(
    ("data", "message"),
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
def test_an_unreadable_text_has_a_fault(data: bytes, message: str) -> None:
    """The message names the file, the line and the reason."""
    with pytest.raises(UnreadableEnvironment, match=message):
        read_environment(data, "mine")


WORDS = """
spack: specs: - hdf5 [ ] { } *a &a matrix: $x ' " concrete_specs : packages: require:
+mpi %gcc@13 --- #
"""
BLANKS = ["\t", "\ufeff", "\0", "\n", "\n  ", "\r", "\r\n", "\x85", "\u2028"]
PIECES = [*WORDS.split(), '{"concrete_specs": ', "- ", *BLANKS]
"""Pieces of environments, lockfiles and lists, of which texts are made."""


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    """No other exception is raised, and faults and specs have lines that the text
    has.
    """
    text = "".join(pieces)
    line_count = text.removesuffix("\n").count("\n") + 1

    try:
        environment = read_environment(text.encode(), "-")
    except UnreadableEnvironment as error:
        assert error.faults
        assert all(0 <= fault.line <= line_count for fault in error.faults)
    else:
        assert all(1 <= spec.line <= line_count for spec in environment.specs)


TEXTS = Path(__file__).parents[1] / "data" / "pasted_texts.txt"
"""Output of Spack 1.2, lists of modules, logs and READMEs; the specs of each with their
lines:

    === the name of the case
    the text
    --- specs
    3 libelf
"""
CASES = re.findall(
    r"^=== (.+)\n((?:(?!--- specs).*\n)*)--- specs\n((?:(?!=== ).*\n)*)",
    TEXTS.read_text("utf-8"),
    re.MULTILINE,
)
"""The name, the text and the specs of each case."""

PACKAGES = """
callpath cmake compiler-wrapper dyninst externaltool gcc gcc-runtime glibc hdf5 libdwarf libelf
mpich mpileaks ncurses openmpi python slurm zlib zlib-ng
"""
KNOWN = KnownNames(
    is_package=set(PACKAGES.split()).__contains__,
    is_hash={"nekvq6z", "n3bpxms"}.__contains__,
)
"""The names of a database with a few packages."""


def read_pasted(text: str) -> Environment:
    """Return the content of a text, for a database with a few packages."""
    surroundings = Surroundings(known=KNOWN)
    return read_environment(text.encode(), "pasted", surroundings=surroundings)


def specs_and_notes(text: str) -> str:
    """Return the specs and notes of a text, or its fault, in the form of `TEXTS`."""
    try:
        environment = read_pasted(text)
    except UnreadableEnvironment as error:
        return f"error: {error.faults[0].message}\n"
    lines = []
    for spec in environment.specs:
        line = f"{spec.line} {spec.text}"
        if spec.group:
            line += f" [{spec.group}]"
        if spec.external:
            line += " (external)"
        if spec.error:
            line += f" ({spec.error})"
        lines.append(line)
    lines += [f"note: {note}" for note in environment.notes]
    return "".join(f"{line}\n" for line in lines)


def test_the_file_of_texts_has_cases() -> None:
    """The expression that reads it finds them."""
    assert len(CASES) > 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(text, expected, id=name) for name, text, expected in CASES],
)
def test_specs_of_pasted_texts(text: str, expected: str) -> None:
    """Only specs count: other lines are named in one note, headings are applied or
    named.
    """
    assert specs_and_notes(text) == expected
    assert specs_and_notes(text.replace("\n", "\r\n")) == expected


SPEC_LINES = (
    "zlib",
    "hdf5 +mpi",
    "cmake@3: %gcc@13",
    "unknown@1.2",
    "- ncurses",
    "$ hdf5@1.14",
    "/nekvq6z",
)
OTHER_LINES = (
    "cd spack",
    "export CC=gcc",
    "| hdf5 |",
    "make -j8",
    "gcc --version",
    "Done!",
    "```",
    "hdf5 is a library",
    "$ ls -l",
    "https://example.org/hdf5",
    "spack compiler find",
    "100%",
    "<hdf5>",
    "git clone x",
    "ftp://x@y",
    "spack mirror add hdf5 /x",
)


@given(st.lists(st.sampled_from(SPEC_LINES + OTHER_LINES), max_size=12))
def test_other_lines_change_nothing(lines: list[str]) -> None:
    """Whatever is between specs, the same specs count, and all other lines are
    named.
    """
    specs = [line for line in lines if line in SPEC_LINES]
    others = [line for line in lines if line in OTHER_LINES]
    if others and not specs:
        with pytest.raises(
            UnreadableEnvironment, match="there is no spec in this text"
        ):
            read_pasted("\n".join(others))
        return
    environment = read_pasted("\n".join(lines))
    alone = read_pasted("\n".join(specs))

    # The specs are those of a text without the other lines.
    texts = [spec.text for spec in environment.specs]
    assert texts == [spec.text for spec in alone.specs]
    assert len(texts) == len(specs)

    # A note counts the other lines.
    assert sorted(environment.others) == sorted(others)
    assert alone.others == ()
    has_note = any(f"{len(others):,} line" in note for note in environment.notes)
    assert has_note == bool(others)


@pytest.mark.parametrize(
    ("text", "message"),
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
        ('[{"name": "zlib", "arch": {}}]', "without their hashes"),
        ('{"database": {"version": "8"}}', "the index of a build cache"),
        ('{"version": 3, "data": []}', "a manifest of a build cache"),
        ('["zlib"]', "is JSON, but neither"),
        ('[{"name": "zlib", ', ":1: broken JSON at column 19"),
    ],
)
def test_a_file_of_another_kind_is_named(text: str, message: str) -> None:
    """The message names the kind of the file, not only what it lacks."""
    with pytest.raises(UnreadableEnvironment, match=re.escape(message)):
        read_pasted(text)


def test_commands_in_a_list() -> None:
    """A list may have commands among its specs; their options are named in one note."""
    lines = (
        "# mine",
        "$ spack install -j 8 hdf5",
        "- 'zlib +pic'",
        "`spack load bzip2`",
        "spack install -j 8 x y@1 %gcc",
    )
    text = "".join(f"{line}\n" for line in lines)
    environment = read_environment(text.encode(), "-")

    assert [(spec.text, spec.line) for spec in environment.specs] == [
        ("hdf5", 2),
        ("zlib +pic", 3),
        ("bzip2", 4),
        ("x", 5),
        ("y@1 %gcc", 5),
    ]
    assert environment.notes == ("skipped: install -j 8; load",)


def test_other_lines_have_a_limit() -> None:
    """Too many lines that are not specs are a fault, as too many specs are."""
    limits = Limits(specs=10, nodes=50)
    data = b"[+]  ^zlib\n" * 100

    with pytest.raises(
        UnreadableEnvironment, match="has more than 50 lines that are not"
    ):
        read_environment(data, "x", limits)


def read_json(data: Any) -> Environment:
    """Return the content of JSON."""
    return read_environment(json.dumps(data).encode(), "-")


def test_nodes_in_json() -> None:
    """`spack find --json` and `spack spec --json` print nodes, which are known by their
    hashes.
    """
    hdf5 = node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",)))
    nodes = [hdf5, node("zlib"), old_node("bzip2", "7")]
    environment = read_json(nodes)

    # Each node in the output of `find` is a root.
    assert [(spec.hash, spec.is_root) for spec in environment.locked] == [
        (hash_of("hdf5"), True),
        (hash_of("zlib"), True),
        (hash_of("bzip2"), True),
    ]
    assert environment.locked[0].needs == (hash_of("zlib"),)
    compilers = [spec.configuration.compiler for spec in environment.locked]
    assert compilers == ["gcc", "none", "gcc@12.2.0"]

    # The form of `spack spec --json` has the same nodes.
    spec_file = {"spec": {"_meta": {"version": 5}, "nodes": nodes}}
    assert read_json(spec_file) == environment

    with pytest.raises(UnreadableEnvironment, match="has 3 specs, expected at most 2"):
        read_environment(json.dumps(nodes).encode(), "-", Limits(nodes=2))
    with pytest.raises(UnreadableEnvironment, match="spec is not an object"):
        read_json([{"hash": "x"}])


PACKAGES_YAML = """
packages:
  all: {require: target=zen3}
  hdf5: {require: [{one_of: [+mpi, ~mpi]}, '@1.14:']}
  zlib: {require: '@1:', conflict: ['@2']}
  bad: {require: ['@1', '@2']}
  cray-mpich: {externals: [{spec: cray-mpich@8.1%gcc@12, prefix: /opt}, {spec: '@9', prefix: /x}]}
"""


def test_the_specs_of_a_packages_yaml() -> None:
    """They are the combinations of options that it requires, and its externals."""
    environment = read_environment(PACKAGES_YAML.encode(), "packages.yaml")

    assert [(spec.text, spec.group, spec.line) for spec in environment.specs] == [
        ("hdf5@1.14: +mpi", "require", 4),
        ("hdf5@1.14: ~mpi", "require", 4),
        ("zlib@1:", "require", 5),
        ("bad", "require", 6),
        ("cray-mpich@8.1%gcc@12", "externals", 0),
        ("@9", "externals", 0),
    ]
    # The requirements of `bad` contradict each other.
    assert environment.specs[3].error
    # An external without a name has that of its entry.
    externals = environment.specs[4:]
    assert [spec.query and spec.query.name for spec in externals] == ["cray-mpich"] * 2


SPACK_YAML = (
    "spack: {specs: [$mine], include: [../site/packages.yaml, lists.yaml, scope]}\n"
)
SITE_PACKAGES = "packages: {all: {require: target=zen3}}\n"
LISTS = "definitions: [{mine: [hdf5, zlib]}]\n"
SCOPE = "packages: {hdf5: {require: +mpi}}\n"


def required_texts(environment: Environment) -> list[str]:
    """Return the specs of an environment with what is required of their packages."""
    return [required_text(spec) for spec in environment.specs]


@pytest.mark.parametrize("heading", ["--- # {}", "---  #{}  ", "==> {} <=="])
@pytest.mark.parametrize("is_named", [True, False])
def test_files_of_one_text_include_each_other(heading: str, is_named: bool) -> None:
    """The headings have either form, and the files any order, with or without folders.

    The environment may come first, without a heading. Files that the text lacks are
    missing.
    """
    includes = {
        "packages.yaml": SITE_PACKAGES,
        "x/lists.yaml": LISTS,
        "scope/packages.yaml": SCOPE,
        "scope/more.yaml": "packages: {zlib: {require: +wrong}}\n",
    }
    included = "".join(
        f"{heading.format(name)}\n{content}" for name, content in includes.items()
    )
    manifest = SPACK_YAML.replace("scope]", "scope, other.yaml]")
    if is_named:
        text = f"{included}{heading.format('spack.yaml')}\n{manifest}"
    else:
        text = manifest + included
    environment = read_environment(text.encode(), "what you pasted")

    assert required_texts(environment) == ["hdf5 +mpi", "zlib target=zen3"]
    note = environment.notes[0]
    assert note.startswith("one include is missing")
    assert note.endswith("other.yaml")


def test_a_fault_is_in_its_file() -> None:
    """Messages name the file of the text, and the line in it."""
    text = f"--- # spack.yaml\n{SPACK_YAML}--- # lists.yaml\n\ndefinitions: 1\n"
    with pytest.raises(UnreadableEnvironment) as caught:
        read_environment(text.encode(), "what you pasted")
    assert "lists.yaml:2: " in str(caught.value)


@pytest.mark.parametrize(
    "line", ["cd /storage", "ls /project", "$ mkdir /scratch", "source /archive"]
)
def test_the_path_of_a_shell_command_is_not_a_hash(line: str) -> None:
    """`cd /storage` parses as a spec with a hash, but is none.

    It is one if a package has the name of the command, such as `find`.
    """
    known = KnownNames(
        is_package={"hdf5", "find"}.__contains__, is_hash=lambda prefix: False
    )
    surroundings = Surroundings(known=known)
    text = f"{line}\nspack install hdf5\n"
    environment = read_environment(text.encode(), "t.txt", surroundings=surroundings)
    assert [spec.text for spec in environment.specs] == ["hdf5"]
    assert environment.others == (line,)

    environment = read_environment(
        b"find /storage\n", "t.txt", surroundings=surroundings
    )
    assert [spec.text for spec in environment.specs] == ["find /storage"]
