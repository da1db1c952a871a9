"""Options that several benchmarks have."""

from pathlib import Path

import click

from benchmarks.measure import FOLDER
from tests.corpus import pages as corpus

scale_option = click.option(
    "--scale", type=corpus.SCALE, default=1.0, show_default=True
)
runs_option = click.option(
    "--runs", default=3, show_default=True, help="Runs of which the median is taken."
)
folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=FOLDER,
    show_default=True,
)
