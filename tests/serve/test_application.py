"""The rules of a server: which names it answers to, and what it notes for its
parent.
"""

import mmap
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.serve.application import waiting
from spack_cache_db.serve.hosts import host_of, is_known_host
from spack_cache_db.serve.process import NOTE_BYTES, read_note, write_note


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        ("localhost", True),
        ("LOCALHOST:8001", True),
        ("site.localhost:80", True),
        ("localhost.", True),
        ("127.0.0.1:8001", True),
        ("127.9.9.9", True),
        ("[::1]:8001", True),
        ("hub.example.org:8001", True),
        ("Hub.Example.org", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.0.2.1", False),
        ("[2001:db8::1]", False),
        ("x.hub.example.org", False),
        ("", False),
        ("[", False),
        ("[::1].evil.example", False),
        ("[::1]evil.example:80", False),
    ],
)
def test_only_names_of_this_machine_are_answered(header: str, is_known: bool) -> None:
    """Loopback names and addresses, and those that the owner allows, with any port."""
    assert is_known_host(host_of(header), frozenset(("hub.example.org",))) is is_known
    assert is_known_host(host_of(header), None)


@given(st.binary(max_size=2 * NOTE_BYTES))
def test_a_note_is_read_as_it_was_written(request: bytes) -> None:
    """A request, or the beginning of a long one, reaches the process that shares the
    memory.
    """
    shared = mmap.mmap(-1, NOTE_BYTES)
    write_note(shared, request)
    text, _ = read_note(shared)

    assert request.startswith(text.encode("latin-1"))
    assert len(text) == len(request) or len(text) > NOTE_BYTES - 32


@pytest.mark.slow
def test_connections_that_wait_are_counted() -> None:
    """Linux says how many connections no process has accepted yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert waiting(listener) == 0
        visitors = [socket.create_connection(listener.getsockname()) for _ in range(3)]
        assert waiting(listener) == 3
        for visitor in visitors:
            visitor.close()
