"""Stands in for a daemon of another version, or one that hangs: holds the lock, answers or not, ends when told.

``python -m tests.fakes.old_daemon VERSION [--drain SECONDS] [--silent]`` on the home that ``REEF_HOME`` names.
"""

import argparse
import json
import os
import signal
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

from daemon.core.discovery import DaemonState, write_state
from daemon.core.paths import home
from daemon.core.version import PROTOCOL
from daemon.server.listen import only_daemon


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    version = ""
    drain = 0.0


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({"ok": True, "version": self.server.version, "protocol": PROTOCOL, "pid": os.getpid()})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer({"ok": True})

        def end() -> None:
            time.sleep(self.server.drain)  # the requests in flight
            self.server.shutdown()

        threading.Thread(target=end).start()

    def _answer(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("version")
    parser.add_argument("--drain", type=float, default=0.0)
    parser.add_argument("--silent", action="store_true")
    options = parser.parse_args()
    place = home()
    with only_daemon(place):
        place.socket.unlink(missing_ok=True)
        write_state(place, DaemonState(os.getpid(), 1, str(place.socket), options.version, PROTOCOL, time.time_ns()))
        if options.silent:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(place.socket))
                listener.listen()
                signal.pause()
        with _Server(str(place.socket), _Handler) as server:
            server.version, server.drain = options.version, options.drain
            server.serve_forever(poll_interval=0.01)
        place.socket.unlink()
        place.state.unlink()


if __name__ == "__main__":
    main()
