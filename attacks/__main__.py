"""`python -m attacks`: attack real processes in all known ways, and report what
held.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from attacks.addresses import addresses
from attacks.archives import archives
from attacks.builder import run
from attacks.combinations import combinations
from attacks.databases import databases
from attacks.folders import folders
from attacks.headers import headers
from attacks.hostile_sites import hostile_sites
from attacks.hosts import hosts
from attacks.logins import logins
from attacks.memory import memory
from attacks.mirrors import mirrors
from attacks.neighbours import behind_nginx, neighbours
from attacks.outcome import Outcome, report, survived
from attacks.pages import pages
from attacks.readers import readers
from attacks.requests import parameters, repetition, sql
from attacks.target import Target, serving
from attacks.texts import forms, methods, texts
from attacks.visitors import disconnects, endings
from benchmarks.server import ServerError
from tests.site.cache import write_pages

SECONDS = 540.0
"""For all kinds together: less than ten minutes."""

Kind = Callable[[float], Outcome]

SERVED: dict[str, Callable[[Target, float], Outcome]] = {
    "sql": sql,
    "parameters": parameters,
    "repetition": repetition,
    "methods": methods,
    "forms": forms,
    "disconnects": disconnects,
    "headers": headers,
    "addresses": addresses,
    "combinations": combinations,
    "memory": memory,
    "neighbours": neighbours,
    "nginx": behind_nginx,
}
BUILT: dict[str, Kind] = {
    "archives": archives,
    "pages": pages,
    "readers": readers,
    "databases": databases,
    "hostile sites": hostile_sites,
    "texts": texts,
    "folders": folders,
    "mirrors": mirrors,
    "logins": logins,
}
KINDS = (*SERVED, "endings", "hosts", *BUILT)


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS))
@click.option("--seconds", type=float, default=SECONDS, help="Approximate duration.")
@click.option(
    "--file", type=click.Path(path_type=Path, exists=True), help="Database to serve."
)
@click.option(
    "--plain",
    is_flag=True,
    help="Attack Datasette without this program's defences, and list harmless attempts.",
)
def main(
    kinds: tuple[str, ...], seconds: float, file: Path | None, plain: bool
) -> None:
    """Run these KINDS of attacks on a server and the builder, or all kinds."""
    chosen = kinds or (tuple(SERVED) if plain else KINDS)
    if plain and not {*chosen} <= SERVED.keys():
        raise click.UsageError(
            f"--plain is for the kinds that attack a server: {', '.join(SERVED)}"
        )
    began = time.monotonic()
    with TemporaryDirectory(prefix="attacks-") as folder:
        served = Path(folder) / "served" / "spack-cache.db"
        served.parent.mkdir()
        if file is None:
            run("build", write_pages(Path(folder, "pages")), "-o", served)
        else:
            # The folder is empty, so that any other file in it was written by an
            # attack.
            served.symlink_to(file.resolve())
        outcomes = _attack(served, chosen, seconds / len(chosen), plain=plain)
    if plain:
        click.echo(survived(outcomes))
        return
    click.echo(report(outcomes))
    click.echo(f"\n{time.monotonic() - began:.0f} s")
    if any(outcome.faults for outcome in outcomes):
        raise SystemExit(1)


def _attack(
    file: Path, chosen: tuple[str, ...], seconds: float, *, plain: bool
) -> list[Outcome]:
    outcomes = []
    for name in chosen:
        click.echo(f"{name} …", err=True)
        kind = BUILT.get(name) or partial(_served, file, name, plain=plain)
        outcomes.append(kind(seconds))
    return outcomes


def _served(file: Path, name: str, seconds: float, *, plain: bool) -> Outcome:
    """Attack a server that was started for this kind, so that kinds do not affect each
    other.
    """
    if name == "endings":
        return endings(file)
    if name == "hosts":
        return hosts(file, seconds)
    try:
        with serving(file, plain=plain) as target:
            return SERVED[name](target, seconds)
    except (ServerError, OSError) as error:
        return Outcome(name, faults=[f"there is no server any more: {error}"])


if __name__ == "__main__":
    main()
