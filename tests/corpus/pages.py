"""Pages of an invented history, in the folder structure and the formats of the real
site.

Era A sorts everything and marks multi-valued variants with `:=`; era B still writes
compilers with `@=`; era C keeps insertion order, lists specs unsorted and names their
tarballs.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path

import click

from tests.corpus import history
from tests.corpus.history import Configuration, Listing, Release
from tests.corpus.vocabulary import MULTI_VALUED
from tests.pagetexts import page_of

SCALE = click.FloatRange(0.01, 10.0)
VARIETY = click.Choice(list(history.VARIETIES))
ROOT = "root"


@dataclass(slots=True)
class Totals:
    """Numbers of a corpus."""

    pages: int = 0
    page_bytes: int = 0
    listings: int = 0
    specs: int = 0


def write(out: Path, scale: float, variety: str = "usual") -> Totals:
    """Write a corpus into a folder: the same bytes for the same scale, on every
    machine.
    """
    site = history.history(scale, history.VARIETIES[variety])
    totals = Totals(specs=site.spec_count())
    for path, data, listings in pages(site):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
        totals.pages += 1
        totals.page_bytes += len(data)
        totals.listings += listings
    return totals


def pages(site: history.History) -> Iterator[tuple[str, bytes, int]]:
    """Yield path, bytes and number of listings of every page, by release and
    package.
    """
    for release in site.releases:
        for package in site.packages:
            if listings := package.listings(release):
                path = f"_cache/{release.name}/{package.name}/specs.md"
                yield path, _page(package.name, release, listings), len(listings)


def _page(package: str, release: Release, listings: Sequence[Listing]) -> bytes:
    if release.era != "C":
        listings = sorted(listings, key=attrgetter("hash"))
    stacks = [_stacks(listing, release) for listing in listings]
    meta = _meta(release, [listing.configuration for listing in listings], stacks)
    write_spec = _insertion_order if release.era == "C" else _sorted_keys
    pairs = zip(listings, stacks, strict=True)
    specs = ", ".join(write_spec(listing, names, release) for listing, names in pairs)
    return page_of(package, release.name, json.dumps(meta), f"[{specs}]")


def _stacks(listing: Listing, release: Release) -> tuple[str, ...]:
    if release.era != "C":
        return tuple(sorted((*listing.stacks, ROOT)))
    return listing.stacks if release.is_named else (ROOT, *listing.stacks)


def _meta(
    release: Release, found: Sequence[Configuration], stacks: Sequence[tuple[str, ...]]
) -> dict[str, object]:
    versions = {configuration.version for configuration in found}
    compilers = {_compiler(each.compiler, release.era) for each in found}
    operating_systems = {each.os for each in found}
    platforms = {each.platform for each in found}
    targets = {each.target for each in found}
    by_stack = Counter(name for names in stacks for name in names)
    meta: dict[str, object] = {
        "versions": sorted(versions),
        "compilers": sorted(compilers),
        "oss": sorted(operating_systems),
        "platforms": sorted(platforms),
        "targets": sorted(targets),
        "stacks": sorted(by_stack),
        "num_specs": len(found),
        "num_specs_by_stack": dict(by_stack),
    }
    if release.era == "C":
        return meta
    meta["num_specs_by_stack"] = dict(sorted(by_stack.items()))
    return dict(sorted(meta.items()))


def _sorted_keys(listing: Listing, stacks: tuple[str, ...], release: Release) -> str:
    before, between, after = _sorted_parts(listing.configuration, release.era)
    return f"{before}{listing.hash}{between}{_texts(stacks)}{after}"


def _insertion_order(
    listing: Listing, stacks: tuple[str, ...], release: Release
) -> str:
    prefix = f"releases/{release.name}" if release.is_named else "develop"
    between, tarball = _insertion_parts(listing.configuration, prefix)
    return (
        f'{{"hash": "{listing.hash}{between}{_texts(stacks)}, "size": "-", '
        f'"tarball": "{tarball}{listing.hash}.spack"}}'
    )


@lru_cache(maxsize=4096)
def _sorted_parts(each: Configuration, era: str) -> tuple[str, str, str]:
    variants = tuple(_variant(text, era) for text in each.variants)
    return (
        f'{{"compiler": "{_compiler(each.compiler, era)}", "hash": "',
        f'", "os": "{each.os}", "platform": "{each.platform}", "size": "-", "stacks": ',
        f', "target": "{each.target}", "variants": {_texts(variants)}, '
        f'"versions": ["{each.version}"]}}',
    )


@lru_cache(maxsize=4096)
def _insertion_parts(each: Configuration, prefix: str) -> tuple[str, str]:
    compiler = _compiler(each.compiler, "C")
    between = (
        f'", "compiler": "{compiler}", "versions": ["{each.version}"], '
        f'"os": "{each.os}", "platform": "{each.platform}", "target": "{each.target}", '
        f'"variants": {_texts(each.variants)}, "stacks": '
    )

    machine = f"{each.platform}-{each.os}-{each.target}"
    built_with = each.compiler.replace("@", "-")
    package = f"{each.package}-{each.version}"
    build_cache = f"https://binaries.spack.io/{prefix}/build_cache"
    folder = f"{build_cache}/{machine}/{built_with}/{package}"
    return between, f"{folder}/{machine}-{built_with}-{package}-"


@lru_cache(maxsize=4096)
def _texts(texts: tuple[str, ...]) -> str:
    return json.dumps(texts)


def _compiler(name: str, era: str) -> str:
    return name if era == "A" else name.replace("@", "@=")


def _variant(text: str, era: str) -> str:
    name, equals, value = text.partition("=")
    return (
        f"{name}:={value}" if era == "A" and equals and name in MULTI_VALUED else text
    )
