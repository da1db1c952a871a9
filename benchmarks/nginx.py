"""Run the nginx that `deploy/nginx/spack-cache.conf` describes, on a free port.

The file is used as it stands, but for the ports and the place of the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.server import ServerError, free_port, wait_until_up

SITE = Path(__file__).parent.parent / "deploy" / "nginx" / "spack-cache.conf"
_AROUND = """\
{user}
daemon off;
worker_processes auto;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def cache_folder(folder: Path) -> Path:
    """Return where an nginx that runs in `folder` keeps its pages."""
    return folder / "cache"


@contextmanager
def nginx(folder: Path, backends: Sequence[int], *, cache: bool = True) -> Iterator[int]:
    """Run nginx in front of the backends while the context lasts; give its port.

    Raises:
        ServerError: nginx is not installed, or does not start.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise ServerError("no nginx here: install Debian's nginx-light")
    port = free_port()
    (folder / "site.conf").write_text(_site(folder, port, backends, cache=cache))
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(_AROUND.format(folder=folder, user=user))
    process = subprocess.Popen([program, "-e", f"{folder}/error.log", "-c", str(config)])
    try:
        wait_until_up(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _site(folder: Path, port: int, backends: Sequence[int], *, cache: bool) -> str:
    text = SITE.read_text(encoding="utf-8")
    first, second = (_line(text, f"127.0.0.1:{number} ") for number in (8001, 8002))
    servers = "".join(first.replace(":8001 ", f":{backend} ") for backend in backends)
    changes = {
        first: servers,
        second: "",
        "listen 80;": f"listen 127.0.0.1:{port};",
        "/var/cache/nginx/spack-cache": str(cache_folder(folder)),
    }
    if not cache:
        changes["proxy_cache spack_cache;"] = "proxy_cache off;"
    for old, new in changes.items():
        if old not in text:
            raise ServerError(f"{SITE}: expected {old!r}")
        text = text.replace(old, new)
    return text


def _line(text: str, part: str) -> str:
    return next((line for line in text.splitlines(keepends=True) if part in line), part)
