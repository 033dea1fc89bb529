"""scapy reads the ESP packets that lasthop has written, and has written others.

The corpus is that of ``crates/wire/tests/it/sealed.rs``, which opens scapy's packets. Both sides
compare byte for byte with what they write.
"""

import dataclasses
import struct
from pathlib import Path
from typing import Any

import pytest

inet = pytest.importorskip("scapy.layers.inet", reason="scapy is missing")
inet6 = pytest.importorskip("scapy.layers.inet6")
ipsec = pytest.importorskip("scapy.layers.ipsec")

CORPUS = Path(__file__).parents[1] / "crates/wire/tests/it/corpus/esp.hex"

# The key, and the salt behind it.
KEYS = {
    "aes-128-gcm": ("AES-GCM", b"sixteen byte keysalt"),
    "aes-256-gcm": ("AES-GCM", b"a key of thirty-two bytes, thatssalt"),
    "chacha20": ("CHACHA20-POLY1305", b"a key of thirty-two bytes, thatssalt"),
}
PAYLOAD = b"every byte, in order, once"
SOURCES = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
DESTINATION_OPTIONS, ESP, SPEP, CETEN = 60, 50, 0x3E, 0x3E


@dataclasses.dataclass
class Case:
    name: str
    algorithm: str
    high: int | None
    data: bytes


def cases() -> list[Case]:
    """The packets of the corpus."""
    text = "\n".join(
        line for line in CORPUS.read_text().splitlines() if not line.startswith("#")
    ).strip()
    result = []
    for block in text.split("\n\n"):
        name, keys, *digits = block.splitlines()
        algorithm, _, high = keys.removeprefix("@ ").partition(" ")
        data = bytes.fromhex("".join(digits))
        result.append(Case(name.strip("[]"), algorithm, int(high) if high else None, data))
    return result


def association(algorithm: str, spi: int, number: int = 1, high: int | None = None) -> Any:
    """scapy's security association."""
    crypt, key = KEYS[algorithm]
    return ipsec.SecurityAssociation(
        ipsec.ESP,
        spi=spi,
        seq_num=number,
        crypt_algo=crypt,
        crypt_key=key,
        esn_en=high is not None,
        esn=high or 0,
    )


def headers_before_esp(data: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """The extension headers of an IPv6 packet in front of ESP, and the packet without them."""
    following, at = data[6], 40
    found = []
    while following != ESP:
        end = at + 8 * (1 + data[at + 1])
        found.append((following, data[at:end]))
        following, at = data[at], end
    length = struct.pack(">H", len(data) - at)
    return found, data[:4] + length + bytes([ESP]) + data[7:40] + data[at:]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_scapy_decrypts_and_authenticates(case: Case) -> None:
    data = case.data
    version = data[0] >> 4
    # scapy 2.8 takes what follows a header in front of ESP for the transport: that is rebuilt.
    layer, data = (inet.IP, data) if version == 4 else (inet6.IPv6, headers_before_esp(data)[1])
    packet = layer(data)
    esp = packet[ipsec.ESP]
    sa = association(case.algorithm, esp.spi, high=case.high)
    opened = sa.decrypt(packet, esn_en=case.high is not None, esn=case.high)
    assert (opened.src, opened.dst) == SOURCES[version]
    if inet.TCP in opened:
        transport = opened[inet.TCP]
        assert (transport.sport, transport.dport, transport.seq) == (49152, 80, 0x01020304)
        assert ("Timestamp", (1, 2)) in transport.options
    else:
        transport = opened[inet.UDP]
        assert (transport.sport, transport.dport) == (49152, 40000)
    assert bytes(transport.payload) == PAYLOAD
    # scapy computes the transport's checksum itself when it has none.
    again = opened.copy()
    del again[type(transport)].chksum
    assert type(again)(bytes(again))[type(transport)].chksum == transport.chksum
    # A bit that changes is noticed.
    damaged = layer(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ipsec.IPSecIntegrityError):
        sa.decrypt(damaged, esn_en=case.high is not None, esn=case.high)


def test_the_option_is_in_front_of_esp_and_behind_that_of_cumulative_eten() -> None:
    by_name = {case.name: case.data for case in cases()}
    blocks = struct.pack(">6I", 1, 2, 4, 5, 7, 0xFFFFFFF0)
    option = bytes([ESP, 3, SPEP, 24]) + blocks + bytes([1, 2, 0, 0])
    empty = bytes([ESP, 3, SPEP, 24]) + bytes(24) + bytes([1, 2, 0, 0])
    for name, expected in [
        ("option of SPEP, empty", [(DESTINATION_OPTIONS, empty)]),
        ("option of SPEP, written", [(DESTINATION_OPTIONS, option)]),
    ]:
        assert headers_before_esp(by_name[name])[0] == expected
    both = headers_before_esp(by_name["behind the fields of Cumulative ETEN"])[0]
    assert both[0][0] == 0
    assert both[0][1][:4] == bytes([DESTINATION_OPTIONS, 2, CETEN, 16])
    assert both[1:] == [(DESTINATION_OPTIONS, option)]
    # scapy itself reads the header and its option.
    read = inet6.IPv6(by_name["option of SPEP, written"])
    assert read.fl == 0x12345
    header = read[inet6.IPv6ExtHdrDestOpt]
    assert (header.options[0].otype, bytes(header.options[0].optdata)) == (SPEP, blocks)


def written() -> list[tuple[str, str, int | None, bytes]]:
    """The packets that scapy writes for the corpus."""
    segment = inet.TCP(
        sport=49152,
        dport=80,
        seq=0x01020304,
        ack=0x05060708,
        flags="PA",
        window=1024,
        options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))],
    )
    four = inet.IP(src=SOURCES[4][0], dst=SOURCES[4][1], flags="DF", id=0)
    six = inet6.IPv6(src=SOURCES[6][0], dst=SOURCES[6][1])

    def sealed(packet: Any, algorithm: str, number: int, high: int | None = None) -> bytes:
        sa = association(algorithm, 0x1000 if high is None else 0x1002, number, high)
        if algorithm != "aes-128-gcm":
            sa = association(algorithm, 0x1001 if algorithm == "aes-256-gcm" else 0x1003, number)
        iv = struct.pack(">Q", 0xFEED0000 + number)
        packet = type(packet)(bytes(packet / PAYLOAD))
        return bytes(sa.encrypt(packet, iv=iv, esn_en=high is not None, esn=high))

    plain = sealed(six / segment, "aes-128-gcm", 12)
    header = bytes([ESP, 3, SPEP, 24]) + struct.pack(">6I", 10, 12, *[0] * 4) + bytes([1, 2, 0, 0])
    length = struct.pack(">H", len(plain) - 40 + len(header))
    with_option = (
        plain[:4] + length + bytes([DESTINATION_OPTIONS]) + plain[7:40] + header + plain[40:]
    )
    datagram = inet.UDP(sport=49152, dport=40000)
    return [
        ("segment over IPv4", "aes-128-gcm", None, sealed(four / segment, "aes-128-gcm", 10)),
        ("segment over IPv6", "aes-256-gcm", None, sealed(six / segment, "aes-256-gcm", 11)),
        ("option of SPEP", "aes-128-gcm", None, with_option),
        ("extended numbers", "aes-128-gcm", 6, sealed(six / segment, "aes-128-gcm", 13, 6)),
        ("ChaCha20-Poly1305", "chacha20", None, sealed(four / datagram, "chacha20", 14)),
    ]


def test_what_scapy_writes_is_in_the_corpus() -> None:
    text = ""
    for name, algorithm, high, data in written():
        text += f"\n[scapy: {name}]\n@ {algorithm}" + ("" if high is None else f" {high}") + "\n"
        text += "\n".join(data[at : at + 32].hex() for at in range(0, len(data), 32)) + "\n"
    assert text in CORPUS.read_text(), f"the corpus should have:\n{text}"
