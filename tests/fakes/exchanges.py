"""Exchanges as a proxy would hand them to the store, made without a dialect: small JSON bodies, split as wire does."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from daemon.core.ids import new_id
from daemon.core.records import Appended, Dialect, End, Exchange, StoredMessage, Transcript, Usage
from daemon.store.db import Store

#: A wall clock that only says what a test tells it.
STARTED_NS = 1_700_000_000_000_000_000


def message(role: str, text: str, **extra: object) -> StoredMessage:
    """A message; ``extra`` are fields that change its bytes but not what it says (so not its key)."""
    raw = json.dumps({"role": role, "content": text, **extra}, ensure_ascii=False, separators=(",", ":")).encode()
    key = blake2b(f"{role}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return StoredMessage(raw, key, role, text)


def system(text: str) -> StoredMessage:
    return message("system", text)


def user(text: str) -> StoredMessage:
    return message("user", text)


def assistant(text: str) -> StoredMessage:
    return message("assistant", text)


def tool(text: str) -> StoredMessage:
    return message("tool", text)


def transcript(
    messages: Sequence[StoredMessage], answer: str | StoredMessage | None = "ok", **changes: Any
) -> Transcript:
    """A transcript of ``messages`` and their answer. ``changes`` are fields of Transcript."""
    reply = assistant(answer) if isinstance(answer, str) else answer
    made = Transcript(
        head=b'{"model":"m","messages":[',
        separator=b",",
        tail=b'],"stream":false}',
        messages=tuple(messages),
        root=bytes(16),
        answer=reply,
        response=b'{"choices":[' + (reply.raw if reply is not None else b"") + b"]}",
        tools=1,
        usage=Usage(prompt=10 * len(messages), completion=5),
        stop_reason="stop" if reply is not None else None,
        model="m-1",
    )
    return dataclasses.replace(made, **changes)


def body(made: Transcript) -> bytes:
    """The request that a transcript stands for."""
    return made.head + made.separator.join(m.raw for m in made.messages) + made.tail


def exchange(made: Transcript, **changes: Any) -> Exchange:
    """An exchange around a transcript. ``changes`` are fields of Exchange."""
    plain = Exchange(
        receipt=new_id("rec"), scenario="default", dialect=Dialect.CHAT, path="/v1/chat/completions",
        started_ns=STARTED_NS, duration_us=1000, first_byte_us=100, request=body(made), response=made.response,
        stream=False, status=200, end=End.OK, engine="embedded", model_asked="m", release_id="default@0",
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def submit(store: Store, made: Transcript, **changes: Any) -> "Future[Appended]":
    """Store an exchange without waiting."""
    return store.append(exchange(made, **changes), lambda: made)


def record(store: Store, made: Transcript, **changes: Any) -> Appended:
    """Store an exchange and wait until it is on disk."""
    return submit(store, made, **changes).result(timeout=20)


@dataclass
class Conversation:
    """An agent's conversation: each turn sends everything said so far. ``changes`` go into every exchange."""

    store: Store
    said: list[StoredMessage] = field(default_factory=lambda: [system("You help.")])
    changes: dict[str, Any] = field(default_factory=dict)
    #: Applied to the messages right before they are sent, as agents do that mark the newest one.
    dress: Callable[[list[StoredMessage]], list[StoredMessage]] = list

    def turn(self, text: str, answer: str = "ok", **changes: Any) -> Appended:
        """The person says ``text``; the answer joins the conversation when the exchange ended ok."""
        return self.send([*self.said, user(text)], answer, **changes)

    def send(self, messages: list[StoredMessage], answer: str = "ok", **changes: Any) -> Appended:
        ok = changes.get("end", End.OK) is End.OK
        made = transcript(self.dress(messages), answer if ok else None)
        appended = record(self.store, made, **{**self.changes, **changes})
        if ok:
            self.said = [*messages, assistant(answer)]
        return appended
