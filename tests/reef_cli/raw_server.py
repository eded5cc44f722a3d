"""A Unix socket that answers with given bytes: for what a healthy daemon never sends."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Open(bytes):
    """An answer after which the connection stays open."""


Answer = bytes | None | Callable[[bytes], bytes | None]


class RawServer:
    """Answers each connection with the next of its answers, the last one again and again; ``requests`` is what came."""

    def __init__(self, path: Path, answers: tuple[Answer, ...]) -> None:
        self.requests: list[bytes] = []
        self._answers = list(answers)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            request = connection.recv(65536)
            if not request:  # `close` knocks
                connection.close()
                return
            self.requests.append(request)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if callable(answer):
                answer = answer(request)
            if answer is not None:  # that is silence
                connection.sendall(answer)
            if answer is None or isinstance(answer, Open):
                self._held.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as knock:
            knock.connect(self._listener.getsockname())
        self._thread.join(10)
        for connection in (*self._held, self._listener):
            connection.close()


@contextmanager
def answering(path: Path, *answers: Answer) -> Iterator[RawServer]:
    """Serve on ``path``; None as an answer is silence; a function makes one of a request."""
    server = RawServer(path, answers)
    try:
        yield server
    finally:
        server.close()


def ok(body: bytes, *, kind: str = "application/json", status: str = "200 OK") -> bytes:
    """A whole response with its length."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def chunked(*chunks: bytes, ended: bool = True) -> bytes:
    """A response in chunks; without its end when a daemon dies inside it."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if ended else b"")
