"""build.search_words: random words find what docs/site.md says that they mean, and no more."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import archspec.cpu
import pytest
from datasette.utils import escape_fts

from spack_cache_db.build import build
from spack_cache_db.build.search_words import configuration_tokens
from spack_cache_db.records import Configuration
from tests.configurations import configuration
from tests.pagetexts import page, spec, write

PACKAGES = ("hdf5", "gcc", "llvm", "cuda", "py-torch", "py-torchvision", "old_name", "none-such")
VERSIONS = (
    "1",
    "1.12",
    "1.12.2",
    "1.14.3",
    "12.2",
    "12.2.0",
    "13.2",
    "2.0-rc1",
    "develop",
    "112.2",
)
COMPILERS = ("gcc@12.2.0", "gcc@13.2.0", "gcc@1.12", "clang@12.2", "llvm@17.0.6", "none")
TARGETS = ("x86_64", "x86_64_v3", "zen3", "aarch64", "neoverse_v2", "toaster")
SYSTEMS = ("ubuntu22.04", "rhel8", "sequoia")
VARIANTS = (
    *("+cuda", "~cuda", "++pic", "~~pic", "mpi=True", "mpi=false", "~java", "+gcc"),
    *("build_type=Release", "build_system=cmake", "cuda_arch=90", "cuda_arch=80,90", "api=none"),
    *("libs=shared,static", "libs=shared", "languages='c,c++'", "patches=3fbfe46,f7d58d3"),
    *("prefix=/usr/local", "k='two words'", "odd='a:b%c^d*e'", "cxxstd=17", "no variant"),
)


def random_specs(choice: random.Random, first: int) -> list[dict[str, Any]]:
    """Return the specs of one page, each variant at most once."""
    specs = []
    for number in range(first, first + 40):
        variants = {
            re.split("=", each.lstrip("+~-"))[0]: each for each in choice.sample(VARIANTS, 6)
        }
        changes = {
            "versions": [choice.choice(VERSIONS)],
            "compiler": choice.choice(COMPILERS),
            "os": choice.choice(SYSTEMS),
            "platform": choice.choice(("linux", "darwin")),
            "target": choice.choice(TARGETS),
            "variants": sorted(variants.values()),
        }
        specs.append(spec(number, **changes))
    return specs


def random_pages() -> dict[str, list[dict[str, Any]]]:
    """Return 320 random specs of eight packages, the same each time."""
    choice = random.Random(20250713)
    return {package: random_specs(choice, 40 * number) for number, package in enumerate(PACKAGES)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A database of their pages."""
    folder = tmp_path_factory.mktemp("meaning")
    pages = {package: page(package, specs=specs) for package, specs in random_pages().items()}
    build([str(write(folder / "pages", **pages))], folder / "x.db")
    connection = sqlite3.connect(folder / "x.db")
    yield connection
    connection.close()


def rows() -> dict[str, Configuration]:
    """Return what the pages print, by hash, in lower case: search does not tell cases apart."""
    found = {}
    for package, specs in random_pages().items():
        for each in specs:
            found[each["hash"]] = Configuration(
                package,
                each["versions"][0].lower(),
                each["compiler"],
                each["os"],
                each["platform"],
                each["target"],
                tuple(text.lower() for text in each["variants"]),
            )
    return found


def begins(version: str, asked: str) -> bool:
    """Whether a version is the one asked for, or goes on after it with a dot."""
    return bool(asked) and (version + ".").startswith(asked + ".")


def of_version(row: Configuration, word: str) -> bool:
    """`1.14`, `@1.14` and `hdf5@1.14`: the version of the package."""
    name, at, version = word.rpartition("@")
    return begins(row.version, version if at else word) and name in ("", row.package)


def of_compiler(row: Configuration, word: str) -> bool:
    """`gcc` and `gcc@13`, with or without a percent sign."""
    name, at, version = word.removeprefix("%").partition("@")
    compiler, _, compiled = row.compiler.partition("@")
    return name == compiler and (not at or begins(compiled, version))


def of_place(row: Configuration, word: str) -> bool:
    """Names of os, platform and target, with their key or without; a family without."""
    known = archspec.cpu.TARGETS.get(row.target)
    family = str(known.family) if known else row.target
    keys = {f"os={row.os}", f"platform={row.platform}", f"target={row.target}"}
    return word in keys or word in (row.os, row.platform, row.target, family)


def of_variant(text: str, word: str) -> bool:
    """`+x` and `x` where it is on, `~x` where it is off, `x=a` and `a` for each value."""
    name, equals, value = text.partition("=")
    if equals and value.lower() in ("true", "false"):
        return word in (text, f"~{name}" if value.lower() == "false" else f"+{name}") or (
            word == name and value.lower() == "true"
        )
    if not equals:
        if text[0] in "+~-":
            bare = text.lstrip("+~-")
            on = text[0] == "+"
            return word in (text, f"+{bare}" if on else f"~{bare}") or (on and word == bare)
        return word in text.split()
    plain = value.strip("'")
    whole = [text, f"{name}={plain}", *(f"{name}={each}" for each in plain.split(","))]
    parts = [part for each in whole for part in re.split("[ ']+", each)]
    return word in [*parts, *(part for each in plain.split(",") for part in each.split())]


def means(row: Configuration, word: str) -> bool:
    """Whether a word, in lower case, is about a configuration."""
    return (
        word in (row.package, *re.split("[-_]", row.package))
        or of_version(row, word)
        or of_compiler(row, word)
        or of_place(row, word)
        or any(of_variant(text, word) for text in row.variants)
    )


def random_word(choice: random.Random) -> str:
    """Return something that a person might type about one dimension, or about none."""
    version = choice.choice(VERSIONS)
    version = ".".join(version.split(".")[: choice.randint(1, 3)])
    compiler, _, compiled = choice.choice(COMPILERS).partition("@")
    variant = choice.choice(VARIANTS).replace("'", "")
    name = variant.lstrip("+~-").partition("=")[0]
    words = [
        *(version, f"@{version}", f"{choice.choice(PACKAGES)}@{version}", f"@={version}"),
        *(compiler, f"%{compiler}", f"{compiler}@{compiled[:2]}", f"%{compiler}@{version}"),
        *(f"%@{version}", f"@{version}:", f"{compiler}@{compiled}", f"%{choice.choice(PACKAGES)}"),
        *(choice.choice(PACKAGES), choice.choice(PACKAGES).split("-")[-1], f"^{compiler}"),
        *(choice.choice(TARGETS), f"target={choice.choice(TARGETS)}", choice.choice(SYSTEMS)),
        *(f"os={choice.choice(SYSTEMS)}", "linux", f"platform={choice.choice(['darwin', 'cray'])}"),
        *(variant, name, f"+{name}", f"~{name}", f"{name}={variant.rpartition(',')[2]}"),
        *(variant.rpartition("=")[2], variant.rpartition("=")[2].split(",")[0], variant.upper()),
    ]
    return choice.choice(words).split()[0]


def test_a_hundred_words_find_what_they_mean(database: sqlite3.Connection) -> None:
    """One word or two, quoted as Datasette quotes them, against what the pages print."""
    choice, known = random.Random(7), rows()
    sizes = []
    for number in range(100):
        words = [random_word(choice) for _ in range(1 + number % 3 // 2)]
        expected = {
            key for key, row in known.items() if all(means(row, word.lower()) for word in words)
        }
        found = database.execute(
            "SELECT hash FROM configurations_fts JOIN specs ON specs.configuration = "
            "configurations_fts.rowid WHERE configurations_fts MATCH ?",
            [escape_fts(" ".join(words))],
        )

        assert {key for (key,) in found} == expected, words
        sizes.append(len(expected))
    assert sum(0 < size < len(known) for size in sizes) > 40


def test_a_long_version_does_not_grow_as_its_square() -> None:
    """Of a version with many dots the first parts are searched for one by one, and the whole."""
    version = ".".join("1" * 100)
    words = configuration_tokens(configuration(version=version, compiler=f"gcc@{version}", os="os"))
    assert {f"zlib@{version}", "zlib@1.1.1", f"%gcc@{version}", "%gcc@1.1.1"} <= set(words.split())
    assert len(words) < 12 * len(version)
