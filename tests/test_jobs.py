"""The jobs for CI in the documents: which version they install, and how a history goes
on.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from spack_cache_db import __version__
from tests.documents import fences
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

JOBS = [
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "environments.md",
    *ROOT.glob("deploy/ci/*"),
]
PUBLISHED = {
    "/catalogue.json": json.dumps({"database": "spack-cache-0123.db"}).encode(),
    "/spack-cache-0123.db": b"the published history",
}


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_jobs_install_a_fixed_version(path: Path) -> None:
    """A job that installs whatever is newest would meet another schema one night."""
    text = path.read_text(encoding="utf-8")
    references = re.findall(
        r"OWNER/spack-cache-db(?:/deploy/ci)?[@/](\w[\w.]*)|VERSION: (\S+)|rev: (\S+)",
        text,
    )
    versions = {"".join(groups) for groups in references} - {"deploy"}

    assert versions == {f"v{__version__}"}
    # Without a version behind it, pip installs the newest commit.
    for target in re.findall(r"git\+(\S+?)\"", text):
        assert target in ("$REPOSITORY@$VERSION", "$REPOSITORY")
        assert "@" in target or re.search(r"REPOSITORY: \S+@v", text)


def nightly_jobs() -> Iterator[tuple[str, str]]:
    """Yield the two jobs of the tutorial: their hosts, and the step that gets the
    history.
    """
    for fence in fences(ROOT / "docs" / "tutorial.md"):
        if fence.language != "yaml":
            continue
        job: dict[str, Any] = yaml.safe_load(fence.text)
        if "pages" in job:
            steps = job["pages"]["script"]
            host = "GitLab"
        else:
            steps = [step.get("run", "") for step in job["jobs"]["publish"]["steps"]]
            host = "GitHub"
        (step,) = (step for step in steps if "catalogue.json" in step)
        # The history is there before the build.
        build = next(
            at for at, text in enumerate(steps) if "spack-cache-db build" in text
        )
        assert steps.index(step) < build
        yield host, step


@contextmanager
def published(files: dict[str, bytes], missing: int = 404) -> Iterator[str]:
    """Serve files, with a status for those that are not there, and yield the
    address.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            status = missing if content is None else 200
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content or b"no such file")

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("host", "step"), list(nightly_jobs()), ids=lambda value: value[:6]
)
@pytest.mark.parametrize(
    ("files", "missing", "status", "history"),
    [
        (PUBLISHED, 404, 0, b"the published history"),
        ({}, 404, 0, b"the history of the cache"),
        ({}, 503, 1, b"the history of the cache"),
        (
            {"/catalogue.json": PUBLISHED["/catalogue.json"]},
            404,
            22,
            b"the history of the cache",
        ),
    ],
    ids=["published", "nothing published", "out of order", "half published"],
)
def test_a_history_goes_on_from_the_published_one(
    host: str,
    step: str,
    files: dict[str, bytes],
    missing: int,
    status: int,
    history: bytes,
    tmp_path: Path,
) -> None:
    """Then from the cache of CI; a site that does not respond ends the job instead."""
    needed("curl", "curl")
    assert host in ("GitHub", "GitLab")

    (tmp_path / "software.db").write_bytes(b"the history of the cache")
    with published(files, missing) as site:
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SITE": site}
        done = completed(["bash", "-e", "-c", step], cwd=tmp_path, env=environment)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "software.db").read_bytes() == history
