"""Small pages for tests, written the way the source writes them."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent.parent / "pages"
MORE_SAMPLES = Path(__file__).parent / "pages"
SAMPLE_PAGES = sorted(SAMPLES.rglob("specs.md"))
"""The five pages that come with the program."""

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def spec_hash(number: int) -> str:
    """Return the hash that stands for a number: 32 characters of Spack's base32."""
    digits = ""
    for _ in range(32):
        number, digit = divmod(number, 32)
        digits = _BASE32[digit] + digits
    return digits


def spec(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return one member of `spec_details`."""
    return {
        "compiler": "gcc@13.2.0",
        "hash": spec_hash(number),
        "os": "ubuntu24.04",
        "platform": "linux",
        "size": "-",
        "stacks": ["e4s", "root"],
        "target": "x86_64_v3",
        "variants": ["build_system=cmake", "~cuda"],
        "versions": ["1.0"],
    } | changes


def meta_of(specs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the `meta` that fits the specs of a page."""
    listed = list(specs)
    stacks = Counter(stack for each in listed for stack in each["stacks"])
    versions = {version for each in listed for version in each["versions"]}
    return {
        "compilers": _values(listed, "compiler"),
        "num_specs": len(listed),
        "num_specs_by_stack": dict(sorted(stacks.items())),
        "oss": _values(listed, "os"),
        "platforms": _values(listed, "platform"),
        "stacks": sorted(stacks),
        "targets": _values(listed, "target"),
        "versions": sorted(versions),
    }


def _values(specs: list[dict[str, Any]], key: str) -> list[str]:
    return sorted({listed_spec[key] for listed_spec in specs})


def page(
    package: str = "zlib",
    release: str = "develop",
    specs: Iterable[dict[str, Any]] | None = None,
    meta: dict[str, Any] | None = None,
) -> bytes:
    """Return a whole page; `meta` replaces members of the one that fits the specs."""
    listed = [spec()] if specs is None else list(specs)
    summary = json.dumps(meta_of(listed) | (meta or {}))
    return page_of(package, release, summary, json.dumps(listed))


def page_of(package: str, release: str, meta: str, details: str) -> bytes:
    """Return a page with these texts in the places of its keys."""
    return (
        f'---\ntitle: "{package}"\nlayout: cache\ncategories: [package, {release}]\n'
        f"meta: {meta}\nspec_details: {details}\n---"
    ).encode()


def front_matter(data: bytes) -> dict[str, Any]:
    """Read a page the plain way, without the builder: its five keys as values."""
    lines = dict(
        line.split(": ", 1)
        for line in data.decode().splitlines()
        if line.strip() != "---"
    )
    categories = lines["categories"].strip("[]").split(", ")
    return {
        "title": lines["title"].strip('"'),
        "layout": lines["layout"],
        "categories": categories,
        "meta": json.loads(lines["meta"]),
        "spec_details": json.loads(lines["spec_details"]),
    }


def write(folder: Path, **pages: bytes) -> Path:
    """Write pages into a folder, each under its keyword's name, and return the
    folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in pages.items():
        (folder / f"{name}.md").write_bytes(data)
    return folder
