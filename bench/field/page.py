"""Loads a page as a browser does: `page.py ADDRESS PORT FOLDER OBJECTS CONNECTIONS`.

First the page itself, `page`, then its objects, `object-0` and so on, over some connections that
persist, one request after the other on each. Every body has to be that of the file in the folder.
It prints the seconds from the first SYN to the last byte.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from pathlib import Path

#: Seconds that a connection may be silent.
PATIENCE = 30.0


def main() -> int:
    """Loads the page; 1 if anything was missing or wrong."""
    address, port, folder, objects, connections = sys.argv[1:]
    waiting = [f"object-{number}" for number in range(int(objects))][::-1]
    faults: list[str] = []

    def connect() -> http.client.HTTPConnection:
        return http.client.HTTPConnection(address, int(port), timeout=PATIENCE)

    def get(connection: http.client.HTTPConnection, name: str) -> None:
        connection.request("GET", f"/{name}")
        if connection.getresponse().read() != (Path(folder) / name).read_bytes():
            faults.append(f"{name} is wrong")

    def load(connection: http.client.HTTPConnection) -> None:
        try:
            while True:
                get(connection, waiting.pop())
        except IndexError:
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            faults.append(repr(error))

    start = time.monotonic()
    first = connect()
    try:
        get(first, "page")
    except (OSError, http.client.HTTPException) as error:
        print(repr(error), file=sys.stderr)
        return 1
    several = [first, *(connect() for _ in range(int(connections) - 1))]
    threads = [threading.Thread(target=load, args=(connection,)) for connection in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - start
    if faults:
        print("; ".join(faults), file=sys.stderr)
        return 1
    print(f"{seconds:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
