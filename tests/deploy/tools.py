"""Where these tests find programs, and how they put others in their place."""

from __future__ import annotations

import os
from pathlib import Path

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def write_command(folder: Path, name: str, text: str) -> None:
    """Write a shell script into a folder of commands that stand before the machine's own."""
    command = folder / name
    command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    command.chmod(0o755)
