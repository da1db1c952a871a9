"""An invented history of the build cache: which binaries exist, and which release lists
which.

It has the proportions of the real site: about 1,250 packages, weekly snapshots in which
a quarter
of the hashes are new, a `develop` that keeps half a year of hashes, ten to twenty specs
in one configuration there. Everything is drawn from generators seeded by name, so the
same scale always gives the same history. Weeks are counted from the first snapshot;
those before it are negative.
"""

from base64 import b32encode
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import blake2b
from math import log
from random import Random

from tests.corpus import vocabulary
from tests.corpus.vocabulary import Environment

PACKAGES = 1_275
SNAPSHOTS = 80
MAX_PACKAGE_FACTOR = 5.0
"""Beyond this scale the history grows longer instead: Spack has some 8,000 packages,
not 80,000.
"""
TURNOVER = 0.253
MEAN_SLOTS = 11.15
MAX_SLOTS = 60
DEVELOP_WEEKS = 30
"""How long `develop` keeps a hash after its last snapshot."""

LAST_SNAPSHOT = date(2025, 7, 13)
ERA_B_FROM = date(2025, 1, 1)
ERA_A_FROM = date(2025, 4, 20)
NAMED_RELEASES = (
    ("v0.18", date(2022, 5, 28)),
    ("v0.19", date(2022, 11, 11)),
    ("v0.20", date(2023, 5, 21)),
    ("v0.21", date(2023, 11, 11)),
    ("v0.22", date(2024, 5, 12)),
    ("v0.22.1", date(2024, 7, 4)),
    ("v0.23", date(2024, 11, 13)),
    ("v0.23.1", date(2025, 2, 19)),
    ("v2025.06.0", date(2025, 6, 22)),
)
LAST_ERA_C_RELEASE = 5


@dataclass(frozen=True, slots=True)
class Variety:
    """How much the specs of a package differ, which decides how often the text of one
    repeats.
    """

    weeks_per_version: int
    slots_per_recipe: float
    stack_counts: tuple[int, ...]


VARIETIES = {
    "usual": Variety(38, 1.6, (1, 1, 2, 2, 3)),
    "high": Variety(14, 1.0, (1, 1, 2)),
}
"""`usual` has 16 configurations a package, as the real site, and `high` some 50."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release: the week it was made in, and for how many weeks back it keeps
    hashes.
    """

    name: str
    era: str
    week: int
    weeks_kept: int = 1

    @property
    def is_named(self) -> bool:
        """Whether this is a `v…` release rather than the branch or a snapshot of it."""
        return self.name.startswith("v")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a spec; `variants` is written as in era C, sorted by
    name.
    """

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
    """One node of some stack's environment: it gets a new hash whenever a dependency
    changes.
    """

    key: str
    recipe: Recipe
    stacks: tuple[str, ...]
    births: tuple[int, ...]

    def generations(self, release: Release) -> range:
        """Return the numbers of the hashes that `release` lists, oldest first."""
        newest = bisect_right(self.births, release.week) - 1
        oldest = bisect_right(self.births, release.week - release.weeks_kept + 1) - 1
        return range(max(oldest, 0), newest + 1)

    def listing(self, package: "Package", generation: int, week: int) -> Listing:
        """Return the spec that this slot's hash number `generation` names."""
        digest = blake2b(f"{self.key}/{generation}".encode(), digest_size=20).digest()
        # One week in eight a stack's pipeline is behind, and its index lacks the spec.
        is_behind = len(self.stacks) > 1 and (digest[0] + week) % 8 == 0
        configuration = package.configuration(self.recipe, self.births[generation])
        stacks = self.stacks[:-1] if is_behind else self.stacks
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
        """Return the configuration of `recipe` in `week`; one object for every equal
        answer.
        """
        bump = max(bisect_right(self.bumps, week) - recipe.version_lag, 0)
        key = (id(recipe), bump, week >= self.renamed)
        if key not in self.known:
            where = recipe.environment
            compiler = (week >= self.renamed and where.renamed) or where.compiler
            place = (where.os, where.platform, where.target)
            self.known[key] = Configuration(
                self.name, self.versions[bump], compiler, *place, recipe.variants
            )
        return self.known[key]

    def listings(self, release: Release) -> list[Listing]:
        """Return the listings of this package in `release`, in the order of the
        slots.
        """
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
        """Return the number of distinct hashes that any release lists."""
        count = 0
        for package in self.packages:
            releases = [
                release
                for release in self.releases
                if release.week >= package.first_week
            ]
            for slot in package.slots:
                generations: set[int] = set()
                for release in releases:
                    generations.update(slot.generations(release))
                count += len(generations)
        return count


def history(scale: float, variety: Variety = VARIETIES["usual"]) -> History:
    """Invent the history of a site `scale` times the size of the real one."""
    factor = min(scale, MAX_PACKAGE_FACTOR)
    snapshots = round(SNAPSHOTS * scale / factor)
    first = LAST_SNAPSHOT - timedelta(weeks=snapshots - 1)
    releases = _releases(first, snapshots)
    names = vocabulary.package_names(max(round(PACKAGES * factor), 1))
    sizes = list(range(len(names)))
    Random("sizes").shuffle(sizes)
    weeks = range(min(release.week for release in releases), snapshots)
    renamed = (ERA_A_FROM - first).days // 7
    packages = tuple(
        _package(name, (rank + 0.5) / len(names), weeks, renamed, variety)
        for name, rank in zip(names, sizes, strict=True)
    )
    return History(releases, packages)


def _releases(first: date, snapshots: int) -> tuple[Release, ...]:
    """Return the branch, its snapshots and the named releases, sorted by name."""
    days = [first + timedelta(weeks=week) for week in range(snapshots)]
    found = [
        Release(f"develop-{day}", _era(day), week) for week, day in enumerate(days)
    ]
    found.append(Release("develop", "A", snapshots - 1, DEVELOP_WEEKS))
    for number, (name, day) in enumerate(NAMED_RELEASES):
        era = "C" if number <= LAST_ERA_C_RELEASE else _era(max(day, ERA_B_FROM))
        found.append(Release(name, era, (day - first).days // 7))
    return tuple(sorted(found, key=lambda release: release.name))


def _era(day: date) -> str:
    if day < ERA_B_FROM:
        return "C"
    return "B" if day < ERA_A_FROM else "A"


def _package(
    name: str, rank: float, weeks: range, renamed: int, variety: Variety
) -> Package:
    random = Random(f"package {name}")
    # Sizes are quantiles, not draws, so that a corpus of 12 packages has the shape of a
    # large one.
    slots = min(round(0.6 - (MEAN_SLOTS - 0.6) * log(1 - rank)) or 1, MAX_SLOTS)
    kind = vocabulary.kind(name, random)
    count = max(round(slots / variety.slots_per_recipe), 1)
    template = vocabulary.variants(kind, random)
    environments = vocabulary.environments(kind, count, random)
    recipes = [
        Recipe(
            random.choice(environments),
            vocabulary.flipped(template, random),
            version_lag=int(random.random() < 0.3),
        )
        for _ in range(count)
    ]
    # The order of these steps decides what `random` gives to each.
    first_week = renamed if kind == "none" else _first_week(random, weeks)
    most_versions = len(weeks) // variety.weeks_per_version
    versions = vocabulary.versions(most_versions + 3, random)
    bumps = _births(random, weeks, 1 / variety.weeks_per_version, most_versions)
    return Package(
        name,
        first_week,
        versions=versions,
        bumps=tuple(bumps),
        renamed=renamed,
        slots=tuple(
            _slot(f"{name}/{number}", recipes[number % count], weeks, variety)
            for number in range(slots)
        ),
        known={},
    )


def _slot(key: str, recipe: Recipe, weeks: range, variety: Variety) -> Slot:
    random = Random(f"slot {key}")
    pool = recipe.environment.stacks
    stacks = tuple(
        random.sample(pool, min(len(pool), random.choice(variety.stack_counts)))
    )
    return Slot(
        key,
        recipe,
        stacks,
        (weeks.start, *_births(random, weeks, TURNOVER, len(weeks))),
    )


def _births(random: Random, weeks: range, chance: float, most: int) -> list[int]:
    return [week for week in weeks[1:] if random.random() < chance][:most]


def _first_week(random: Random, weeks: range) -> int:
    draw = random.random()
    if draw < 0.62 or not weeks:
        return weeks.start
    return (
        random.randrange(weeks.start, 0)
        if draw < 0.95
        else random.randrange(0, weeks.stop)
    )
