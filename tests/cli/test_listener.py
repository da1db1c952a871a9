"""The socket that `serve` listens on."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from spack_cache_db.cli.serve import ListenError, address_of, listen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])
def test_it_listens_where_it_says(host: str) -> None:
    """A visitor reaches the address, and small pieces are sent to it without delay."""
    with closing(listen(host, 0)) as listener:
        name, port = listener.getsockname()[:2]
        assert address_of(listener).endswith(f":{port}/")
        assert ("[" in address_of(listener)) is (":" in name)
        with closing(socket.create_connection((name, port))):
            accepted, _ = listener.accept()
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            accepted.close()


@pytest.mark.parametrize(
    "host", ["192.0.2.7", "no.such.host.invalid", "", "a..b", "a\0b", "\ud800", "x" * 300]
)
def test_an_odd_host_is_told(host: str) -> None:
    """A host that is none, or not of this machine: one line that says what to do."""
    with pytest.raises(ListenError, match="use an address of this machine") as caught:
        listen(host, 0)
    assert str(caught.value).startswith(f"--host {host}: ")
    assert "\n" not in str(caught.value)
