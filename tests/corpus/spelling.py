"""How each era of the site writes the page of one package in one release, byte for byte.

Era A sorts everything and marks multi-valued variants with `:=`; era B still writes compilers
with `@=`; era C keeps insertion order, lists specs unsorted and names their tarballs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter

from tests.corpus.history import Configuration, Listing
from tests.corpus.releases import Release
from tests.corpus.vocabulary import MULTI_VALUED
from tests.pagetexts import page_of

MIRROR = "https://binaries.spack.io"
ROOT = "root"


def page(package: str, release: Release, listings: Sequence[Listing]) -> bytes:
    """Write one page."""
    if release.era != "C":
        listings = sorted(listings, key=attrgetter("hash"))
    stacks = [_stacks(each, release) for each in listings]
    meta = _meta(release, [each.configuration for each in listings], stacks)
    write = _insertion_order if release.era == "C" else _sorted_keys
    specs = ", ".join(
        write(each, names, release) for each, names in zip(listings, stacks, strict=True)
    )
    return page_of(package, release.name, json.dumps(meta), f"[{specs}]")


def _stacks(listing: Listing, release: Release) -> tuple[str, ...]:
    if release.era != "C":
        return tuple(sorted((*listing.stacks, ROOT)))
    return listing.stacks if release.is_named else (ROOT, *listing.stacks)


def _meta(
    release: Release, found: Sequence[Configuration], stacks: Sequence[tuple[str, ...]]
) -> dict[str, object]:
    distinct = dict.fromkeys(found)
    by_stack = Counter(name for names in stacks for name in names)
    meta: dict[str, object] = {
        "versions": _values(each.version for each in distinct),
        "compilers": _values(_compiler(each.compiler, release.era) for each in distinct),
        "oss": _values(each.os for each in distinct),
        "platforms": _values(each.platform for each in distinct),
        "targets": _values(each.target for each in distinct),
        "stacks": sorted(by_stack),
        "num_specs": len(found),
        "num_specs_by_stack": dict(by_stack),
    }
    if release.era == "C":
        return meta
    meta["num_specs_by_stack"] = dict(sorted(by_stack.items()))
    return dict(sorted(meta.items()))


def _values(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))


def _sorted_keys(listing: Listing, stacks: tuple[str, ...], release: Release) -> str:
    before, between, after = _sorted_parts(listing.configuration, release.era)
    return f"{before}{listing.hash}{between}{_texts(stacks)}{after}"


def _insertion_order(listing: Listing, stacks: tuple[str, ...], release: Release) -> str:
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
    where = f"{each.platform}-{each.os}-{each.target}"
    compiler = each.compiler.replace("@", "-")
    named = f"{each.package}-{each.version}"
    return (
        f'", "compiler": "{_compiler(each.compiler, "C")}", "versions": ["{each.version}"], '
        f'"os": "{each.os}", "platform": "{each.platform}", "target": "{each.target}", '
        f'"variants": {_texts(each.variants)}, "stacks": ',
        f"{MIRROR}/{prefix}/build_cache/{where}/{compiler}/{named}/{where}-{compiler}-{named}-",
    )


@lru_cache(maxsize=4096)
def _texts(texts: tuple[str, ...]) -> str:
    return json.dumps(texts)


def _compiler(name: str, era: str) -> str:
    return name if era == "A" else name.replace("@", "@=")


def _variant(text: str, era: str) -> str:
    name, equals, value = text.partition("=")
    return f"{name}:={value}" if era == "A" and equals and name in MULTI_VALUED else text
