"""What was lost from one database to the next: `cover --baseline`, `diff --databases`,
and CI.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

import spack_cache_db
from spack_cache_db.assembly.builds import build
from tests.commands import run
from tests.indexes import edge, index, lock_of, node, record
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

CI = ROOT / "deploy" / "ci"
PAIR = ("old.db", "new.db")
APP = node("app", edge("lib", "build"))


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two databases, between which the mirror lost lib and gained tool.

    One release is in the old database alone, and another one in the new database.
    """
    for name, binaries, other in (
        ("old", "app lib", "v1.0"),
        ("new", "app tool", "v1.1"),
    ):
        nodes = {"app": APP, "lib": node("lib"), "tool": node("tool")}
        records = (
            record(each, is_binary=key in binaries) for key, each in nodes.items()
        )
        for release, data in (
            ("develop", index(*records)),
            (other, index(record(node("x")))),
        ):
            path = tmp_path / name / release / "e4s" / "index.json"
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
        build([tmp_path / name], tmp_path / f"{name}.db")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs.txt").write_text("app\nlib@1\nnothing@1\n")
    return tmp_path


def cases(path: Path) -> list[tuple[str, str, str, str]]:
    """Return group, name, result and message of each case of a report."""
    root = ET.fromstring(path.read_bytes())
    found = []
    for case in root.iter("testcase"):
        result, message = next(
            ((element.tag, element.attrib["message"]) for element in case), ("", "")
        )
        found.append((case.attrib["classname"], case.attrib["name"], result, message))
    for suite in (root, *root):
        for tag in ("failure", "skipped"):
            count = sum(result == tag for _, _, result, _ in found)
            assert suite.attrib[f"{tag}s" if tag == "failure" else tag] == str(count)
        assert suite.attrib["tests"] == str(len(found))
    return found


def test_only_lost_binaries_fail(nights: Path) -> None:
    """With a baseline, a spec that never had a binary is reported, and only a lost one
    fails.
    """
    gate = (
        "cover",
        "specs.txt",
        "new.db",
        "--release",
        "develop",
        "--baseline",
        "old.db",
    )
    result = run(*gate, "--junit", "r.xml")

    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("1 of 3 specs has a binary; 1 lost since old.db\n")
    line = next(
        line for line in result.stdout.splitlines() if line.startswith("lost  ")
    )
    assert "was lib@1.0 none debian12 x86_64_v3 /" in line
    assert line.endswith(
        "lib: known as a dependency, no binary of it is in this database"
    )
    assert [case[1:3] for case in cases(nights / "r.xml")] == [
        ("app", ""),
        ("lib@1", "failure"),
        ("nothing@1", "skipped"),
    ]

    # JSON and Python say the same.
    found = json.loads(run(*gate, "--json", "--only", "lost").stdout)
    assert found["lost"] == 1
    assert [covered["spec"] for covered in found["specs"]] == ["lib@1"]
    assert (
        spack_cache_db.cover("new.db", ["lib"], baseline="old.db").counted("lost") == 1
    )

    # Without the lost spec it passes, though one never had a binary.
    (nights / "specs.txt").write_text("app\nnothing@1\n")
    passed = run(*gate)
    assert passed.exit_code == 0
    assert passed.stdout.splitlines()[0][-19:] == "0 lost since old.db"

    # Without a baseline, what has no binary fails.
    assert run(*gate[:3], "--junit", "r.xml").exit_code == 1
    assert [case[2] for case in cases(nights / "r.xml")] == ["", "failure"]

    # A release that the baseline does not have is an error.
    wrong = run(*gate[:3], "--release", "v1.1", "--baseline", "old.db")
    assert wrong.exit_code == 2
    assert "old.db: no release is called 'v1.1'" in wrong.stderr


def test_snapshots_do_not_hide_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A binary that only a snapshot of its mirror still lists is lost, and `--install`
    says so.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mirrors" / "develop" / "e4s"
    folder.mkdir(parents=True)
    (folder / "mirror.json").write_text('{"url": "https://cache.example.org"}')
    for day, names in (("2026-11-25", "app lib"), ("2026-11-26", "app")):
        (folder / "index.json").write_bytes(
            index(*(record(node(name)) for name in names.split()))
        )
        file = f"{day}.db"
        older = ["2026-11-25.db"] if day != "2026-11-25" else []
        build([*older, "mirrors"], file, snapshot=day)
    (tmp_path / "specs.txt").write_text("app\nlib\n")
    (tmp_path / "spack.lock").write_bytes(lock_of(node("lib")))

    for environment in ("specs.txt", "spack.lock"):
        result = run("cover", environment, file, "--baseline", "2026-11-25.db")
        assert result.exit_code == 1
        assert "; 1 lost since" in result.stdout

    lost = run("find", "lib", file, "--install")
    assert (lost.exit_code, lost.stdout) == (1, "")
    assert "its mirror has lost its only binary, last listed 2026-11-25" in lost.stderr
    assert "lost" not in run("find", "app", file, "--install").output


def test_lost_nodes_of_lockfiles_in_a_folder(nights: Path) -> None:
    """A folder of environments and its lockfiles are compared in the same way."""
    for name, nodes in (("a", (APP, node("lib"))), ("b", (node("tool"), node("z")))):
        (nights / "envs" / name).mkdir(parents=True)
        (nights / "envs" / name / "spack.lock").write_bytes(lock_of(*nodes))
    (nights / "envs" / "c").mkdir()
    (nights / "envs" / "c" / "spack.yaml").write_text("spack: [")
    gate = ("cover", "envs", "new.db", "--baseline", "old.db", "--junit", "r.xml")
    found = json.loads(run(*gate, "--json").stdout)

    assert found["lost"] == found["environments"][0]["lost"] == 1
    outcomes = [(case[2], case[3][:5]) for case in cases(nights / "r.xml")]
    assert outcomes == [
        ("", ""),
        ("failure", "lost:"),
        ("", ""),
        ("skipped", "missi"),
        ("failure", "envs/"),
    ]

    (nights / "envs" / "c" / "spack.yaml").unlink()
    assert run(*gate).exit_code == 1
    assert run("cover", "envs/b", *gate[2:]).exit_code == 0
    # No machine was named.
    one = run("cover", "envs/a/spack.lock", *gate[2:])
    assert "machine" not in one.stderr


def test_databases_are_compared_release_by_release(nights: Path) -> None:
    """Releases that both have are compared as `diff` compares two; others are named."""
    result = run("diff", "--databases", *PAIR, "--junit", "r.xml")
    assert result.exit_code == 1, result.output

    first, *_ = lines = result.stdout.splitlines()
    assert first.startswith(
        "From develop of old.db to develop of new.db, 1 binary was removed, 1 added"
    )
    assert lines[-2:] == [
        "The release v1.1 is only in new.db.",
        "The release v1.0 is only in old.db.",
    ]

    outcomes = [(case[1].split("@")[0], case[2]) for case in cases(nights / "r.xml")]
    assert outcomes == [
        ("lib", "failure"),
        ("tool", ""),
        ("the release v1.1", ""),
        ("the release v1.0", "failure"),
    ]

    found = json.loads(run("diff", "--databases", *PAIR, "--json").stdout)
    assert (found["releases_added"], found["releases_removed"]) == (["v1.1"], ["v1.0"])

    rows = run("diff", "--databases", *PAIR, "--csv").stdout.splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["develop", "removed", "lib"],
        ["develop", "added", "tool"],
    ]

    one = run("diff", "--databases", *PAIR, "--release", "develop", "--package", "app")
    assert (one.exit_code, one.stdout.count("\n")) == (0, 1)
    assert "develop of new.db" in run("diff", "--databases", *PAIR, "--markdown").stdout


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--package", "lib"), 1, ""),
        (("--package", "nope"), 2, "nope: no package has this name"),
        (("--release", "nope"), 2, "no release is called 'nope'"),
        (("--release", "v1.0"), 1, ""),
        (("third.db",), 2, "without FILE"),
        (("--junit", "new.db"), 2, "new.db: cannot be a report; --junit takes"),
        (("--junit", "no/r.xml"), 2, "no/r.xml: cannot be written: No such file"),
        (("--junit", "x" * 300 + ".xml"), 2, "cannot be written: File name too long"),
        (("--junit", "/dev/null"), 2, "/dev/null: cannot be a report"),
    ],
)
def test_answers_and_refusals_of_the_gate(
    nights: Path, options: tuple[str, ...], status: int, message: str
) -> None:
    """A name that one database has is compared; a report replaces nothing but a
    report.
    """
    before = (nights / "new.db").read_bytes()
    result = run("diff", "--databases", *PAIR, *options)

    assert result.exit_code == status, result.output
    assert message in result.stderr, result.output
    assert (nights / "new.db").read_bytes() == before
    assert not list(nights.glob(".*"))


def test_a_report_is_xml_whatever_it_names(nights: Path) -> None:
    """Markup and control characters of an environment are escaped."""
    (nights / "specs.txt").write_text("app a='\"<&>]]>\\x1b\x85\ufffe'\n")
    run("cover", "specs.txt", "new.db", "--junit", "r.xml")
    assert "<&>]]>" in cases(nights / "r.xml")[0][1]


def steps_of_github(values: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the script and the variables of the action, given its inputs."""
    action = yaml.safe_load((CI / "action.yml").read_text(encoding="utf-8"))
    given = {
        name: each.get("default", "") for name, each in action["inputs"].items()
    } | values
    script = ""
    variables = {}
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        script += step["run"]
        for name, text in step.get("env", {}).items():
            variables[name] = given[
                text.removeprefix("${{ inputs.").removesuffix(" }}")
            ]
    return script, variables


def steps_of_gitlab(values: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the script and the variables of the job, given some of its variables."""
    (job,) = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8")).values()
    options = "".join(
        f"--{name} {values[name]} " for name in ("release", "host") if name in values
    )
    known = {
        name.upper(): text
        for name, text in values.items()
        if name.upper() in job["variables"]
    }
    return "\n".join(job["script"]), job["variables"] | known | {"OPTIONS": options}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [steps_of_github, steps_of_gitlab])
def test_jobs_of_hosts_fail_only_for_lost_binaries(steps: Any, nights: Path) -> None:
    """The steps of the action and of the job, run as written, pass and fail as `cover`
    does.
    """
    needed("curl", "curl")
    work = nights / "work"
    work.mkdir()

    def status(environment: str, **values: str) -> int:
        (work / "my specs.txt").write_text(environment)
        script, variables = steps(
            {"environment": "my specs.txt", "release": "develop", **values}
        )
        host = {
            "RUNNER_TEMP": str(work),
            "GITHUB_STEP_SUMMARY": str(work / "summary.md"),
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = completed(bash, env={"PATH": path, **host, **variables}, cwd=work)
        assert done.returncode in (0, 1), done.stderr
        assert cases(work / "cover.xml")
        return done.returncode

    with served(nights) as address:
        old, new = (f"{address}/{name}" for name in PAIR)
        assert status("app\n", database="../new.db") == 0
        assert status("app\nlib\n", database=new, host="zen3") == 1
        assert status("app\nlib\n", database=new, baseline=old) == 1
        assert status("app\nnothing@1\n", database=new, baseline="../old.db") == 0
    if steps is steps_of_github:
        assert "| lost | `` lib `` |" in (work / "summary.md").read_text()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("steps", [steps_of_github, steps_of_gitlab])
@pytest.mark.parametrize(
    "values",
    [
        {"database": "file:///etc/passwd"},
        {"database": "../new.db", "baseline": "ftp://host/old.db"},
        {"database": "../new.db", "environment": "--help"},
        {"database": "--version"},
    ],
    ids=str,
)
def test_inputs_of_jobs_are_neither_options_nor_local_files(
    steps: Any, values: dict[str, str], nights: Path
) -> None:
    """An input that begins with a dash is a path, and `file://` is no address."""
    needed("curl", "curl")
    work = nights / "inputs"
    work.mkdir(exist_ok=True)
    script, variables = steps({"environment": "specs.txt", **values})
    host = {"RUNNER_TEMP": str(work), "GITHUB_STEP_SUMMARY": str(work / "summary.md")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = completed(bash, env={"PATH": path, **host, **variables}, cwd=work)

    assert done.returncode != 0
    assert "Usage:" not in done.stdout
    assert "Error" in done.stderr or "is not an address" in done.stderr


def test_hook_checks_environments(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook of pre-commit calls `cover` with the arguments that it has, or with
    others.
    """
    (hook,) = yaml.safe_load(
        (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    )
    program, *words = hook["entry"].split()

    assert program == "spack-cache-db"
    assert hook["pass_filenames"] is False

    monkeypatch.setenv("SPACK_CACHE_DB", "new.db")
    (nights / "spack.yaml").write_text("spack: {specs: [app]}")
    assert run(*words, *hook["args"]).exit_code == 0

    (nights / "spack.yaml").write_text("spack: {specs: [lib]}")
    assert run(*words, *hook["args"]).exit_code == 1
    assert run(*words, "specs.txt", "--baseline", "old.db").exit_code == 1
