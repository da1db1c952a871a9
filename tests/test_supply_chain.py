"""What others wrote is pinned: actions, images, SQLite for browsers, and who may
write.
"""

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WITH_A_TOKEN = {("locks.yml", "propose")}
"""The job that pushes a branch: git needs the token in its configuration."""


def steps_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the steps of a workflow or an action, each with the name of its job."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = content.get("jobs") or {"action": content["runs"]}
    return [(name, step) for name, job in jobs.items() for step in job.get("steps", ())]


@pytest.mark.parametrize(
    "path",
    [*WORKFLOWS, ROOT / "deploy" / "ci" / "action.yml"],
    ids=lambda path: path.name,
)
def test_actions_are_commits(path: Path) -> None:
    """A tag of an action can be moved, a commit cannot; its version is a comment."""
    text = path.read_text(encoding="utf-8")
    for reference in re.findall(r"^ *(?:- )?uses: (?!\./)(.*)$", text, re.MULTILINE):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", reference), (
            reference
        )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_only_one_job_keeps_the_token(path: Path) -> None:
    """Code of the repository and of packages runs without a login of git."""
    for job, step in steps_of(path):
        if "actions/checkout@" in step.get("uses", ""):
            keeps = step.get("with", {}).get("persist-credentials", True)
            assert keeps == ((path.name, job) in WITH_A_TOKEN)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_that_may_write_run_no_code_of_packages(path: Path) -> None:
    """A workflow may read; a job that may write installs and builds nothing."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        if "write" in job.get("permissions", {}).values():
            commands = " ".join(step.get("run", "") for step in job["steps"])
            assert not re.search(r"\b(make|pip|python3?|uv|npm)\b", commands)


def test_locks_are_made_from_wheels_alone() -> None:
    """The code of a source distribution would run while versions are chosen."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (command,) = re.findall(r"^COMPILE := ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert "--only-binary :all:" in command


def test_sqlite_for_browsers_is_the_published_one() -> None:
    """The two files have the checksums of `@sqlite.org/sqlite-wasm`, recorded beside
    the locks.
    """
    lines = (ROOT / "requirements" / "sqlite-wasm.sha256").read_text().splitlines()
    recorded = {}
    for line in lines:
        checksum, name = line.split()
        recorded[name] = checksum

    assert recorded.keys() == {"static-site/sqlite3.js", "static-site/sqlite3.wasm"}
    for name, checksum in recorded.items():
        assert sha256((ROOT / name).read_bytes()).hexdigest() == checksum


def test_the_image_of_the_gitlab_job_has_a_version() -> None:
    """`python:3.13` is another image every month."""
    (job,) = yaml.safe_load(
        (ROOT / "deploy" / "ci" / "gitlab.yml").read_text()
    ).values()
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-\w+", job["image"])
