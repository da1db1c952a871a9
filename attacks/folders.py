"""Folders with pipes, devices, links or sparse files where a file is expected."""

from __future__ import annotations

import random
import shutil
import time
from itertools import cycle, product
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import Run, enough, judged_build, run_command
from attacks.databases import MOST_SECONDS
from attacks.outcome import Outcome
from tests.site.cache import write_pages
from tests.sources.test_special_files import KINDS, whole_input

ENVIRONMENT = """
spack:
  include: [packages.yaml, scope, {path: more.yaml, optional: true}]
  include_concrete: [env]
  specs: [hdf5, $more]
"""
ENVIRONMENT_FILES = {
    "spack.yaml": ENVIRONMENT,
    "packages.yaml": "packages: {all: {require: '%gcc'}}",
    "scope/definitions.yaml": "definitions: [{more: [zlib]}]",
    "more.yaml": "include: [spack.yaml, more.yaml]",
    "env/spack.lock": '{"_meta": {"lockfile-version": 6}, "roots": [], "concrete_specs": {}}',
}


def folders(seconds: float) -> Outcome:
    """Put each kind of special file in place of each file that is opened, in random
    order.
    """
    outcome, chosen, began = Outcome("folders"), random.Random(13), time.monotonic()
    slowest = 0.0
    with TemporaryDirectory(prefix="attacks-") as folder:
        database = Path(folder, "a.db")
        run_command("build", write_pages(Path(folder, "pages")), "-o", database)
        sources = [*product(KINDS, whole_input(Path(folder, "model")))]
        environments = [*product(KINDS, ENVIRONMENT_FILES)]
        chosen.shuffle(sources)
        chosen.shuffle(environments)
        for source, environment in zip(
            cycle(sources), cycle(environments), strict=False
        ):
            for title, (ran, faults) in (
                (
                    f"build with a {source[0]} as {source[1]}",
                    _built(Path(folder), *source),
                ),
                (
                    f"cover with a {environment[0]} as {environment[1]}",
                    _covered(Path(folder), database, *environment),
                ),
            ):
                slowest = max(slowest, ran.cpu_seconds)
                outcome.judge(title, faults)
            if enough(began, seconds):
                break
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def _built(folder: Path, kind: str, name: str) -> tuple[Run, list[str]]:
    source, output = folder / "source", folder / "output"
    for path in (source, output):
        shutil.rmtree(path, ignore_errors=True)
    output.mkdir()
    path = whole_input(source)[name]
    path.unlink()
    KINDS[kind](path)
    ran, faults = judged_build(source, output)
    return ran, [*faults, *ran.faults(seconds=MOST_SECONDS)]


def _covered(
    folder: Path, database: Path, kind: str, replaced: str
) -> tuple[Run, list[str]]:
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    for name, text in ENVIRONMENT_FILES.items():
        path = environment / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    path = environment / replaced
    path.unlink()
    KINDS[kind](path)
    ran = run_command("cover", environment / "spack.yaml", database)
    return ran, ran.faults((0, 1, 2), MOST_SECONDS)
