"""environments.formats: each kind is known by its content, lists are read line by line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments import UnreadableEnvironment
from spack_cache_db.environments.formats import MAX_BYTES, read_environment

LOCK = {"_meta": {"lockfile-version": 6}, "roots": [], "concrete_specs": {}}


@pytest.mark.parametrize(
    ("text", "is_lock"),
    [
        ("hdf5\n", False),
        ("", False),
        ("spack:\n  specs: [hdf5]\n", False),
        ("{spack: {specs: [hdf5]}}", False),
        (json.dumps({"spack": {"specs": ["hdf5"]}}), False),
        ('# mine\n"spack":\n  "specs": [hdf5]\n', False),
        (" spack:\n   specs: [hdf5]\n", False),
        (json.dumps(LOCK), True),
        (json.dumps(LOCK | {"spack": {"version": "1.1.0", "type": "release"}}), True),
        ("\ufeff" + json.dumps(LOCK, indent=2), True),
    ],
)
def test_a_kind_is_known_by_its_content(text: str, is_lock: bool) -> None:
    """No name is looked at: JSON with specs is a lockfile, YAML with `spack` a manifest."""
    found = read_environment(text.encode(), "-")

    assert found.is_lock == is_lock
    assert [each.error for each in found.specs] == [None] * text.count("hdf5")


def test_a_list_of_specs() -> None:
    """One spec a line, with comments, blank lines, quotes and the dashes of a YAML list."""
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
        (b'{"concrete_specs": ', "mine:1: broken JSON at column 20: Expecting value, expected"),
        (b'{"concrete_specs":\n[}\n', "mine:2: broken JSON at column 2: Expecting value, expected"),
        (b'{"concrete_specs":\n[\n', "mine:2: broken JSON at column 1: Expecting value, expected"),
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
    """By the one error that says why; what names a line, names one that the text has."""
    text = "".join(pieces)
    lines = text.removesuffix("\n").count("\n") + 1
    try:
        found = read_environment(text.encode(), "-")
    except UnreadableEnvironment as error:
        assert error.faults
        assert all(0 <= fault.line <= lines for fault in error.faults)
    else:
        assert all(1 <= spec.line <= lines for spec in found.specs)
