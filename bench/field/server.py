"""A web server with connections that persist.

`server.py ADDRESS PORT FOLDER CONGESTION [CERTIFICATE KEY]`; with a certificate, over TLS.
"""

from __future__ import annotations

import functools
import http.server
import socket
import ssl
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server with a long queue, which is silent about users who have gone."""

    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing."""


def main() -> None:
    """Serves until it is ended."""
    address, port, folder, congestion, *certificate = sys.argv[1:]
    files = functools.partial(Handler, directory=folder)
    server = Server((address, int(port)), files)
    # Connections have that of the listener, from their first packet on.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
        # Handshakes are made by the connections' own threads.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    print("Serving", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
