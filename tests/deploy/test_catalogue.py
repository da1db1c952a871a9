"""The workflow `catalogue.yml` continues the history that is on GitHub, or stops."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import gh
from tests.deploy.tools import PATH, write_command
from tests.deploy.workflows import Runner, StepFailedError, date_of, installed
from tests.indexes import index, node, record
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed
from tests.sources.fetch.mirrors import below, layout_3
from tests.sources.fetch.server import Site, missing, serve

pytestmark = pytest.mark.slow

WORKFLOW = ROOT / ".github" / "workflows" / "catalogue.yml"
SCRIPT = ROOT / "deploy" / "history.sh"
MANIFEST = {"develop": [{"label": "e4s", "url": "s3://spack-binaries/develop/e4s"}]}
TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)


class Nights:
    """Runs of the workflow, with the public cache and GitHub in folders."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.site = site
        self.runs = 0
        self.release = folder / "release"
        self.release.mkdir()
        self.runner = Runner(folder / "runs", folder / "commands", site.url)
        self.runner.environment["RELEASE_FOLDER"] = str(self.release)
        self.runner.commands.mkdir()
        commands = {
            "gh": f'exec {sys.executable} {gh.__file__} "$@"',
            "date": date_of("NIGHT"),
            "make": installed(".venv/bin"),
        }
        for name, text in commands.items():
            write_command(self.runner.commands, name, text)

    def serve(self, *packages: str) -> None:
        """Let the public cache have binaries of these packages, and no others."""
        records = [record(node(name)) for name in packages]
        files = below("develop/e4s", layout_3(index(*records)))
        files["cache_spack_io_index.json"] = json.dumps(MANIFEST).encode()
        self.site.serve(files)

    def run(self, day: object) -> str:
        """Run the workflow in a night, and return the output of its steps."""
        self.runs += 1
        self.runner.environment["NIGHT"] = f"{day} 03:{40 + self.runs}:00 UTC"
        self.runner.run(WORKFLOW)
        return self.runner.output

    def fail(self, fault: str) -> None:
        """Let something fail from now on, or nothing (`""`)."""
        (self.release / ".fault").write_text(fault)

    def assets(self) -> dict[str, bytes]:
        """Return the assets of the release by `<state>+<name>`."""
        return {path.name: path.read_bytes() for path in self.release.glob("*+*")}

    def page(self) -> dict[str, bytes]:
        """Return the files that GitHub Pages shows, by their paths."""
        folder = self.runner.published
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    def published(self) -> Path:
        """Return the database that the page reads."""
        name: str = json.loads(self.page()["catalogue.json"])["database"]
        return self.runner.published / name


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    """A repository without a history, and a cache of two packages."""
    needed("jq", "jq")
    with serve() as site:
        made = Nights(tmp_path, site)
        made.serve("hdf5", "zlib")
        yield made


def contents(database: Path) -> dict[str, set[str]]:
    """Return the packages of each release of a database."""
    found: dict[str, set[str]] = {}
    connection = sqlite3.connect(database)
    query = "SELECT release, package FROM build_listings"
    for release, package in connection.execute(query):
        found.setdefault(release, set()).add(package)
    connection.close()
    return found


def test_each_night_continues_the_history(nights: Nights) -> None:
    """The first night begins a history and says so; the second has both nights, on the
    page and among the assets, and the first one is not lost.
    """
    said = nights.run(YESTERDAY)
    assert "There is no history yet: this run begins one" in said
    first = nights.assets()
    assert contents(nights.published()) == {
        "develop": {"hdf5", "zlib"},
        f"develop-{YESTERDAY}": {"hdf5", "zlib"},
    }

    nights.serve("zlib", "cmake")
    said = nights.run(TODAY)
    (name,) = first
    assert f"The history goes on from {name.partition('+')[2]}" in said
    assert contents(nights.published()) == {
        "develop": {"zlib", "cmake"},
        f"develop-{TODAY}": {"zlib", "cmake"},
        f"develop-{YESTERDAY}": {"hdf5", "zlib"},
    }
    second = nights.assets()
    assert second.items() > first.items()
    newest = max(second)
    assert second[newest] == nights.published().read_bytes()
    assert {"index.html", "package/cmake.html"} <= nights.page().keys()


def test_a_night_that_cannot_read_stops(nights: Nights) -> None:
    """Without the history, or without the whole public cache, nothing is published and
    nothing begins anew; the next night goes on.
    """
    nights.run(YESTERDAY)
    assets = nights.assets()
    page = nights.page()
    nights.serve("zlib", "cmake")
    for fault in ("api", "download", "cut", "cache"):
        step = "deploy/history.sh download"
        if fault == "cache":
            step = "spack-cache-db fetch"
            of_stack = "/develop/e4s"
            manifest = f"{of_stack}/v3/manifests/index/index.manifest.json"
            nights.site.always[manifest] = missing
            nights.site.always[f"{of_stack}/build_cache/index.json"] = missing
        nights.fail(fault)
        with pytest.raises(StepFailedError, match=f"^{step}"):
            nights.run(TODAY)
        assert nights.assets() == assets, fault
        assert nights.page() == page, fault

    nights.fail("")
    nights.site.always.clear()
    nights.run(TODAY)
    assert contents(nights.published()).keys() > {f"develop-{YESTERDAY}"}


def test_an_upload_that_is_cut_off_loses_nothing(nights: Nights) -> None:
    """The older history stays, the page is not published, and the next night continues
    the last whole history and removes the part.
    """
    nights.run(YESTERDAY)
    assets = nights.assets()
    page = nights.page()
    nights.serve("zlib", "cmake")
    nights.fail("upload")
    with pytest.raises(StepFailedError, match="502"):
        nights.run(TODAY)
    states = sorted(name.partition("+")[0] for name in nights.assets())
    assert states == ["starter", "uploaded"]
    assert nights.assets().items() > assets.items()
    assert nights.page() == page

    nights.fail("")
    nights.run(TODAY)
    assert len(contents(nights.published())) == 3
    assert {name.partition("+")[0] for name in nights.assets()} == {"uploaded"}


def history(nights: Nights, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the script of the workflow."""
    folders = {"RELEASE_FOLDER": str(nights.release), "HOME": str(nights.release)}
    path = f"{nights.runner.commands}:{PATH}"
    login = {"GH_TOKEN": "a token", "GH_REPO": "o/r"}
    night = {"NIGHT": nights.runner.environment["NIGHT"]}
    return completed([SCRIPT, *words], env={"PATH": path, **folders, **login, **night})


def test_the_newest_three_are_kept(nights: Nights, tmp_path: Path) -> None:
    """Older histories are removed; a night without news adds none."""
    file = tmp_path / "a.db"
    for number in range(5):
        nights.runner.environment["NIGHT"] = f"{TODAY} 03:0{number}:00 UTC"
        file.write_text(f"night {number}")
        for _ in range(2):
            assert history(nights, "upload", file).returncode == 0
        kept = sorted(nights.assets().items())
        expected = [f"night {at}".encode() for at in range(number + 1)]
        assert [data for _, data in kept] == expected[-3:]
    assert history(nights, "download", tmp_path / "to").returncode == 0

    (downloaded,) = (tmp_path / "to").iterdir()
    assert downloaded.read_text() == "night 4"


@pytest.mark.parametrize("fault", ["api", "upload"])
def test_nothing_is_removed_before_the_new_one_is_whole(
    nights: Nights, tmp_path: Path, fault: str
) -> None:
    """Whatever fails, the histories that were there are still there."""
    nights.runner.environment["NIGHT"] = f"{TODAY} 03:00:00 UTC"
    file = tmp_path / "a.db"
    file.write_text("the first night")

    assert history(nights, "upload", file).returncode == 0

    before = nights.assets()
    file.write_text("the second night")
    nights.fail(fault)

    assert history(nights, "upload", file).returncode != 0
    assert nights.assets().items() >= before.items()


def _workflow() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return content


def test_it_is_off_until_somebody_enables_it() -> None:
    """The first job asks for a variable of the repository, and all others need it."""
    first, *others = _workflow()["jobs"].values()
    assert first["if"] == "vars.CATALOGUE == 'true'"
    assert [job["needs"] for job in others] == ["build", "keep"]
    assert all("if" not in job for job in others)


def test_runs_wait_for_each_other() -> None:
    """Two runs at a time would continue one history twice, and one would be lost."""
    assert _workflow()["concurrency"]["cancel-in-progress"] is False


def test_each_job_may_write_only_what_it_publishes() -> None:
    """Packages and the cache are read by a job that can write nothing."""
    permissions = {
        name: job.get("permissions") for name, job in _workflow()["jobs"].items()
    }
    assert permissions == {
        "build": None,
        "keep": {"contents": "write"},
        "publish": {"pages": "write", "id-token": "write"},
    }

    # The script in the job that may write runs no code of packages either.
    script = SCRIPT.read_text(encoding="utf-8")
    assert not re.search(r"\b(make|pip|python3?|uv|npm)\b", script)
