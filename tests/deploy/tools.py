"""Commands and servers in place of the machine's own."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def write_command(folder: Path, name: str, text: str) -> None:
    """Write a shell script into a folder of commands that stand before the machine's
    own.
    """
    command = folder / name
    command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    command.chmod(0o755)


class Quiet:
    """Part of a handler without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class QuietFiles(Quiet, SimpleHTTPRequestHandler):
    """Files of a folder."""


class Server(ThreadingHTTPServer):
    """A server with room for a crowd that connects at once."""

    request_queue_size = 256


@contextmanager
def listening(handler: Callable[..., Any]) -> Iterator[int]:
    """Run a server on a free port while the context lasts; yield the port."""
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}
        )
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
