"""An OpenTelemetry collector for tests: takes OTLP/HTTP JSON on a loopback port and keeps it. ``statuses`` answer
first, one a request."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.serving import serving


class Collector:
    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.statuses: deque[int] = deque()

    def spans(self) -> list[dict[str, Any]]:
        """What came, attributes as a mapping of plain values."""
        found = []
        for body in self.bodies:
            for resource in json.loads(body)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    found += [{**span, "attributes": plain(span["attributes"])} for span in scope["spans"]]
        return found


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["key"]: _value(one["value"]) for one in attributes}


def _value(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in inner["values"]]
    return int(inner) if kind == "intValue" else inner


@contextmanager
def running_collector(port: int = 0) -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] == "application/json"
            status = collector.statuses.popleft() if collector.statuses else 200
            collector.paths.append(self.path)
            if status == 200:
                collector.bodies.append(body)
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield collector
