"""A program for the supervisor's tests: answers ``GET /health`` on a port, and misbehaves as it is told to.

    python answering.py PORT [starting] [standby] [deaf] [ends] [complains]

``starting`` answers with status 503, ``standby`` does so and says that it stands by, ``deaf`` does not end at SIGTERM,
``ends`` ends at once with status 1 and a last word, ``complains`` logs a warning before it answers.
"""

from __future__ import annotations

import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if {"starting", "standby"} & set(sys.argv) else 200)
        self.end_headers()
        self.wfile.write(b'{"status": "standby"}' if "standby" in sys.argv else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


if "ends" in sys.argv:
    sys.exit("error: the port is haunted")  # status 1
if "complains" in sys.argv:
    print("2026-01-01T00:00:00.000Z warning tocsin.test: something is odd where=here", flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in sys.argv else signal.SIG_DFL)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
