"""Folders with pipes, devices, links or sparse files where a file is expected."""

from __future__ import annotations

import random
import shutil
from itertools import cycle, product
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import Run, judged_build, run_command
from attacks.databases import MOST_SECONDS
from attacks.outcome import Outcome, until
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
    outcome = Outcome("folders")
    chance = random.Random(13)
    slowest = 0.0
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        database = folder / "a.db"
        run_command("build", write_pages(folder / "pages"), "-o", database)

        # Each kind of special file with each file of a source and an environment.
        sources = list(product(KINDS, whole_input(folder / "model")))
        environments = list(product(KINDS, ENVIRONMENT_FILES))
        chance.shuffle(sources)
        chance.shuffle(environments)

        # A build and a `cover` in turn.
        pairs = zip(cycle(sources), cycle(environments), strict=False)
        for (kind, replaced), (kind_of_other, replaced_other) in until(seconds, pairs):
            built, faults = _built(folder, kind, replaced)
            outcome.judge(f"build with a {kind} as {replaced}", faults)

            covered = _covered(folder, database, kind_of_other, replaced_other)
            faults = covered.faults((0, 1, 2), MOST_SECONDS)
            outcome.judge(f"cover with a {kind_of_other} as {replaced_other}", faults)
            slowest = max(slowest, built.cpu_seconds, covered.cpu_seconds)
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def _built(folder: Path, kind: str, replaced: str) -> tuple[Run, list[str]]:
    """Build a source with a special file, and return the faults of the result."""
    source = folder / "source"
    output = folder / "output"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    _replace(whole_input(source)[replaced], kind)
    built, faults = judged_build(source, output)
    return built, faults + built.faults(seconds=MOST_SECONDS)


def _covered(folder: Path, database: Path, kind: str, replaced: str) -> Run:
    """Run `cover` on an environment with a special file."""
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    for name, text in ENVIRONMENT_FILES.items():
        path = environment / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _replace(environment / replaced, kind)
    return run_command("cover", environment / "spack.yaml", database)


def _replace(path: Path, kind: str) -> None:
    """Put a special file in place of a file."""
    path.unlink()
    make_special_file = KINDS[kind]
    make_special_file(path)
