"""Where things stand in a checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
"""Answers of Spack itself."""
