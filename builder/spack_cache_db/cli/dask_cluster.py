"""`build --dask`: the workers of a Dask cluster read the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from spack_cache_db.cli.terminal import say_notes
from spack_cache_db.errors import BuilderError, reason

LOCAL = "local"
"""The address of a cluster that is started here, and ended with the command."""

PATIENCE = 10
"""So many seconds a scheduler has to answer."""


@contextmanager
def dask_workers(address: str | None, jobs: int) -> Iterator[dict[str, Any]]:
    """Connect to a Dask cluster; yield the arguments of `build` that say who reads.

    Args:
        address: that of the cluster's scheduler; None for no cluster.
        jobs: how many processes read where there is no cluster, or a local one.

    Raises:
        BuilderError: dask.distributed is not installed, or no scheduler answers.
    """
    if address is None:
        yield {"jobs": jobs}
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        install = "install it with: pip install 'spack-cache-db[build,dask]'"
        raise BuilderError(
            f"--dask needs {error.name}, which is not installed; {install}"
        ) from None
    try:
        client = (
            Client(n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0")
            if address == LOCAL
            else Client(address, timeout=PATIENCE)
        )
    except (OSError, ValueError) as error:
        said = f"no Dask scheduler answers at {address}: {reason(error)}"
        raise BuilderError(f"{said}; --dask takes an address such as tcp://host:8786") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            say_notes([f"the cluster at {address} has no worker yet: the build waits for one"])
        yield {"jobs": max(jobs, threads), "executor": DaskCluster(client)}


class DaskCluster(Executor):
    """Submits to a Dask client.

    `Client.get_executor` brings results here before somebody asks for them, and never says that
    the scheduler died while one was under way.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return a future of Dask, which has the methods of a `concurrent.futures.Future`."""
        return self._client.submit(fn, *args, **kwargs)
