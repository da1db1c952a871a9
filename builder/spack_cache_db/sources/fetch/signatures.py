"""Finds out whether the binaries of a mirror are signed.

An index does not show it, but the files of single binaries do: the manifest of layout
3, and the spec file of layout 2, are signed or not. Those of a few binaries are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from spack_cache_db.sources.fetch.addresses import FetchFault, Mirror
from spack_cache_db.sources.fetch.mirrors import in_url, spec_manifest
from spack_cache_db.sources.fetch.stack_folder import StackFolder
from spack_cache_db.sources.fetch.web import NotThereFault, SilenceFault, Web
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.manifests import (
    LAYOUT_2_INDEX,
    is_clear_signed,
    read_manifest,
)
from spack_cache_db.sources.indexes.mirror_content import Binary, first_entries
from spack_cache_db.sources.indexes.mirror_folder import MOST_SIGNATURES, agreed
from spack_cache_db.sources.indexes.spec_files import read_spec_file
from spack_cache_db.spack.nodes import Node

SIGNATURES_READ = 3
"""How many binaries are asked for, the first by hash, if the mirror is not on this
machine.
"""


async def fetch_signatures(
    web: Web, folder: StackFolder, mirror: Mirror, known: Mapping[str, bool]
) -> None:
    """Set `folder.signed`: whether the binaries of a mirror are signed.

    It is None if some are and others are not, or if no file shows it. One or two small
    files are read for each of a few binaries, or for as many as `build` reads if the
    mirror is on this machine. A file that cannot be read shows nothing; it is not a
    fault of the mirror.

    Args:
        web: the HTTP client.
        folder: the folder of the mirror, with its index.
        mirror: the mirror.
        known: whether single binaries of the mirror are signed, by hash, as far as
            asking for their sizes has shown it.
    """
    count = MOST_SIGNATURES if mirror.url.startswith("file:") else SIGNATURES_READ
    entries = await asyncio.to_thread(first_entries, folder.path, count)
    is_layout_2 = LAYOUT_2_INDEX in folder.files
    read_signature = _read_in_layout_2 if is_layout_2 else _read_in_layout_3
    signatures = []
    for entry in entries:
        dag_hash = entry.node.hash
        if dag_hash in known:
            signatures.append(known[dag_hash])
            continue
        try:
            signatures.append(await read_signature(web, mirror.url, entry.node))
        except (NotThereFault, IndexFault):
            # This binary has no such file, but others may have one.
            continue
        except (FetchFault, SilenceFault):
            # The server does not answer, or requires a login.
            break
    folder.signed = agreed(signatures)


async def _read_in_layout_3(web: Web, url: str, node: Node) -> bool:
    """Return whether a binary is signed; raises a fault if it has no manifest."""
    binary = Binary(node.name, node.version, node.hash)
    data = await web.read(spec_manifest(url, binary))
    # Some servers return a page of HTML for a missing file: this raises a fault.
    read_manifest(data)
    return is_clear_signed(data)


async def _read_in_layout_2(web: Web, url: str, node: Node) -> bool:
    """Return whether a binary is signed; raises a fault if it has no spec file.

    The file is `linux-rhel8-zen2-gcc-13.2.0-zlib-1.3-<hash>.spec.json`, and that of a
    signed binary ends in `.sig`.
    """
    # Layout 2 is older than Spack 1.0, so its nodes name a compiler: `gcc@13.2.0`.
    compiler = (node.compiler or "").replace("@", "-")
    name = (
        f"{node.platform}-{node.os}-{node.target}-{compiler}"
        f"-{node.name}-{node.version}-{node.hash}"
    )
    spec_url = f"{url}/build_cache/{in_url(url, name)}.spec.json"
    try:
        data = await web.read(f"{spec_url}.sig")
    except NotThereFault:
        data = await web.read(spec_url)
    read_spec_file(data)
    return is_clear_signed(data)
