"""metadata.yml, read once for all tests."""

from __future__ import annotations

from typing import Any

import yaml

from tests.paths import ROOT

# PyYAML's own loader takes ten times as long, in each process of the tests.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
METADATA: dict[str, Any] = yaml.load(
    (ROOT / "metadata.yml").read_text(encoding="utf-8"), Loader=LOADER
)
DATABASE: dict[str, Any] = METADATA["databases"]["spack-cache"]
QUERIES: dict[str, Any] = DATABASE["queries"]
"""The canned queries."""
