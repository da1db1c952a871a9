"""What `cover` says of binaries that Spack's solver reuses, may reuse, or does not
reuse.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.environments.model import Surroundings
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.choice.reuse import NOT_BEFORE_1_0, OWN_SOLUTION
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Lookups, opened
from tests.indexes import edge, hash_of, index, lock_of, node, old_node, record
from tests.pagetexts import write
from tests.trees import installed, write_tree

SITE = {"path": "/opt/site/zlib", "module": None}
OLD = {"original_specfile_version": 4}
GLIBC = record(
    node("glibc", version="2.36", external={"path": "/usr"}), is_binary=False
)
LINKED = (edge("zlib-ng", "link"), edge("gcc-runtime", "link"), edge("glibc", "link"))


def hdf5(*edges: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a node of hdf5, built without its high-level interface."""
    parameters = node("hdf5")["parameters"] | {"hl": False}
    return node(
        "hdf5", *(edges or LINKED), parameters=parameters, version="1.14.6", **more
    )


def zlib(**more: Any) -> dict[str, Any]:
    """Return a node of zlib-ng, built with its optimizations."""
    parameters = node("zlib-ng")["parameters"] | {"opt": True}
    return node("zlib-ng", parameters=parameters, version="2.2.4", **more)


def runtime(**more: Any) -> dict[str, Any]:
    """Return a node of gcc-runtime, which nearly everything links."""
    return node("gcc-runtime", version="13.2.0", **more)


def complete() -> list[dict[str, Any]]:
    """Return the records of a mirror that has all that hdf5 needs."""
    return [record(hdf5()), record(zlib()), record(runtime()), GLIBC]


def database(folder: Path, *records: dict[str, Any], version: str = "8") -> Path:
    """Return a database of one mirror."""
    build(write(folder / "in", a=index(*records, version=version)), folder / "x.db")
    return folder / "x.db"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lookups]:
    """A database of a mirror that has all that hdf5 needs."""
    path = database(tmp_path_factory.mktemp("mirror"), *complete())
    with opened(path) as lookups:
        yield lookups


def covered(
    lookups: Lookups,
    *specs: str,
    files: dict[str, bytes] | None = None,
    release: str | None = None,
    **settings: Any,
) -> Cover:
    """Return the answers for specs of an environment with these settings."""
    text = json.dumps({"spack": {"specs": specs, **settings}})
    surroundings = Surroundings(open=(files or {}).get)
    environment = read_environment(
        text.encode(), "/e/spack.yaml", surroundings=surroundings
    )
    conditions = Scope(release=release).conditions(lookups)
    return cover_environment(lookups, environment, conditions)


def answers(lookups: Lookups, *specs: str, **settings: Any) -> list[CoveredSpec]:
    """Return the answers alone."""
    return list(covered(lookups, *specs, **settings).specs)


WEAK = {
    "hdf5": {"variants": "+hl", "version": ["1.14.5"]},
    "zlib-ng": {"variants": "~opt"},
}
"""Weak preferences that no binary meets."""
CACHES = {"type": "buildcache"}
LOCAL = {"type": "local"}


def reuse(value: Any) -> dict[str, Any]:
    """Return the settings of an environment with this value of `reuse:`."""
    return {"concretizer": {"reuse": value}}


def reuse_from(*sources: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an environment with these sources of reuse."""
    return reuse({"from": sources})


# What a live Spack 1.2 took of the mirror above: `binary` where it took the binary,
# `unknown` where it built, because a solution of its own may have the same hash.
@pytest.mark.parametrize(
    ("settings", "of_hdf5", "of_zlib"),
    [
        ({}, "binary", "binary"),
        ({"packages": WEAK}, "binary", "binary"),
        ({"packages": WEAK, **reuse(True)}, "binary", "binary"),
        (reuse_from(CACHES | {"exclude": ["hdf5"]}), "unknown", "binary"),
        (reuse_from(CACHES | {"exclude": ["zlib-ng"]}), "unknown", "unknown"),
        (reuse("dependencies"), "unknown", "unknown"),
        (reuse(False), "unknown", "unknown"),
        ({"packages": {"hdf5": {"prefer": ["+hl"]}}}, "near", "binary"),
        ({"packages": {"zlib-ng": {"prefer": ["~opt"]}}}, "near", "near"),
        # Other forms of the same settings.
        (reuse({"roots": False}), "unknown", "unknown"),
        (reuse({"exclude": ["hdf5~hl"]}), "unknown", "binary"),
        (reuse({"exclude": ["hdf5+hl"]}), "binary", "binary"),
        (reuse({"exclude": ["^zlib-ng"]}), "unknown", "binary"),
        (reuse({"include": ["hdf5"]}), "unknown", "unknown"),
        (
            reuse({"include": ["hdf5", "zlib-ng+opt", "gcc-runtime"]}),
            "binary",
            "binary",
        ),
        (reuse_from(LOCAL), "unknown", "unknown"),
        (reuse_from({"type": "external"}), "unknown", "unknown"),
        (reuse_from(LOCAL, CACHES), "binary", "binary"),
        # A source with a filter beside one without: either may have a spec.
        (reuse_from(CACHES | {"exclude": ["hdf5"]}, CACHES), "binary", "binary"),
    ],
)
def test_what_a_live_spack_took(
    mirror: Lookups, settings: dict[str, Any], of_hdf5: str, of_zlib: str
) -> None:
    """Settings of reuse and strong preferences decide; weak preferences do not."""
    found = answers(mirror, "hdf5", "zlib-ng", **settings)

    assert [answer.status for answer in found] == [of_hdf5, of_zlib]
    for answer in found:
        if answer.status == "unknown":
            assert answer.reasons[0].endswith(OWN_SOLUTION)
            assert answer.hash is not None


def test_the_reason_names_the_setting(mirror: Lookups) -> None:
    """And the dependency, if it is not the binary itself that is left out."""

    def reason(value: Any) -> str:
        (answer,) = answers(mirror, "hdf5", **reuse(value))
        return answer.reasons[0].removesuffix(f", {OWN_SOLUTION}")

    assert reason(False) == "with reuse: false"
    assert reason("dependencies") == "with reuse: dependencies"
    assert reason({"exclude": ["%c=gcc", "hdf5"]}) == "with reuse: exclude: hdf5"
    needed = "it needs zlib-ng@2.2.4: with reuse: exclude: zlib-ng"
    assert reason({"exclude": ["zlib-ng"]}) == needed
    assert (
        reason({"include": ["zlib-ng", "%gcc"]}) == "with reuse: include: zlib-ng, %gcc"
    )
    assert reason({"from": [LOCAL]}) == "with reuse: from: local"


def test_the_lockfile_of_an_environment_is_a_source(mirror: Lookups) -> None:
    """A binary counts if the lockfile has it and all that it needs."""
    settings = reuse_from({"type": "environment", "path": "/other"})
    nodes = [hdf5(), zlib(), runtime(), node("glibc", external={"path": "/usr"})]

    def status(*locked: dict[str, Any]) -> str:
        files = {"/other/spack.lock": lock_of(*locked)} if locked else {}
        (answer,) = answers(mirror, "hdf5", files=files, **settings)
        return answer.status

    assert status(*nodes) == "binary"
    assert status(zlib()) == "unknown"
    assert status() == "unknown"


def test_an_include_sets_reuse(mirror: Lookups) -> None:
    """A `concretizer.yaml` that the environment includes counts as well."""
    files: Any = {"/c": {"concretizer.yaml": b"concretizer: {reuse: false}"}}
    (answer,) = answers(mirror, "hdf5", include=["/c"], files=files)

    assert answer.status == "unknown"


def test_a_missing_dependency(tmp_path: Path) -> None:
    """A binary without one of its link or run dependencies is incomplete, and names
    them.
    """
    without_binary = record(runtime(), is_binary=False)
    path = database(tmp_path, record(hdf5()), record(zlib()), without_binary, GLIBC)
    with opened(path) as lookups:
        found = covered(lookups, "hdf5", "zlib-ng")

    first, second = found.specs
    assert (first.status, first.hash) == ("incomplete", hash_of("hdf5"))
    assert first.missing == (f"gcc-runtime@13.2.0/{hash_of('gcc-runtime')}",)
    assert first.reasons == (
        "no binary of gcc-runtime@13.2.0, so Spack would build it",
    )
    assert second.status == "binary"
    assert (found.available, found.total) == (1, 2)
    assert (
        found.sentence == "1 of 2 specs has a binary; 1 more binary lacks dependencies"
    )
    assert found.totals == (
        "to build from source: gcc-runtime, hdf5",
        "to download: 1 package",
    )
    assert found.as_dict()["incomplete"] == 1
    assert found.as_dict()["to_build"] == ["gcc-runtime", "hdf5"]


def test_a_build_dependency_may_be_missing(tmp_path: Path) -> None:
    """Spack does not install what was only needed to build a binary."""
    with opened(
        database(tmp_path, record(node("app", edge("cmake", "build"))))
    ) as lookups:
        assert answers(lookups, "app")[0].status == "binary"


def test_all_of_it_from_one_release(tmp_path: Path) -> None:
    """With `--release`, its mirror must list the whole closure; otherwise any mirror
    counts.
    """
    first_mirror = write(tmp_path / "a", index=index(record(hdf5()), GLIBC))
    second_mirror = write(tmp_path / "b", index=index(*complete()[1:]))
    build([first_mirror], tmp_path / "a.db", release="first")
    build([second_mirror], tmp_path / "b.db", release="second")
    build([tmp_path / "a.db", tmp_path / "b.db"], tmp_path / "x.db")
    with opened(tmp_path / "x.db") as lookups:
        everywhere = answers(lookups, "hdf5")
        first = answers(lookups, "hdf5", release="first")

    assert [everywhere[0].status, first[0].status] == ["binary", "incomplete"]
    assert [text.partition("/")[0] for text in first[0].missing] == [
        "gcc-runtime@13.2.0",
        "zlib-ng@2.2.4",
    ]


def external(spec: str, prefix: str = "/opt/site/zlib", **more: Any) -> dict[str, Any]:
    """Return the entry of a package with one external."""
    return {"externals": [{"spec": spec, "prefix": prefix, **more}]}


@pytest.mark.parametrize(
    ("packages", "status", "reason"),
    [
        (
            {},
            "unknown",
            "only if your configuration declares zlib-ng@2.2.4 at /opt/site/zlib",
        ),
        ({"cmake": external("cmake@3", "/usr")}, "unknown", "only if"),
        ({"zlib-ng": external("zlib-ng@2.2.4")}, "binary", None),
        ({"zlib-ng": external("zlib-ng@2+opt")}, "binary", None),
        (
            {"zlib-ng": external("zlib-ng@2.2.4", "/usr")},
            "near",
            "built on the external zlib-ng@2.2.4 at /opt/site/zlib, but packages: has"
            " zlib-ng@2.2.4 at /usr",
        ),
        ({"zlib-ng": external("zlib-ng~opt")}, "near", "built on the external"),
        (
            {"zlib-ng": external("zlib-ng@2", modules=["zlib"])},
            "near",
            "with the modules zlib",
        ),
        ({"zlib-api": external("zlib-ng@2")}, "binary", None),
    ],
)
def test_an_external_below_a_binary(
    tmp_path: Path, packages: dict[str, Any], status: str, reason: str | None
) -> None:
    """`packages:` must declare it with its spec, prefix and modules; the C library is
    exempt.
    """
    outside = record(zlib(external=SITE), is_binary=False)
    path = database(tmp_path, record(hdf5()), outside, record(runtime()), GLIBC)
    with opened(path) as lookups:
        (answer,) = answers(lookups, "hdf5", packages=packages)

    assert answer.status == status
    if reason is None:
        assert answer.reasons == ()
    else:
        assert reason in answer.reasons[0]


def test_the_external_source_has_filters_too(tmp_path: Path) -> None:
    """A declared external counts unless all sources leave it out; the C library always
    does.
    """
    outside = record(zlib(external=SITE), is_binary=False)
    path = database(tmp_path, record(hdf5()), outside, record(runtime()), GLIBC)
    packages = {"zlib-ng": external("zlib-ng@2")}

    def status(*sources: dict[str, Any]) -> str:
        with opened(path) as lookups:
            settings = reuse_from(*sources)
            (answer,) = answers(lookups, "hdf5", packages=packages, **settings)
            return answer.status

    exclude = {"exclude": ["zlib-ng"]}
    others = {"type": "external", **exclude}
    assert status(CACHES) == "binary"
    assert status(CACHES, others) == "binary"
    assert status(CACHES | exclude, others) == "unknown"

    include = {"include": ["hdf5", "gcc-runtime"]}
    zlib_alone = {"type": "external", "include": ["zlib-ng"]}
    assert status(CACHES | include, zlib_alone) == "binary"


def test_binaries_from_before_spack_1_0(tmp_path: Path) -> None:
    """The solver does not reuse them; a newer binary is the answer if there is one."""
    old = [old_node("app", "7", "lib"), old_node("lib", "7")]
    with opened(database(tmp_path / "old", *map(record, old), version="7")) as lookups:
        found = covered(lookups, "app", "lib")
        names_them = covered(lookups, "other")
    assert [answer.status for answer in found.specs] == ["near", "near"]
    assert [answer.reasons for answer in found.specs] == [(NOT_BEFORE_1_0,)] * 2
    assert [answer.hash for answer in found.specs] == [hash_of("app"), hash_of("lib")]
    assert [note for note in found.notes if "before Spack 1.0" in note] != []
    assert names_them.specs[0].status == "none"

    newer = record(node("app", hash=hash_of("new")))
    old = [node(name, annotations=OLD) for name in ("app", "lib")]
    with opened(database(tmp_path / "both", newer, *map(record, old))) as lookups:
        found = covered(lookups, "app", "lib")
    assert [answer.status for answer in found.specs] == ["binary", "near"]
    assert found.specs[0].hash == hash_of("new")
    assert [note for note in found.notes if "before Spack 1.0" in note] == []


def test_a_binary_that_is_asked_for_by_its_hash(tmp_path: Path) -> None:
    """Spack installs it whatever its solver would reuse, if mirrors have all of it."""
    parameters = node("lib")["parameters"] | {"dev_path": "/home/me/lib"}
    records = [
        record(node("lib", parameters=parameters)),
        record(node("app", edge("lib", "link"), annotations=OLD)),
        record(node("broken", edge("gone", "link"))),
        record(node("gone"), is_binary=False),
    ]
    with opened(database(tmp_path, *records)) as lookups:
        app, broken, whole = answers(
            lookups,
            f"app/{hash_of('app')[:7]}",
            f"broken/{hash_of('broken')[:7]}",
            f"/{hash_of('app')}",
            **reuse(False),
        )

    assert (app.status, whole.status) == ("binary", "binary")
    assert app.reasons == ()
    assert broken.status == "incomplete"


def test_what_needs_a_binary_from_before_spack_1_0(tmp_path: Path) -> None:
    """A binary that links one is not reused either."""
    old = record(node("lib", annotations=OLD))
    app = record(node("app", edge("lib", "link")))
    with opened(database(tmp_path, app, old)) as lookups:
        (answer,) = answers(lookups, "app")

    assert answer.status == "near"
    assert answer.reasons == (f"it needs lib@1.0, and {NOT_BEFORE_1_0}",)


def test_developed_packages_and_the_compiler_wrapper(tmp_path: Path) -> None:
    """No binary with a `dev_path`, nothing that needs one, and no wrapper is reused."""
    parameters = node("lib")["parameters"] | {"dev_path": "/home/me/lib"}
    records = [
        record(node("lib", parameters=parameters)),
        record(node("app", edge("lib", "run"))),
        record(node("tool", edge("lib", "build"))),
        record(node("compiler-wrapper")),
    ]
    with opened(database(tmp_path, *records)) as lookups:
        found = answers(lookups, "lib", "app", "tool", "compiler-wrapper")

    assert [answer.status for answer in found] == ["near", "near", "binary", "near"]
    assert "dev_path" in found[0].reasons[0]
    assert found[1].reasons[0].startswith("it needs lib@1.0, and ")


@pytest.mark.parametrize(
    ("mixing", "status"),
    [(True, "binary"), (False, "near"), (["lib"], "binary"), (["other"], "near")],
)
def test_mixed_compilers(tmp_path: Path, mixing: Any, status: str) -> None:
    """With `compiler_mixing: false`, one compiler must have compiled a whole
    closure.
    """
    by_gcc = edge("gcc", "build", virtuals=("c",))
    by_llvm = edge("llvm", "build", virtuals=("c", "cxx"))
    records = [
        record(node("app", by_gcc, edge("lib", "link"))),
        record(node("lib", by_llvm)),
        record(node("alone", by_gcc)),
        record(node("gcc", version="13.2")),
        record(node("llvm", version="17.0")),
    ]
    concretizer = {"compiler_mixing": mixing}
    with opened(database(tmp_path, *records)) as lookups:
        app, alone = answers(lookups, "app", "alone", concretizer=concretizer)

    assert (app.status, alone.status) == (status, "binary")
    if status == "near":
        text = "compiler_mixing: false: gcc@13.2 and llvm@17.0 compile its c"
        assert app.reasons == (text,)


URL = "https://m.example/x"


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"url": URL, "exclude_binary": ["hdf5"]}, "unknown"),
        ({"url": URL, "exclude_binary": ["zlib-ng"]}, "unknown"),
        ({"url": URL, "exclude_binary": ["hdf5+hl"]}, "binary"),
        ({"url": URL, "include_binary": ["zlib-ng"]}, "unknown"),
        ({"url": URL}, "binary"),
        (URL, "binary"),
    ],
)
def test_a_mirror_that_leaves_out_binaries(
    mirror: Lookups, entry: Any, status: str
) -> None:
    """If the address of the database's mirror is not known, it may be this one."""
    (answer,) = answers(mirror, "hdf5", mirrors={"m": entry})

    assert answer.status == status
    if status == "unknown":
        assert answer.reasons[0].startswith("the mirror m leaves out ")
        assert "clude_binary" in answer.reasons[0]


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("https://cache.example.org/v1", "unknown"),
        ("https://cache.example.org/v1/", "unknown"),
        ("https://cache.example.org/v2", "binary"),
    ],
)
def test_filters_are_those_of_a_mirror(tmp_path: Path, url: str, status: str) -> None:
    """They do not count for another mirror."""
    (tmp_path / "index.json").write_bytes(index(*complete()))
    (tmp_path / "mirror.json").write_text('{"url": "https://cache.example.org/v1"}')
    build(tmp_path, tmp_path / "x.db", release="main")
    with opened(tmp_path / "x.db") as lookups:
        mirrors = {"site": {"url": url, "exclude_binary": ["hdf5"]}}
        (answer,) = answers(lookups, "hdf5", mirrors=mirrors)

    assert answer.status == status


def test_another_candidate_is_the_answer(tmp_path: Path) -> None:
    """If the first match is incomplete or not reused, another one that is fine is
    named.
    """
    needs_gone = edge("gone", "link")
    needs_external = edge("zlib-ng", "link")
    fine = node("app", hash=hash_of("fine"), version="1.0")
    incomplete = node("app", needs_gone, hash=hash_of("incomplete"), version="2.0")
    external = node("app", needs_external, hash=hash_of("external"), version="3.0")
    records = [
        record(fine),
        record(incomplete),
        record(external),
        record(zlib(external=SITE), is_binary=False),
    ]
    with opened(database(tmp_path, *records)) as lookups:
        found = answers(lookups, "app", "app@2:", "app@2", "app@3")

    assert [(answer.status, answer.hash) for answer in found] == [
        ("binary", hash_of("fine")),
        ("unknown", hash_of("external")),
        ("incomplete", hash_of("incomplete")),
        ("unknown", hash_of("external")),
    ]
    assert found[0].configurations == 3


def test_a_binary_that_the_mirror_has_lost(tmp_path: Path) -> None:
    """What only copies list is not there; the answer says when it was listed last."""
    records_of_day = {"d1": complete(), "d2": complete()[1:]}
    for day, records in records_of_day.items():
        (tmp_path / day).mkdir()
        (tmp_path / day / "index.json").write_bytes(index(*records))
        address = '{"url": "https://cache.example.org/v1.0"}'
        (tmp_path / day / "mirror.json").write_text(address)
    output = tmp_path / "h.db"
    build([tmp_path / "d1"], output, release="main", snapshot="2026-11-01")
    build([output, tmp_path / "d2"], output, release="main", snapshot="2026-11-02")
    with opened(output) as lookups:
        everywhere, later, other = answers(lookups, "hdf5@1.14.6", "hdf5@2:", "zlib-ng")
        (main,) = answers(lookups, "hdf5@1.14.6", release="main")
        (copy,) = answers(lookups, "hdf5@1.14.6", release="main-2026-11-01")

    for answer in (everywhere, main, copy):
        assert answer.status == "near"
        assert answer.is_met is False
        assert "the mirror has lost it, last listed 2026-11-01" in answer.reasons[0]
    assert hash_of("hdf5") not in " ".join(later.reasons)
    assert other.status == "binary"


def test_installed_specs(tmp_path: Path) -> None:
    """They count as installed, even old ones, if the solver may take them from
    there.
    """
    needing = installed(node("app", edge("lib", "link")), explicit=True)
    tree = write_tree(tmp_path / "opt", [needing, installed(node("lib"))])
    build([], tmp_path / "x.db", installations=[("here", tree)])
    with opened(tmp_path / "x.db") as lookups:

        def status(settings: dict[str, Any]) -> str:
            (answer,) = answers(lookups, "app", **settings)
            return answer.status

        assert status(reuse(True)) == "installed"
        assert status(reuse_from(LOCAL)) == "installed"
        assert status(reuse_from(CACHES)) == "unknown"
        assert status(reuse(False)) == "unknown"
