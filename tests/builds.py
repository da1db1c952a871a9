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
        for package_number in range(6):
            # A hash may be drawn twice; a page lists it once.
            specs = {}
            for _ in range(4):
                drawn = spec(
                    package_number * 100 + chance.randrange(40),
                    target=chance.choice(["zen3", "x86_64_v3"]),
                    stacks=chance.sample(["a", "b", "c", "root"], 2),
                    versions=[chance.choice(["1.0", "1.10", "1.9"])],
                )
                specs[drawn["hash"]] = drawn
            package = f"pkg-{package_number}"
            pages[f"{release}/{package}"] = page(package, release, specs.values())
    return pages


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    return digest_of(path.read_bytes())


def digest_of(data: bytes) -> str:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def built(output: Path, *paths: Path | str, jobs: int = 1) -> bytes:
    """Build and return the bytes of the file."""
    build(paths, output, jobs=jobs)
    return output.read_bytes()


def is_whole(path: Path) -> bool:
    """Return whether SQLite finds nothing wrong with a file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchall()
        broken_keys = connection.execute("PRAGMA foreign_key_check").fetchall()
    return integrity == [("ok",)] and not broken_keys


@contextmanager
def database_of(write: Callable[[Path], object]) -> Iterator[sqlite3.Connection]:
    """Build the sources that are written into a folder, and connect as the site
    does.
    """
    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary, "in")
        output = Path(temporary, "out.db")
        write(sources)
        build(sources, output)
        with closing(sqlite3.connect(output)) as connection:
            sql_functions.register(connection)
            yield connection


def signalled_after(moment: str, name: str) -> str:
    """Return a program that runs the command and sends itself a signal after a function
    of ours.

    Args:
        moment: the function, such as `spack_cache_db.assembly.builds.build`.
        name: the signal, such as `SIGTERM`.
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
