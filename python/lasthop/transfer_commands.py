"""The commands `lasthop send` and `lasthop receive`."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lasthop import _lasthop as engine
from lasthop import terminal, units
from lasthop.errors import INTERRUPTED, UserError
from lasthop.files import whole
from lasthop.options import AsJson
from lasthop.terminal import escape
from lasthop.transfer import Peer, Transferred, Way, peer, transfer

_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of TCP, by its key in the `tcp` table of scenario files, such as"
        " congestion=cubic; or profile=NAME. Repeatable.",
    ),
]
_Tcp = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="The `tcp` table of scenario files, such as '{ congestion = \"cubic\" }'.",
    ),
]
_Address = Annotated[
    str | None,
    typer.Option(
        metavar="IP",
        help="The address of lasthop's end, the second or third of a /30 or /126 that is not"
        " routed here; default: one of 198.18.0.0/15 or 2001:2::/48.",
    ),
]
_Masquerade = Annotated[
    bool,
    typer.Option(
        "--masquerade",
        help="Reach a peer beyond this machine: forward its answers and translate addresses, by"
        " nft, for as long as the command runs.",
    ),
]
_Ipv4 = Annotated[bool, typer.Option("-4", "--ipv4", help="Use only IPv4 addresses of the host.")]
_Ipv6 = Annotated[bool, typer.Option("-6", "--ipv6", help="Use only IPv6 addresses of the host.")]


def send(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to send; - is standard input.")],
    host: Annotated[str, typer.Argument(metavar="HOST:PORT", help="A TCP listener.")],
    settings: _Set = None,
    tcp: _Tcp = None,
    address: _Address = None,
    masquerade: _Masquerade = False,
    ipv4: _Ipv4 = False,
    ipv6: _Ipv6 = False,
    as_json: AsJson = False,
) -> None:
    """Send a file by lasthop's TCP to any TCP listener; needs Linux and root.

    It is done when the peer has acknowledged everything, its end included.
    """
    to = peer(host, _family(ipv4, ipv6))
    way = Way(tcp, settings or (), address, masquerade)
    with _input(file) as (number, size), _ended(), terminal.bytes_moved(file, size) as watch:
        done = transfer(number, to, way, watch, sends=True)
    _show(done, "sent", as_json)


def receive(
    host: Annotated[
        str | None, typer.Argument(metavar="HOST:PORT", help="A TCP listener that sends.")
    ] = None,
    listen: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=1, max=65535, help="Wait for a sender at this port instead."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Default: standard output.")
    ] = "-",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    settings: _Set = None,
    tcp: _Tcp = None,
    address: _Address = None,
    masquerade: _Masquerade = False,
    ipv4: _Ipv4 = False,
    ipv6: _Ipv6 = False,
    as_json: AsJson = False,
) -> None:
    """Receive a file by lasthop's TCP from any TCP peer; needs Linux and root.

    The file appears under its name when all of it has arrived.
    """
    if (host is None) == (listen is None):
        raise UserError("give either HOST:PORT, to which to connect, or --listen PORT")
    if as_json and output == "-":
        raise UserError("the data goes to standard output, where --json would print: give -o FILE")
    if force and output == "-":
        raise UserError(
            "--force overwrites a file, and the data goes to standard output: leave it out"
        )
    if listen is not None and (masquerade or ipv4 or ipv6):
        raise UserError("--masquerade, -4 and -6 are for connecting to HOST:PORT")
    to = Peer(None, listen) if listen is not None else peer(host or "", _family(ipv4, ipv6))
    way = Way(tcp, settings or (), address, masquerade)
    with _output(output, force) as number, _ended(), terminal.bytes_moved(output, None) as watch:
        done = transfer(number, to, way, watch, sends=False)
    _show(done, "received", as_json)


def _family(ipv4: bool, ipv6: bool) -> int:
    if ipv4 and ipv6:
        raise UserError("-4 and -6 exclude each other")
    if ipv4:
        return socket.AF_INET
    return socket.AF_INET6 if ipv6 else socket.AF_UNSPEC


@contextmanager
def _input(name: str) -> Iterator[tuple[int, int | None]]:
    """The descriptor of what is sent, and its size if it has one."""
    with _file_errors("read", name), ExitStack() as opened:
        number = 0 if name == "-" else opened.enter_context(Path(name).open("rb")).fileno()
        is_file = name != "-" and stat.S_ISREG(os.fstat(number).st_mode)
        yield number, os.fstat(number).st_size if is_file else None


@contextmanager
def _output(name: str, force: bool) -> Iterator[int]:
    """The descriptor of what is received into; a file is there as a whole or not at all."""
    with _file_errors("write", name), ExitStack() as opened:
        if name == "-":
            yield 1
            return
        path = Path(name)
        # Whatever it is: what is received cannot be told from what is not.
        if path.is_file() and not force:
            raise UserError(f"{name!r} exists: --force overwrites it")
        new = opened.enter_context(whole(path))
        yield opened.enter_context(new.open("wb")).fileno()


@contextmanager
def _file_errors(verb: str, name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # The reader of standard output has enough.
        raise
    except OSError as error:
        raise UserError(f"cannot {verb} {name!r}: {error.strerror or error}") from None


@contextmanager
def _ended() -> Iterator[None]:
    """Everything is undone after Ctrl-C, and as well when the terminal or the system ends it."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        terminal.say("[bold]interrupted[/]")
        raise typer.Exit(INTERRUPTED) from None


def _show(done: Transferred, verb: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"lasthop": engine.__version__, **done.as_dict()}, indent=2))
        return
    span = units.duration(float(f"{done.seconds:.3g}"))
    parts = [f"{verb} {done.bytes} bytes in {span}: [bold]{units.rate(done.goodput_bps)}[/]"]
    if done.segments is not None:
        parts.append(
            f"{done.segments} segments, {done.retransmissions} retransmissions,"
            f" {done.timeouts} timeouts"
        )
    if done.srtt_s is not None and done.min_rtt_s is not None:
        smoothed, least = (
            units.duration(float(f"{trip:.3g}")) for trip in (done.srtt_s, done.min_rtt_s)
        )
        parts.append(f"round trip {smoothed} smoothed, {least} least")
    terminal.say("; ".join(parts))
    if done.discarded:
        terminal.say(f"[dim]{done.discarded} bytes from {escape(done.remote)} were discarded[/]")
    if done.peer_end != "closed":
        what = "keeps its side open" if done.peer_end == "open" else "then reset the connection"
        terminal.say(f"[dim]{escape(done.remote)} has acknowledged everything, and {what}[/]")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(send)
    app.command()(receive)
