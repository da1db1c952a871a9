"""metadata.yml, read once for all tests."""

from __future__ import annotations

from typing import Any

import yaml

from tests.paths import ROOT

METADATA: dict[str, Any] = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
DATABASE: dict[str, Any] = METADATA["databases"]["spack-cache"]
QUERIES: dict[str, Any] = DATABASE["queries"]
"""The canned queries."""
