"""A provider that answers exactly the bytes it is given, in exactly the pieces it is given them in."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.fakes.serving import serving

JSON = "application/json"
SSE = "text/event-stream"


@dataclass(frozen=True)
class Bytes:
    """One answer; each of ``pieces`` is written by itself."""

    pieces: tuple[bytes, ...]
    kind: str = JSON
    status: int = 200


class Scripted:
    def __init__(self) -> None:
        self.url = ""
        self.answers: deque[Bytes] = deque()
        #: Path, headers and body of what came.
        self.seen: list[tuple[str, dict[str, str], bytes]] = []


@contextmanager
def running_scripted() -> Iterator[Scripted]:
    provider = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            provider.seen.append((self.path, headers, body))
            answer = provider.answers.popleft()
            self.send_response(answer.status)
            self.send_header("content-type", answer.kind)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in answer.pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield provider
