"""A connection to the daemon, of the CLI or of a job: HTTP/1.1 over its Unix socket, one connection a request.

Written on `socket` alone: `http.client` costs 30 ms of import, half of what a hot command may take (bench/startup.py).
It speaks only to our own daemon, so it knows only what that sends: a length, chunks, or a body up to the end.
"""

import json
import math
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from daemon.core.errors import ReefError, Unreachable

#: Seconds of silence after which a daemon counts as hung.
TIMEOUT = 30.0
#: The same between two events: the daemon says something every 15 s.
SILENCE = 20.0
#: Our daemon's answers have a head of some hundred bytes.
_HEAD_BYTES = 65_536
#: As long as it takes.
_PATIENT = math.inf


class Client:
    """``scope`` below is a scenario's name; None leaves it to the daemon."""

    def __init__(self, path: Path, *, timeout: float | None = TIMEOUT, silence: float = SILENCE) -> None:
        self.path = path
        self.timeout = timeout
        self.silence = silence
        self._streams: set[socket.socket] = set()

    def get(self, path: str, /, **query: object) -> Any:
        """Answer of a GET; parameters that are None are left out."""
        return self._call("GET", _with_query(path, query))

    def content(self, path: str) -> bytes:
        """A GET's body as it is."""
        with self._open("GET", path) as response:
            return b"".join(response)

    def rows(self, path: str, **query: object) -> Iterator[bytes]:
        """A GET's lines as they are, while they come."""
        with self._open("GET", _with_query(path, query), silence=_PATIENT) as response:
            yield from response

    def post(self, path: str, body: Mapping[str, object], *, scope: str | None = None) -> Any:
        return self._call("POST", path, body, scope)

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path, {})

    def lines(self, path: str, body: Mapping[str, object]) -> Iterator[Any]:
        """POST, then one JSON value a line as the daemon gets on. Waits as long as it takes between lines."""
        with self._open("POST", path, body, silence=_PATIENT) as response:
            for line in response:
                if line.strip():
                    yield json.loads(line)

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-sent events as (name, JSON data), until the daemon ends the stream or falls silent."""
        with self._open("GET", path, silence=self.silence) as response:
            name, data = "message", b""
            for line in response:
                field, _, value = line.rstrip(b"\r\n").partition(b":")
                if field == b"event":
                    name = value.strip().decode()
                elif field == b"data":
                    data += value.strip()
                elif not line.strip() and data:
                    yield name, json.loads(data)
                    name, data = "message", b""

    def break_off(self) -> None:
        """End every stream that is being read, from another thread: its reader sees a broken connection."""
        for connection in list(self._streams):
            with suppress(OSError):  # closed meanwhile
                connection.shutdown(socket.SHUT_RDWR)

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None, scope: str | None = None) -> Any:
        with self._open(method, path, body, scope=scope) as response:
            data = b"".join(response)
            return json.loads(data) if data else None

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        scope: str | None = None,
        silence: float | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """The response's body by lines; raises what the daemon answered where that is an error.

        ``silence``: seconds between two lines of a stream after which the daemon counts as hung.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(allowed := self.timeout)
            try:
                connection.connect(str(self.path))
                connection.sendall(_request(method, path, body, scope))
                with connection.makefile("rb") as stream:
                    status, headers = _head(stream)
                    if silence is not None and status < 400:
                        connection.settimeout(allowed := None if silence == _PATIENT else silence)
                        self._streams.add(connection)
                    content = _body(stream, headers)
                    if status >= 400:
                        raise error_from(status, b"".join(content))
                    yield content
            except (FileNotFoundError, ConnectionRefusedError) as error:
                raise Unreachable("the daemon is not running", hint="reef start") from error
            except TimeoutError as error:
                raise Unreachable(f"the daemon has not answered for {allowed or 0:g} s", hint="reef logs") from error
            except ConnectionError as error:
                raise Unreachable(f"the daemon broke the connection off: {error}", hint="reef logs") from error
            except OSError as error:
                why = error.strerror or error
                raise Unreachable(f"cannot reach the daemon at {self.path}: {why}", hint="reef doctor") from error
            except (ValueError, OverflowError, RecursionError, MemoryError) as error:
                said = f"what answers at {self.path} makes no sense: {type(error).__name__}: {error}"
                raise ReefError(said, hint="reef restart") from error
            finally:
                self._streams.discard(connection)


def error_from(status: int, body: bytes) -> ReefError:
    """The error that an HTTP answer carries, in the class of its kind."""
    try:
        return told_error(json.loads(body))
    except (ValueError, KeyError, TypeError):
        return ReefError(f"the daemon answered {status}: {body[:200].decode(errors='replace')}", hint="reef logs")


def told_error(envelope: Mapping[str, Any]) -> ReefError:
    """The error that an envelope (`ReefError.envelope`) tells, in the class of its kind."""
    told = envelope["error"]
    cls = _kinds(ReefError).get(told["kind"], ReefError)
    error = cls.__new__(cls)
    # Some classes make their message from numbers; here it is made already.
    ReefError.__init__(error, str(told["message"]), hint=told.get("hint"))
    return error


def _kinds(cls: type[ReefError]) -> dict[str, type[ReefError]]:
    found = {cls.kind: cls}
    for below in cls.__subclasses__():
        found |= _kinds(below)
    return found


def _with_query(path: str, query: Mapping[str, object]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def segment(text: str) -> str:
    """``text`` as one segment of a path."""
    return quote(text, safe="")


def _request(method: str, path: str, body: Mapping[str, object] | None, scope: str | None) -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    if scope is not None:
        head.append(f"x-reef-scenario: {quote(scope, safe='/._-')}")
    content = b""
    if body is not None:
        content = json.dumps(body).encode()
        head += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*head, "", ""]).encode() + content


def _head(stream: BinaryIO) -> tuple[int, dict[bytes, bytes]]:
    words = stream.readline(_HEAD_BYTES).split(None, 2)
    if not words:
        raise ConnectionResetError("it ended before an answer")
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError(f"no HTTP: {words[0][:20]!r}")
    headers: dict[bytes, bytes] = {}
    left = _HEAD_BYTES
    while (line := stream.readline(left)).strip():
        name, _, value = line.partition(b":")
        headers[name.strip().lower()] = value.strip()
        left -= len(line)
    if left <= 0:
        raise ValueError("its head has no end")
    if not line:
        raise ConnectionResetError("it ended inside a head")
    return int(words[1]), headers


def _body(stream: BinaryIO, headers: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The body by lines, whatever its framing; a body that ends early is an error, not a short answer."""
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        yield from _by_lines(_chunks(stream))
    elif b"content-length" in headers:
        length = int(headers[b"content-length"])
        data = stream.read(length)
        if len(data) < length:
            raise ConnectionResetError("it ended inside an answer")
        yield from data.splitlines(keepends=True)
    else:
        yield from stream


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        size = stream.readline()
        if not size.strip():
            raise ConnectionResetError("it ended inside an answer")
        length = int(size.split(b";")[0], 16)
        data = stream.read(length)
        if len(data) < length:
            raise ConnectionResetError("it ended inside an answer")
        stream.readline()
        if length == 0:
            return
        yield data


def _by_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    for chunk in chunks:
        first, *more = chunk.split(b"\n")
        waiting.append(first)
        for begun in more:
            yield b"".join(waiting) + b"\n"
            waiting = [begun]
    if any(waiting):
        yield b"".join(waiting)
