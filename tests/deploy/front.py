"""An nginx as its visitors see it, and what reaches the servers behind it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.deploy.upstream import Upstream
from tests.processes import PATIENCE


@dataclass
class Front:
    """An nginx with what stands behind it."""

    folder: Path
    port: int
    servers: list[Upstream]

    def get(self, target: str, visitor: str = "192.0.2.1", **headers: str) -> httpx.Response:
        """Request a target as a visitor; `_` in the names of headers becomes `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["X-Visitor"] = visitor
        with httpx.Client(timeout=PATIENCE, verify=False, trust_env=False) as client:
            return client.get(f"http://127.0.0.1:{self.port}{target}", headers=named)

    def targets(self) -> list[str]:
        """Return what reached either server."""
        return [target for server in self.servers for target in server.targets()]
