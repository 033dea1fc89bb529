"""Downloads a file and tells when data comes after a silence: `arrivals.py ADDRESS PORT FILE`.

It prints `Receiving` once data has come, and then, whenever none has come for more than a second,
the time of the next data: seconds of CLOCK_MONOTONIC, which all namespaces of a machine share.
"""

from __future__ import annotations

import socket
import sys
import time

#: A shorter pause is no silence.
SILENCE = 1.0


def main() -> None:
    """Receives until it is ended, or the connection is."""
    address, port, name = sys.argv[1:]
    with socket.create_connection((address, int(port))) as connection:
        connection.sendall(f"GET /{name} HTTP/1.1\r\nHost: server\r\n\r\n".encode())
        last = None
        while connection.recv(1 << 16):
            now = time.monotonic()
            if last is None:
                print("Receiving", flush=True)
            elif now - last > SILENCE:
                print(now, flush=True)
            last = now


if __name__ == "__main__":
    main()
