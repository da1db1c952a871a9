"""The folder of a stack on disk: what is recorded of it, and what may be removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db.sources import ADDRESS_FILE
from spack_cache_db.sources.fetch.addresses import FetchFault, MirrorRequest
from spack_cache_db.sources.fetch.stack_folder import (
    STATE_FILE,
    StackFolder,
)
from spack_cache_db.sources.fetch.web import Tags

URL = "https://host/a"
MIRROR = MirrorRequest(URL, "v1", "root")
TAGS = Tags('"1"')


def opened(output: Path, wanted: MirrorRequest = MIRROR) -> StackFolder:
    """Return the folder as a new run finds it."""
    return StackFolder(output, wanted)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"files": 1}', b"\xff"])
def test_what_is_known_may_be_lost(output: Path, text: bytes) -> None:
    """A broken file of what is known means that all is fetched anew."""
    opened(output).write("index.json", b"data", URL, TAGS)
    (output / "v1/root" / STATE_FILE).write_bytes(text)

    assert opened(output).unchanged("index.json", URL) is None


def test_another_address(output: Path) -> None:
    """A folder of another mirror, or with a broken address, is left alone."""
    opened(output).write("index.json", b"data", URL, TAGS)

    with pytest.raises(FetchFault, match="has the index of https://host/a: name another with"):
        opened(output, MirrorRequest("https://host/b", "v1", "root"))
    (output / "v1/root" / ADDRESS_FILE).write_bytes(b"{}")
    with pytest.raises(FetchFault, match="broken address of a mirror"):
        opened(output)
