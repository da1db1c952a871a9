"""Measures the stages of a build."""

from __future__ import annotations

import time


class Clock:
    """Wall time by stage, in seconds."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.last = self.start
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        """End the stage with this name."""
        now = time.perf_counter()
        self.stages[name] = round(now - self.last, 3)
        self.last = now
