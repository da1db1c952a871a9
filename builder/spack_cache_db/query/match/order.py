"""The order in which every answer lists configurations: what most people can use comes
first.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.spack.targets import MAC, ancestors, is_mac, machine_of

# Explicitly installed configurations come first, then other installed ones.
_INSTALLED_FIRST = """
id NOT IN (
  SELECT specs.configuration_id FROM installations JOIN specs ON specs.hash = installations.hash
  WHERE installations.explicit),
id NOT IN (
  SELECT configuration_id FROM configuration_history
  WHERE spec_count > 0 AND release_id IN (SELECT value FROM json_each(:trees))),
"""
# By platform and family of CPUs, the most common first; within a package by Spack's
# preferred version, then the nearest target, then current releases. The ids of packages
# are in the order of their names, those of versions in Spack's preference.
_ORDER = """
platform_id <> (SELECT id FROM platforms WHERE name = :usual_platform),
platform_id,
(SELECT CASE family WHEN 'x86_64' THEN '' ELSE family END
  FROM targets WHERE targets.id = configurations.target_id),
package_id,
-version_id,
{nearest}
(SELECT min(release_id) FROM configuration_history
  WHERE configuration_id = configurations.id AND configuration_history.spec_count > 0),
id
"""
# The position of the target in a list.
_NEAREST = "(SELECT key FROM json_each(:nearest) WHERE value = target_id),"


class Order(NamedTuple):
    """The terms of an ORDER BY over the table `configurations`, and their
    parameters.
    """

    sql: str
    parameters: dict[str, Any]


def order_for(lookups: Lookups, conditions: Conditions) -> Order:
    """Return the order in which every answer lists configurations.

    Installed configurations come first, then configurations that run on most machines.
    If the conditions choose a machine (`--host zen4`, `target=:zen4`), configurations
    for the nearest target come before configurations for older targets, and for a Mac
    those of macOS before those of Linux.
    """
    nearest = ""
    host = chosen_machine(conditions)
    has_macos_first = host is not None and is_mac(host)
    parameters: dict[str, Any] = {"usual_platform": MAC if has_macos_first else "linux"}
    if host:
        # The targets that run on the machine, the nearest first.
        id_of_target = {name: key for key, name in lookups.words["target"].items()}
        targets = [host, *ancestors(host)]
        ids = [id_of_target[name] for name in targets if name in id_of_target]
        parameters["nearest"] = json.dumps(ids)
        nearest = _NEAREST
    sql = _ORDER.format(nearest=nearest)
    installations = lookups.trees()
    if installations:
        parameters["trees"] = json.dumps(installations)
        sql = _INSTALLED_FIRST + sql
    return Order(sql, parameters)


def chosen_machine(conditions: Conditions) -> str | None:
    """Return the CPU target of the machine that conditions choose; None if they choose
    none.
    """
    host = condition_value(conditions, "host")
    if host is not None:
        return host
    # `target=:zen4` is all that runs on zen4.
    target = condition_value(conditions, "target")
    return machine_of(target) if isinstance(target, str) else None
