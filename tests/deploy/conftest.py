"""A real nginx, with the project's configuration, in front of two tiny servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.nginx import nginx
from benchmarks.server import free_port
from tests.deploy.front import Front
from tests.deploy.upstream import upstream
from tests.programs import needed


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Front]]:
    """Start the site; `dead` of its two servers refuse connections."""
    needed("nginx", "nginx-light")
    with ExitStack() as stack:

        def started(*, limits: bool = False, dead: int = 0) -> Front:
            servers = [stack.enter_context(upstream()) for _ in range(2 - dead)]
            ports = [*(free_port() for _ in range(dead)), *(each.port for each in servers)]
            front = stack.enter_context(nginx(tmp_path, ports, limits=limits))
            return Front(tmp_path, front, servers)

        yield started


@pytest.fixture
def site(start: Callable[..., Front]) -> Front:
    """The site, without limits on what one address may ask for."""
    return start()
