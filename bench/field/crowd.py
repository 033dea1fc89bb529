"""Many connections that behave well and badly: `crowd.py serve` and `crowd.py drive`.

The two ends are `crowd.py serve ADDRESS PORT` and `crowd.py drive ADDRESS PORT COUNT SECONDS SEED
FROM...`. The client keeps COUNT connections open from these addresses for so many SECONDS, and then
waits until all are over. Each connection is told in its first bytes what it is to do: to send so
many bytes each way within some time, to read slowly, to close one direction early, to reset, or to
vanish without a word. Both ends compare every byte with what it should be. When the client gets
SIGTERM, or all is over, it prints what became of the connections, as JSON; the server does so when
it gets SIGTERM.

An end that vanishes has ports from 62000 on; the resets that its kernel would send must be dropped.
If nothing on the path tells its peer, the peer's kernel gives up by itself after two minutes; when
the handshakes of such connections were is said, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import random
import signal
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: The number of a connection, bytes up and down, milliseconds that they take, what it does.
HEADER = struct.Struct("!QIIIB")
PLAIN, SLOW, HALF, RESET, VANISH = range(5)
NAMES = ("plain", "slow reader", "half-close", "reset", "vanish")
WEIGHTS = (60, 15, 15, 7, 3)
#: Streams are parts of this, each from a place of its own.
BLOB = random.Random(1).randbytes(1 << 20)
BLOBS = BLOB + BLOB
LARGEST = 1 << 19
PIECES = 8
#: `TCP_REPAIR`: a socket that is closed meanwhile sends nothing.
TCP_REPAIR = 19
FIRST_PORT, LAST_PORT = 62_000, 65_535
#: Connections that begin in a second, at most.
RATE = 400
#: Seconds after which the server's kernel gives up a peer that is not heard.
UNHEARD = 120
#: Seconds until one has to have an outcome after the last began.
PATIENCE = 240.0


@dataclass(frozen=True)
class Plan:
    """What a connection does."""

    number: int
    up: int
    down: int
    milliseconds: int
    kind: int

    def content(self, down: bool, start: int, length: int) -> bytes:
        """Some bytes of one of its streams."""
        place = (self.number * 7919 + down * 104_729 + start) % len(BLOB)
        return BLOBS[place : place + length]


class WrongError(Exception):
    """Other bytes have arrived, or fewer although the stream has ended."""


async def send(writer: asyncio.StreamWriter, plan: Plan, down: bool) -> None:
    """Sends a stream in pieces."""
    size = plan.down if down else plan.up
    piece = max(1, -(-size // PIECES))
    for start in range(0, size, piece):
        writer.write(plan.content(down, start, min(piece, size - start)))
        await writer.drain()
        await asyncio.sleep(plan.milliseconds / 1000 / PIECES)


async def receive(reader: asyncio.StreamReader, plan: Plan, down: bool, slowly: bool) -> None:
    """Reads a stream to its end, and compares it."""
    size, got = (plan.down if down else plan.up), 0
    while data := await reader.read(1 << 14):
        if data != plan.content(down, got, len(data)):
            raise WrongError(f"{NAMES[plan.kind]} {plan.number}: other bytes from {got} on")
        got += len(data)
        if slowly:
            await asyncio.sleep(plan.milliseconds / 1000 * len(data) / max(1, size))
    if got != size:
        raise WrongError(f"{NAMES[plan.kind]} {plan.number}: {got} of {size} bytes, and an end")


class Outcomes:
    """What became of connections, and since when those that are open are."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.open: dict[Plan, float] = {}
        #: The user's address and port of each, once it is known.
        self.users: dict[Plan, str] = {}
        #: When those began whose peers have vanished, as their own kernel has found out, and whose
        #: they are.
        self.unheard: list[tuple[float, str]] = []
        #: Of the user's ends that vanish, between which times their handshakes were.
        self.vanishing: dict[str, tuple[float, float]] = {}
        self.most = 0

    def know(self, plan: Plan, user: tuple[str, int]) -> None:
        """Takes note of the user's address and port."""
        self.users[plan] = "{}:{}".format(*user)

    @contextlib.contextmanager
    def of(self, plan: Plan) -> Iterator[None]:
        """Counts what becomes of the connection whose end is handled meanwhile."""
        self.open[plan] = began = time.monotonic()
        self.most = max(self.most, len(self.open))
        outcome = "complete"
        try:
            yield
        except OSError as error:
            if error.errno == errno.ETIMEDOUT and plan.kind == VANISH:
                outcome = "unheard"
                self.unheard.append((began, self.users[plan]))
            else:
                outcome = f"failed: {error.strerror or type(error).__name__}"
        except WrongError as wrong:
            outcome = "wrong"
            self.faults.append(str(wrong))
        finally:
            self.counts[outcome] += 1
            del self.open[plan]
            self.users.pop(plan, None)

    def show(self) -> None:
        """Prints all."""
        found = dict(self.counts) | {"open": len(self.open), "at once": self.most}
        now = time.monotonic()
        ends = [
            f"{NAMES[end.kind]} of {self.users.get(end, '?')}, for {now - at:.0f} s"
            for end, at in self.open.items()
        ]
        told = {
            "counts": found,
            "faults": self.faults[:20],
            "unheard": self.unheard,
            "vanishing": self.vanishing,
            "without outcome": ends[:20],
        }
        print(json.dumps(told), flush=True)


def give_up_the_unheard(found: socket.socket) -> None:
    """Lets the kernel find out that a peer has vanished."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNHEARD - 20)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * UNHEARD)


async def serve(address: str, port: int) -> None:
    """Does what the client says."""
    outcomes = Outcomes()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            plan = Plan(*HEADER.unpack(await reader.readexactly(HEADER.size)))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        give_up_the_unheard(writer.get_extra_info("socket"))
        with outcomes.of(plan):
            outcomes.know(plan, writer.get_extra_info("peername"))
            try:
                sending = asyncio.create_task(answer(writer, plan))
                await receive(reader, plan, down=False, slowly=plan.kind == SLOW)
                await sending
            finally:
                sending.cancel()
                writer.close()

    async def answer(writer: asyncio.StreamWriter, plan: Plan) -> None:
        await send(writer, plan, down=True)
        writer.write_eof()

    server = await asyncio.start_server(one, address, port, backlog=4096)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.close)
    print("Serving", flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await server.serve_forever()
    outcomes.show()
    # What is left to do is not waited for.
    os._exit(0)


def plan(random: random.Random, number: int) -> Plan:
    """What the next connection does."""
    up, down = (int(LARGEST ** random.random()) for _ in range(2))
    kind = random.choices(range(len(WEIGHTS)), WEIGHTS)[0]
    return Plan(number, up, down, random.randrange(1000, 50_000), kind)


async def drive(
    address: str, port: int, count: int, seconds: float, seed: int, users: Sequence[str]
) -> None:
    """Keeps connections open."""
    outcomes = Outcomes()
    draw = random.Random(seed)
    vanishing = ((user, port) for port in range(FIRST_PORT, LAST_PORT) for user in users)

    async def one(plan: Plan) -> None:
        with outcomes.of(plan):
            ends = next(vanishing, None) if plan.kind == VANISH else None
            source = ends or (users[plan.number % len(users)], 0)
            before = time.monotonic()
            opening = asyncio.open_connection(address, port, local_addr=source)
            reader, writer = await asyncio.wait_for(opening, PATIENCE)
            outcomes.know(plan, writer.get_extra_info("sockname"))
            if ends:
                outcomes.vanishing["{}:{}".format(*ends)] = (before, time.monotonic())
            try:
                await use(plan, reader, writer, ends is not None)
            finally:
                writer.close()

    async def use(
        plan: Plan, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, vanishes: bool
    ) -> None:
        writer.write(HEADER.pack(plan.number, plan.up, plan.down, plan.milliseconds, plan.kind))
        if plan.kind == RESET or vanishes:
            sending = asyncio.create_task(send(writer, plan, down=False))
            await asyncio.sleep(plan.milliseconds / 1000 * draw.random())
            sending.cancel()
            found: socket.socket = writer.get_extra_info("socket")
            if vanishes:
                found.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            else:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return
        receiving = asyncio.create_task(receive(reader, plan, True, plan.kind == SLOW))
        try:
            await send(writer, plan, down=False)
            if plan.kind != HALF:
                # The other direction ends first, as far as both are in time.
                await asyncio.sleep(plan.milliseconds / 4000)
            writer.write_eof()
            await receiving
        finally:
            receiving.cancel()

    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    print("Driving", flush=True)
    until, number = time.monotonic() + seconds, 0
    tasks: set[asyncio.Task[None]] = set()
    while time.monotonic() < until and not ending.is_set():
        for _ in range(min(count - len(tasks), RATE // 10)):
            number += 1
            task = asyncio.create_task(one(plan(draw, number)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.1)
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE)
    outcomes.show()
    for task in tasks:
        task.cancel()


def main() -> None:
    """Runs one end."""
    what, address, port, *more = sys.argv[1:]
    if what == "serve":
        asyncio.run(serve(address, int(port)))
    else:
        count, seconds, seed, *users = more
        asyncio.run(drive(address, int(port), int(count), float(seconds), int(seed), users))


if __name__ == "__main__":
    main()
