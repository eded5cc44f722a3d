"""Spans on their way to the person's collector. Off unless an endpoint is configured.

No request waits for it: spans lie in a bounded queue, a task of its own sends them, and what a collector that is gone
does not take is dropped and counted. What was said is read from the store, so redacted, just before it is sent.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp
import msgspec

from daemon.core.config import TelemetryConfig
from daemon.core.errors import ReefError
from daemon.core.records import Appended, Dialect, Exchange
from daemon.core.redact import Redactor
from daemon.server import otlp
from daemon.store.db import Store
from daemon.wire.base import dialect as codec_of

_log = logging.getLogger("reef.telemetry")

_QUEUE: Final = 2048
_BATCH: Final = 256
#: With what was said, a span may have megabytes.
_BATCH_WITH_CONTENT: Final = 8
_GATHER_SECONDS: Final = 0.2
_PAUSE_MOST: Final = 60.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
_LAST_SECONDS: Final = 2.0
#: Statuses after which the protocol wants the same request again.
_AGAIN: Final = frozenset({429, 502, 503, 504})


class _Waiting(NamedTuple):
    span: otlp.Span
    dialect: Dialect
    appended: Appended


class Telemetry:
    """`ended` on the event loop; `run` until it is cancelled; then `close`. ``providers``: engine → its vendor."""

    def __init__(self, config: TelemetryConfig, store: Store, redactor: Redactor, providers: Mapping[str, str]) -> None:
        base = config.endpoint.rstrip("/")
        self._url = base if base.endswith("/v1/traces") else f"{base}/v1/traces"
        self._content = config.content
        self._store = store
        self._redactor = redactor
        self._providers = dict(providers)
        self._queue: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._pause = _GATHER_SECONDS
        self._trouble: str | None = None
        self._dropped = 0

    def ended(self, exchange: Exchange, appended: Appended | None) -> None:
        """Queue a recorded exchange's span (`daemon.server.recorder.Observer`)."""
        if appended is None:
            return
        made = otlp.span(exchange, appended, self._providers.get(exchange.engine, "llama.cpp"), self._clean)
        if made is None:
            return
        if len(self._queue) == _QUEUE:
            self._queue.popleft()
            self._dropped += 1
        self._queue.append(_Waiting(made, exchange.dialect, appended))
        self._wake.set()

    def note(self) -> str | None:
        """What a person should know: that spans do not arrive."""
        return f"telemetry: {self._trouble}; {self._dropped} spans dropped" if self._trouble else None

    async def run(self) -> None:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await asyncio.sleep(self._pause)
                while self._queue and await self._send(session):
                    pass

    async def close(self) -> None:
        """Send what waits, once and for a short while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS), aiohttp.ClientSession(timeout=_TIMEOUT) as session:
                while self._queue and await self._send(session):
                    pass

    async def _send(self, session: aiohttp.ClientSession) -> bool:
        """One batch; False when it has to be sent again."""
        size = min(len(self._queue), _BATCH_WITH_CONTENT if self._content else _BATCH)
        batch = [self._queue.popleft() for _ in range(size)]
        try:
            spans = [one.span for one in batch]
            if self._content:
                spans = await asyncio.to_thread(lambda: [self._with_content(one) for one in batch])
            body = msgspec.json.encode(otlp.request(spans))
            headers = {"content-type": "application/json"}
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return self._failed(batch, f"the collector cannot be reached: {type(error).__name__}", again=True)
        except asyncio.CancelledError:
            self._queue.extendleft(reversed(batch))
            raise
        if status >= 300:
            return self._failed(batch, f"the collector answered {status}", again=status in _AGAIN)
        if self._trouble:
            _log.warning("spans arrive again")
        self._trouble, self._pause = None, _GATHER_SECONDS
        return True

    def _failed(self, batch: list[_Waiting], trouble: str, *, again: bool) -> bool:
        if self._trouble != trouble:
            _log.warning("%s", trouble)
        self._trouble = trouble
        room = _QUEUE - len(self._queue) if again else 0
        kept = batch[max(0, len(batch) - room) :] if room else []
        self._dropped += len(batch) - len(kept)
        self._queue.extendleft(reversed(kept))
        if again:
            self._pause = min(self._pause * 2, _PAUSE_MOST)
            self._wake.set()
        return not again

    def _with_content(self, one: _Waiting) -> otlp.Span:
        read, receipt = codec_of(one.dialect).message, one.appended.receipt
        try:
            messages = [read(message.raw) for message in self._store.messages(receipt)]
            answer = self._store.answer(receipt)
        except ReefError:  # purged meanwhile
            return one.span
        said = otlp.said(messages, None if answer is None else read(answer.raw), one.appended.stop_reason)
        return one.span | {"attributes": one.span["attributes"] + said}

    def _clean(self, text: str) -> str:
        return self._redactor.redact(text.encode("utf-8", "replace"))[0].decode("utf-8", "replace")
