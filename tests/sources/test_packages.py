"""sources.packages: both forms of package data, whatever the files are called."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.errors import InputError
from spack_cache_db.sources.facts import (
    CATALOGUED,
    LISTED,
    PUBLISHED,
    KnownLicense,
    KnownVersion,
    PackageFacts,
)
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.packages import MAX_DESCRIPTION, MAX_MEMBERS, read_facts
from spack_cache_db.sources.readers import read_files
from tests.indexes import index, node, real, record
from tests.package_data import (
    REAL,
    REPOLOGY,
    catalogued,
    described,
    listed,
    published,
)
from tests.pagetexts import page


def facts(value: Any) -> list[PackageFacts]:
    """Return what is read of a JSON value, or of bytes."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_facts(RawFile("in/x", "x", data))


def file_of(path: Path) -> RawFile:
    """Return a file as its readers get it."""
    return RawFile(path.name, path.name, path.read_bytes())


def faults(value: Any) -> list[str]:
    """Return the faults of what is refused."""
    with pytest.raises(InputError) as caught:
        facts(value)
    return list(map(str, caught.value.faults))


def test_every_real_file_is_known_by_its_content() -> None:
    """Keys in the order of the program or sorted; pages and indexes are read by their
    readers.
    """
    files = [file_of(path) for path in REAL.rglob("*.json")]
    others = [page(), real(), index(record(node("latest_version")))]
    mixed = [
        *files,
        *(RawFile(f"{at}", f"{at}", data) for at, data in enumerate(others)),
    ]
    found = read_files(mixed)

    assert found.faults == []
    assert read_files([file_of(REPOLOGY)]).packages[0].form == CATALOGUED
    assert {each.form for each in found.packages} == {LISTED, PUBLISHED}
    assert len(found.packages) == len(files) - 1 + 14
    assert [bool(document.page) for document in found.documents] == [True, False, False]


def test_what_both_forms_say_is_read() -> None:
    """Texts, versions, variants, dependencies by type."""
    variant = {"name": "mpi", "default": True, "description": "Use MPI"}
    versions = [{"name": "2"}, {"name": "main", "branch": "main"}]
    said = published(
        "a", versions_deprecated=[{"name": "1"}], dependencies=described("b")
    )
    (site,) = facts(said | {"variants": [variant], "versions": versions})

    assert [(name, *each[:2]) for name, each in site.versions.items()] == [
        ("2", False, False), ("main", False, True), ("1", True, False),
    ]  # fmt: skip
    assert site.variants == {"mpi": (True, "Use MPI")}
    assert site.dependencies == {"b": ()}

    (spacks,) = facts(
        [listed("a", "2", dependencies={"build": ["b"], "link": ["b", "c"]})]
    )
    assert spacks.dependencies == {"b": ("build", "link"), "c": ("link",)}
    assert spacks.texts["recipe"] == "https://example.org/a/package.py"


def test_a_file_for_repology_has_licenses_and_tags() -> None:
    """A package is read once, not under each of its former names."""
    packages = {package.name: package for package in read_facts(file_of(REPOLOGY))}

    assert list(packages) == ["7zip", "abinit", "llvm-doe"]
    assert packages["7zip"].licenses == (KnownLicense("LGPL-2.0-only", None),)
    assert packages["7zip"].tags == ("detectable", "windows")
    assert packages["7zip"].texts == {
        "description": "7-Zip is a file archiver for Windows\n",
        "homepage": "https://sourceforge.net/projects/sevenzip/",
    }
    assert packages["abinit"].maintainers == ("downloadico",)
    assert packages["llvm-doe"].versions == {
        "13.0.0": KnownVersion(None, False),
        "develop.clacc": KnownVersion(None, True),
    }
    assert [package.problems for package in packages.values()] == [(), (), ()]


def test_maintainers_licenses_and_tags_are_one_line_each() -> None:
    """Sorted, each once; a condition stands behind a license; no cell is a formula."""
    (found,) = facts(
        catalogued(
            {
                "name": "a",
                "maintainers": ["b", "a", "b", "=1+1", ""],
                "licenses": ["MIT when @2:", "MIT", "BSD\n  AND MIT when @:1 +x"],
                "categories": ["@SUM(1)", "e4s"],
            }
        )
    )
    assert found.maintainers == ("a", "b")
    assert found.licenses == (
        KnownLicense("BSD AND MIT", "@:1 +x"),
        KnownLicense("MIT", None),
        KnownLicense("MIT", "@2:"),
    )
    assert found.tags == ("e4s",)
    assert [problem.code for problem in found.problems] == ["package_text"] * 2

    (site,) = facts(published("a", "1", maintainers=["c"]))
    (spacks,) = facts([listed("a", "1", maintainers=["c"])])
    assert site.maintainers == spacks.maintainers == ("c",)
    assert faults(catalogued({"name": "a", "maintainers": ["a\u202e"]})) != []
    assert faults({"last_update": ""}) != []


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"licenses": ["MIT"]}, "licenses"),
        ({"versions": [{"name": "1", "sha512": "x"}]}, "versions[].sha512"),
        (
            {"variants": [{"name": "a", "default": "b", "description": "", "x": 1}]},
            "variants[].x",
        ),
        (
            {"dependencies": [{"name": "b", "description": "", "x": 1}]},
            "dependencies[].x",
        ),
    ],
)
def test_a_new_key_is_told(change: dict[str, Any], key: str) -> None:
    """At any depth: keys appear with time; once in a list, by the first package that
    has it.
    """
    (found,) = facts(published("a", "1") | change)
    message = f"the package a has the unknown key {key}"

    assert [(problem.code, problem.message) for problem in found.problems] == [
        ("unknown_key", message)
    ]

    several = facts([listed(name, "1") | {"licenses": name} for name in "ab"])
    assert [len(each.problems) for each in several] == [1, 0]


def test_what_says_nothing_is_left_out() -> None:
    """A name that stands twice, the word None, and null."""
    twice = [{"name": "1"}, {"name": "1", "sha256": "x"}]
    (found,) = facts(published("a", versions=twice, homepage="None", description=None))
    assert list(found.versions) == ["1"]
    assert found.texts.keys().isdisjoint({"homepage", "description"})


@pytest.mark.parametrize(
    "homepage",
    [
        '=HYPERLINK("https://x")',
        "+1",
        "-1",
        "@SUM(1)",
        "\thttps://x",
        "javascript:alert(1)",
        "www.example.org",
        "ftp://x",
        "https://",
        "https://x y",
        "https://x\u202e",
        "",
        " ",
    ],
)
@pytest.mark.parametrize("form", [published, listed])
def test_a_homepage_is_an_address_of_the_web(form: Any, homepage: str) -> None:
    """Anything else is left out, and a problem."""
    value = form("a", "1", homepage=homepage)
    # A list of packages has one value for each of them.
    document = value if form is published else [value]
    (found,) = facts(document)

    assert "homepage" not in found.texts
    (problem,) = found.problems
    assert problem.code == "package_text"
    assert problem.message.startswith("the package a has the homepage ")
    assert json.loads(problem.value or "") == homepage


@pytest.mark.parametrize("text", ["=1+1", "@SUM(1)", "-1", "+1", "\t=1", "\r\n=1"])
def test_no_text_of_a_package_is_a_formula(text: str) -> None:
    """A spreadsheet runs a cell that begins so: such a text is left out."""
    variants = [
        {"name": "x", "default": True, "description": text},
        {"name": "y", "default": text, "description": ""},
        {"name": "z", "default": True, "description": ""},
    ]
    value = published(
        "a", "1", description=text, latest_version=text, variants=variants
    )
    value["build_system"] = text
    (found,) = facts(value)

    assert not {"description", "latest_version", "build_system"} & found.texts.keys()
    assert list(found.variants) == ["z"]
    assert len(found.problems) == 5

    (other,) = facts([listed("a", "1") | {"file": text}])
    assert "recipe" not in other.texts


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'[\n{"name": "a",\n', "in/x:3: Input data was truncated"),
        (
            b'{"name": "a",\n"latest_version": "say "this""}',
            "in/x:2: JSON is malformed",
        ),
        (b'{"name": "a", "latest_version": NaN}', "in/x:1: JSON is malformed"),
        (b'{"name": "a", "latest_version": "\xff"}', "in/x:1: not UTF-8"),
        (published(""), "has the name , expected one that Spack can read"),
        (published("a", "1" * 201), "has a version of 201 characters"),
        (published("a") | {"name": "a\0b"}, "has the name "),
        (published("a", description="a\0b"), "Expected `str` matching regex"),
        (
            published("a", homepage=5),
            "Expected `str | null`, got `int` - at `$.homepage`",
        ),
        (published("a", versions=[{"sha256": "x"}]), "missing required field `name`"),
        (
            published("a", description="x" * (MAX_DESCRIPTION + 1)),
            "of length <= 65536 - at",
        ),
        (published("a", *map(str, range(MAX_MEMBERS + 1))), "of length <= 16384 - at"),
        ([listed("a"), listed("a")], "the package a is repeated"),
        ([5], "Expected `str | object`, got `int`"),
        (b'{"name": "a", "latest_version": ' + b"[" * 5000, "in/x"),
    ],
)
def test_what_cannot_be_kept_is_a_fault(value: Any, message: str) -> None:
    """It says where, what is wrong and what was expected."""
    assert message in faults(value)[0]


def test_the_first_fault_of_a_list_is_told() -> None:
    """On the line where its package begins."""
    bad = (
        b'[\n  {"name": "a"},\n  {"name": 5},\n'
        b'  {"name": "c"},\n  {"name": "d", "versions": 1}\n]'
    )
    assert [each.split(": ")[0] for each in faults(bad)] == ["in/x:3"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"name": "zlib", "latest_version": "1", "": 5}',
        b'[{"name": "zlib", "variants": 5}]',
        b'[{"name": "zlib", "dependent_to": true}]',
    ],
)
def test_keys_of_another_form_are_no_bugs(data: bytes) -> None:
    """A list that this form of the data does not use may have any value."""
    with suppress(InputError):
        facts(data)
