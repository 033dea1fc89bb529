"""The check of captures finds what no end may do."""

from __future__ import annotations

import shutil
import struct
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from spoofing import PORT, Stream, malformed

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


# --- Malformed packets ---

SERVER_IP, USER_IP = (IPv6Address(f"fd00::{host}").packed for host in (1, 3))
#: EtherCAT's, which tshark reads as that.
ECAT_PORT = 34980


def tcp_header(source: int, to: int, seq: int, checksum: int) -> bytes:
    return struct.pack("!HHIIBBHHH", source, to, seq, 1, 0x50, 0x10, 500, checksum, 0)


def packet(ends: tuple[bytes, bytes], segment: bytes) -> bytes:
    header = struct.pack("!IHBB", 0x60000000, len(segment), 6, 64)
    return header + b"".join(ends) + segment


def checksum(ends: tuple[bytes, bytes], segment: bytes) -> int:
    data = b"".join(ends) + struct.pack("!IxxxB", len(segment), 6) + segment
    words: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while words > 0xFFFF:
        words = (words & 0xFFFF) + (words >> 16)
    return 0xFFFF - words


def written(file: Path, packets: list[bytes]) -> Path:
    """A capture of IPv6 packets without link headers."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for number, one in enumerate(packets):
            out.write(struct.pack("<IIII", number, 0, len(one), len(one)) + one)
    return file


@pytest.mark.skipif(shutil.which("tshark") is None, reason="it needs tshark")
def test_a_wrong_checksum_is_found_and_the_other_zero_is_not_wrong(tmp_path: Path) -> None:
    ends = (USER_IP, SERVER_IP)
    # With the sequence number that makes the sum 0xffff, the checksum is 0.
    seq = checksum(ends, tcp_header(40000, PORT, 0, 0))
    assert checksum(ends, tcp_header(40000, PORT, seq, 0)) == 0
    packets = [packet(ends, tcp_header(40000, PORT, seq, of)) for of in (0, 0xFFFF, 0x1234)]
    (found,) = malformed(written(tmp_path / "acks.pcap", packets))
    frame, *_, words = found.split("\t")
    assert frame == "3"
    assert words.startswith("Bad checksum")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="it needs tshark")
def test_content_is_no_protocol_whatever_the_port_of_the_client(tmp_path: Path) -> None:
    ends = (SERVER_IP, USER_IP)
    content = bytes.fromhex("751d591be537aa9d0aa5dcb3b12155c1c139eca62ecef0863aefbaf017263700")
    right = checksum(ends, tcp_header(PORT, ECAT_PORT, 1, 0) + content)
    data = packet(ends, tcp_header(PORT, ECAT_PORT, 1, right) + content)
    assert malformed(written(tmp_path / "data.pcap", [data])) == []
