"""Types the commands of `find --install` in fresh instances of Spack."""

from __future__ import annotations

import re
from collections.abc import Iterator

from live_spack.caches import Cache, Maker
from live_spack.check import Check, quoted
from live_spack.databases import Builder, Database
from live_spack.spack import Instance, Result

NAMED = re.compile(r"\b[\w.-]+/([a-z2-7]{7,32})\b")
"""A binary in a command, as hdf5/nmgcekf."""


def checks(maker: Maker, builder: Builder, cache: Cache) -> Iterator[Check]:
    """Compare the answers about a cache with what Spack installs, for each of its databases."""
    for database in builder.databases(cache):
        for spec in (*cache.asked, *cache.lost):
            yield _check(maker, builder, cache, database, spec)


def _check(maker: Maker, builder: Builder, cache: Cache, database: Database, spec: str) -> Check:
    """Ask for the package of a binary, and try what the answer says."""
    package, _, _ = spec.partition("/")
    question = f"{package} in {cache.name}, by {database.way}"
    answer = builder.run("find", package, database.path, "--install")
    commands = printed_commands(answer.output)
    if answer.status == 0:
        with maker.fresh() as instance:
            check = _installs(instance, question, commands)
        advised = as_advised(commands)
        if check.is_right or advised is None:
            return check
        # The database does not know how the mirror is signed, and the answer says what to do.
        with maker.fresh() as instance:
            return _installs(instance, question, advised, "installs, perhaps unsigned")
    with maker.fresh() as instance:
        is_installed = _is_installed_from_all(instance, cache, spec)
    if is_installed:
        evidence = quoted(answer.output.splitlines(), "| ")
        return Check(question, "does not install", "installed", is_right=False, evidence=evidence)
    if not commands:
        return Check(question, "does not install", "not installed", is_right=True)
    with maker.fresh() as instance:
        return _builds(instance, question, commands)


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
    """Return commands with the advice that a comment among them gives; None if there is none."""
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
    """Whether Spack installs a binary if it has all mirrors of a cache, and trusts them."""
    for mirror in cache.mirrors:
        instance.checked("mirror", "add", "--unsigned", mirror.release, mirror.url)
    return instance.run("install", "--cache-only", spec).status == 0


def _builds(instance: Instance, question: str, commands: list[str]) -> Check:
    """Paste the commands of an answer that a part has to be built, with fake builds."""
    faked = []
    for line in commands:
        faked.append(line.replace("spack install ", "spack install --fake "))
    result = instance.paste(faked)
    is_right = result.status == 0 and _has_named(instance, commands)
    return Check(
        question,
        "builds a part",
        "built" if is_right else "not built",
        is_right=is_right,
        evidence=_evidence(faked, result),
    )


def _has_named(instance: Instance, commands: list[str]) -> bool:
    """Whether the binaries that commands name, at least one, are installed."""
    installed = instance.installed()
    hashes = []
    for line in commands:
        if line.startswith("spack install "):
            hashes += NAMED.findall(line)
    found = [_is_in(part, installed) for part in hashes]
    return bool(found) and all(found)


def _is_in(part: str, installed: dict[str, str]) -> bool:
    return any(dag_hash.startswith(part) for dag_hash in installed)


def _evidence(commands: list[str], result: Result) -> str:
    return f"{quoted(commands, '$ ')}\n{quoted(result.output.splitlines(), '  ')}"
