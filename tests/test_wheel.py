"""What is published, the wheel and the sdist, is whole: each works alone, far from the
checkout.
"""

import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

from benchmarks.server import free_port
from spack_cache_db import build
from spack_cache_db.cli.main import COMMANDS
from spack_cache_db.site.routes import ROUTES
from tests.pagetexts import SAMPLES
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import locked
from tests.serving import running

LOCKS = ROOT / "requirements"
BARE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""The least environment that a program needs, but for its home."""

FILE = "spack-cache.db"
SPEC = "py-mpi4py@4 target=x86_64_v3"
HASH = "2feova4"
ARGUMENTS = {
    "behind": ("behind", "--help"),  # The sample pages come without package data.
    "build": ("build", "--example", "-o", FILE),
    "check": ("check", SAMPLES, "--json"),
    "cover": ("cover", "specs.txt", FILE),
    # The sample pages come without dependency data.
    "dependents": ("dependents", "--help"),
    "deps": ("deps", "--help"),
    "diff": ("diff", "develop", "develop", FILE, "--json"),
    "export-static": ("export-static", FILE, "-o", "public"),
    "fetch": (
        "fetch",
        "--help",
    ),  # It needs a mirror: tests/cli/test_fetch.py has some.
    "find": ("find", SPEC, FILE, "--install"),
    "history": ("history", SPEC, FILE, "--json"),
    "info": ("info", FILE),
    "releases": ("releases", FILE),
    "retention": ("retention", FILE, "--newest", "1"),
    "site": ("site",),
    "stacks": ("stacks", FILE),
    "verify": ("verify", FILE, SAMPLES),
}
"""How each command is called that ends by itself, in the order in which they are
called.
"""

FOLDERS = ("pages", "plugins", "static", "static-site", "templates")
"""The folders of the site, which are at the root of a checkout."""

OWN = (
    "/",
    "/packages",
    "/releases",
    "/stacks",
    "/about",
    "/suggest.json?q=mpi",
    f"/spec/{HASH}",
    f"/spec/{HASH}.json",
    "/package/py-mpi4py",
    "/package/py-mpi4py.json",
    "/badge/py-mpi4py.svg",
    "/badge/release/develop.svg",
    "/badge.svg",
    "/stack/e4s",
    f"/find?q={SPEC}",
    f"/find.json?q={SPEC}",
    f"/find.csv?q={SPEC}",
    f"/find.atom?q={SPEC}",
    f"/cover?q={SPEC}",
    "/diff/develop-2025-04-20...develop",
    "/diff?old=develop-2025-04-20&new=develop",
    "/coverage/develop",
    "/release/develop",
    "/spack-cache.db",
    f"/dependents?q={SPEC}",
    "/llms.txt",
    "/robots.txt",
    "/sitemap.xml",
    "/opensearch.xml",
)
STOCK = (
    "/static/parts.css", "/spack-cache", "/spack-cache/builds",
    "/spack-cache.json?sql=select+1", "/spack-cache/builds.json?_shape=array",
    "/spack-cache/packages.csv", "/spack-cache/packages/1",
    "/spack-cache/specs?_facet=stack_set_id",
    "/spack-cache/compilers_of_release?release=develop",
)  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("published")
    _build(ROOT, folder)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_carries_the_site(published: tuple[Path, Path]) -> None:
    """The package has the site and the sample pages, byte for byte, and nothing is
    beside it.
    """
    with ZipFile(published[1]) as wheel:
        assert "spack_cache_db/py.typed" in wheel.namelist()
        beside = {
            name.partition("/")[0].removesuffix(".dist-info")
            for name in wheel.namelist()
        }
        prefix = "spack_cache_db/site/files/"
        held = {
            name.removeprefix(prefix): wheel.read(name)
            for name in wheel.namelist()
            if name.startswith(prefix)
        }
    assert beside == {"spack_cache_db", f"spack_cache_db-{version('spack-cache-db')}"}

    folders = (ROOT / name for name in FOLDERS)
    files = [
        path
        for folder in folders
        for path in folder.rglob("*.*")
        if path.suffix != ".pyc"
    ]
    named = ("datasette.yml", "metadata.yml", "settings.json")
    wanted = [*(ROOT / name for name in named), *files]

    assert held == {
        path.relative_to(ROOT).as_posix(): path.read_bytes() for path in wanted
    }


@pytest.mark.slow
def test_an_index_can_show_the_readme(published: tuple[Path, Path]) -> None:
    """The long description has no link and no picture that only a checkout can
    follow.
    """
    with ZipFile(published[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    text = str(metadata.get_payload())

    assert text.startswith("# spack-cache-db")
    assert all("://" in link for link in re.findall(r"\]\(([^)]*)\)", text))
    assert metadata["Description-Content-Type"] == "text/markdown"


@pytest.mark.slow
def test_the_sdist_is_what_the_wheel_is_made_of(
    published: tuple[Path, Path], tmp_path: Path
) -> None:
    """A wheel built from the unpacked sdist has the same bytes as the one from the
    checkout.
    """
    completed(["tar", "-xzf", published[0], "-C", tmp_path], check=True)
    unpacked = tmp_path / published[0].name.removesuffix(".tar.gz")
    _build(unpacked, tmp_path / "again", "-t", "wheel")
    again = tmp_path / "again" / published[1].name
    assert again.read_bytes() == published[1].read_bytes()


@pytest.mark.slow
def test_the_sdist_is_the_whole_checkout(published: tuple[Path, Path]) -> None:
    """Each file that git would keep is in the sdist, so that all tests can run
    there.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = completed(command, cwd=ROOT)
    if listed.returncode != 0 or not (ROOT / ".git").exists():
        pytest.skip("not in a git checkout: there is no list of files to compare with")
    kept = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    with tarfile.open(published[0]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}

    assert packed - {"PKG-INFO"} == kept


@pytest.mark.slow
def test_the_wheel_works_alone(published: tuple[Path, Path], tmp_path: Path) -> None:
    """In a fresh environment each command does what it does in a checkout, and every
    page shows.
    """
    bin_folder = _installed(published[1], tmp_path / "environment", LOCKS / "run.lock")
    # The lock has no pyarrow, which only `export` needs.
    assert set(COMMANDS) <= {*ARGUMENTS, "serve", "export"}

    here = tmp_path / "here"
    there = tmp_path / "there"
    here_printed = _printed(here, Path(sys.executable).with_name("spack-cache-db"))
    there_printed = _printed(there, bin_folder / "spack-cache-db")

    assert here_printed.pop("site") == str(ROOT)

    site = there_printed.pop("site")
    assert Path(site).is_relative_to(tmp_path / "environment")
    assert there_printed == here_printed
    assert (there / FILE).read_bytes() == (here / FILE).read_bytes()

    with _serving(there, bin_folder / "spack-cache-db", "serve", FILE) as address:
        _every_kind_of_page(address)
    with _serving(there, bin_folder / "datasette", site, "-i", FILE) as address:
        assert httpx.get(address, verify=False, timeout=30).status_code == 200


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the oldest have wheels for 3.11 alone"
)
def test_the_oldest_dependencies_suffice(
    published: tuple[Path, Path], tmp_path: Path
) -> None:
    """With the least that the wheel asks for, each command and every page works all the
    same.
    """
    bin_folder = _installed(
        published[1], tmp_path / "environment", LOCKS / "oldest.lock"
    )
    _printed(tmp_path / "there", bin_folder / "spack-cache-db")
    serve = (bin_folder / "spack-cache-db", "serve", FILE, "--workers", "2")
    with _serving(tmp_path / "there", *serve) as address:
        _every_kind_of_page(address)


@pytest.mark.slow
def test_the_least_install_answers(
    published: tuple[Path, Path], tmp_path: Path
) -> None:
    """Without extras a file can be queried; `serve` names the extra that it needs."""
    needed = {
        re.split(r"\W", dependency)[0].lower()
        for dependency in _project()["dependencies"]
    }
    least = tmp_path / "least.lock"
    least.write_text(locked(LOCKS / "run.lock", needed), encoding="utf-8")
    bin_folder = _installed(published[1], tmp_path / "environment", least)
    build([SAMPLES], tmp_path / FILE)
    (tmp_path / "specs.txt").write_text(SPEC)

    for name, (*_, extra) in COMMANDS.items():
        if extra is None:
            ran = _ran(tmp_path, bin_folder / "spack-cache-db", *ARGUMENTS[name])
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout != "", ran.stderr
    # The other commands name their extras in the same way: see
    # tests/cli/test_loading.py.
    ran = _ran(tmp_path, bin_folder / "spack-cache-db", "serve", FILE)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    assert ran.stderr.endswith(f"install the extra `{COMMANDS['serve'].extra}`\n")


def test_the_oldest_dependencies_are_those_that_are_asked_for() -> None:
    """`oldest.lock` names the lower bound of each dependency in pyproject.toml."""
    extras = [
        each for extra in _project()["optional-dependencies"].values() for each in extra
    ]
    asked = [each for each in [*_project()["dependencies"], *extras] if "[" not in each]
    lock = (LOCKS / "oldest.lock").read_text(encoding="utf-8")
    pattern = re.compile(r"^([\w-]+)[>=]=([\d.]+?)(?:\.0)*(?![\d.])", re.MULTILINE)
    locked = dict(pattern.findall(lock))

    for requirement in asked:
        name, oldest = pattern.findall(requirement)[0]
        assert locked[name.lower()] == oldest


def _printed(folder: Path, program: Path) -> dict[str, str]:
    """Return what each command of a program prints in a new folder."""
    folder.mkdir()
    (folder / "specs.txt").write_text(SPEC)
    printed = {}
    for name in (name for name in ARGUMENTS if name in COMMANDS):
        ran = _ran(folder, program, *ARGUMENTS[name])
        assert ran.returncode == 0, ran.stderr
        printed[name] = " ".join(ran.stdout.split())
    del printed["build"]  # It contains how long it took.
    return printed


def _ran(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with nothing else in its environment."""
    return completed(
        list(map(str, command)), cwd=folder, env=BARE | {"HOME": str(folder)}
    )


def _project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def _every_kind_of_page(address: str) -> None:
    """Ask for a page of each route, and for Datasette's own."""
    paths = [page.partition("?")[0] for page in OWN]
    unasked = []
    for route, *_ in ROUTES:
        if not any(re.match(route, path) for path in paths):
            unasked.append(route)
    assert unasked == []
    with httpx.Client(
        base_url=address, timeout=30, follow_redirects=True, verify=False
    ) as client:
        answers = {page: client.get(page).status_code for page in (*OWN, *STOCK)}
        missing = client.get("/package/no-such-package")
        home = client.get("/")
    assert answers == dict.fromkeys((*OWN, *STOCK), 200)
    assert missing.status_code == 404
    assert "no-such-package" in missing.text
    assert "py-mpi4py" in home.text


def _build(source: Path, folder: Path, *options: str) -> None:
    """Build the sdist and the wheel, or one of them, from a checkout."""
    completed(
        [sys.executable, "-m", "hatchling", "build", "-d", folder, *options],
        cwd=source,
        check=True,
    )


def _installed(wheel: Path, environment: Path, lock: Path) -> Path:
    """Install a wheel and what a lock names into a fresh environment; return its
    commands.
    """
    uv = [sys.executable, "-m", "uv"]
    completed([*uv, "venv", "-q", "--python", sys.executable, environment], check=True)
    pip = [*uv, "pip"]
    python = ["--python", environment / "bin" / "python"]
    install = [*pip, "install", "-q", "--no-deps", *python]
    completed([*install, "--require-hashes", "-r", lock], check=True)
    completed([*install, "--offline", wheel], check=True)
    # Nothing was fetched that the lock does not name, and nothing that is needed is
    # missing.
    completed([*pip, "check", "-q", *python], check=True)
    return environment / "bin"


@contextmanager
def _serving(folder: Path, *command: object) -> Iterator[str]:
    """Run a server in a folder while the context lasts, and give its address."""
    port = free_port()
    words = [*map(str, command), "--port", str(port)]
    with running(words, port, cwd=folder, env=BARE | {"HOME": str(folder)}) as server:
        yield server.address
