"""A provider behind a base URL: takes the client's bytes up and the provider's bytes down, neither changed.

It must never log, show or raise a credential, follow a redirect (the key would follow too), or send anything for a
loopback provider through a proxy. Only headers that belong to one connection, and Reef's own, are dropped.
"""

import asyncio
import errno
import io
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from daemon.core import keys
from daemon.core.errors import BrokeOff, EngineUnavailable, UpstreamUnreachable
from daemon.core.providers import RemoteConfig
from daemon.core.records import Dialect
from daemon.engines import pool
from daemon.engines.base import EngineState, EngineStatus, Headers, RelayRequest, RelayResponse
from daemon.engines.egress import is_here, proxy_for

#: RFC 9110 §7.6.1, and what names or measures the hop itself.
_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
#: What stands in no header that can be sent (RFC 9110 §5): one would take the whole answer along.
_UNSENDABLE: Final = re.compile(rb"[\x00-\x08\n-\x1f\x7f]")
#: Not the provider's business, or written anew for it. ``expect``: the body is here already.
_OURS_UP: Final = _HOP | {b"host", b"content-length", b"expect"}
_CREDENTIALS: Final = frozenset((b"authorization", b"x-api-key", b"api-key", b"cookie"))
_DIALECTS: Final = {"openai": Dialect.CHAT, "anthropic": Dialect.MESSAGES}
_OPENAI: Final = "api.openai.com"
_REFUSED: Final = (401, 403)
#: A connection that was closed while it lay idle is found out at once; later it was the request that ended it, which
#: may be half done.
_STALE_SECONDS: Final = 5.0
_LARGE: Final = 1 << 20
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE)

_WORDS: Final[dict[type[Exception], str]] = {
    aiohttp.ServerDisconnectedError: "it closed the connection without an answer",
    aiohttp.ClientPayloadError: "the answer ended too early",
}


class Remote:
    """See `daemon.engines.base.RelayEngine`. Make it anywhere, use it in one event loop."""

    def __init__(self, name: str, config: RemoteConfig) -> None:
        self.name = name
        self.dialects = _dialects(config) | {Dialect.OTHER}
        self._config = config
        base = _base(URL(config.base_url), config.api)
        self._base = str(base)
        self._host = base.host or ""
        self._is_here = is_here(self._host)
        self._pooled: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        self._running = 0
        self._trouble: str | None = None
        self._from_keyring: str | None = None

    async def relay(self, request: RelayRequest) -> RelayResponse:
        headers = self._headers(request.headers, await self._key())
        url = URL(f"{self._base}{request.path.removeprefix('/v1')}", encoded=True)
        pooled, fresh = self._sessions()
        began = time.monotonic()
        with self._reaching():
            try:
                response = await self._send(pooled, request, url, headers)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not pool.reused.get() or time.monotonic() - began > _STALE_SECONDS:
                    raise
                # The provider closed a kept-alive connection while it lay idle, and sent nothing back: once more, on a
                # connection of its own, since the pool may hold others as dead.
                response = await self._send(fresh, request, url, headers)
            if not 200 <= response.status <= 599:
                response.close()
                raise ValueError(f"it answered with status {response.status}, which is none")
        self._trouble = None
        if response.status in _REFUSED:
            self._from_keyring = None
        return _Response(response, self._left, f"{self._host} broke off its answer")

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: RelayRequest,
        url: URL,
        headers: CIMultiDict[str],
    ) -> aiohttp.ClientResponse:
        pool.reused.set(False)
        return await session.request(
            request.method,
            url,
            # A file where it is large: aiohttp warns of such bytes. Its size is known, so content-length is sent.
            data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body or None,
            headers=headers,
            allow_redirects=False,
            proxy=None if self._is_here else proxy_for(url),
        )

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Counts the request in; a failure to get an answer becomes UpstreamUnreachable and counts it out. Where the
        failure is ours, EngineUnavailable."""
        self._running += 1
        try:
            yield
        except TimeoutError:
            self._trouble = f"{self._host} did not answer in time"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if getattr(error, "errno", None) in _NO_FILES:
                self._left()
                raise EngineUnavailable(
                    "the daemon has as many files open as it may: too many requests at once",
                    hint="reef stop, then ulimit -n 4096 in the shell that starts it",
                ) from None
            self._trouble = f"{self._host} cannot be reached: {_reason(error)}"
        except BaseException:
            self._left()
            raise
        else:
            return
        self._left()
        raise UpstreamUnreachable(self._trouble, hint="reef doctor")

    def _left(self) -> None:
        self._running -= 1

    def _sessions(self) -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
        """(the pool, one without): made on first use, inside the event loop."""
        if self._pooled is None or self._fresh is None:
            self._pooled, self._fresh = self._session(False), self._session(True)
        return self._pooled, self._fresh

    def _session(self, force_close: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=pool.Connector(limit=0, force_close=force_close),
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=self._config.connect_seconds,
                sock_read=self._config.read_seconds,
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=pool.Request,
        )

    async def _key(self) -> str | None:
        """Our own, read each time so that a changed one counts; a keyring's is kept until the provider refuses it."""
        source = self._config.key
        if source in ("agent", "none"):
            return None
        if not source.startswith("keyring:"):
            return keys.read(source)
        if self._from_keyring is None:
            self._from_keyring = await asyncio.to_thread(keys.read, source)
        return self._from_keyring

    def _headers(self, sent: Headers, key: str | None) -> CIMultiDict[str]:
        named = _connection_named(sent)
        headers: CIMultiDict[str] = CIMultiDict()
        not_theirs = self._config.key != "agent"
        for name, value in sent:
            low = name.lower()
            if low in _OURS_UP or low in named or low.startswith(b"x-reef-") or (not_theirs and low in _CREDENTIALS):
                continue
            headers.add(name.decode("latin-1"), _text(value))
        if key is not None and self._config.api == "openai":
            headers[hdrs.AUTHORIZATION] = f"Bearer {key}"
        elif key is not None:
            headers["x-api-key"] = key
        return headers

    def status(self) -> EngineStatus:
        return EngineStatus(
            name=self.name,
            kind="remote",
            state=EngineState.FAILED if self._trouble else EngineState.READY,
            detail=self._trouble or self._host,
            running=self._running,
        )

    async def close(self) -> None:
        sessions, self._pooled, self._fresh = (self._pooled, self._fresh), None, None
        for session in sessions:
            if session is not None:
                await session.close()


class _Response:
    """See `daemon.engines.base.RelayResponse`."""

    def __init__(self, response: aiohttp.ClientResponse, left: Callable[[], None], broke: str) -> None:
        self._response = response
        self._left: Callable[[], None] | None = left
        self._broke = broke
        self.status = response.status
        raw = list(response.raw_headers)
        dropped = _HOP | _connection_named(raw)
        # Another Reef upstream has its own receipts.
        self.headers: Headers = [
            (name, value)
            for name, value in raw
            if (low := name.lower()) not in dropped and not low.startswith(b"x-reef-") and not _UNSENDABLE.search(value)
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await self._response.content.readany():
                yield chunk
        except TimeoutError:
            raise BrokeOff(f"{self._broke}: nothing came for too long", hint="reef doctor") from None
        except (aiohttp.ClientError, OSError) as error:
            raise BrokeOff(f"{self._broke}: {_reason(error)}", hint="reef doctor") from None

    async def close(self) -> None:
        if not self._response.closed:  # a finished one has given its connection back; that of any other is dropped
            self._response.close()
        if self._left is not None:
            self._left()
            self._left = None


def _dialects(config: RemoteConfig) -> frozenset[Dialect]:
    if config.dialects:
        return frozenset(Dialect(name) for name in config.dialects)
    if URL(config.base_url).host == _OPENAI:
        return frozenset((Dialect.CHAT, Dialect.RESPONSES))
    return frozenset((_DIALECTS[config.api],))


def _base(base: URL, api: str) -> URL:
    """The base URL down to and with its version. Anthropic's are given without one; OpenAI's only where bare."""
    path = base.path.rstrip("/")
    if path == "" or (api == "anthropic" and not path.endswith("/v1")):
        path += "/v1"
    return base.with_path(path).with_user(None)


def _connection_named(headers: Headers) -> frozenset[bytes]:
    """Headers that ``Connection`` declares to be of this hop only."""
    values = [value for name, value in headers if name.lower() == b"connection"]
    return frozenset(one.strip().lower() for value in values for one in value.split(b","))


def _text(value: bytes) -> str:
    """A header value as aiohttp takes it: it writes UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _reason(error: Exception) -> str:
    """Why, in few words and without a URL's user, path or query."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted ({getattr(error.certificate_error, 'verify_message', 'invalid')})"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy {error.host}: {error.strerror}"
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientError):
        return str(error)
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or _WORDS.get(type(error), type(error).__name__)
