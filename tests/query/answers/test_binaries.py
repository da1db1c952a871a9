"""binaries, retention: all binaries of a file, and which of them some environments
need.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers import binaries
from tests.commands import run
from tests.indexes import edge, hash_of, index, lock_of, node, record

PLACES: list[dict[str, Any]] = [
    {},
    {"release": "develop"},
    {"stack": "ml-linux-x86_64-cpu"},
    {"release": "develop", "stack": "ml-linux-x86_64-cpu"},
]


def test_every_binary_is_there_once(
    samples_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The iterator has what `find` tells of all specs, however few are read at a
    time.
    """
    with spack_cache_db.Cache(samples_file) as cache:
        for at_once, place in ((1, PLACES[0]), *((7, each) for each in PLACES)):
            monkeypatch.setattr(binaries, "CONFIGURATIONS_AT_ONCE", at_once)
            found = cache.find("*", with_hashes=True, **place)
            expected = [
                spack_cache_db.Binary(
                    hash=spec.hash,
                    configuration=answer.configuration,
                    releases=spec.releases,
                    stacks=spec.stacks,
                    first_seen=spec.first_seen,
                    last_seen=spec.last_seen,
                )
                for answer in found
                for spec in answer.specs or ()
            ]
            assert list(cache.binaries(**place)) == expected
            assert list(spack_cache_db.binaries(samples_file, **place)) == expected
    assert len(expected) > 1


def test_questions_between_two_binaries(samples_file: Path) -> None:
    """An iterator that is under way holds up no other question, and is made with its
    arguments.
    """
    with spack_cache_db.Cache(samples_file) as cache:
        names = [
            cache.find(f"/{binary.hash}")[0].package == binary.configuration.package
            for binary in cache.binaries()
        ]
        assert all(names)
    with pytest.raises(spack_cache_db.UnknownNameError):
        spack_cache_db.binaries(samples_file, release="none")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A file of two stacks of one release: apps, and what each needs."""
    records = {"one": ["app", "lib", "tool", "other"], "two": ["app", "other"]}
    nodes: dict[str, dict[str, Any]] = {
        "app": node(
            "app", edge("lib", "link"), edge("tool", "build"), edge("libc", "link")
        ),
        "lib": node("lib", edge("gone", "run")),
        "tool": node("tool"),
        "other": node("other", edge("lib", "link")),
        "libc": node("libc", external={"path": "/usr", "module": None}),
        "gone": node("gone"),
    }
    for stack, pushed in records.items():
        (tmp_path / "in" / "develop" / stack).mkdir(parents=True)
        data = index(
            *(record(each, is_binary=name in pushed) for name, each in nodes.items())
        )
        (tmp_path / "in" / "develop" / stack / "index.json").write_bytes(data)
    build([str(tmp_path / "in")], tmp_path / "out.db")
    return tmp_path / "out.db"


def hashes(*names: str) -> tuple[str, ...]:
    """Return the hashes of packages, sorted."""
    return tuple(sorted(map(hash_of, names)))


def test_what_environments_need(mirror: Path, tmp_path: Path) -> None:
    """Nodes of lockfiles, answers to specs, and what these run with are kept; externals
    are not.
    """
    (tmp_path / "spack.lock").write_bytes(lock_of(node("app"), node("tool")))
    (tmp_path / "mine.txt").write_text("other\nnothing\n")
    (tmp_path / "spack.yaml").write_text("spack: {specs: [], include_concrete: [.]}")

    asked = spack_cache_db.retention
    with pytest.raises(spack_cache_db.ArgumentError, match="no rule keeps a binary"):
        asked(mirror, [])
    for locked in ("spack.lock", "spack.yaml"):
        found = asked(mirror, [tmp_path / locked])
        assert found.keep == hashes("app", "lib", "tool")
        assert (found.prune, found.missing) == (hashes("other"), hashes("gone"))
    listed = asked(mirror, [tmp_path / "mine.txt"], stack="two")
    assert (listed.keep, listed.prune) == (hashes("other"), hashes("app"))
    assert listed.missing == hashes("lib", "gone")
    both = asked(mirror, [tmp_path / "mine.txt", tmp_path / "spack.lock"])
    assert (both.prune, json.loads(json.dumps(both.as_dict()))["prune"]) == ((), [])
    with spack_cache_db.Cache(mirror) as cache:
        assert cache.retention([tmp_path / "spack.lock"]).keep == hashes(
            "app", "lib", "tool"
        )


def test_a_keeplist_is_what_an_environment_needs(mirror: Path, tmp_path: Path) -> None:
    """`cover --keeplist` prints what `retention` keeps, and its status says whether
    that is all.
    """
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "spack.lock").write_bytes(lock_of(node("app"), node("tool")))
    one = run("cover", folder / "spack.lock", mirror, "--keeplist")
    assert one.exit_code == 1
    assert tuple(one.stdout.split()) == hashes("app", "lib", "tool")
    assert f"gone@1.0/{hash_of('gone')[:7]} is needed" in one.stderr

    (folder / "other").mkdir()
    (folder / "other" / "spack.yaml").write_text("spack: {specs: [other]}")
    every = run("cover", folder, mirror, "--keeplist")
    assert tuple(every.stdout.split()) == hashes("app", "lib", "tool", "other")
    narrowed = run(
        "cover", folder / "other" / "spack.yaml", mirror, "--keeplist", "--stack", "two"
    )
    assert tuple(narrowed.stdout.split()) == hashes("other")

    (folder / "other" / "spack.yaml").write_text("spack: [")
    for options in (("--keeplist",), ("--keeplist", "--json")):
        refused = run("cover", folder, mirror, *options)
        assert (refused.exit_code, refused.stdout) == (2, "")


GROUP = """
spack:
  specs: [app, {group: more, specs: [gone]}, {group: missing, specs: [nothing-here]}]
"""
EXTERNAL = """
spack:
  specs: [app, libc]
  packages: {libc: {buildable: false, externals: [{spec: libc@2, prefix: /usr}]}}
"""


@pytest.mark.parametrize(
    ("text", "unmet"),
    [
        ("app\nno-such-package@1\n", ["no-such-package@1"]),
        ("app\n@@@+\n", ["@@@+"]),
        ("app\napp+nothing\n", ["app+nothing"]),
        ("app\napp@99\n", ["app@99"]),
        ("app\napp cflags==-O2 target=native:\n", ["app cflags==-O2 target=native:"]),
        ("app\n/zzzzzz\n", ["/zzzzzz"]),
        ("app\ngone\n", ["gone"]),
        (GROUP, ["gone", "nothing-here"]),
        ("spack: {specs: [app, tool], packages: {tool: {require: '@99'}}}", ["tool"]),
        ("app\n", []),
        (EXTERNAL, []),
    ],
)
def test_a_spec_that_nothing_keeps_ends_the_keeplist(
    mirror: Path, tmp_path: Path, text: str, unmet: list[str]
) -> None:
    """A keep list has a hash or an external for every spec; else it is not printed."""
    path = tmp_path / "environment"
    path.write_text(text)
    found = spack_cache_db.retention(mirror, [path])
    assert list(found.unmet) == unmet
    assert found.as_dict()["unmet"] == found.unmet
    assert found.keep == hashes("app", "lib")

    done = run("cover", path, mirror, "--keeplist")
    assert done.exit_code == 1, done.output
    assert ("no keep list" in done.stderr) == bool(unmet)
    assert all(f"nothing keeps {spec}: " in done.stderr for spec in unmet)
    assert tuple(done.stdout.split()) == (() if unmet else found.keep)

    rest = run("cover", path, mirror, "--keeplist", "--allow-missing")
    assert (rest.exit_code, tuple(rest.stdout.split())) == (0, found.keep)
    assert all(f"nothing keeps {spec}: " in rest.stderr for spec in unmet)


def test_a_lockfile_is_kept_node_by_node(mirror: Path, tmp_path: Path) -> None:
    """Every node of a lockfile is kept by its own hash, not by others of its
    configuration.
    """
    other = node("app", hash=hash_of("another app"))
    path = tmp_path / "spack.lock"
    path.write_bytes(
        lock_of(node("tool"), other, node("libc", external={"path": "/usr"}))
    )
    found = spack_cache_db.retention(mirror, [path])
    assert (found.keep, found.unmet) == (hashes("tool"), (f"app@1.0/{other['hash']}",))

    done = run("cover", path, mirror, "--keeplist")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing keeps app@1.0: alike: " in done.stderr
    included = tmp_path / "spack.yaml"
    included.write_text("spack: {specs: [], include_concrete: [.]}")
    assert spack_cache_db.retention(mirror, [included]).unmet == found.unmet


def test_what_is_unknown_keeps_nothing(samples_file: Path, tmp_path: Path) -> None:
    """A binary that may break a requirement is not kept in place of one that satisfies
    it.
    """
    path = tmp_path / "spack.yaml"
    path.write_text("spack: {specs: [py-mpi4py], packages: {mpi: {require: mpich}}}")
    assert spack_cache_db.retention(samples_file, [path]).unmet == ("py-mpi4py",)

    done = run("cover", path, samples_file, "--keeplist")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing keeps py-mpi4py: unknown: " in done.stderr
    shown = run("cover", path, samples_file, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["unknown"]) == (1, 1)
