"""The commands that install the binaries of an environment, and load what is
installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spack_cache_db.query.answers.covered import Cover, CoveredSpec
from spack_cache_db.query.commands.install import install_commands
from spack_cache_db.query.commands.load import (
    installations_of,
    lines_of_machines,
    spack_load,
)
from spack_cache_db.query.commands.model import NO_COMMANDS, Commands, short_spec
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import ids_of_hashes
from spack_cache_db.query.stored.closure import Closure, closures, mirror_sets
from spack_cache_db.query.stored.mirrors import (
    Mirror,
    listing_mirrors,
    mirrored_release,
)
from spack_cache_db.query.stored.smallest_cover import smallest_cover


def environment_commands(lookups: Lookups, cover: Cover) -> Commands | None:
    """Return the commands that install all binaries, and load installed specs; None for
    none.

    For a lockfile, they name only the roots, because Spack adds the dependencies; if no
    root has a binary, they name the other nodes. The mirrors are the fewest that
    together list everything.
    """
    met = [spec for spec in cover.specs if spec.is_met]
    # `is_root` is None for the specs of a `spack.yaml`, which are all named.
    roots = [spec for spec in met if spec.is_root is not False]
    named = roots or met
    binaries = [spec for spec in named if spec.status == "binary"]
    others = [spec for spec in named if spec.status != "binary"]
    installs = _install(lookups, binaries, cover.release)
    loads = _load(lookups, others)
    lines = (*installs.commands, *lines_of_machines(loads))
    if not lines:
        return None
    # Without anything to install, each machine has commands of its own.
    machines = loads if len(loads) > 1 and not installs.commands else ()
    return replace(installs, commands=lines, machines=machines)


def _install(
    lookups: Lookups, specs: Sequence[CoveredSpec], release: int | None
) -> Commands:
    """Return the commands that install the binaries of specs.

    Args:
        lookups: the database.
        specs: specs with a binary.
        release: the id of the release whose mirrors have everything; None for any.
    """
    # Read what the binaries need. Several specs may have one binary.
    hashes = list(dict.fromkeys(spec.hash for spec in specs if spec.hash is not None))
    id_of_hash = ids_of_hashes(lookups.conn, hashes)
    ids = [id_of_hash[dag_hash] for dag_hash in hashes if dag_hash in id_of_hash]
    closure_of = closures(lookups, ids, release)
    if not closure_of:
        return NO_COMMANDS

    # Each closure has mirrors of its own. Give all closures the same ones instead, so
    # that the commands add as few as possible.
    mirrors = fewest_mirrors(lookups, list(closure_of.values()), release)
    joined = [replace(closure, mirrors=mirrors) for closure in closure_of.values()]
    short_specs = []
    for closure in joined:
        binary = closure.binary
        short_specs.append(short_spec(lookups.conn, binary.package, binary.hash))
    return install_commands(joined, short_specs)


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
    # Often one mirror lists everything. Several may have one address.
    mirrors: dict[Mirror, None] = {}
    for closure in of_specs:
        mirrors |= dict.fromkeys(closure.mirrors)
    urls = {mirror.url for mirror in mirrors}
    if len(urls) == 1 and None not in urls:
        return (min(mirrors, key=lambda mirror: mirror.order),)

    # Collect the members that a mirror lists, each once, in order.
    listed: dict[int, None] = {}
    for closure in of_specs:
        for member in closure.binaries:
            if member.release is not None:
                listed[member.spec] = None
    # A set of mirrors is a number, whose bits are the positions in `sets.mirrors`. The
    # mirrors of a copy are those of the release that it copies.
    only_release = None
    if release is not None:
        only_release = mirrored_release(lookups, lookups.releases[release])
    sets = mirror_sets(listing_mirrors(lookups, sorted(listed)), only_release)

    # A mirror may list a spliced spec only under the hash of its build spec. Then take
    # the mirrors that were chosen for each closure.
    is_every_one_found = listed.keys() <= sets.of_spec.keys()
    if not is_every_one_found:
        return tuple(mirrors)

    # Of each set, one mirror must be added.
    choices = list(dict.fromkeys(sets.of_spec[spec] for spec in listed))
    return tuple(sets.mirrors[number] for number in smallest_cover(choices))


def _load(lookups: Lookups, specs: Sequence[CoveredSpec]) -> tuple[Commands, ...]:
    """Return the commands that load installed specs, and externals with modules, for
    each installation that has some of them.
    """
    of_installation: dict[str, list[CoveredSpec]] = {}
    for spec in specs:
        # An external of `packages:` has no spec in the database.
        if spec.release is not None:
            of_installation.setdefault(spec.release, []).append(spec)
    machines = []
    for release, own_specs in of_installation.items():
        lines = _load_on_machine(lookups, own_specs)
        if lines:
            machines.append(Commands(tuple(lines), release))
    return tuple(machines)


def _load_on_machine(lookups: Lookups, specs: Sequence[CoveredSpec]) -> list[str]:
    """Return the commands that load specs of one installation.

    First the specs with modules, and then one command of Spack for all others.
    """
    # The keys of dictionaries: each command and each spec once, in order.
    module_lines: dict[str, None] = {}
    spack_specs: dict[str, None] = {}
    for spec in specs:
        if spec.configuration is None or spec.hash is None:
            continue
        package = spec.configuration.package
        installations = installations_of(lookups.conn, package, spec.hash)
        in_release = [
            commands for commands in installations if commands.release == spec.release
        ]
        if not in_release:
            continue
        first = in_release[0]
        has_module = first.alternative is not None
        if has_module:
            module_lines |= dict.fromkeys(first.commands)
        else:
            spack_specs[short_spec(lookups.conn, package, spec.hash)] = None
    lines = list(module_lines)
    if spack_specs:
        lines.append(spack_load(*spack_specs))
    return lines
