"""Types the commands of `find --install` and of the page /cover in fresh instances of
Spack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from live_spack.caches import Cache, Maker
from live_spack.check import Check, quoted
from live_spack.databases import Builder, Database
from live_spack.spack import Instance, Result
from spack_cache_db.query.answers.cover import cover
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.open.lookups import opened

NAMED = re.compile(r"\b[\w.-]+/([a-z2-7]{7,32})\b")
"""A binary in a command, as hdf5/nmgcekf."""
BUILDS = re.compile(r"builds (.+) from source")
"""The sentence about packages without a binary."""
NAME = re.compile(r"[\w-]+")


def checks(maker: Maker, builder: Builder, cache: Cache) -> Iterator[Check]:
    """Compare the answers about a cache with what Spack installs, for each of its
    databases.
    """
    for database in builder.databases(cache):
        for spec in (*cache.asked, *cache.lost):
            yield _check(maker, builder, cache, database, spec)
    # The way of reading a cache makes no difference to environments.
    yield from _check_environment(maker, cache, database)


def _check(
    maker: Maker, builder: Builder, cache: Cache, database: Database, spec: str
) -> Check:
    """Ask for the package of a binary, and try what the answer says."""
    package, _, _ = spec.partition("/")
    question = f"{package} in {cache.name}, by {database.way}"
    answer = builder.run("find", package, database.path, "--install")
    commands = printed_commands(answer.output)
    if answer.status == 0:
        return _check_installs(maker, question, commands)

    # The answer says that nothing can be installed: the mirrors must not be enough.
    with maker.fresh() as instance:
        is_installed = _is_installed_from_all(instance, cache, spec)
    if is_installed:
        evidence = quoted(answer.output.splitlines(), "| ")
        return Check(
            question, "does not install", "installed", is_right=False, evidence=evidence
        )

    # It may name packages to build.
    if not commands:
        return Check(question, "does not install", "not installed", is_right=True)
    with maker.fresh() as instance:
        return _builds(instance, question, commands)


def _check_environment(
    maker: Maker, cache: Cache, database: Database
) -> Iterator[Check]:
    """Paste the commands for an environment of all packages, if all have a binary."""
    packages = [spec.partition("/")[0] for spec in cache.asked]
    answer = cover(database.path, packages)
    if answer.available < answer.total:
        return
    with opened(database.path) as lookups:
        install = environment_commands(lookups, answer)
    assert install is not None, answer
    commands = list(install.commands)
    if install.advice:
        commands.insert(0, f"# {install.advice}")
    question = (
        f"environment of {' and '.join(packages)} in {cache.name}, by {database.way}"
    )
    yield _check_installs(maker, question, commands)


def _check_installs(maker: Maker, question: str, commands: list[str]) -> Check:
    """Paste commands that promise binaries, and follow their advice if they fail."""
    with maker.fresh() as instance:
        check = _installs(instance, question, commands)
    advised = as_advised(commands)
    if check.is_right or advised is None:
        return check
    # The database does not know how the mirror is signed, and the answer says what to
    # do.
    with maker.fresh() as instance:
        return _installs(instance, question, advised, "installs, perhaps unsigned")


def printed_commands(output: str) -> list[str]:
    r"""Return the lines to paste: the last paragraph, if it has a command.

    >>> printed_commands("1 binary\n\nhdf5 1.14\n\n# a note\nspack load hdf5\n")
    ['# a note', 'spack load hdf5']
    """
    _, _, paragraph = output.rstrip().rpartition("\n\n")
    lines = paragraph.splitlines()
    has_command = any(line.startswith("spack ") for line in lines)
    return lines if has_command else []


def as_advised(commands: list[str]) -> list[str] | None:
    """Return commands with the advice that a comment among them gives; None if there is
    none.
    """
    is_advised = any(line.startswith("#") and "--unsigned" in line for line in commands)
    if not is_advised:
        return None
    return [line.replace("mirror add ", "mirror add --unsigned ") for line in commands]


def _installs(
    instance: Instance, question: str, commands: list[str], answer: str = "installs"
) -> Check:
    """Paste the commands of an answer that promises a binary."""
    result = instance.paste(commands)
    is_right = result.status == 0 and _has_named(instance, commands)
    return Check(
        question,
        answer,
        "installed" if is_right else "not installed",
        is_right=is_right,
        evidence=_evidence(commands, result),
    )


def _is_installed_from_all(instance: Instance, cache: Cache, spec: str) -> bool:
    """Whether Spack installs a binary if it has all mirrors of a cache, and trusts
    them.
    """
    for mirror in cache.mirrors:
        instance.checked("mirror", "add", "--unsigned", mirror.release, mirror.url)
    return instance.run("install", "--cache-only", spec).status == 0


def _builds(instance: Instance, question: str, commands: list[str]) -> Check:
    """Build exactly the packages that an answer names, and install the rest from
    binaries.

    Builds are fake. Spack uses no binary while it fakes, so that it takes several
    commands.
    """
    *additions, install = commands
    instance.paste(additions)

    # Build all dependencies, and forget those for which the answer promises binaries.
    build_others = "spack install --fake --only dependencies "
    instance.paste([install.replace("spack install ", build_others)])
    named = _packages_to_build(commands)
    for dag_hash, name in instance.installed().items():
        if name not in named:
            instance.checked("uninstall", "--yes-to-all", "--force", f"/{dag_hash}")

    # Now the binaries have to be enough.
    from_binaries = "spack install --cache-only "
    result = instance.paste([install.replace("spack install ", from_binaries)])
    is_installed = result.status == 0 and _has_named(instance, commands)
    is_right = is_installed and len(named) > 0
    return Check(
        question,
        f"builds {', '.join(sorted(named))}",
        "installed the rest" if is_right else "needed more",
        is_right=is_right,
        evidence=_evidence(commands, result),
    )


def _packages_to_build(commands: list[str]) -> set[str]:
    """Return the names in the comment that Spack builds packages from source."""
    for line in commands:
        sentence = BUILDS.search(line)
        if line.startswith("#") and sentence is not None:
            return set(NAME.findall(sentence[1])) - {"and"}
    return set()


def _has_named(instance: Instance, commands: list[str]) -> bool:
    """Whether the binaries that commands name, at least one, are installed."""
    # Commands have the beginnings of hashes.
    beginnings = []
    for line in commands:
        if line.startswith("spack install "):
            beginnings += NAMED.findall(line)

    installed = list(instance.installed())
    for beginning in beginnings:
        if not any(dag_hash.startswith(beginning) for dag_hash in installed):
            return False
    return len(beginnings) > 0


def _evidence(commands: list[str], result: Result) -> str:
    """Return what was typed, and what Spack printed."""
    typed = quoted(commands, "$ ")
    printed = quoted(result.output.splitlines())
    return f"{typed}\n{printed}"
