"""Mirrors behind a real nginx, as facilities have them: a folder of files, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.server import free_port
from spack_cache_db.sources.fetch import fetch
from tests.programs import needed, serving
from tests.sources.fetch.mirrors import (
    QUICK,
    below,
    files_in,
    index,
    layout_2,
    layout_3,
    written,
)

pytestmark = pytest.mark.slow
DATA = index("zlib", "hdf5", size=3_000_000)
FILES = below("three", layout_3(DATA) | layout_3(DATA, view="e4s")) | below(
    "two", layout_2(DATA, with_sum=False)
)
_CONFIG = """\
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format asked '$status $http_range $sent_http_content_encoding $uri';
    access_log {folder}/access.log asked;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
        location / {{ {settings} }}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, settings: str = "") -> Iterator[str]:
    """Run an nginx that serves the mirrors while the context lasts; give its URL."""
    command = needed("nginx", "nginx-light")
    written(folder / "files", FILES)
    port = free_port()
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(_CONFIG.format(folder=folder, port=port, settings=settings, user=user))
    arguments = [command, "-e", f"{folder}/error.log", "-c", str(config)]
    with serving(arguments, port, folder / "log"):
        yield f"http://127.0.0.1:{port}"


def asked(folder: Path) -> list[str]:
    """Return the log: status, range and content encoding of each answer, and what was asked for."""
    return (folder / "access.log").read_text().splitlines()


@pytest.mark.parametrize(
    "settings", ["", "autoindex on;", "gzip on; gzip_types *; gzip_proxied any;"]
)
def test_mirrors(tmp_path: Path, output: Path, settings: str) -> None:
    """Both layouts come as they lie there; what has not changed does not come again."""
    with nginx(tmp_path, settings) as url:
        reports = [fetch([f"{url}/three", f"{url}/two"], output, limits=QUICK) for _ in range(2)]

    assert [report.faults for report in reports] == [(), ()]
    assert [report.changed for report in reports] == [2, 0]
    assert reports[1].size < 10_000
    fetched = {
        name: data for name, data in files_in(output).items() if not name.endswith("mirror.json")
    }
    assert fetched == below("three/root", layout_3(DATA)) | below("two/root", layout_2(DATA, False))
    assert any(" gzip " in line for line in asked(tmp_path)) == ("gzip" in settings)
    assert any(line.startswith("304 ") for line in asked(tmp_path))
