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
    name = f"corpus-{scale:g}" if variety == "usual" else f"corpus-{scale:g}-{variety}"
    made, record = folder / name, folder / f"{name}.json"
    if record.exists():
        return made, pages.Totals(**json.loads(record.read_text()))
    click.echo(f"Writing the corpus {made} ...", err=True)
    totals = pages.write(made, scale, variety)
    record.write_text(json.dumps(asdict(totals)))
    return made, totals


def index(folder: Path, records: int) -> Path:
    """Return the index of all stacks; generate it if it does not exist."""
    made = folder / f"indexes-{records}"
    path = made / indexes.RELEASE / "root" / "index.json"
    if not path.exists():
        click.echo(f"Writing the indexes {made} ...", err=True)
        indexes.write(made, records)
    return path
