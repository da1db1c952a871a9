"""The tests of this room are for Datasette 0.65 alone: under 1.0 none is even imported."""

from __future__ import annotations

from datasette.app import Datasette

collect_ignore_glob = [] if hasattr(Datasette, "metadata") else ["test_*.py"]
