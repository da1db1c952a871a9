"""Several server processes under gunicorn: one that hangs, grows or dies is replaced.

They are uvicorn's workers; their parent ends one that gives no sign of life, and starts another for
any that ended.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from uvicorn_worker import UvicornWorker

from spack_cache_db.site.middleware import App
from spack_cache_db.site.uvicorn_server import (
    GRACE_SECONDS,
    Reload,
    hangup_ignored_as_before,
    http_settings,
    quieten_logs,
)

SIGN_OF_LIFE_SECONDS = 15
"""A worker that gives no sign of life for so long is killed: no page takes that."""

MOST_BYTES = 400_000_000
"""A worker that holds more memory than this ends after its answers under way."""

_STATM = Path("/proc/self/statm")


def run_workers(
    make_app: Callable[[], App],
    listener: socket.socket,
    count: int,
    proxy: str | None = None,
    reload: Reload | None = None,
) -> bool:
    """Serve in `count` processes until a signal ends them.

    Args:
        make_app: makes the application, once in each process.
        listener: the socket on which all of them listen; it is closed here.
        count: the number of processes.
        proxy: as in `http_settings`.
        reload: as in `run_here`.

    Returns:
        False where the server has to begin anew.

    Raises:
        SystemExit: in all other cases, with status 0 if the server was told to end.
    """
    own = os.getpid()
    Worker.CONFIG_KWARGS = {**http_settings(proxy), "timeout_notify": 1}
    settings = {
        "bind": [f"fd://{listener.detach()}"],
        "workers": count,
        "worker_class": Worker,
        "timeout": SIGN_OF_LIFE_SECONDS,
        "graceful_timeout": GRACE_SECONDS + 1,
        "accesslog": "-",
        "control_socket_disable": True,
    }
    arbiter = _Arbiter(_Application(make_app, settings))
    arbiter.reload_asked = reload
    try:
        arbiter.run()
    except SystemExit:
        if arbiter.is_over or os.getpid() != own:
            raise
    return False


class Worker(UvicornWorker):  # type: ignore[misc]
    """A process that ends when its parent has gone or when it has grown too large."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        quieten_logs()

    def init_signals(self) -> None:
        """Set up signals as gunicorn's workers do."""
        with hangup_ignored_as_before():
            super().init_signals()

    async def callback_notify(self) -> None:
        """Give a sign of life, every second, from the loop that answers requests."""
        await super().callback_notify()
        if os.getppid() != self.ppid:
            os.kill(os.getpid(), signal.SIGTERM)
        elif _resident_bytes() > MOST_BYTES:
            self.log.warning("Worker has grown to %d MB", _resident_bytes() // 1_000_000)
            os.kill(os.getpid(), signal.SIGTERM)


class _Application(BaseApplication):  # type: ignore[misc]
    def __init__(self, make_app: Callable[[], App], settings: dict[str, Any]) -> None:
        self._make_app, self._settings = make_app, settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> App:
        return self._make_app()


class _Arbiter(Arbiter):  # type: ignore[misc]
    reload_asked: Reload | None = None
    is_over = True

    def init_signals(self) -> None:
        """Set up signals as gunicorn does."""
        with hangup_ignored_as_before():
            super().init_signals()

    def handle_hup(self) -> None:
        """End: the terminal has gone, or the server begins anew with another file."""
        if self.reload_asked is not None:
            self.is_over = not self.reload_asked()
            if self.is_over:
                return
        self.handle_term()

    def handle_int(self) -> None:
        """End as for SIGTERM."""
        self.handle_term()


def _resident_bytes() -> int:
    """Return the memory that this process holds now; 0 where the system does not tell."""
    if not _STATM.exists():
        return 0
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
