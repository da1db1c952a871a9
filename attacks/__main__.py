"""`python -m attacks`: attack real processes in all known ways, and report what
held.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
"""Attacks on a server, by their kind."""
BUILT: dict[str, Callable[[float], Outcome]] = {
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
"""Attacks on commands, and on servers that they start themselves."""
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
    if plain:
        outcomes = _attacked(file, kinds or tuple(SERVED), seconds, plain=True)
        click.echo(survived(outcomes))
        return
    began = time.monotonic()
    outcomes = _attacked(file, kinds or KINDS, seconds, plain=False)
    click.echo(report(outcomes))
    click.echo(f"\n{time.monotonic() - began:.0f} s")
    if any(outcome.faults for outcome in outcomes):
        raise SystemExit(1)


def _attacked(
    file: Path | None, kinds: tuple[str, ...], seconds: float, *, plain: bool
) -> list[Outcome]:
    """Run these kinds of attacks, and return their outcomes.

    Args:
        file: the database to serve; None for one of a few pages.
        kinds: names of kinds.
        seconds: the time of all kinds together.
        plain: whether Datasette serves the database without this program's defences.
    """
    if plain and not SERVED.keys() >= set(kinds):
        raise click.UsageError(
            f"--plain is for the kinds that attack a server: {', '.join(SERVED)}"
        )
    outcomes = []
    with TemporaryDirectory(prefix="attacks-") as name:
        # The folder of the database is empty, so that any other file in it was written
        # by an attack.
        folder = Path(name)
        served = folder / "served" / "spack-cache.db"
        served.parent.mkdir()
        if file is None:
            run("build", write_pages(folder / "pages"), "-o", served)
        else:
            served.symlink_to(file.resolve())
        for kind in kinds:
            click.echo(f"{kind} …", err=True)
            outcome = _attack(served, kind, seconds / len(kinds), plain=plain)
            outcomes.append(outcome)
    return outcomes


def _attack(file: Path, kind: str, seconds: float, *, plain: bool) -> Outcome:
    """Attack in one way; each server is a new one, so that kinds do not affect each
    other.
    """
    if kind in BUILT:
        return BUILT[kind](seconds)
    if kind == "endings":
        return endings(file)
    if kind == "hosts":
        return hosts(file, seconds)
    try:
        with serving(file, plain=plain) as target:
            return SERVED[kind](target, seconds)
    except (ServerError, OSError) as error:
        return Outcome(kind, faults=[f"there is no server any more: {error}"])


if __name__ == "__main__":
    main()
