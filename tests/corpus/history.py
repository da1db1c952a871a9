"""An invented history of the build cache: which binaries exist, and which release lists which.

Owns the proportions that the real site has: about 1,250 packages, weekly snapshots in which about
a quarter of the hashes are new, a `develop` that keeps half a year of hashes, ten to twenty specs
in one configuration there. Knows nothing of pages and how they are written. Everything is drawn
from generators seeded by name, so the same scale always gives the same history.
"""

from __future__ import annotations

from base64 import b32encode
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import log
from random import Random

from tests.corpus import vocabulary
from tests.corpus.releases import Release, first_week_of_era_a, releases
from tests.corpus.vocabulary import Environment

PACKAGES = 1_275
SNAPSHOTS = 80
MAX_PACKAGE_FACTOR = 5.0
"""Beyond this scale the history grows longer instead: Spack has some 8,000 packages, not 80,000."""

TURNOVER = 0.253
MEAN_SLOTS = 11.15
MAX_SLOTS = 60


@dataclass(frozen=True, slots=True)
class Variety:
    """How much the specs of a package differ, which decides how often the text of one repeats."""

    weeks_per_version: int
    slots_per_recipe: float
    stack_counts: tuple[int, ...]


VARIETIES = {
    "usual": Variety(38, 1.6, (1, 1, 2, 2, 3)),
    "high": Variety(14, 1.0, (1, 1, 2)),
}
"""`usual` has 16 configurations a package, as the real site, and `high` some 50."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a person sees of a spec; `variants` is written as in era C, sorted by name."""

    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """One spec in one release."""

    hash: str
    configuration: Configuration
    stacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way in which a package is built, whatever the week."""

    environment: Environment
    variants: tuple[str, ...]
    version_lag: int


@dataclass(frozen=True, slots=True)
class Slot:
    """One node of some stack's environment: it gets a new hash whenever a dependency changes."""

    key: str
    recipe: Recipe
    stacks: tuple[str, ...]
    births: tuple[int, ...]

    def generations(self, release: Release) -> range:
        """The numbers of the hashes that `release` lists, oldest first."""
        newest = bisect_right(self.births, release.week) - 1
        oldest = bisect_right(self.births, release.week - release.weeks_kept + 1) - 1
        return range(max(oldest, 0), newest + 1)

    def listing(self, package: Package, generation: int, week: int) -> Listing:
        """Return the spec that this slot's hash number `generation` names."""
        digest = blake2b(f"{self.key}/{generation}".encode(), digest_size=20).digest()
        stacks = self.stacks
        # One week in eight a stack's pipeline is behind, and its index lacks the spec.
        if len(stacks) > 1 and (digest[0] + week) % 8 == 0:
            stacks = stacks[:-1]
        configuration = package.configuration(self.recipe, self.births[generation])
        return Listing(b32encode(digest).decode().lower(), configuration, stacks)


@dataclass(frozen=True, slots=True)
class Package:
    """A package with its versions, the weeks in which they came, and its slots."""

    name: str
    first_week: int
    versions: tuple[str, ...]
    bumps: tuple[int, ...]
    renamed: int
    slots: tuple[Slot, ...]
    known: dict[tuple[int, int, bool], Configuration]

    def configuration(self, recipe: Recipe, week: int) -> Configuration:
        """Return what `recipe` gave in `week`; one object for every equal answer."""
        bump = max(bisect_right(self.bumps, week) - recipe.version_lag, 0)
        key = (id(recipe), bump, week >= self.renamed)
        found = self.known.get(key)
        if found is None:
            where = recipe.environment
            compiler = where.compiler_since_a if week >= self.renamed else where.compiler
            found = Configuration(
                self.name,
                self.versions[bump],
                compiler,
                where.os,
                where.platform,
                where.target,
                recipe.variants,
            )
            self.known[key] = found
        return found

    def listings(self, release: Release) -> list[Listing]:
        """Return what `release` lists of this package, in the order of the slots."""
        if release.week < self.first_week:
            return []
        return [
            slot.listing(self, generation, release.week)
            for slot in self.slots
            for generation in slot.generations(release)
        ]


@dataclass(frozen=True, slots=True)
class History:
    """All releases and all packages, each sorted by name."""

    releases: tuple[Release, ...]
    packages: tuple[Package, ...]

    def spec_count(self) -> int:
        """Count the distinct hashes that any release lists."""
        return sum(
            len({number for release in self._with(package) for number in slot.generations(release)})
            for package in self.packages
            for slot in package.slots
        )

    def _with(self, package: Package) -> Iterator[Release]:
        return (release for release in self.releases if release.week >= package.first_week)


def history(scale: float, variety: Variety = VARIETIES["usual"]) -> History:
    """Invent the history of a site `scale` times the size of the real one."""
    factor = min(scale, MAX_PACKAGE_FACTOR)
    snapshots = round(SNAPSHOTS * scale / factor)
    made = releases(snapshots)
    names = vocabulary.package_names(max(round(PACKAGES * factor), 1))
    sizes = list(range(len(names)))
    Random("sizes").shuffle(sizes)
    weeks = range(min(release.week for release in made), snapshots)
    renamed = first_week_of_era_a(snapshots)
    packages = tuple(
        _package(name, (rank + 0.5) / len(names), weeks, renamed, variety)
        for name, rank in zip(names, sizes, strict=True)
    )
    return History(made, packages)


def _package(name: str, rank: float, weeks: range, renamed: int, variety: Variety) -> Package:
    random = Random(f"package {name}")
    # Sizes are quantiles, not draws, so that a corpus of 12 packages has the shape of a large one.
    slots = min(round(0.6 - (MEAN_SLOTS - 0.6) * log(1 - rank)) or 1, MAX_SLOTS)
    kind = vocabulary.kind(name, random)
    recipes = _recipes(kind, max(round(slots / variety.slots_per_recipe), 1), random)
    most_versions = len(weeks) // variety.weeks_per_version
    return Package(
        name,
        _first_week(random, weeks) if kind != "none" else renamed,
        versions=vocabulary.versions(most_versions + 3, random),
        bumps=tuple(_births(random, weeks, 1 / variety.weeks_per_version, most_versions)),
        renamed=renamed,
        slots=tuple(
            _slot(f"{name}/{n}", recipes[n % len(recipes)], weeks, variety.stack_counts)
            for n in range(slots)
        ),
        known={},
    )


def _recipes(kind: str, count: int, random: Random) -> list[Recipe]:
    template = vocabulary.variants(kind, random)
    environments = vocabulary.environments(kind, count, random)
    return [
        Recipe(
            random.choice(environments),
            vocabulary.flipped(template, random),
            version_lag=int(random.random() < 0.3),
        )
        for _ in range(count)
    ]


def _slot(key: str, recipe: Recipe, weeks: range, stack_counts: Sequence[int]) -> Slot:
    random = Random(f"slot {key}")
    pool = recipe.environment.stacks
    stacks = tuple(random.sample(pool, min(len(pool), random.choice(stack_counts))))
    return Slot(key, recipe, stacks, (weeks.start, *_births(random, weeks, TURNOVER, len(weeks))))


def _births(random: Random, weeks: range, chance: float, most: int) -> list[int]:
    return [week for week in weeks[1:] if random.random() < chance][:most]


def _first_week(random: Random, weeks: range) -> int:
    draw = random.random()
    if draw < 0.62 or not weeks:
        return weeks.start
    return random.randrange(weeks.start, 0) if draw < 0.95 else random.randrange(0, weeks.stop)
