"""Package data for tests: real files of Spack 1.1, and small ones."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spack_cache_db.spack.versions import preference_key, version_key
from tests.paths import DATA

REAL = DATA / "package_data"
"""Some of the list that Spack prints, and of the packages site's files."""

REPOLOGY = DATA / "repology" / "repology.json"
"""Some entries of the file that the packages site publishes for Repology."""


def published(name: str, *versions: str, **more: Any) -> dict[str, Any]:
    """Return what a file of the packages site says of a package."""
    with_checksums = [
        {"name": version, "sha256": f"{version}-of-{name}"} for version in versions
    ]
    latest = versions[0] if versions else ""
    return {
        "name": name,
        "aliases": [],
        "versions": with_checksums,
        "versions_deprecated": [],
        "latest_version": latest,
        "build_system": "CMakePackage",
        "conflicts": [],
        "variants": [],
        "homepage": f"https://{name}.example.org",
        "maintainers": [],
        "patches": [],
        "resources": [],
        "description": f"The package {name}.\n",
        "dependencies": [],
        "dependent_to": [],
        **more,
    }


def listed(name: str, *versions: str, **more: Any) -> dict[str, Any]:
    """Return a member of the list that Spack prints."""
    return {
        "name": name,
        "latest_version": versions[0] if versions else "",
        "versions": list(versions),
        "homepage": f"https://{name}.example.org",
        "file": f"https://example.org/{name}/package.py",
        "maintainers": [],
        "dependencies": {"build": [], "link": [], "run": [], "test": []},
        **more,
    }


def catalogued(*packages: dict[str, Any]) -> dict[str, Any]:
    """Return the file for Repology with some packages; missing keys are empty."""
    entries = {}
    for package in packages:
        empty: dict[str, Any] = {
            "homepages": [],
            "version": [],
            "dependencies": [],
            "patches": [],
        }
        entries[package["name"]] = {**empty, "summary": "", **package}
    return {"last_update": "", "num_packages": len(entries), "packages": entries}


def described(*names: str) -> list[dict[str, str]]:
    """Return packages as dependencies of others are written."""
    return [{"name": name, "description": f"The package {name}."} for name in names]


def write_packages(folder: Path, *packages: dict[str, Any], **files: Any) -> Path:
    """Write packages as the site does, and other files as JSON; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        (folder / f"{package['name']}.json").write_text(json.dumps(package, indent=4))
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def preferred(versions: Iterable[str]) -> str:
    """Return the version that Spack prefers: the newest of the first kind that there
    is.
    """
    versions = list(versions)
    best = min(map(preference_key, versions))
    return max(
        (version for version in versions if preference_key(version) == best),
        key=version_key,
    )
