"""An OCI registry on this machine, with a certificate of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.server import free_port
from tests.processes import completed
from tests.serving import running

PROGRAM = "docker-registry"
"""Debian's package of the same name."""


def certified(folder: Path) -> Path | None:
    """Write a certificate for this machine, and its key beside it; None without a
    registry.
    """
    if shutil.which(PROGRAM) is None:
        return None
    certificate = folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", folder / "key.pem", "-out", certificate]
    new_key = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    completed(["openssl", "req", *new_key, *subject, *files], check=True)
    return certificate


@contextmanager
def registry(folder: Path, certificate: Path) -> Iterator[str]:
    """Run a registry while the context lasts, and give its host and port."""
    folder.mkdir()
    port = free_port()
    host = f"127.0.0.1:{port}"
    config = folder / "config.yml"
    config.write_text(
        "version: 0.1\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/images}}}}\n"
        f"http: {{addr: '{host}'}}\n",
        encoding="utf-8",
    )
    settings = {
        "REGISTRY_HTTP_TLS_CERTIFICATE": str(certificate),
        "REGISTRY_HTTP_TLS_KEY": str(certificate.with_name("key.pem")),
    }
    command = [PROGRAM, "serve", str(config)]
    with running(command, port, env=os.environ | settings):
        yield host
