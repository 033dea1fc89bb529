"""The check of captures finds what no end may do."""

from __future__ import annotations

import pytest
from spoofing import Stream

#: Raw sequence numbers wrap within the connection.
CLIENT, SERVER = 0xFFFF_FF00, 0x1000
SYN, ACK, PSH, FIN = "0x0002", "0x0010", "0x0018", "0x0011"
SYN_ACK = "0x0012"


def words(
    seq: int, ack: int, window: int, flags: str, data: str = "", shift: str = ""
) -> list[str]:
    """The fields of a segment as tshark prints them."""
    return [str(seq % 2**32), str(ack % 2**32), str(window), flags, shift, data]


def established() -> tuple[Stream, Stream]:
    """A client that allows 100 << 2 bytes, and a server."""
    client, server = Stream(), Stream()
    client.segment(server, words(CLIENT, 0, 50, SYN, shift="2"))
    server.segment(client, words(SERVER, CLIENT + 1, 60, SYN_ACK, shift="3"))
    client.segment(server, words(CLIENT + 1, SERVER + 1, 100, ACK))
    return client, server


def faults(stream: Stream) -> tuple[int, int, int]:
    return stream.out_of_window, stream.unsent_acknowledged, stream.changed_bytes


def test_a_right_conversation_has_no_faults() -> None:
    client, server = established()
    client.segment(server, words(CLIENT + 1, SERVER + 1, 100, PSH, "41" * 60))
    server.segment(client, words(SERVER + 1, CLIENT + 61, 10, PSH, "42" * 400))
    # Sent again in other pieces, and the FIN.
    server.segment(client, words(SERVER + 101, CLIENT + 61, 10, PSH, "42" * 300))
    client.segment(server, words(CLIENT + 61, SERVER + 401, 0, ACK))
    server.segment(client, words(SERVER + 401, CLIENT + 61, 10, FIN))
    client.segment(server, words(CLIENT + 61, SERVER + 402, 0, ACK))
    assert faults(client) == faults(server) == (0, 0, 0)
    assert bytes(server.bytes) == b"B" * 400


@pytest.mark.parametrize(("size", "beyond"), [(400, 0), (401, 1), (500, 100)])
def test_bytes_beyond_the_window_are_counted(size: int, beyond: int) -> None:
    client, server = established()
    server.segment(client, words(SERVER + 1, CLIENT + 1, 10, PSH, "42" * size))
    assert faults(server) == (beyond, 0, 0)
    # A window that shrinks takes nothing back.
    client.segment(server, words(CLIENT + 1, SERVER + 101, 0, ACK))
    server.segment(client, words(SERVER + 301, CLIENT + 1, 10, PSH, "42" * 100))
    assert faults(server) == (beyond, 0, 0)


def test_the_window_of_a_syn_is_not_scaled() -> None:
    client, server = established()
    client.segment(server, words(CLIENT + 1, SERVER + 1, 100, PSH, "41" * 70))
    assert faults(client) == (10, 0, 0)


def test_what_was_not_sent_cannot_be_acknowledged() -> None:
    client, server = established()
    server.segment(client, words(SERVER + 1, CLIENT + 2, 10, ACK))
    assert faults(server) == (0, 1, 0)


def test_a_byte_that_changes_is_found() -> None:
    client, server = established()
    server.segment(client, words(SERVER + 1, CLIENT + 1, 10, PSH, "4242"))
    server.segment(client, words(SERVER + 2, CLIENT + 1, 10, PSH, "4342"))
    assert faults(server) == (0, 0, 1)
