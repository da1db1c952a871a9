"""Which release and stack an index is of: what was asked for, or else the folders it lies in."""

from __future__ import annotations

from typing import NamedTuple

ROOT = "root"
"""The top-level index that lists everything; also the release of what lies in no folder."""


class Place(NamedTuple):
    """A release and a stack; None where nothing says which."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of an index.

        What is given here comes first; then a named view of a mirror is a stack; then come the
        first two folders of `path`, the index's path within the input.
        """
        folders = [*path.split("/")[:-1], "", ""]
        release = self.release or folders[0] or ROOT
        return release, self.stack or view or folders[1] or ROOT


ANYWHERE = Place()
"""Whatever the folders say."""
