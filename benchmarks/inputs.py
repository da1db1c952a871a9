"""The generated inputs of benchmarks, written once into a folder and used again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks import indexes
from tests.corpus import pages


def corpus(folder: Path, scale: float, variety: str) -> tuple[Path, pages.Totals]:
    """Return the corpus of this scale and variety; generate it if it does not exist."""
    name = f"corpus-{scale:g}"
    if variety != "usual":
        name += f"-{variety}"
    path = folder / name
    # The record is written last, so that an interrupted corpus is generated again.
    record = folder / f"{name}.json"
    if record.exists():
        return path, pages.Totals(**json.loads(record.read_text()))
    click.echo(f"Writing the corpus {path} ...", err=True)
    totals = pages.write(path, scale, variety)
    record.write_text(json.dumps(asdict(totals)))
    return path, totals


def index(folder: Path, records: int) -> Path:
    """Return the index of all stacks; generate it if it does not exist."""
    release_folder = folder / f"indexes-{records}"
    # It is written after those of the stacks.
    path = release_folder / indexes.RELEASE / "root" / "index.json"
    if not path.exists():
        click.echo(f"Writing the indexes {release_folder} ...", err=True)
        indexes.write(release_folder, records)
    return path
