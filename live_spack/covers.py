"""Compares `cover` with what Spack's solver takes from a build cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from live_spack.caches import Cache, Maker, site_packages
from live_spack.check import Check, quoted
from live_spack.databases import Builder, Database
from live_spack.spack import write_yaml

SPEC = "hdf5~mpi"
"""The only spec of each environment."""
FILTERS: dict[str, Mapping[str, object]] = {
    "exclude hdf5": {"exclude": ["hdf5"]},
    "exclude zlib-ng": {"exclude": ["zlib-ng"]},
    "exclude cmake": {"exclude": ["cmake"]},
    "exclude other hdf5": {"exclude": ["hdf5+mpi"]},
    "include hdf5": {"include": ["hdf5"]},
    "include both": {"include": ["hdf5", "zlib-ng", "gcc-runtime", "pkgconf"]},
}
"""Settings of a build cache in `concretizer:reuse:from`."""
PACKAGES: dict[str, Mapping[str, object]] = {
    "variants: ~hl": {"hdf5": {"variants": "~hl"}},
    "variants of a dependency": {"zlib-ng": {"variants": "+opt"}},
    "version": {"hdf5": {"version": ["1.14.5"]}},
    "prefer: ~hl": {"hdf5": {"prefer": ["~hl"]}},
    "prefer, dependency": {"zlib-ng": {"prefer": ["+opt"]}},
    "require: ~hl": {"hdf5": {"require": ["~hl"]}},
    "require, dependency": {"zlib-ng": {"require": ["+opt"]}},
    "conflict": {"hdf5": {"conflict": ["@1.14"]}},
}
"""Sections `packages`."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of an environment.

    Attributes:
        name: what is special about them.
        cache: the cache that the environment uses.
        sections: sections of its spack.yaml.
        may_be_unknown: whether the settings alone do not decide if the binary is taken.
    """

    name: str
    cache: Cache
    sections: Mapping[str, object] = field(default_factory=dict)
    may_be_unknown: bool = False


def configurations(maker: Maker) -> list[Configuration]:
    """Return the configurations that are compared, after pushing what they need."""
    found = _of_reuse(maker.unusual())
    found += _of_preferences(found[0].cache)
    found.append(Configuration("no dependencies", maker.partial_unusual()))
    return found + _of_externals(maker)


def _of_reuse(cache: Cache) -> list[Configuration]:
    """Settings of `concretizer:reuse`, the first of them none."""
    found = [Configuration("no settings", cache)]
    for name, value in _values_of_reuse().items():
        sections = {"concretizer": {"reuse": value}}
        is_open = name not in ("true", "exclude other hdf5", "exclude cmake")
        configuration = Configuration(
            f"reuse: {name}", cache, sections, may_be_unknown=is_open
        )
        found.append(configuration)
    return found


def _values_of_reuse() -> dict[str, object]:
    """Return values of `concretizer:reuse`, by their name."""
    values: dict[str, object] = {
        "true": True,
        "false": False,
        "dependencies": "dependencies",
        "roots: false": {"roots": False},
        "from local": {"from": [{"type": "local"}]},
    }
    for name, filters in FILTERS.items():
        values[name] = {"from": [{"type": "buildcache", **filters}]}
    return values


def _of_preferences(cache: Cache) -> list[Configuration]:
    """Preferences, the weak and the strong ones, and requirements."""
    found = []
    for name, packages in PACKAGES.items():
        found.append(Configuration(name, cache, {"packages": packages}))
    return found


def _of_externals(maker: Maker) -> list[Configuration]:
    """An environment whose binary needs an external, declared in several ways."""
    cache = maker.external()
    here = {"packages": site_packages(maker.site_zlib)}
    elsewhere = {"packages": site_packages(maker.site_zlib.parent)}
    return [
        Configuration("external not declared", cache, may_be_unknown=True),
        Configuration("external declared", cache, here),
        Configuration("external elsewhere", cache, elsewhere),
    ]


def checks(maker: Maker, builder: Builder) -> Iterator[Check]:
    """Compare the status of each configuration with what Spack concretizes."""
    databases: dict[str, Database] = {}
    for configuration in configurations(maker):
        cache = configuration.cache
        if cache.name not in databases:
            databases[cache.name] = next(builder.databases(cache))
        yield _check(maker, builder, databases[cache.name], configuration)


def _check(
    maker: Maker, builder: Builder, database: Database, configuration: Configuration
) -> Check:
    """Ask whether the binary is taken, and concretize the same environment."""
    environment = {"specs": [SPEC], "view": False, **configuration.sections}
    with maker.fresh() as instance:
        file = instance.folder / "environment" / "spack.yaml"
        write_yaml(file, {"spack": environment})

        # Our answer.
        answer = builder.run("cover", file, database.path, "--json")
        (spec,) = json.loads(answer.output)["specs"]

        # What Spack does.
        for mirror in configuration.cache.mirrors:
            instance.checked("mirror", "add", "--unsigned", mirror.release, mirror.url)
        instance.checked("-e", file.parent, "concretize")
        root = _root(file.with_name("spack.lock"))

    is_taken = root in configuration.cache.asked
    is_right = agrees(
        spec["status"], is_taken=is_taken, may_be_unknown=configuration.may_be_unknown
    )
    written = yaml.safe_dump(environment).splitlines()
    return Check(
        question=f"cover, {configuration.name}",
        answer=spec["status"],
        seen="took the binary" if is_taken else "did not take it",
        is_right=is_right,
        evidence=quoted(written + spec["reasons"]),
    )


def agrees(status: str, *, is_taken: bool, may_be_unknown: bool) -> bool:
    """Whether a status of `cover` is true of what Spack took.

    >>> agrees("binary", is_taken=False, may_be_unknown=True)
    False
    """
    if status == "unknown":
        return may_be_unknown
    return (status == "binary") == is_taken


def _root(lock: Path) -> str:
    """Return name/hash of the root of a lockfile."""
    (root,) = json.loads(lock.read_text(encoding="utf-8"))["roots"]
    return f"hdf5/{root['hash']}"
