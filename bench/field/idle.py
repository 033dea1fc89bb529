"""Connections that are idle: `idle.py serve ADDRESS PORT` and `idle.py hold ADDRESS PORT COUNT`.

The user opens so many, sends a byte over each and gets it back. Then it prints that they are held,
and nothing more is sent.
"""

from __future__ import annotations

import asyncio
import sys

#: Connections that are opened at once.
AT_ONCE = 100
PATIENCE = 60.0


async def serve(address: str, port: int) -> None:
    """Sends back what comes."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, address, port, backlog=1024)
    print("Serving", flush=True)
    await server.serve_forever()


async def hold(address: str, port: int, count: int) -> None:
    """Opens connections and keeps them."""
    held = []
    slots = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with slots:
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(b"x")
            if await reader.readexactly(1) != b"x":
                raise SystemExit("another byte came back")
            held.append((reader, writer))

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(one() for _ in range(count)))
    print("Held", len(held), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Runs until it is ended."""
    what, address, port, *count = sys.argv[1:]
    if what == "serve":
        asyncio.run(serve(address, int(port)))
    else:
        asyncio.run(hold(address, int(port), int(count[0])))


if __name__ == "__main__":
    main()
