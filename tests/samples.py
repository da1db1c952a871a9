"""The sample pages as plain Python reads them: what their database is held against."""

from __future__ import annotations

from typing import Any

from tests.pagetexts import MORE_SAMPLES, SAMPLES, front_matter

PAGES = {path.name: front_matter(path.read_bytes()) for path in sorted(SAMPLES.glob("*.txt"))}
EVERY_PAGE = [
    *PAGES.values(),
    *(front_matter(path.read_bytes()) for path in sorted(MORE_SAMPLES.glob("*/*/specs.md"))),
]


def plain(listing: dict[str, Any]) -> dict[str, Any]:
    """Return a listing with its compiler and variants spelled as in the pages of today."""
    return listing | {
        "compiler": listing["compiler"].replace("@=", "@"),
        "variants": tuple(sorted(each.replace(":=", "=") for each in listing["variants"])),
        "version": listing["versions"][0],
    }


LISTINGS = [
    (page["title"], page["categories"][1], plain(listing))
    for page in EVERY_PAGE
    for listing in page["spec_details"]
]
FIVE = [
    (page["title"], page["categories"][1], plain(listing))
    for page in PAGES.values()
    for listing in page["spec_details"]
]
SINGULAR = {
    "versions": "version",
    "compilers": "compiler",
    "oss": "os",
    "platforms": "platform",
    "targets": "target",
}


def configuration(package: str, listing: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a person can see of a listing."""
    return (package, *(listing[key] for key in (*SINGULAR.values(), "variants")))


def date(release: str) -> str | None:
    """Return the date of a snapshot."""
    return release.removeprefix("develop-") if release.startswith("develop-") else None


def seen(releases: set[str]) -> tuple[str | None, str | None]:
    """Return the first and the last date of some releases."""
    dates = sorted(filter(None, map(date, releases)))
    return (dates[0], dates[-1]) if dates else (None, None)
