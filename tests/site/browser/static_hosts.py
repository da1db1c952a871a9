"""A static host of exported files: an nginx as it is installed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.server import free_port
from tests.programs import needed
from tests.serving import running

NGINX = """
{user} daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  include /etc/nginx/mime.types;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  log_format sent '$uri $status $body_bytes_sent';
  access_log {folder}/access.log sent;
  server {{ listen 127.0.0.1:{port}; root {folder}/public; }}
}}
"""
"""A web server as it is installed: nothing of ours, and nothing that this page
needs.
"""


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """Serve the folder `public` in a folder, which also gets the logs; yield the
    address.
    """
    program = needed("nginx", "nginx-light")
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, user=user))
    with running([program, "-e", f"{folder}/error.log", "-c", str(config)], port):
        yield f"http://127.0.0.1:{port}"
