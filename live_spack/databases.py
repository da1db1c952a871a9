"""Databases of a build cache, built in each way that the documentation names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from live_spack.caches import Cache
from live_spack.spack import LiveSpackError, Result, write_yaml
from tests.processes import completed

FIRST_DAY = "2026-01-01"
"""Date of the copy that a history begins with."""
TODAY = "2026-01-02"


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one cache.

    Attributes:
        path: the file.
        way: how its sources were read: `folder`, `fetch` or `mirrors.yaml`.
    """

    path: Path
    way: str


class Builder:
    """Runs `spack-cache-db` of this checkout, in a folder of its own."""

    def __init__(self, folder: Path, certificate: Path | None) -> None:
        self._folder = folder
        self._certificate = certificate
        folder.mkdir()

    def run(self, *words: object) -> Result:
        """Run a command, and return its status and what it wrote to standard output."""
        variables = dict(os.environ)
        if self._certificate is not None:
            variables["SSL_CERT_FILE"] = str(self._certificate)
        command = [sys.executable, "-m", "spack_cache_db", *words]
        done = completed(command, env=variables, cwd=self._folder)
        if done.returncode > 1:
            typed = " ".join(map(str, words))
            raise LiveSpackError(
                f"spack-cache-db {typed} failed:\n{done.stdout}{done.stderr}"
            )
        return Result(status=done.returncode, output=done.stdout)

    def databases(self, cache: Cache) -> Iterator[Database]:
        """Build the databases of a cache, one for each way of reading it."""
        target = self._folder / cache.name

        # The folder of the mirrors, and the database of the day before if something was
        # lost since then.
        if cache.folder is not None:
            file = target / "folder.db"
            sources: list[object] = [cache.folder]
            if cache.lost:
                sources = [file, "--snapshot", TODAY, cache.folder]
            yield self._built(sources, file, "folder")

        # Each mirror by its URL.
        fetched = target / "fetched"
        for mirror in cache.mirrors:
            self._checked(
                "fetch", mirror.url, "-o", fetched, "--release", mirror.release
            )
        yield self._built([fetched], target / "fetch.db", "fetch")

        # All mirrors from Spack's configuration, which has `signed: false` where it is
        # needed.
        mirrors = {}
        for mirror in cache.mirrors:
            settings: dict[str, object] = {"url": mirror.url}
            if not mirror.is_signed:
                settings["signed"] = False
            mirrors[mirror.release] = settings
        configuration = write_yaml(target / "mirrors.yaml", {"mirrors": mirrors})
        configured = target / "configured"
        self._checked("fetch", "--mirrors", configuration, "-o", configured)
        yield self._built([configured], target / "mirrors.db", "mirrors.yaml")

    def begin_history(self, cache: Cache) -> None:
        """Build a database with a snapshot of a cache, before the cache loses
        binaries.
        """
        target = self._folder / cache.name / "folder.db"
        target.parent.mkdir(exist_ok=True)
        self._checked("build", cache.folder, "-o", target, "--snapshot", FIRST_DAY)

    def _built(self, sources: Sequence[object], target: Path, way: str) -> Database:
        target.parent.mkdir(exist_ok=True)
        self._checked("build", *sources, "-o", target)
        return Database(path=target, way=way)

    def _checked(self, *words: object) -> None:
        """Run a command that must not find faults."""
        result = self.run(*words)
        if result.status != 0:
            typed = " ".join(map(str, words))
            raise LiveSpackError(
                f"spack-cache-db {typed} found faults:\n{result.output}"
            )
