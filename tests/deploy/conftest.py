"""A real nginx, with the project's configuration, in front of a tiny server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from benchmarks.nginx import nginx
from tests.deploy.upstream import Upstream, upstream
from tests.processes import PATIENCE
from tests.programs import needed


@dataclass
class Front:
    """An nginx with the server behind it."""

    folder: Path
    port: int
    server: Upstream

    @property
    def address(self) -> str:
        """The address of the site."""
        return f"http://127.0.0.1:{self.port}"

    def get(
        self, target: str, visitor: str = "192.0.2.1", **headers: str
    ) -> httpx.Response:
        """Request a target as a visitor; `_` in the names of headers becomes `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["X-Visitor"] = visitor
        return self.client().get(target, headers=named)

    def client(self) -> httpx.Client:
        """Return a client of the site."""
        return httpx.Client(
            base_url=self.address, timeout=PATIENCE, verify=False, trust_env=False
        )

    def targets(self) -> list[str]:
        """Return the targets of requests that reached the server."""
        return self.server.targets()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Front]]:
    """Start the site."""
    needed("nginx", "nginx-light")
    with ExitStack() as stack:

        def started(*, limits: bool = False) -> Front:
            server = stack.enter_context(upstream())
            front = stack.enter_context(nginx(tmp_path, server.port, limits=limits))
            return Front(tmp_path, front, server)

        yield started


@pytest.fixture
def site(start: Callable[..., Front]) -> Front:
    """The site, without limits on what one address may ask for."""
    return start()
