"""query.environment_commands: the mirrors and commands for all binaries of an
environment.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover, cover_environment
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.open.lookups import Lookups, opened
from tests.indexes import edge, hash_of, index, lock_of, node, record
from tests.trees import installed, write_tree

NODES = {
    "app": node("app", edge("lib", "link")),
    "lib": node("lib"),
    "other": node("other", edge("base", "run")),
    "base": node("base"),
}


def made(folder: Path, mirrors: Mapping[str, list[str]], **more: Any) -> Path:
    """Return a database of mirrors, each with binaries of the named specs."""
    sources = []
    for name, having in mirrors.items():
        source = folder / name
        source.mkdir(parents=True)
        records = [record(NODES[spec], is_binary=spec in having) for spec in NODES]
        (source / "index.json").write_bytes(index(*records))
        (source / "mirror.json").write_text(
            json.dumps({"url": f"https://{name}.example"})
        )
        build(source, folder / f"{name}.db", release=name)
        sources.append(folder / f"{name}.db")
    build(sources, folder / "x.db", **more)
    return folder / "x.db"


def commands(lookups: Lookups, *specs: str) -> list[str]:
    """Return the lines of the commands for specs."""
    found = environment_commands(lookups, cover(lookups.conn, specs))
    return [] if found is None else list(found.commands)


def added(lines: list[str]) -> list[str]:
    """Return the names of the mirrors that commands add."""
    names = [line.split() for line in lines if line.startswith("spack mirror add")]
    return [words[-2] for words in names]


def test_the_fewest_mirrors_of_all_binaries(tmp_path: Path) -> None:
    """One mirror is enough if it has everything; others are added if they are
    needed.
    """
    mirrors = {"a": ["app", "lib"], "b": ["app", "lib", "other", "base"], "c": ["base"]}
    with opened(made(tmp_path / "one", mirrors)) as lookups:
        assert added(commands(lookups, "app", "other")) == ["b"]
        assert added(commands(lookups, "app")) == ["a"]

    with opened(
        made(tmp_path / "two", {"a": ["app", "base"], "b": ["lib", "other"]})
    ) as lookups:
        lines = commands(lookups, "app", "other")
    assert added(lines) == ["a", "b"]

    short = [f"{name}/{hash_of(name)[:7]}" for name in ("app", "other")]
    assert lines[-1] == f"spack install --cache-only {' '.join(short)}"


@pytest.mark.parametrize("release", ["main", "main-2026-11-01"])
def test_the_fewest_mirrors_of_a_release(tmp_path: Path, release: str) -> None:
    """A copy of a release has the mirrors of this release, and as few are added."""
    for stack, having in {
        "a": ["app", "lib", "other"],
        "b": ["app", "lib", "base"],
    }.items():
        folder = tmp_path / "in" / "main" / stack
        folder.mkdir(parents=True)
        records = [record(NODES[spec], is_binary=spec in having) for spec in NODES]
        (folder / "index.json").write_bytes(index(*records))
        url = {"url": f"https://{stack}.example"}
        (folder / "mirror.json").write_text(json.dumps(url))
    build(tmp_path / "in", tmp_path / "x.db", snapshot="2026-11-01")

    with opened(tmp_path / "x.db") as lookups:
        found = cover(lookups.conn, ["app", "base"], release=release)
        install = environment_commands(lookups, found)

    assert install is not None
    urls = [line.split()[-1] for line in install.commands if "mirror add" in line]
    assert urls == ["https://b.example"]


def test_what_is_incomplete_is_left_out(tmp_path: Path) -> None:
    """The commands install only what counts as available."""
    with opened(made(tmp_path, {"a": ["app", "other", "base"]})) as lookups:
        assert commands(lookups, "app") == []
        assert commands(lookups, "app", "other")[-1].endswith(
            f" other/{hash_of('other')[:7]}"
        )


def test_the_roots_of_a_lockfile(tmp_path: Path) -> None:
    """Spack adds the dependencies by itself."""
    with opened(made(tmp_path, {"a": list(NODES)})) as lookups:
        locked = read_environment(lock_of(NODES["app"], NODES["lib"]), "spack.lock")
        found = environment_commands(lookups, cover_environment(lookups, locked))
    assert found is not None
    assert found.commands[-1] == f"spack install --cache-only app/{hash_of('app')[:7]}"


def test_installed_specs_are_loaded(tmp_path: Path) -> None:
    """The commands load what an installation has, and install the rest."""
    tree = write_tree(tmp_path / "opt", [installed(node("tool"), explicit=True)])
    path = made(tmp_path, {"a": list(NODES)}, installations=[("here", tree)])
    with opened(path) as lookups:
        lines = commands(lookups, "tool", "app")

    assert added(lines) == ["a"]
    assert lines[-1] == f"spack load tool/{hash_of('tool')[:7]}"


def test_nothing_to_install(tmp_path: Path) -> None:
    """Without an available spec there are no commands."""
    with opened(made(tmp_path, {"a": list(NODES)})) as lookups:
        assert environment_commands(lookups, cover(lookups.conn, ["app@9"])) is None


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.lists(st.sampled_from(sorted(NODES)), unique=True),
        min_size=1,
    )
)
def test_the_mirrors_have_all_that_counts(
    tmp_path_factory: pytest.TempPathFactory, mirrors: dict[str, list[str]]
) -> None:
    """A spec is a binary exactly if its closure is in the mirrors; the commands add
    these.
    """
    folder = tmp_path_factory.mktemp("mirrors")
    needs = {"app": {"app", "lib"}, "other": {"other", "base"}}
    everywhere = {name for having in mirrors.values() for name in having}
    with opened(made(folder, mirrors)) as lookups:
        found = cover(lookups.conn, list(needs))
        lines = commands(lookups, *needs)

    wanted: set[str] = set()
    for answer, (name, below) in zip(found.specs, needs.items(), strict=True):
        if name not in everywhere:
            assert answer.status in ("near", "none")
            continue
        assert answer.status == ("binary" if below <= everywhere else "incomplete")
        lacking = {text.partition("@")[0] for text in answer.missing}
        assert lacking == below - everywhere
        wanted |= below if below <= everywhere else set()
    names = added(lines)
    assert {name for mirror in names for name in mirrors[mirror]} >= wanted
    # No mirror is superfluous.
    for mirror in names:
        others = {name for other in names if other != mirror for name in mirrors[other]}
        assert not wanted <= others
