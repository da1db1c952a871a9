"""The commands that install the binaries of an environment, and load what is
installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.commands.install import install_commands
from spack_cache_db.query.commands.load import installations_of, spack_load
from spack_cache_db.query.commands.model import NO_COMMANDS, Commands, short_spec
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import ids_of_hashes
from spack_cache_db.query.stored.closure import Closure, closures, mirror_sets
from spack_cache_db.query.stored.mirrors import Mirror, listing_mirrors
from spack_cache_db.query.stored.smallest_cover import smallest_cover


def environment_commands(lookups: Lookups, cover: Cover) -> Commands | None:
    """Return the commands that install all binaries, and load installed specs; None for
    none.

    For a lockfile, they name only the roots, because Spack adds the dependencies; if no
    root has a binary, they name the other nodes. The mirrors are the fewest that
    together list everything.
    """
    met = [spec for spec in cover.specs if spec.is_met]
    roots = [spec for spec in met if spec.is_root is not False]
    named = roots or met
    # Binaries are installed from the fewest mirrors.
    binaries = [spec for spec in named if spec.status == "binary"]
    installs = _install(lookups, binaries, cover.release)
    # Other specs are loaded from an installation, with modules or with Spack.
    loads = _load(lookups, [spec for spec in named if spec.status != "binary"])
    lines = (*installs.commands, *loads)
    return replace(installs, commands=lines) if lines else None


def _install(
    lookups: Lookups, specs: Sequence[CoveredSpec], release: int | None
) -> Commands:
    # Several specs of an environment may have one binary.
    hashes = list(dict.fromkeys(spec.hash for spec in specs if spec.hash is not None))
    ids = ids_of_hashes(lookups.conn, hashes)
    in_order = [ids[dag_hash] for dag_hash in hashes if dag_hash in ids]
    of_specs = closures(lookups, in_order, release)
    if not of_specs:
        return NO_COMMANDS
    # All closures have the same mirrors, so each mirror is added once.
    mirrors = fewest_mirrors(lookups, list(of_specs.values()), release)
    joined = [replace(closure, mirrors=mirrors) for closure in of_specs.values()]
    names = []
    for closure in joined:
        binary = closure.binary
        names.append(short_spec(lookups.conn, binary.package, binary.hash))
    return install_commands(joined, names)


def fewest_mirrors(
    lookups: Lookups, of_specs: Sequence[Closure], release: int | None = None
) -> tuple[Mirror, ...]:
    """Return the fewest mirrors that together list all that closures need and any
    mirror lists.

    Args:
        lookups: the database.
        of_specs: the closures.
        release: the id of the release that the mirrors must belong to; None for any.
    """
    listed: dict[int, None] = {}
    for closure in of_specs:
        for member in closure.binaries:
            if member.release is not None:
                listed[member.spec] = None
    name = None if release is None else lookups.releases[release].name
    sets = mirror_sets(listing_mirrors(lookups, sorted(listed)), name)
    # A mirror may list a spliced spec only under the hash of its build spec. Then the
    # closures keep the mirrors that were chosen for each.
    if not sets.of_spec.keys() >= listed.keys():
        return tuple(
            dict.fromkeys(mirror for closure in of_specs for mirror in closure.mirrors)
        )
    choices = list(dict.fromkeys(sets.of_spec[spec] for spec in listed))
    return tuple(sets.mirrors[number] for number in smallest_cover(choices))


def _load(lookups: Lookups, specs: Sequence[CoveredSpec]) -> list[str]:
    """Return the commands that load installed specs, and externals with modules."""
    # The keys of dictionaries: each command and each spec once, in order.
    module_lines: dict[str, None] = {}
    spack_specs: dict[str, None] = {}
    for spec in specs:
        # An external of `packages:` is neither.
        if spec.configuration is None or spec.hash is None:
            continue
        package = spec.configuration.package
        installations = installations_of(lookups.conn, package, spec.hash)
        own = [
            commands for commands in installations if commands.release == spec.release
        ]
        if not own:
            continue
        has_module = own[0].alternative is not None
        if has_module:
            module_lines |= dict.fromkeys(own[0].commands)
        else:
            spack_specs[short_spec(lookups.conn, package, spec.hash)] = None
    lines = list(module_lines)
    if spack_specs:
        lines.append(spack_load(*spack_specs))
    return lines
