"""A `spack.yaml` → the specs that it asks for, each with what is required of it.

Read are `specs`, `definitions` and the requirements of `packages`. What would change the answer and
cannot be read (`include`, `include_concrete`, `when`) is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from spack_cache_db.bounded_yaml import compose, line_of
from spack_cache_db.environments.environment import (
    TOP_KEYS,
    Faults,
    Limits,
    SpecLine,
    UserSpec,
    UserSpecs,
    Work,
)
from spack_cache_db.environments.requirements import (
    NO_REQUIREMENTS,
    Requirements,
    read_requirements,
)
from spack_cache_db.environments.sections import BOUNDS, entries_of, is_nothing, items_of
from spack_cache_db.environments.spec_lists import SpecLists
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.intersection import UnsatisfiableSpec

_REFUSED = {
    "include": "names other files, which are not read: write what they say of specs, definitions "
    "and packages here, or give one spec a line",
    "include_concrete": "names other environments, which are not read: give their spack.lock",
}
_WHEN = (
    "when: is Python that asks for the machine, which is not run: "
    "leave out the lists that do not apply, and the when: of those that do"
)


def read_manifest(text: str, path: str, limits: Limits) -> UserSpecs:
    """Return what a `spack.yaml` asks for.

    Args:
        text: the file.
        path: what to call it in messages.
        limits: how much it may ask for.

    Raises:
        UnreadableEnvironment: with all that is wrong with it.
    """
    faults = Faults(path)
    found = UserSpecs(())
    with faults.collected():
        found = _read(_section(compose(text, BOUNDS)), faults, limits)
    faults.raise_any()
    return found


def _section(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return the entries under `spack`."""
    top = {} if node is None else entries_of(node, "an environment")
    section = next((top[key] for key in TOP_KEYS if key in top), None)
    if section is None:
        raise LineFault(1, "has no key spack:, expected a spack.yaml, or one spec on each line")
    return entries_of(section, "an environment")


def _read(section: dict[str, yaml.Node], faults: Faults, limits: Limits) -> UserSpecs:
    for key, said in _REFUSED.items():
        if key in section and not _is_empty(section[key]):
            faults.add(line_of(section[key]), f"{key}: {said}")
    work = Work(limits)
    lists, requirements = SpecLists(limits, work), NO_REQUIREMENTS
    for name, parts in _definitions(section, faults).items():
        with faults.collected():
            lists.define(name, parts)
    with faults.collected():
        if "packages" in section:
            requirements = read_requirements(section["packages"])
    specs: tuple[UserSpec, ...] = ()
    with faults.collected():
        if "specs" in section:
            listed = lists.specs(lists.items(section["specs"]))
            specs = tuple(_user_spec(each, requirements, work) for each in listed)
    return UserSpecs(specs, tuple(_notes(section, requirements, specs)))


def _is_empty(node: yaml.Node) -> bool:
    return is_nothing(node) or (isinstance(node, yaml.CollectionNode) and not node.value)


def _definitions(section: dict[str, yaml.Node], faults: Faults) -> dict[str, list[yaml.Node]]:
    """Return all lists of each name, in the order in which the names first stand."""
    found: dict[str, list[yaml.Node]] = {}
    with faults.collected():
        for entry in items_of(section["definitions"], "lists") if "definitions" in section else ():
            with faults.collected():
                named = entries_of(entry, "the name of a list, and its specs,")
                if "when" in named:
                    raise LineFault(line_of(named["when"]), _WHEN)
                if len(named) != 1:
                    said = f"has {len(named)} names, expected one for each list"
                    raise LineFault(line_of(entry), said)
                ((name, node),) = named.items()
                found.setdefault(name, []).append(node)
    return found


def _user_spec(found: SpecLine, requirements: Requirements, work: Work) -> UserSpec:
    if found.query is None:
        return UserSpec(found.text, found.line, error=found.error)
    try:
        return UserSpec(found.text, found.line, requirements.alternatives(found.query, work))
    except UnsatisfiableSpec as error:
        return UserSpec(found.text, found.line, error=str(error))


def _notes(
    section: dict[str, yaml.Node], requirements: Requirements, specs: tuple[UserSpec, ...]
) -> Iterator[str]:
    yield from requirements.notes
    asked = {each.query.name for spec in specs for each in spec.alternatives} | {"all"}
    others = sorted(
        {*requirements.required, *requirements.conflicts} - {str(each) for each in asked}
    )
    if others:
        yield f"packages: requirements of dependencies are left aside (of {', '.join(others)})"
    if "develop" in section and not _is_empty(section["develop"]):
        yield "develop: packages that are built from your own sources are looked for as any other"
