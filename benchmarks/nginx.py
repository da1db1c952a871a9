"""Run the nginx that `deploy/nginx/spack-cache.conf` describes, on a free port.

The file is used unchanged except for ports, folders, and the parts that a caller turns
off.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.server import ServerError, free_port, wait_until_up

SITE = Path(__file__).parent.parent / "deploy" / "nginx" / "spack-cache.conf"
_AROUND = """\
{user}
daemon off;
worker_processes auto;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    # Clients may name their address, so that one machine can play many visitors.
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Visitor;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def cache_folder(folder: Path) -> Path:
    """Return the cache folder of an nginx that runs in `folder`."""
    return folder / "cache"


@contextmanager
def nginx(
    folder: Path,
    backend: int,
    *,
    cache: bool = True,
    limits: bool = False,
    published: Path | None = None,
) -> Iterator[int]:
    """Run nginx in front of a server while the context lasts; yield its port.

    Args:
        folder: for everything that it writes.
        backend: the server's port.
        cache: whether it caches pages.
        limits: whether it limits requests per address. Loads from one machine need this
            off.
        published: the folder that contains `published`; by default `folder`.

    Raises:
        ServerError: nginx is not installed, or does not start.
    """
    # Users of Debian have no /usr/sbin in their PATH.
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise ServerError("no nginx here: install Debian's nginx-light")
    port = free_port()
    config = write_config(
        folder, port, backend, cache=cache, limits=limits, published=published or folder
    )
    command = [program, "-e", f"{folder}/error.log", "-c", str(config)]
    process = subprocess.Popen(command)
    try:
        wait_until_up(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def write_config(
    folder: Path,
    port: int,
    backend: int,
    *,
    cache: bool,
    limits: bool,
    published: Path,
) -> Path:
    """Write the configuration; return its main file."""
    # What is shipped, without the parts that are off.
    site = _site(folder, port, backend, published)
    if not cache:
        site = _changed(site, "proxy_cache spack_cache_pages;", "proxy_cache off;")
    if not limits:
        site = re.sub(r"^ *limit_(req|conn) .*\n", "", site, flags=re.MULTILINE)
    (folder / "site.conf").write_text(site, encoding="utf-8")

    # What a system has around it. Only root may name the user of its processes.
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(_AROUND.format(folder=folder, user=user), encoding="utf-8")
    return config


def _site(folder: Path, port: int, backend: int, published: Path) -> str:
    """Return the shipped configuration with other ports and folders."""
    text = SITE.read_text(encoding="utf-8")
    # Without TLS, which needs a certificate, and without the server that leads to it.
    start = text.index("server {\n    listen 80;")
    end = text.index("server {\n    listen 443 ")
    text = text[:start] + text[end:]
    text = re.sub(r"^ *(?:ssl_|listen \[::\]).*\n", "", text, flags=re.MULTILINE)

    # On this port, before this server, in these folders.
    text = _changed(text, "listen 443 ssl http2;", f"listen 127.0.0.1:{port};")
    text = _changed(text, "/var/cache/nginx/spack-cache", str(cache_folder(folder)))
    text = _changed(text, "/srv/spack-cache", str(published))
    return _changed(text, "127.0.0.1:8001", f"127.0.0.1:{backend}")


def _changed(text: str, old: str, new: str) -> str:
    """Return a text with another part; it must have that part."""
    if old not in text:
        raise ServerError(f"{SITE}: expected {old!r}")
    return text.replace(old, new)
