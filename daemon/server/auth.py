"""The checks at the door, before a byte of the body is read: Host, Origin, token, content type (SECURITY 1-3).

A local server without them is open to every web page the person visits (DNS rebinding, simple cross-site POSTs). Pure
ASGI: the answer goes out from the headers alone. Requests on the control socket come from this user by the file
system's word and skip the token.
"""

import hmac
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from adapters import script
from daemon.core.errors import ConfigError, Forbidden, ReefError, Unauthorised, UnsupportedMedia
from daemon.core.paths import Home, write_private
from daemon.server import address
from daemon.server.protocol import dated

#: What it answers is piped into a shell, whatever it is.
SCRIPT: Final = "/reef/harness/install"
#: Routes an agent's token opens: inference, feedback, and the harness that it is to run. Reading traces and changing
#: anything needs the control token.
_AGENT_ROUTES: Final = frozenset(
    {
        ("POST", "/reef/report"),
        ("POST", "/reef/train"),
        ("POST", "/reef/harness/proposals"),
        ("POST", "/reef/undo"),
        ("GET", "/reef/last"),
        ("GET", "/reef/notice"),
        ("POST", "/reef/hook/claude-code"),
        ("GET", "/"),
        ("HEAD", "/"),
        ("GET", SCRIPT),
        *(("GET", f"/reef/harness{path}") for path in ("", "/releases", "/versions", "/adapters", "/check")),
    }
)
_OPEN_ROUTES: Final = frozenset({"/healthz"})
#: What a token file may hold: short enough to be guessed, or not sendable in a header, is none.
_TOKEN: Final = re.compile(r"[!-~]{16,}")
_OPENAI_ROUTES: Final = ("/v1/chat/", "/v1/completions", "/v1/responses", "/v1/embeddings")
_MUTATIONS: Final = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """The two secrets of a home, 256 bits each."""

    agent: str
    control: str

    @classmethod
    def load(cls, home: Home) -> "Tokens":
        """Read them, or make them on the first start. Raises ConfigError for files that hold none."""
        return cls(_token(home, "agent"), _token(home, "control"))

    def scope(self, presented: str) -> str | None:
        """``agent``, ``control`` or None, in constant time."""
        given = presented.encode("utf-8", "replace")
        agent = hmac.compare_digest(given, self.agent.encode())
        control = hmac.compare_digest(given, self.control.encode())
        return "control" if control else "agent" if agent else None


def _token(home: Home, name: str) -> str:
    path = home.agent_token if name == "agent" else home.control_token
    kept = secret(path, lambda: f"reef-{secrets.token_urlsafe(32)}".encode())
    token = kept.decode("ascii", "replace").strip()
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            f"{path} holds no token: 16 or more visible characters are one", hint=f"rm {path}: a new one is made"
        )
    return token


def secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """What a private file holds, made on the first start. Raises ConfigError for one that cannot be read."""
    try:
        kept = path.read_bytes()
    except FileNotFoundError:
        kept = b""
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint=f"move {path} away: a new one is made"
        ) from error
    if not kept.strip():  # never a secret: whoever has none would have it
        kept = make()
        write_private(path, kept)
    return kept


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that (lower-case) name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


def _all(scope: Scope, name: bytes) -> str | None:
    """All headers of that name as one, in lower case: several are no name of this machine (RFC 9112, section 3.2)."""
    found = [bytes(value).decode("latin-1").lower() for key, value in scope["headers"] if key == name]
    return ", ".join(found) if found else None


class Guard:
    """Refuses, or passes on with ``scope["reef.control"]`` set. Our own tokens are taken out of the headers on the
    way.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, port: int) -> None:
        self._app = app
        self._tokens = tokens
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = {*names, *(f"{name}:{port}" for name in names)}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = dated(send)
        try:
            self._admit(scope)
        except ReefError as error:
            await refuse(error, scope, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        server = scope.get("server")
        on_socket = server is None or server[1] is None
        if not on_socket:
            self._check_origin(scope)
        path_token = address.take_token(scope)
        if on_socket:
            scope["reef.control"] = True
        elif scope["path"] not in _OPEN_ROUTES:
            self._check_token(scope, path_token)
        scope["headers"] = [pair for pair in scope["headers"] if not self._is_ours(pair)]
        if scope["method"] in _MUTATIONS:
            kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise UnsupportedMedia(
                    f"content type {kind or 'none'!r} is not accepted", hint="send content-type: application/json"
                )

    def _check_origin(self, scope: Scope) -> None:
        host, origin = _all(scope, b"host"), _all(scope, b"origin")
        if host not in self._hosts:
            raise Forbidden(f"host {host!r} is not this machine", hint="use http://127.0.0.1")
        if origin is not None and origin not in self._origins:
            raise Forbidden(f"origin {origin!r} may not call Reef", hint="web pages are kept out on purpose")
        if (header(scope, b"sec-fetch-site") or "").lower() == "cross-site":
            raise Forbidden("a cross-site request from a browser", hint="web pages are kept out on purpose")

    def _check_token(self, scope: Scope, path_token: str | None) -> None:
        granted = {self._tokens.scope(token) for token in _presented(scope, path_token)} - {None}
        scope["reef.control"] = "control" in granted
        if not granted:
            raise Unauthorised(
                "no valid token",
                hint='eval "$(reef env)" sets it; it goes in Authorization: Bearer, x-api-key or x-reef-token',
            )
        path = scope["path"]
        agent_may = path.startswith("/v1/") or (scope["method"], path) in _AGENT_ROUTES
        if not (agent_may or scope["reef.control"]):
            raise Unauthorised(
                f"{path} needs the control token", hint="use the reef command, or tokens/control in Reef's home"
            )

    def _is_ours(self, pair: tuple[bytes, bytes]) -> bool:
        name, value = pair
        if name == b"x-reef-token":
            return True
        if name not in (b"authorization", b"x-api-key"):
            return False
        return self._tokens.scope(_bare(value.decode("latin-1"))) is not None


def _presented(scope: Scope, path_token: str | None) -> list[str]:
    """Tokens offered. One given explicitly for Reef is the only one that counts: the others are a provider's."""
    explicit = [token for token in (path_token, header(scope, b"x-reef-token")) if token is not None]
    if explicit:
        return explicit
    offered = (header(scope, b"authorization"), header(scope, b"x-api-key"))
    return [_bare(value) for value in offered if value is not None]


def _bare(value: str) -> str:
    kind, _, rest = value.partition(" ")
    return rest.strip() if kind.lower() == "bearer" else value.strip()


async def refuse(error: ReefError, scope: Scope, send: Send) -> None:
    """Answer without having read the body, in the shape that the route's clients take."""
    if scope["path"].startswith("/v1/"):
        # error.type is Anthropic's and OpenAI's common name for the kind; a route of neither is told in both's shape.
        kind = {401: "authentication_error", 403: "permission_error"}.get(error.status, "invalid_request_error")
        hint = f" ({error.hint})" if error.hint else ""
        told = {"type": kind, "message": f"Reef: {error.message}{hint}", "code": error.kind, "param": None}
        body: dict[str, object] = {"error": told}
        if not scope["path"].startswith(_OPENAI_ROUTES):
            body = {"type": "error", **body}
    else:
        body = error.envelope()
    piped = scope["path"] == SCRIPT
    data = (script.refusal(error) if piped else json.dumps(body)).encode()
    headers = [
        (b"content-type", b"text/x-shellscript" if piped else b"application/json"),
        (b"content-length", str(len(data)).encode()),
        (b"connection", b"close"),  # the body was not read
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else data})
