"""Builds of a few dozen pages, and what they give."""

import hashlib
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spack_cache_db.assembly.builds import build
from spack_cache_db.site.sql import functions as sql_functions
from tests.pagetexts import page, spec

RELEASES = ["develop", "v0.23.1", "develop-2025-04-20", "develop-2025-07-13"]


def many_pages() -> dict[str, bytes]:
    """Return pages that share specs, configurations and stacks in several releases."""
    chance = random.Random(7)
    pages = {}
    for release in RELEASES:
        for number in range(6):
            package = f"pkg-{number}"
            specs = [
                spec(
                    number * 100 + chance.randrange(40),
                    target=chance.choice(["zen3", "x86_64_v3"]),
                    stacks=chance.sample(["a", "b", "c", "root"], 2),
                    versions=[chance.choice(["1.0", "1.10", "1.9"])],
                )
                for _ in range(4)
            ]
            unique = {each["hash"]: each for each in specs}
            pages[f"{release}/{package}"] = page(package, release, unique.values())
    return pages


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def built(output: Path, *paths: Path | str, jobs: int = 1) -> bytes:
    """Build and return the bytes of the file."""
    build(paths, output, jobs=jobs)
    return output.read_bytes()


def digest_of(data: bytes) -> str:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def whole(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with a file."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    checked = connection.execute("PRAGMA integrity_check").fetchall()
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    connection.close()
    return checked == [("ok",)] and not broken


@contextmanager
def opened(write: Callable[[Path], object]) -> Iterator[sqlite3.Connection]:
    """Build the sources that are written into a folder, and connect as the site
    does.
    """
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "in"))
        build(Path(folder, "in"), Path(folder, "out.db"))
        with closing(sqlite3.connect(Path(folder, "out.db"))) as connection:
            sql_functions.register(connection)
            yield connection


def signalled_after(moment: str, name: str) -> str:
    """Return a program that runs the command and sends itself a signal after a function
    of ours.
    """
    module, _, function = moment.rpartition(".")
    return (
        "import os, signal\n"
        "from importlib import import_module\n"
        f"module = import_module('{module}')\n"
        f"step = module.{function}\n"
        "def signalled(*a, **k):\n"
        f"    step(*a, **k); os.kill(os.getpid(), signal.{name})\n"
        f"module.{function} = signalled\n"
        "from spack_cache_db.cli.main import main; main()\n"
    )
