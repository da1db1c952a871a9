"""Mirrors as they lie on a server, as small as can be, and runs of fetch against
them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from spack_cache_db.sources.fetch.fetching import fetch
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions
from spack_cache_db.sources.fetch.report import FetchReport
from tests.indexes import signed as clear_signed
from tests.sources.fetch.server import Site

LAYOUT_3 = "v3/manifests/index/index.manifest.json"
LAYOUT_2 = "build_cache/index.json"
QUICK = FetchLimits(pause=0.01, timeout=5.0)
"""FetchLimits under which no test waits for long."""

# Hexadecimal digits that are not in the base32 of Spack's hashes, and others that are.
_BASE32 = str.maketrans("0189", "ghij")


def index(*names: str, size: int = 0) -> bytes:
    """Return an index of database 8 with a record per name, padded with blanks to
    `size` bytes.
    """
    installs = {}
    for name in names:
        dag_hash = hashlib.md5(name.encode()).hexdigest().translate(_BASE32)
        installs[dag_hash] = {"spec": {"name": name}}
    text = json.dumps({"database": {"version": "8", "installs": installs}}).encode()
    padding = b" " * (size - len(text))
    return text[:-1] + padding + text[-1:]


def sha256(data: bytes) -> str:
    """Return a sum as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def blob_path(data: bytes) -> str:
    """Return where a mirror of layout 3 has a blob."""
    checksum = sha256(data)
    return f"blobs/sha256/{checksum[:2]}/{checksum}"


def manifest(
    data: bytes, checksum: str | None = None, kind: str = "db.v8+json"
) -> bytes:
    """Return the manifest of an index, which names the sum of `data` unless told
    another.
    """
    blob = {
        "contentLength": len(data),
        "mediaType": f"application/vnd.spack.{kind}",
        "compression": "none",
        "checksumAlgorithm": "sha256",
        "checksum": checksum or sha256(data),
    }
    return json.dumps({"version": 3, "data": [blob]}).encode()


def layout_3(data: bytes, view: str = "", signed: bool = False) -> dict[str, bytes]:
    """Return the files of a mirror of layout 3, or of a view of it, by path."""
    path = f"v3/manifests/index/{view}/index.manifest.json" if view else LAYOUT_3
    text = manifest(data)
    if signed:
        text = clear_signed(text.decode()).encode()
    return {path: text, blob_path(data): data}


def layout_2(data: bytes, with_sum: bool = True) -> dict[str, bytes]:
    """Return the files of a mirror of layout 2, by path."""
    files = {LAYOUT_2: data}
    if with_sum:
        files[f"{LAYOUT_2}.hash"] = sha256(data).encode()
    return files


def below(prefix: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files with a folder before each path."""
    return {f"{prefix}/{path}": data for path, data in files.items()}


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def files_in(folder: Path, *, hidden: bool = False) -> dict[str, bytes]:
    """Return the files of a folder by path, without hidden ones unless told
    otherwise.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        is_hidden = path.name.startswith(".")
        if path.is_file() and (hidden or not is_hidden):
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def litter(folder: Path) -> list[str]:
    """Return the files that are not whole."""
    return [name for name in files_in(folder, hidden=True) if name.endswith(".part")]


def bring(
    site: Site, output: Path, limits: FetchLimits = QUICK, views: tuple[str, ...] = ()
) -> FetchReport:
    """Fetch the mirror of the site as release `r`, stack `s`."""
    options = FetchOptions(release="r", stack="s", views=views)
    return fetch([f"{site.url}/m"], output, options, limits)


def configured(folder: Path, **mirrors: Any) -> FetchOptions:
    """Write a configuration of mirrors, and return the options that name it."""
    path = folder / "mirrors.yaml"
    path.write_text(json.dumps({"mirrors": mirrors}))
    return FetchOptions(mirrors=path, plain_http=True)


def bring_mine(output: Path, **mirror: Any) -> FetchReport:
    """Fetch one configured mirror, `mine`."""
    return fetch([], output, configured(output.parent, mine=mirror), QUICK)


def faults(report: FetchReport, site: Site) -> list[str]:
    """Return what a report says is wrong, without the server's port."""
    return [str(fault).replace(site.url, "") for fault in report.faults]


def says(report: FetchReport) -> str:
    """Return the only fault, without where it is."""
    (fault,) = report.faults
    return fault.message


def changes(reports: list[FetchReport]) -> list[int]:
    """Return how many mirrors each run changed, none of which had a fault."""
    assert [report.faults for report in reports] == [()] * len(reports)
    return [report.changed for report in reports]


def folders(output: Path) -> list[str]:
    """Return the folders of stacks, hidden ones included."""
    return sorted(path.relative_to(output).as_posix() for path in output.glob("*/*"))
