"""The command `info`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spack_cache_db.cli.options import file_argument, json_option
from spack_cache_db.cli.terminal import say
from spack_cache_db.query.summary import info as info_of


@click.command()
@file_argument
@json_option
def info(file: Path, as_json: bool) -> None:
    """Show what a database holds, its sources and its schema version."""
    described = info_of(file)
    if as_json:
        click.echo(json.dumps(described, indent=2))
        return
    width = max(map(len, described))
    for name, value in described.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
        value = "-" if value == "" else value
        say(f"{name.replace('_', ' '):<{width}}  {_text(value)}")


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str("-" if value is None else value)
