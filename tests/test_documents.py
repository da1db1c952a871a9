"""The documents are true: commands are typed in a reader's order, every example has its
rows.
"""

import doctest
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.server import free_port, wait_until_up
from spack_cache_db.site.sql import functions as sql_functions
from tests.documents import MIRROR, PUBLIC, Fence, Typed, fences, typed
from tests.indexes import edge, index, node, record
from tests.package_data import REAL as PACKAGE_DATA
from tests.package_data import REPOLOGY, published
from tests.paths import ROOT
from tests.processes import completed
from tests.sources.fetch.mirrors import below, layout_3
from tests.sources.fetch.server import serve

READ = (
    "README.md",
    "docs/spec-language.md",
    "docs/environments.md",
    "docs/changes.md",
    "docs/site.md",
    "docs/site-reference.md",
    "docs/sql.md",
    "docs/packages.md",
)
"""The documents in the order in which they are read, in one folder."""

TUTORIAL = "docs/tutorial.md"
OPERATE = "docs/operate.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

NOT_TYPED = {
    "docs/assistants.md": "its session is repeated in tests/site/test_mcp_tools.py",
    "docs/mirrors.md": "its way to a site is typed in tests/deploy/test_commands.py",
    "docs/installed.md": "its commands are run in tests/cli/test_trees.py, on a tree of its own",
    "docs/install.md": "its upgrade is typed in tests/test_old_databases.py",
    "docs/publish.md": "typed in tests/deploy, and in the tutorial; a workflow runs the container",
    "docs/performance.md": "needs a cluster; tests/cli/test_dask_cluster.py starts one",
    "CONTRIBUTING.md": "its commands are those that run this test",
}
NO = re.compile(r"spack-cache-db (behind|cover|diff|find) |.*\| spack-cache-db cover ")
"""Commands whose status 1 is an answer: no."""

SERVER = re.compile(r"^(make run|spack-cache-db serve|datasette) ?")
"""Commands that end only when they are interrupted."""


INSTALL = "pip install '.[all]'"
ACTIVATE = ". .venv/bin/activate"
MAKE = f"make VENV={sys.prefix} -o {sys.prefix}/run.done"
"""What is installed is there: tests/deploy/test_commands.py and tests/test_wheel.py
install it.
"""


class Reader:
    """Somebody at a terminal in an empty folder: one shell, at most one server in front
    of it.
    """

    def __init__(self, folder: Path, mirrors: str) -> None:
        """Begin in `folder/empty`, beside a checkout; `mirrors` is a URL."""
        self.checkout = folder / "checkout"
        self.empty = folder / "empty"
        self.empty.mkdir()
        self._mirrors = mirrors
        self._port = 0
        self._log = folder / "log"
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.empty,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("wb"),
            text=True,
        )
        # What Spack prints, for who has no Spack.
        self._say(f"spack() {{ cat {PACKAGE_DATA / 'version.json'}; }}")
        # Each program in the background is a group of its own, and can be ended with
        # its children.
        self._say("set -m")

    def type(self, each: Typed) -> str:
        """Type a command, see that it succeeds, and return what it printed."""
        command = PUBLIC.sub(self._mirrors, each.command.partition(" #")[0])
        if SERVER.match(command):
            self._serve(command)
            return ""
        command = command.replace(":8001/", f":{self._port}/")
        if command in (INSTALL, ACTIVATE):
            command = f"PATH={sys.prefix}/bin:$PATH"
        if each.shown is not None:
            # A terminal shows notes, too.
            command = f"{{ {command}; }} 2>&1"
        printed, status = self._say(command)
        errors = self._log.read_text(encoding="utf-8")[-2000:]
        says_no = status == 1 and NO.match(each.command)
        assert status == 0 or says_no, (
            f"{each.place}: {command}: status {status}\n{printed}\n{errors}"
        )
        return printed.replace(self._mirrors, MIRROR)

    def leave(self) -> None:
        """End everything that was started."""
        self._interrupt()
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(timeout=20)

    def _serve(self, command: str) -> None:
        """Start a server in the place of the one before, on a port that is free."""
        self._interrupt()
        self._port = free_port()
        command = f"{command} --port {self._port}"
        if command.startswith("make"):
            command = f"{MAKE} -C {self.checkout} run PORT={self._port}"
        self._say(f"{command} >&2 &")
        wait_until_up(self._port, self._shell, within=300)

    def _interrupt(self) -> None:
        """Do what Ctrl-C does to the server, if there is one."""
        if self._port:
            self._say("kill -INT -- -$! && wait $! || true")

    def _say(self, command: str) -> tuple[str, int]:
        """Send a line to the shell; return the output and the exit status."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\nprintf '\\n%s %s\\n' DONE $?\n")
        self._shell.stdin.flush()
        lines = iter(self._shell.stdout.readline, "")
        printed: list[str] = []
        for line in lines:
            if re.fullmatch(r"DONE \d+\n", line):
                return "".join(printed)[:-1], int(line.split()[1])
            printed.append(line)
        raise AssertionError(f"the shell ended: {command}")


def _environment() -> dict[str, str]:
    """Return what a login gives, and what this machine needs to reach packages."""
    kept = {
        name: os.environ[name]
        for name in os.environ
        if name.startswith(("PIP_", "SSL_"))
    }
    return {
        **kept,
        "HOME": os.environ["HOME"],
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PIP_NO_COMPILE": "1",  # It takes longer than to import what the commands import.
        "PYTHON": getattr(sys, "_base_executable", sys.executable),
    }


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader of the documents, in an empty folder."""
    shutil.copytree(ROOT, tmp_path / "checkout", ignore=_not_in_a_checkout)
    manifest = {"develop": [{"label": "e4s", "url": "s3://spack-binaries/develop/e4s"}]}
    files = below("develop/e4s", layout_3(index(record(node("hdf5")))))
    files |= below(
        "v1.0",
        layout_3(index(record(node("hdf5", edge("zlib"))), record(node("zlib")))),
    )
    files["cache_spack_io_index.json"] = json.dumps(manifest).encode()
    files["data/repology.json"] = REPOLOGY.read_bytes()
    files["data/packages/py-mpi4py.json"] = json.dumps(
        published("py-mpi4py", "4.1.1")
    ).encode()
    with serve(files) as site:
        somebody = Reader(tmp_path, site.url)
        yield somebody
        somebody.leave()


def _not_in_a_checkout(folder: str, names: list[str]) -> set[str]:
    """Name what git does not keep, or what no command of the documents reads."""
    if Path(folder) != ROOT:
        return {name for name in names if name == "__pycache__"}
    return {
        name
        for name in names
        if name.startswith(".") or name in {"dist", "build", "tests"}
    }


@pytest.mark.slow
def test_every_command_does_what_the_documents_say(reader: Reader) -> None:
    """Typed in order in an empty folder, each command succeeds and prints what is shown
    for it.
    """
    shown, *others = fences(ROOT / READ[0])
    # The README begins with an answer from the database that it builds below.
    in_order = [*others, shown]
    in_order += [fence for name in READ[1:] for fence in fences(ROOT / name)]
    type_all(reader, in_order)


@pytest.mark.slow
def test_every_command_of_the_tutorial_works(reader: Reader) -> None:
    """Typed in order in an empty folder, with a mirror of one package."""
    reader.type(Typed("", INSTALL))
    type_all(reader, fences(ROOT / TUTORIAL))
    assert (reader.empty / "catalogue" / "public" / "index.html").exists()


@pytest.mark.slow
def test_every_command_of_the_operator_works(reader: Reader) -> None:
    """Typed in order, on the history that the tutorial ends with, one night older."""
    reader.type(Typed("", INSTALL))
    first = "spack-cache-db build mirrors -o software.db"
    in_tutorial = [each for fence in fences(ROOT / TUTORIAL) for each in typed(fence)]
    end = next(at for at, each in enumerate(in_tutorial) if each.command == first)
    for command in in_tutorial[: end + 1]:
        reader.type(command)
    type_all(reader, fences(ROOT / OPERATE))
    found = json.loads((reader.empty / "catalogue" / "info.json").read_text())

    assert found["looked_at"] is not None
    assert {path.name for path in (reader.empty / "new-machine").iterdir()} == {
        "mirrors", "software.db", "software.inspect.json"
    }  # fmt: skip


def type_all(reader: Reader, blocks: Iterable[Fence]) -> None:
    """Type the commands of all blocks, and compare what they print with what is
    shown.
    """
    for fence in blocks:
        for command in typed(fence):
            printed = reader.type(command)
            if command.shown is not None:
                assert printed == command.shown, command.place


def test_every_document_is_read() -> None:
    """A document with commands is among those that are typed, or it is said why not."""
    with_commands = set()
    for path in DOCUMENTS:
        languages = {fence.language for fence in fences(path)}
        if "sh" in languages or "console" in languages:
            with_commands.add(path.relative_to(ROOT).as_posix())

    assert with_commands == {*READ, TUTORIAL, OPERATE, *NOT_TYPED}


def _all(language: str) -> list[Fence]:
    return [
        fence
        for path in DOCUMENTS
        for fence in fences(path)
        if fence.language == language
    ]


def test_fences_name_their_language() -> None:
    """No block escapes these tests because it does not say what it is."""
    # Configurations are tried by the tests of what they configure.
    known = {"sh", "console", "sql", "python", "yaml", "json", ""}
    assert {fence.language for path in DOCUMENTS for fence in fences(path)} <= known


JOBS = {
    "include:": "vendor.gitlab-ci",
    "pages:": "vendor.gitlab-ci",
    "name:": "vendor.github-workflows",
}
"""The first word of a job in the documents, and the schema that it follows."""


@pytest.mark.slow
def test_jobs_follow_the_schemas_of_their_hosts(tmp_path: Path) -> None:
    """GitLab and GitHub would run each job that the documents show."""
    pytest.importorskip("check_jsonschema")
    found = {}

    for fence in _all("yaml"):
        first = fence.text.split()[0]
        if first in JOBS:
            found[first] = fence
            (tmp_path / "ci.yml").write_text(fence.text)
            schema = ["--builtin-schema", JOBS[first], str(tmp_path / "ci.yml")]
            checked = completed([sys.executable, "-m", "check_jsonschema", *schema])
            assert checked.returncode == 0, f"{fence.place}: {checked.stdout}"
    assert found.keys() == JOBS.keys()


@pytest.mark.parametrize("fence", _all("sql"), ids=lambda fence: fence.place)
def test_sql_finds_rows(
    fence: Fence,
    samples: sqlite3.Connection,
    all_sources: sqlite3.Connection,
    real_tree: sqlite3.Connection,
) -> None:
    """Each statement of the documents has an answer: in the shipped pages, or from an
    index.
    """
    others = {
        "mirrors.md": all_sources,
        "packages.md": all_sources,
        "installed.md": real_tree,
    }
    connection = others.get(fence.place.partition(":")[0], samples)
    sql_functions.register(connection)

    assert connection.execute(fence.text).fetchall() != []


@pytest.mark.parametrize("fence", _all("python"), ids=lambda fence: fence.place)
def test_python_is_true(
    fence: Fence, samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python answers in the documents, it answers."""
    shutil.copy(samples_file, tmp_path / "spack-cache.db")
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(fence.text, {}, fence.place, None, 0)
    said: list[str] = []
    outcome = doctest.DocTestRunner().run(example, out=said.append)

    assert outcome.attempted > 0
    assert outcome.failed == 0, "".join(said)
