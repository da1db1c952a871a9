"""Runs a workflow of GitHub here: its jobs in order, each in an empty folder.

The steps with `run` are run by bash as GitHub runs them. The steps with `uses` are
copies between folders; `ACTIONS` has those that are known.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import PATH
from tests.documents import PUBLIC
from tests.paths import ROOT
from tests.processes import completed

EXPRESSIONS = {
    "github.token": "a token",
    "github.repository": "o/r",
    "github.workflow": "a workflow",
    "steps.pages.outputs.page_url": "https://pages.example.org",
}


class StepFailedError(Exception):
    """A step ended with an error, and so did its run."""


@dataclass
class Runner:
    """A place for runs of a workflow: what they leave for each other stays there."""

    folder: Path
    commands: Path
    """A folder of programs that the steps run in place of those of the machine."""
    mirrors: str
    """The URL that replaces the public addresses in a workflow."""
    environment: dict[str, str] = field(default_factory=dict)
    output: str = ""
    """The output of all steps of the last run."""

    @property
    def published(self) -> Path:
        """The folder that GitHub Pages shows."""
        return self.folder / "published"

    def run(self, workflow: Path) -> None:
        """Run all jobs of a workflow in the order of the file.

        Raises:
            StepFailedError: a step failed; the steps and jobs behind it did not run.
        """
        self.output = ""
        text = PUBLIC.sub(self.mirrors, workflow.read_text(encoding="utf-8"))
        content = yaml.safe_load(text)
        # Artifacts are of one run.
        self._empty("artifacts")
        done: set[str] = set()
        for name, job in content["jobs"].items():
            # A job that needs only one other job may name it without a list.
            needs = job.get("needs", [])
            if isinstance(needs, str):
                needs = [needs]
            assert done.issuperset(needs)
            self._run_job(job, content["env"])
            done.add(name)

    def _run_job(self, job: Mapping[str, Any], common: Mapping[str, str]) -> None:
        workspace = self._empty("workspace")
        # The file GITHUB_PATH: a step adds folders to the PATH of later steps with it.
        (self.folder / "path").write_text("")
        for step in job["steps"]:
            if "uses" in step:
                action = step["uses"].partition("@")[0]
                ACTIONS[action](self, workspace, step.get("with", {}))
            else:
                self._run_commands(step["run"], {**common, **step.get("env", {})})

    def _run_commands(self, commands: str, variables: Mapping[str, str]) -> None:
        """Run a step; raises StepFailedError if its status is not 0."""
        # The folder that was added last is searched first.
        added = (self.folder / "path").read_text().split()
        path = [*reversed(added), str(self.commands), PATH]
        environment = {
            "PATH": ":".join(path),
            "HOME": str(self.folder),
            "GITHUB_PATH": str(self.folder / "path"),
            **self.environment,
        }
        for name, value in variables.items():
            environment[name] = _evaluated(value)
        done = completed(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", commands],
            cwd=self.folder / "workspace",
            env=environment,
            stderr=subprocess.STDOUT,
        )
        self.output += done.stdout
        if done.returncode != 0:
            raise StepFailedError(f"{commands}\n{done.stdout}")

    def _empty(self, name: str) -> Path:
        """Return a folder, without what was in it."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def check_out(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Put what steps run into the workspace."""
        shutil.copytree(ROOT / "deploy", workspace / "deploy")

    def set_up(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Do nothing: the Python of the test is there."""

    def upload(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Keep a file of the workspace until the end of the run."""
        artifact = self.folder / "artifacts" / options["name"]
        artifact.mkdir()
        shutil.copy(workspace / options["path"], artifact)

    def download(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Put the files of an artifact into the workspace."""
        artifact = self.folder / "artifacts" / options["name"]
        shutil.copytree(artifact, workspace, dirs_exist_ok=True)

    def upload_pages(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Keep the folder of pages until the end of the run."""
        pages = self.folder / "artifacts" / "github-pages"
        shutil.copytree(workspace / options["path"], pages)

    def deploy_pages(self, workspace: Path, options: Mapping[str, Any]) -> None:
        """Publish the folder of pages, in place of the one before."""
        shutil.rmtree(self.published, ignore_errors=True)
        shutil.copytree(self.folder / "artifacts" / "github-pages", self.published)


ACTIONS: dict[str, Callable[[Runner, Path, Mapping[str, Any]], None]] = {
    "actions/checkout": Runner.check_out,
    "actions/setup-python": Runner.set_up,
    "actions/upload-artifact": Runner.upload,
    "actions/download-artifact": Runner.download,
    "actions/upload-pages-artifact": Runner.upload_pages,
    "actions/deploy-pages": Runner.deploy_pages,
}


def _evaluated(value: str) -> str:
    """Return a text with the values of its `${{ … }}`."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: EXPRESSIONS[found[1]], str(value))


def installed(workspace_bin: str) -> str:
    """Return a script in place of `make venv`: it links the programs of this
    environment.
    """
    return f"mkdir -p .venv && ln -sfn {sys.prefix}/bin {workspace_bin}"


def date_of(variable: str) -> str:
    """Return a script in place of `date`, whose time now is that in a variable."""
    program = shutil.which("date", path=os.defpath)
    return f'exec {program} -d "${variable}" "$@"'
