"""The builds of a package as data, for the script that chooses among them.

A server answers each choice on the page of a package. A static export has one page for
each package: its scripts (`static-site/choose.js`) filter these rows. All that the rule
of the choice compares is data here, as ranks of the rows, so that they take the
row that the server would propose.

The commands of most rows differ only in the spec that they install. So there are few
cards, which a template lays out, with marks in place of what differs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from markupsafe import Markup

from spack_cache_db.model import NO_COMPILER, Configuration
from spack_cache_db.query.choice.proposal import BestSpec, best_specs
from spack_cache_db.query.choice.proposed import described_options
from spack_cache_db.query.choice.ranks import UNNAMED, Facts
from spack_cache_db.query.choice.rule import Reason, criteria_of
from spack_cache_db.query.choice.rule_facts import read_facts
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.commands.model import NO_COMMANDS, SHORTEST_HASH, Commands
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.configurations import configuration_of
from spack_cache_db.site.charts.records import Life
from spack_cache_db.site.filters import value_of
from spack_cache_db.site.names_for_people import compiler_name, system_name
from spack_cache_db.site.pages.configurations import ConfigurationRow
from spack_cache_db.site.pages.package_commands import Tab, tabs_of
from spack_cache_db.site.pages.package_processors import processors_of
from spack_cache_db.site.pages.package_versions import build_of, builds_of
from spack_cache_db.site.words import Vocabulary
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import Build, family, is_generic
from spack_cache_db.spack.versions import is_stable

SPEC_MARK = "\ue000"
"""Stands for the spec in the commands of a card: a character that has no meaning."""
SIZE_MARK = "\ue001"
"""Stands for what Spack downloads."""
ENTRY_MARK = "\ue002"
"""Stands for the spec in a spack.yaml."""
_STEPS = (
    Reason.INSTALLED,
    Reason.STABLE,
    Reason.MACHINE,
    Reason.VERSION,
    Reason.COMPILER,
    Reason.OS,
    Reason.TARGET,
)
"""The steps of the rule whose ranks do not depend on what is chosen; that of machines
and targets has another one if a machine is chosen.
"""


Pair = tuple[int, int]
"""Ids of words in two columns."""


class Card(NamedTuple):
    """Commands with marks, in several forms."""

    commands: Commands
    tabs: tuple[Tab, ...]


@dataclass(frozen=True, slots=True)
class BrowserBuilds:
    """The data for the script, and the cards for the template."""

    data: Mapping[str, Any]
    cards: tuple[Card, ...]

    @property
    def json(self) -> Markup:
        """The data as JSON that HTML may contain."""
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return Markup(text.replace("<", "\\u003c"))


Value = TypeVar("Value", bound=Hashable)


class _Numbers(Generic[Value]):
    """Assigns consecutive numbers to values, in the order in which they come."""

    def __init__(self) -> None:
        self.values: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """Return the number of a value."""
        return self.values.setdefault(value, len(self.values))


def browser_builds(
    lookups: Lookups,
    rows: Sequence[Candidate],
    lives: Mapping[str, Life],
    shown: Mapping[Configuration, ConfigurationRow],
    words: Vocabulary,
    newest: str | None,
) -> BrowserBuilds:
    """Return the builds of a package.

    Args:
        lookups: the database.
        rows: its configurations with binaries.
        lives: the days of its versions.
        shown: the row of each configuration in the table of the page.
        words: the vocabulary of the site.
        newest: its newest version, which is a number if it has one.
    """
    best = best_specs(lookups, rows)
    commands = _commands_of(lookups, best, shown.values())
    facts = replace(read_facts(lookups, rows, ()), has_stable=True)
    ranks = _ranks_of(rows, facts)
    order = _order_of_specs(best)

    versions: _Numbers[int] = _Numbers()
    systems: _Numbers[Pair] = _Numbers()
    builds: _Numbers[Build] = _Numbers()
    options: _Numbers[Pair] = _Numbers()
    cards: _Numbers[Card] = _Numbers()
    # In the order in which systems with as many binaries are listed.
    for pair in sorted({(row.key("os"), row.key("compiler")) for row in rows}):
        systems.of(pair)
    table = []
    for row in rows:
        configuration = configuration_of(lookups, row.keys)
        version = versions.of(row.key("version"))
        system = systems.of((row.key("os"), row.key("compiler")))
        build = builds.of(build_of(lookups, row))
        option = options.of((row.key("version"), row.key("variants")))
        entry = [version, system, build, option, row.spec_count, ranks[row.id]]
        item = best.get(row.id)
        if item is not None:
            own = commands.get(item.spec.hash, NO_COMMANDS)
            card, length = _card_of(own, configuration, item.spec.hash)
            entry += [
                [int(passed) for passed in item.standing],
                order[row.id],
                cards.of(card),
                item.spec.hash,
                length,
                shown[configuration].hash if configuration in shown else "",
                own.size or "",
                int(item.is_alone),
            ]
        table.append(entry)

    first = configuration_of(lookups, rows[0].keys)
    data = {
        "package": first.package,
        "noun": words.one,
        "prepositions": dict(words.prepositions),
        "marks": [SPEC_MARK, SIZE_MARK, ENTRY_MARK],
        "unnamed": sorted(UNNAMED),
        "newest": newest,
        "versions": _versions(lookups, versions, facts, lives),
        "systems": _systems(lookups, systems),
        "builds": _builds(builds),
        "processors": _processors(lookups, rows),
        "options": _options(lookups, options, rows, facts),
        "rows": table,
    }
    return BrowserBuilds(data, tuple(cards.values))


def _commands_of(
    lookups: Lookups, best: Mapping[int, BestSpec], shown: Iterable[ConfigurationRow]
) -> dict[str, Commands]:
    """Return the commands for specs by their hashes; most are those of the table."""
    commands = {row.hash: row.commands for row in shown}
    hash_of = {item.spec.id: item.spec.hash for item in best.values()}
    others = [spec for spec, dag_hash in hash_of.items() if dag_hash not in commands]
    for spec, own in commands_of(lookups, others).items():
        commands[hash_of[spec]] = own
    return commands


def _ranks_of(rows: Sequence[Candidate], facts: Facts) -> dict[int, list[int]]:
    """Return the ranks of each row in `_STEPS`, and in the step of machines if one is
    chosen; larger ones are better.
    """
    columns = []
    criteria = {item.reason: item for item in criteria_of(facts)}
    for_host = {item.reason: item for item in criteria_of(replace(facts, host=""))}
    for criterion in [
        *(criteria.get(reason) for reason in _STEPS),
        for_host[Reason.MACHINE],
    ]:
        if criterion is None:
            columns.append([0] * len(rows))
            continue
        values = [criterion.rank(row) for row in rows]
        places = {value: place for place, value in enumerate(sorted(set(values)))}
        columns.append([places[value] for value in values])
    return {
        row.id: list(column)
        for row, column in zip(rows, zip(*columns, strict=True), strict=True)
    }


def _order_of_specs(best: Mapping[int, BestSpec]) -> dict[int, int]:
    """Return the place of each row by the id of its best spec, which decides last."""
    in_order = sorted(best, key=lambda row_id: best[row_id].spec.id)
    return {row_id: place for place, row_id in enumerate(in_order)}


def _card_of(
    commands: Commands, configuration: Configuration, dag_hash: str
) -> tuple[Card, int]:
    """Return commands with marks, and the length of the hash in them."""
    # The forms need the closures, which differ from row to row.
    tabs = tabs_of(commands, configuration)
    length = len(dag_hash)
    while length > SHORTEST_HASH and f"/{dag_hash[:length]}" not in commands.text:
        length -= 1
    spec = f"{configuration.package}/{dag_hash[:length]}"

    entry = json.dumps(configuration.spec)

    def marked(lines: Iterable[str]) -> tuple[str, ...]:
        texts = []
        for line in lines:
            text = line.replace(entry, f'"{ENTRY_MARK}"')
            texts.append(text.replace(spec, SPEC_MARK))
        return tuple(texts)

    card = replace(
        commands,
        commands=marked(commands.commands),
        size=SIZE_MARK if commands.size else None,
        closures=(),
    )
    forms = tuple(tab._replace(lines=marked(tab.lines)) for tab in tabs)
    return Card(card, forms), length


def _versions(
    lookups: Lookups, numbers: _Numbers[int], facts: Facts, lives: Mapping[str, Life]
) -> list[list[Any]]:
    """Return for each version: its name; the words for its days; whether the newest
    snapshot lacks it; whether it counts as stable; and its place in Spack's order.
    """
    names = lookups.words["version"]
    versions = []
    for key in numbers.values:
        name = names[key]
        life = lives.get(name)
        counts = is_stable(name) and name not in facts.deprecated
        versions.append(
            [
                name,
                life.words if life else "",
                int(life is not None and life.is_gone),
                int(counts),
                lookups.positions[key],
            ]
        )
    return versions


def _systems(lookups: Lookups, numbers: _Numbers[Pair]) -> list[list[str]]:
    """Return for each system: the operating system and the compiler, as values of
    filters; their names for people; and the compiler as Spack has it.
    """
    systems = []
    for os_key, compiler_key in numbers.values:
        os_name = lookups.words["os"][os_key]
        compiler = lookups.words["compiler"][compiler_key]
        systems.append(
            [
                os_name,
                value_of("compiler", compiler),
                system_name(os_name),
                compiler_name(compiler),
                "" if compiler == NO_COMPILER else compiler,
            ]
        )
    return systems


def _builds(numbers: _Numbers[Build]) -> list[list[Any]]:
    """Return for each platform and target: these, the family of the target, and whether
    the target is generic.
    """
    builds = []
    for platform, target in numbers.values:
        builds.append([platform, target, family(target), int(is_generic(target))])
    return builds


def _processors(lookups: Lookups, rows: Sequence[Candidate]) -> list[list[str]]:
    """Return the processors of the chooser: name, note, and the filters of the machine;
    then the target and the platform of its own binaries.
    """
    every_build = builds_of(lookups, rows)
    processors = []
    for processor in processors_of(lookups, every_build):
        filters = processor.host_filters(every_build)
        processors.append(
            [
                processor.name,
                processor.note,
                filters.host or "",
                filters.platform or "",
                processor.target,
                processor.platform,
            ]
        )
    return processors


def _options(
    lookups: Lookups, numbers: _Numbers[Pair], rows: Sequence[Candidate], facts: Facts
) -> dict[str, Any]:
    """Return the sets of variants, and for each version with a set: the set, how many
    binaries have it, the names of options that are not the default ones, and the
    options in the words of a build.

    Without package data, the defaults are not known: an empty name stands for that.
    """
    texts: _Numbers[str] = _Numbers()
    sets: _Numbers[tuple[int, ...]] = _Numbers()
    rows_of_key = {(row.key("version"), row.key("variants")): row for row in rows}
    pairs = []
    for key in numbers.values:
        row = rows_of_key[key]
        variants = lookups.words["variants"][row.key("variants")]
        members = tuple(texts.of(text) for text in variants)
        odd = [_name_of(text) for text in variants if not facts.is_default(text)]
        if not facts.defaults:
            odd.append("")
        uses = facts.option_uses(row.key("version")).get(row.key("variants"), 0)
        described = []
        if facts.defaults:
            named = described_options(row, [row], facts)
            described = [texts.of(text) for text in named]
        pairs.append([sets.of(members), uses, odd, described])
    return {
        "texts": list(texts.values),
        "sets": list(sets.values),
        "pairs": pairs,
        "hasDefaults": bool(facts.defaults),
    }


def _name_of(text: str) -> str:
    variant = readable_variant(text)
    return text if variant is None else variant.name
