"""In place of GitHub's `gh`: the release of a folder, and faults on demand.

The folder has a file for each asset, named `<state>+<name>`, and `.released` if there
is a release. A file `.fault` names what fails: `api`, `download`, `cut` (a download
that ends early, with status 0) or `upload` (which leaves a part).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("RELEASE_FOLDER", "."))
TAG = "catalogue"


def main(words: list[str]) -> None:
    """Do what a command of `gh` does to the release, or exit as it does."""
    if os.environ.get("GH_TOKEN") != "a token" or os.environ.get("GH_REPO") != "o/r":
        sys.exit("gh: to use GitHub CLI, set GH_TOKEN and GH_REPO")
    match words:
        case ["api", "--paginate", "repos/o/r/releases", "--jq", filter_]:
            require_no("api")
            subprocess.run(  # noqa: TID251
                ["jq", "-r", filter_],
                input=json.dumps(releases()),
                text=True,
                check=True,
            )
        case ["release", "view", tag]:
            require(tag)
        case ["release", "create", tag, "--prerelease", "--title", _, "--notes", _]:
            assert tag == TAG
            assert not (FOLDER / ".released").exists()
            (FOLDER / ".released").touch()
        case ["release", "download", tag, "--pattern", name, "--dir", folder]:
            require(tag)
            require_no("download")
            download(name, Path(folder))
        case ["release", "upload", tag, file]:
            require(tag)
            upload(Path(file))
        case ["release", "delete-asset", tag, name, "--yes"]:
            require(tag)
            (asset,) = FOLDER.glob(f"*+{name}")
            asset.unlink()
        case _:
            sys.exit(f"gh: unknown command {words}")


def releases() -> list[dict[str, Any]]:
    """Return the releases of the repository, as GitHub lists them."""
    other: dict[str, Any] = {
        "tag_name": "v0.1.0",
        "assets": [{"name": "x.whl", "state": "uploaded"}],
    }
    if not (FOLDER / ".released").exists():
        return [other]
    assets = []
    for path in FOLDER.glob("*+*"):
        state, name = path.name.split("+")
        assets.append({"name": name, "state": state})
    # A name of somebody else's, which is newer than all others.
    assets.append({"name": "notes.txt", "state": "uploaded"})
    return [other, {"tag_name": TAG, "assets": assets}]


def download(name: str, folder: Path) -> None:
    """Write an asset into a folder, or a part of it."""
    shutil.copy(FOLDER / f"uploaded+{name}", folder / name)
    if fault() == "cut":
        os.truncate(folder / name, (folder / name).stat().st_size // 2)


def upload(file: Path) -> None:
    """Add a file to the release, or a part of it."""
    if list(FOLDER.glob(f"*+{file.name}")):
        sys.exit(f"asset under the same name already exists: [{file.name}]")
    if fault() == "upload":
        shutil.copy(file, FOLDER / f"starter+{file.name}")
        os.truncate(FOLDER / f"starter+{file.name}", file.stat().st_size // 2)
        sys.exit("HTTP 502: Bad Gateway")
    shutil.copy(file, FOLDER / f"uploaded+{file.name}")


def require(tag: str) -> None:
    """Exit as `gh` does if there is no release of this tag."""
    if tag != TAG or not (FOLDER / ".released").exists():
        sys.exit("release not found")


def require_no(name: str) -> None:
    """Exit as `gh` does if GitHub does not respond."""
    if fault() == name:
        sys.exit("error connecting to api.github.com")


def fault() -> str:
    """Return what fails, or nothing."""
    path = FOLDER / ".fault"
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    main(sys.argv[1:])
