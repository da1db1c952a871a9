"""`find --install` prints commands that work, or says what is missing, with its exit
status.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db import install_plan
from spack_cache_db.assembly.builds import build
from tests.commands import run
from tests.indexes import edge, hash_of, index, node, record

MPI = {"path": "/opt/site/openmpi", "module": None}
NODES = {
    "app": node("app", edge("lib", "link"), edge("tool", "build"), edge("mpi", "link")),
    "lib": node("lib", edge("runtime", "run")),
    "runtime": node("runtime"),
    "tool": node("tool"),
    "mpi": node("mpi", external=MPI),
}


def write_mirror(folder: Path, release: str, *names: str, **address: Any) -> None:
    """Write the index of a mirror that lists some of the binaries."""
    place = folder / release / "root"
    place.mkdir(parents=True, exist_ok=True)
    records = [record(spec, is_binary=name in names) for name, spec in NODES.items()]
    (place / "index.json").write_bytes(index(*records))
    facts = {"url": f"https://{release}.example.org", **address}
    (place / "mirror.json").write_text(json.dumps(facts))


def printed(file: Path, *options: str) -> tuple[int, list[str]]:
    """Return the exit status of `find app --install`, and the lines after the table."""
    result = run("find", "app", file, "--install", *options)
    lines = result.stdout.splitlines()
    starts = [number for number, line in enumerate(lines) if line == ""]
    return result.exit_code, lines[starts[-1] + 1 :]


def commands_of(lines: list[str]) -> list[str]:
    """Return the lines without comments."""
    return [line for line in lines if not line.startswith("#")]


def test_a_complete_unsigned_mirror(tmp_path: Path) -> None:
    """The mirror is added as unsigned, and the external is named."""
    write_mirror(tmp_path / "in", "team", "app", "lib", "runtime", signed=False)
    build([tmp_path / "in"], tmp_path / "x.db")
    status, lines = printed(tmp_path / "x.db")

    assert status == 0
    assert commands_of(lines) == [
        "spack mirror add --unsigned team https://team.example.org",
        f"spack install --cache-only app/{hash_of('app')[:7]}",
    ]
    assert "# needs mpi@1.0 at /opt/site/openmpi, provided by the system" in lines


def test_two_mirrors_that_share_a_closure(tmp_path: Path) -> None:
    """Both are added, that of the binary first; each alone is not enough."""
    write_mirror(tmp_path / "in", "a", "lib", signed=True)
    write_mirror(tmp_path / "in", "b", "app", "runtime", signed=False)
    build([tmp_path / "in"], tmp_path / "x.db")
    status, lines = printed(tmp_path / "x.db")

    assert status == 0
    assert commands_of(lines) == [
        "spack mirror add --unsigned b https://b.example.org",
        "spack mirror add a https://a.example.org",
        "yes | spack buildcache keys --install --trust",
        f"spack install --cache-only app/{hash_of('app')[:7]}",
    ]
    status, lines = printed(tmp_path / "x.db", "--release", "b")
    assert status == 1
    assert "# 1 of 3 dependencies has no binary here" in lines


def test_a_closure_with_a_missing_binary(tmp_path: Path) -> None:
    """Spack may build it: the packages are named, and the exit status is 1."""
    write_mirror(tmp_path / "in", "team", "app", "tool", signed=True)
    build([tmp_path / "in"], tmp_path / "x.db")
    status, lines = printed(tmp_path / "x.db")

    assert status == 1
    assert lines[-2:] == [
        "# builds lib and runtime from source",
        f"spack install app/{hash_of('app')[:7]}",
    ]
    assert "# 2 of 3 dependencies have no binary here" in lines


def test_a_binary_that_only_snapshots_list(tmp_path: Path) -> None:
    """Nothing can be pasted: the mirror has lost it."""
    write_mirror(tmp_path / "1", "main", "app", "lib", "runtime", signed=True)
    write_mirror(tmp_path / "2", "main", "lib", "runtime", signed=True)
    build([tmp_path / "1"], tmp_path / "x.db", snapshot="2026-11-01")
    build([tmp_path / "x.db", tmp_path / "2"], tmp_path / "x.db", snapshot="2026-11-02")
    result = run(
        "find", "app", tmp_path / "x.db", "--install", "--release", "main-2026-11-01"
    )

    assert result.exit_code == 1
    assert "spack " not in result.stdout
    assert "last listed on 2026-11-01" in result.stdout


def test_a_copy_installs_from_the_mirror_that_it_copies(tmp_path: Path) -> None:
    """The name of a snapshot that a build made is not the name of a mirror."""
    write_mirror(tmp_path / "1", "main", "app", "lib", "runtime", signed=True)
    build([tmp_path / "1"], tmp_path / "x.db", snapshot="2026-11-01")
    status, lines = printed(tmp_path / "x.db", "--release", "main-2026-11-01")

    assert status == 0
    assert commands_of(lines)[0] == "spack mirror add main https://main.example.org"


@pytest.mark.parametrize(
    ("names", "complete"), [(("lib", "runtime"), True), (("lib",), False)]
)
def test_json_and_python_have_the_same_plan(
    tmp_path: Path, names: tuple[str, ...], complete: bool
) -> None:
    """`--json` and `install_plan` return the same facts, with the same exit status."""
    write_mirror(tmp_path / "in", "team", "app", *names, signed=True)
    build([tmp_path / "in"], tmp_path / "x.db")
    result = run("find", "app", tmp_path / "x.db", "--install", "--json")
    plan = install_plan(tmp_path / "x.db", "app")
    found = json.loads(result.stdout)

    assert plan is not None
    assert found["install"] == json.loads(json.dumps(plan.as_dict()))
    assert (result.exit_code, plan.complete) == (int(not complete), complete)
    assert [external.package for external in plan.externals] == ["mpi"]
    assert [spec.package for spec in plan.missing] == ([] if complete else ["runtime"])
    assert install_plan(tmp_path / "x.db", "nothing_like_it") is None
