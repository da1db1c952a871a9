"""`python -m live_spack SPACK PACKAGES`: compare our answers with a real Spack, in some
minutes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from live_spack import covers, installs
from live_spack.caches import Cache, Maker
from live_spack.check import Check, report
from live_spack.databases import Builder
from live_spack.registry import PROGRAM, certified, registry
from live_spack.spack import LiveSpackError, cloned

CHECKOUT = click.Path(path_type=Path, exists=True, file_okay=False)
KINDS = ("install", "cover")
REGISTRY = "registry"
"""The name of the cache whose mirror is in a registry."""


@click.command()
@click.argument("spack", type=CHECKOUT)
@click.argument("packages", type=CHECKOUT)
@click.option(
    "--only", type=click.Choice(KINDS), multiple=True, help="Do only this part."
)
@click.option(
    "--cache", "names", multiple=True, metavar="NAME", help="Install only from these."
)
def main(
    spack: Path, packages: Path, only: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Compare our answers with SPACK and PACKAGES, checkouts of spack and
    spack-packages.
    """
    # A job that is ended deletes its folder, and ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began = time.monotonic()
    checks = []
    try:
        with TemporaryDirectory(prefix="live-spack-") as folder:
            for check in _checks(spack, packages, Path(folder), only or KINDS, names):
                click.echo(f"{check.verdict}  {check.question}: {check.both}", err=True)
                checks.append(check)
    except LiveSpackError as error:
        raise click.ClickException(str(error)) from None

    click.echo(report(checks))
    wrong_count = sum(not check.is_right for check in checks)
    seconds = time.monotonic() - began
    click.echo(f"\n{len(checks)} answers, {wrong_count} wrong, {seconds:.0f} s")
    if wrong_count:
        raise SystemExit(1)


def _checks(
    spack: Path,
    packages: Path,
    folder: Path,
    kinds: tuple[str, ...],
    names: tuple[str, ...],
) -> Iterator[Check]:
    """Yield the checks of some kinds.

    Args:
        spack: a checkout of Spack.
        packages: a checkout of its packages.
        folder: where everything is written.
        kinds: some of `KINDS`.
        names: the caches to install from; all of them if there are none.
    """
    python = Path(os.environ.get("SPACK_PYTHON", sys.executable))
    clones = cloned(spack, packages, python, folder)
    certificate = certified(folder)
    builder = Builder(folder / "databases", certificate)
    with closing(Maker(clones, folder, certificate)) as maker:
        if "install" in kinds:
            for cache in maker.caches():
                if not names or cache.name in names:
                    yield from _installed(maker, builder, cache)
            if not names or REGISTRY in names:
                yield from _installed_from_registry(maker, builder, folder, certificate)
        if "cover" in kinds:
            yield from covers.checks(maker, builder)


def _installed_from_registry(
    maker: Maker, builder: Builder, folder: Path, certificate: Path | None
) -> Iterator[Check]:
    """Yield the checks of a mirror in a registry, if this machine has its program."""
    if certificate is None:
        click.echo(f"no {PROGRAM} on this machine: mirrors in a registry are left out")
        return
    with registry(folder / "registry", certificate) as host:
        yield from installs.checks(maker, builder, maker.in_registry(host))


def _installed(maker: Maker, builder: Builder, cache: Cache) -> Iterator[Check]:
    """Yield the checks of one cache, after it has lost what it is going to lose."""
    if cache.lost:
        builder.begin_history(cache)
        maker.lose(cache)
    yield from installs.checks(maker, builder, cache)


if __name__ == "__main__":
    main()
