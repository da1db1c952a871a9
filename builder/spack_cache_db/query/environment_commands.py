"""The commands that install the binaries of an environment, and load what is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spack_cache_db.query.closure import Closure, closures, mirror_sets
from spack_cache_db.query.commands import NO_COMMANDS, Commands, short_spec
from spack_cache_db.query.configurations import HASHES_AT_ONCE
from spack_cache_db.query.covered import Cover, CoveredSpec
from spack_cache_db.query.database import Lookups, json_pieces, select
from spack_cache_db.query.install_commands import install_commands
from spack_cache_db.query.load_commands import installations_of, spack_load
from spack_cache_db.query.mirrors import Mirror, listing_mirrors
from spack_cache_db.query.smallest_cover import smallest_cover

IDS = "SELECT hash, id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"


def environment_commands(lookups: Lookups, cover: Cover) -> Commands | None:
    """Return the commands that install all binaries, and load installed specs; None for none.

    For a lockfile, they name only the roots, because Spack adds the dependencies. The mirrors are
    the fewest that together list everything.
    """
    met = [spec for spec in cover.specs if spec.is_met]
    named = [spec for spec in met if spec.is_root is not False] or met
    # Binaries are installed from the fewest mirrors.
    binaries = [spec for spec in named if spec.status == "binary"]
    installs = _install(lookups, binaries, cover.release)
    # Other specs are loaded from an installation, with modules or with Spack.
    loads = _load(lookups, [spec for spec in named if spec.status != "binary"])
    lines = (*installs.commands, *loads)
    return replace(installs, commands=lines) if lines else None


def _install(lookups: Lookups, specs: Sequence[CoveredSpec], release: int | None) -> Commands:
    ids = _ids_of(lookups, specs)
    needs = closures(lookups, ids.values(), release)
    if not needs:
        return NO_COMMANDS
    mirrors = fewest_mirrors(lookups, list(needs.values()), release)
    joined = [replace(closure, mirrors=mirrors) for closure in needs.values()]
    names = [
        short_spec(lookups.conn, closure.binary.package, closure.binary.hash) for closure in joined
    ]
    return install_commands(joined, names)


def _ids_of(lookups: Lookups, specs: Sequence[CoveredSpec]) -> Mapping[str, int]:
    """Return the ids of specs by their hashes, in their order."""
    hashes = list(dict.fromkeys(spec.hash for spec in specs if spec.hash is not None))
    ids: dict[str, int] = {}
    for piece in json_pieces(hashes, HASHES_AT_ONCE):
        ids |= dict(select(lookups.conn, IDS, hashes=piece))
    return {dag_hash: ids[dag_hash] for dag_hash in hashes if dag_hash in ids}


def fewest_mirrors(
    lookups: Lookups, needs: Sequence[Closure], release: int | None = None
) -> tuple[Mirror, ...]:
    """Return the fewest mirrors that together list all that closures need and any mirror lists.

    Args:
        lookups: the database.
        needs: the closures.
        release: the id of the release that the mirrors must belong to; None for any.
    """
    listed = [
        member.spec
        for closure in needs
        for member in closure.binaries
        if member.release is not None
    ]
    only = None if release is None else lookups.releases[release].name
    sets = mirror_sets(listing_mirrors(lookups, sorted(set(listed))), only)
    # The binary of a spliced spec is that of another spec: each closure has its own mirrors.
    if not sets.of_spec.keys() >= set(listed):
        return tuple(dict.fromkeys(mirror for closure in needs for mirror in closure.mirrors))
    choices = list(dict.fromkeys(sets.of_spec[spec] for spec in listed))
    return tuple(sets.mirrors[number] for number in smallest_cover(choices))


def _load(lookups: Lookups, specs: Sequence[CoveredSpec]) -> list[str]:
    """Return the commands that load installed specs, and externals with modules."""
    modules: dict[str, None] = {}
    loads: dict[str, None] = {}
    for spec in specs:
        if spec.configuration is None or spec.hash is None:
            continue
        package = spec.configuration.package
        installations = installations_of(lookups.conn, package, spec.hash)
        own = [commands for commands in installations if commands.release == spec.release]
        if not own:
            continue
        if own[0].alternative:
            modules |= dict.fromkeys(own[0].commands)
        else:
            loads[short_spec(lookups.conn, package, spec.hash)] = None
    lines = list(modules)
    if loads:
        lines.append(spack_load(*loads))
    return lines
