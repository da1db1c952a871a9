"""Write a corpus of pages at the size of the site: `python -m tests.corpus OUT --scale 0.05`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tests.corpus.site import SCALE, write


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--scale", type=click.FloatRange(*SCALE), default=1.0, show_default=True)
@click.option("--tar", is_flag=True, help="Write OUT as an archive: .tar, .tar.gz or .tar.zst.")
def main(out: Path, scale: float, tar: bool) -> None:
    """Write an invented build cache, SCALE times the size of the real one, to OUT."""
    if out.exists():
        raise click.ClickException(f"{out} exists: name a new folder or file, or remove it")
    started = time.perf_counter()
    totals = write(out, scale, tar=tar)
    click.echo(
        f"{totals.pages:,} pages, {totals.page_bytes / 1e6:,.1f} MB, {totals.listings:,} listings,"
        f" {totals.specs:,} specs in {time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
