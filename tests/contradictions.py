"""Random pages and indexes that contradict each other, and random specs to ask of
them.
"""

import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from spack_cache_db.model import Configuration
from spack_cache_db.spack.normal_forms import parse_variant
from tests import builds
from tests.indexes import index, node, record
from tests.pagetexts import page, spec, spec_hash

RELEASES = (
    "develop",
    "v1.10",
    "v1.9",
    "develop-2025-02-02",
    "develop-2025-01-05",
    "mine",
)
"""In the file's order."""
STACKS = ("e4s", "ml")
OLD = frozenset({"v1.9", "develop-2025-01-05"})
"""The releases whose pages are of an older era: spelled otherwise, and with
tarballs.
"""

CONFIGURATIONS = st.builds(
    Configuration,
    package=st.sampled_from(["aa", "aa", "bb"]),
    version=st.sampled_from(["1.0", "1.10", "1.10-rc1", "2.0", "develop"]),
    compiler=st.sampled_from(["gcc@12.1.0", "gcc@13.2.0", "clang@15.0.7", "none"]),
    os=st.sampled_from(["rhel8", "ubuntu22.04"]),
    platform=st.sampled_from(["linux", "linux", "darwin"]),
    target=st.sampled_from(["x86_64_v3", "zen2", "zen3", "aarch64"]),
    variants=st.sampled_from([("+x",), ("+x", "k=a,b"), ("k=a", "~x"), ("s=one",), ()]),
)


@dataclass(frozen=True)
class Listing:
    """A spec in one release, in a page or (`index` is its stack) in an index.

    `said` is the configuration that the page names, if that of the hash is another one.
    """

    release: str
    dag_hash: str
    configuration: Configuration
    stacks: tuple[str, ...]
    size: str = "-"
    index: str | None = None
    is_binary: bool = True
    said: Configuration | None = None

    @property
    def tarball(self) -> str | None:
        """Return its address as a page of an older era prints it."""
        if self.index is not None or self.release not in OLD:
            return None
        package, version, compiler, os, platform, target, _ = (
            self.said or self.configuration
        )
        arch = f"{platform}-{os}-{target}"
        by = compiler.replace("@", "-")
        file = f"{arch}-{by}-{package}-{version}-{self.dag_hash}.spack"
        prefix = f"https://binaries.spack.io/{self.release}/build_cache"
        return f"{prefix}/{arch}/{by}/{package}-{version}/{file}"


@st.composite
def listings(
    draw: st.DrawFn, configurations: st.SearchStrategy[Configuration] = CONFIGURATIONS
) -> list[Listing]:
    """Draw a few specs in a few releases; half of them are what they are elsewhere."""
    few = draw(st.lists(configurations, min_size=2, max_size=4))
    usual = draw(st.lists(st.sampled_from(few), min_size=5, max_size=5))
    # Some hashes begin alike.
    hashes = [
        spec_hash(32**25 * (number // 2) + number) for number in range(len(usual))
    ]
    releases = draw(
        st.lists(st.sampled_from(RELEASES), min_size=1, max_size=4, unique=True)
    )
    places = st.tuples(st.sampled_from(releases) | st.sampled_from(RELEASES), _INDEXED)
    indexes = []
    if draw(st.booleans()):
        indexes = draw(st.lists(places, max_size=3, unique=True))

    found = []
    for dag_hash, configuration in zip(hashes, usual, strict=True):
        # The same everywhere, that of another spec, or one that differs in a word.
        shown = (
            st.just(configuration)
            | st.sampled_from(usual)
            | _changed(configuration, configurations)
        )
        # Pages.
        for release in releases:
            if draw(st.booleans()):
                stacks = draw(_STACKS)
                size = draw(st.sampled_from(["-", "1 MB", "2 MB"]))
                found.append(Listing(release, dag_hash, draw(shown), stacks, size))
        # Indexes.
        for release, stack in indexes:
            if draw(st.booleans()):
                is_binary = draw(st.sampled_from([True, True, False]))
                said = Listing(
                    release, dag_hash, draw(shown), (stack,), "-", stack, is_binary
                )
                found.append(said)

    # Each index knows a dependency that was not pushed.
    for release, stack in indexes:
        known = draw(st.sampled_from(usual))
        found.append(
            Listing(release, _NOT_PUSHED, known, (stack,), "-", stack, is_binary=False)
        )
    # At least one binary is listed.
    is_listed = any(listing.is_binary for listing in found)
    return found if is_listed else [Listing("develop", hashes[0], usual[0], ("root",))]


_NOT_PUSHED = spec_hash(7)
"""A dependency that indexes know, and that looks like a binary."""
_ONE = Configuration(
    "aa", "1.10", "gcc@12.1.0", "rhel8", "linux", "zen2", ("+x", "k=a,b")
)
_OLDER = _ONE._replace(version="1.10-rc1", target="aarch64")
_OTHER = Configuration(
    "bb", "2.0", "clang@15.0.7", "rhel8", "linux", "x86_64_v3", ("k=a", "~x")
)
EXAMPLE = [
    Listing("develop", spec_hash(0), _ONE, ("e4s", "root"), "1 MB"),
    Listing("develop", spec_hash(1), _ONE, ("ml",)),
    Listing("develop", spec_hash(2), _OLDER, ("e4s",), "-", "e4s"),
    Listing(
        "v1.10", spec_hash(1), _ONE._replace(os="ubuntu22.04"), ("e4s", "ml", "root")
    ),
    Listing("v1.9", spec_hash(2), _OLDER, ("root",), "2 MB"),
    Listing("develop-2025-02-02", spec_hash(0), _ONE, ("e4s",)),
    Listing("develop-2025-02-02", spec_hash(3), _OTHER, ("e4s", "root")),
    Listing("develop-2025-01-05", spec_hash(3), _OTHER, ("ml",)),
    Listing("develop-2025-01-05", spec_hash(4), _ONE, ()),
    Listing("mine", spec_hash(4), _ONE._replace(compiler="none"), ("ml",), "-", "ml"),
    Listing("mine", _NOT_PUSHED, _OTHER, ("ml",), "-", "ml", is_binary=False),
]
"""One hash in two configurations, in pages and indexes, of every kind of release."""
_INDEXED = st.sampled_from([*STACKS, "root"])
_STACKS = st.sampled_from(
    [("root",), ("e4s", "root"), ("e4s", "ml", "root"), ("ml",), ()]
)


@st.composite
def _changed(
    draw: st.DrawFn,
    configuration: Configuration,
    others: st.SearchStrategy[Configuration],
) -> Configuration:
    """Draw a configuration that differs in one part."""
    field = draw(st.sampled_from(Configuration._fields))
    return configuration._replace(**{field: getattr(draw(others), field)})


def _one_of(*texts: str) -> st.SearchStrategy[str]:
    """Draw one of the texts; none, as often as any."""
    return st.just("") | st.sampled_from(texts)


_VERSIONS = (
    "@1",
    "@1.10",
    "@1.10:",
    "@=1.0",
    "@:1.10",
    "@1.0,2:",
    "@=1.0,=2.0",
    "@1.0:1.10",
    "@3",
)
_VARIANTS = (
    "+x",
    "~x",
    " -x",
    " x=True",
    " x=*",
    " k=a",
    " k=b,a",
    " k:=a",
    " k:=b,a",
    " s=one",
)
_SYSTEMS = (" os=rhel8", " os=rhel8", " operating_system=rhel8", " os=nothing", " os=*")
_TARGETS = (
    " target=:zen3",
    " target=zen2",
    " target=zen2:",
    " target=aarch64,:zen2",
    " target=*",
)
_ARCHS = (
    " arch=linux-rhel8-zen2",
    " arch=linux-*-zen3",
    " arch=*-*-*",
    " architecture=zen2",
)
_HASHES = (
    f" /{spec_hash(2)[:3]}",
    f" /{spec_hash(32**25 + 2)}",
    f" /{spec_hash(0)[:26]}",
    f" /{_NOT_PUSHED}",
)
_COMPILERS = (
    " %gcc",
    " %gcc@12",
    " %gcc@=13.2.0",
    " %clang",
    " %llvm@:15",
    " %c,cxx=gcc@12.5:",
)

_PLACE = st.builds(
    "{}{}{}".format,
    _one_of(" platform=linux", " platform=*"),
    _one_of(*_SYSTEMS),
    _one_of(*_TARGETS),
) | _one_of(*_ARCHS)
QUERIES = st.builds(
    "{}{}{}{}{}{}".format,
    _one_of("aa", "aa", "bb", "*"),
    _one_of(*_VERSIONS),
    _one_of(*_VARIANTS),
    _PLACE,
    st.just("") | _one_of(*_HASHES),
    _one_of(*_COMPILERS),
).map(lambda text: text.strip() or "*")


def write_sources(folder: Path, drawn: list[Listing]) -> Path:
    """Write the pages and indexes that say so, and return their folder."""
    pages: dict[tuple[str, str], list[dict[str, Any]]] = {}
    records: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for listing in drawn:
        if listing.index is None:
            key = (listing.release, listing.configuration.package)
            pages.setdefault(key, []).append(_detail(listing))
        else:
            records.setdefault((listing.release, listing.index), []).append(
                _record(listing)
            )
    for (release, package), details in pages.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{release}-{package}.md").write_bytes(
            page(package, release, details)
        )
    for (release, stack), stack_records in records.items():
        (folder / release / stack).mkdir(parents=True)
        (folder / release / stack / "index.json").write_bytes(index(*stack_records))
    return folder


def _detail(each: Listing) -> dict[str, Any]:
    words = each.configuration._asdict()
    del words["package"]
    words |= {"variants": list(words["variants"]), "versions": [words.pop("version")]}
    words |= {"hash": each.dag_hash, "stacks": list(each.stacks), "size": each.size}
    if each.tarball is not None:
        words["compiler"] = words["compiler"].replace("@", "@=")
        words["variants"] = [
            text.replace("a,b", "b,a") for text in reversed(words["variants"])
        ]
        words["tarball"] = each.tarball
    else:
        words["variants"] = [text.replace("k=", "k:=") for text in words["variants"]]
    return spec(**words)


def _record(each: Listing) -> dict[str, Any]:
    package, version, compiler, os, platform, target, variants = each.configuration
    parameters: dict[str, Any] = {}
    for variant in map(parse_variant, variants):
        if variant.kind == "bool":
            parameters[variant.name] = variant.values == ("true",)
        elif variant.name == "k":
            # A variant of several values.
            parameters[variant.name] = list(variant.values)
        else:
            parameters[variant.name] = variant.value
    # Only records of before Spack 1.0 name their compiler.
    annotations: dict[str, Any] = {"original_specfile_version": 5}
    if compiler != "none":
        annotations["original_specfile_version"] = 4
        annotations["compiler"] = compiler.replace("@", "@=")
    spec_node = node(
        package,
        hash=each.dag_hash,
        version=version,
        arch={"platform": platform, "platform_os": os, "target": target},
        parameters=parameters,
        annotations=annotations,
    )
    return record(spec_node, is_binary=each.is_binary)


def database_of(drawn: list[Listing]) -> AbstractContextManager[sqlite3.Connection]:
    """Build the sources and connect to the database as the site does."""
    return builds.database_of(lambda folder: write_sources(folder, drawn))
