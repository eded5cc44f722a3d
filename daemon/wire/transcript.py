"""What is kept of one exchange: the split request, what the answer amounts to, and neither with a secret in it.

Runs off the event loop, once an exchange. A conversation is sent again and again, so each message is read and
redacted once and remembered by its bytes. Nothing an agent or a provider sends may raise here: a record that cannot
be parsed is stored whole, with a note.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeVar

from daemon.core.errors import BadRequest
from daemon.core.records import Message, StoredMessage, Text, Transcript, Usage
from daemon.wire import canonical, conversation, jsontext
from daemon.wire.base import Redact
from daemon.wire.encoding import Undecodable, decoded
from daemon.wire.split import Split, Splitter, count
from daemon.wire.sse import events, looks_like_events

_MEMORY: Final = 32 * 1024 * 1024
#: A provider that counts more than this in one exchange counts wrong; sums of it would not fit the store.
MOST_TOKENS: Final = 1 << 40
T = TypeVar("T")


@dataclass(slots=True)
class Answer:
    """What a response amounts to. ``message`` is in the dialect's request form, None when nothing was said."""

    message: dict[str, Any] | None = None
    usage: Usage = field(default_factory=Usage)
    stop_reason: str | None = None
    model: str | None = None
    problem: str | None = None


class Assembler(Protocol):
    """Puts an answer together from one JSON body or from a stream's events, finished or not."""

    def whole(self, body: dict[str, Any]) -> None: ...

    def event(self, name: str, data: dict[str, Any]) -> None: ...

    def answer(self) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a dialect brings: how one message is read (raises BadRequest), and how an answer is put together."""

    message: Callable[[object], Message]
    assembler: Callable[[], Assembler]


@dataclass(frozen=True, slots=True)
class _Read:
    stored: StoredMessage
    secrets: int
    note: str | None


@dataclass(slots=True)
class _Notes:
    """What could not be read, and how much was redacted."""

    texts: list[str] = field(default_factory=list)
    secrets: int = 0

    def add(self, text: str | None) -> None:
        if text and text not in self.texts:
            self.texts.append(text)

    @property
    def text(self) -> str | None:
        return "; ".join(self.texts) or None


class _Memo(Generic[T]):
    """What was made of some bytes, for the redaction in force; the least recently used go first."""

    def __init__(self, limit: int = _MEMORY) -> None:
        self._limit = limit
        self._size = 0
        self._redact: Redact | None = None
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._lock = Lock()

    def get(self, raw: bytes, redact: Redact, make: Callable[[bytes, Redact], T]) -> T:
        return self.get_all((raw,), redact, make)[0]

    def get_all(self, raws: Sequence[bytes], redact: Redact, make: Callable[[bytes, Redact], T]) -> list[T]:
        """What is known is had for one lock and a look each; only the rest is made."""
        with self._lock:
            if redact != self._redact:
                self._entries.clear()
                self._redact, self._size = redact, 0
            known = [self._entries.get(raw) for raw in raws]
            for raw, found in zip(raws, known, strict=True):
                if found is not None:
                    self._entries.move_to_end(raw)
        made = [make(raw, redact) if found is None else found for raw, found in zip(raws, known, strict=True)]
        if None in known:
            self._keep(raws, made, redact)
        return made

    def _keep(self, raws: Sequence[bytes], made: list[T], redact: Redact) -> None:
        with self._lock:
            if redact != self._redact:
                return
            for raw, one in zip(raws, made, strict=True):
                self._size += 0 if raw in self._entries else len(raw)
                self._entries[raw] = one
            while self._size > self._limit:
                self._size -= len(self._entries.popitem(last=False)[0])


class Transcriber:
    """The recording half of a codec: transcripts and stored messages of one dialect. Thread-safe."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._splitter = Splitter()
        self._memo: _Memo[_Read] = _Memo()
        self._rest: _Memo[tuple[bytes, int]] = _Memo()
        self._roots: _Memo[bytes] = _Memo()

    def transcript(
        self,
        request: bytes,
        response: bytes,
        *,
        stream: bool,
        redact: Redact,
        request_encoding: str = "",
        response_encoding: str = "",
    ) -> Transcript:
        notes = _Notes()
        body = _plain(request, request_encoding, "request", notes)
        cut = self._splitter.split(body)
        if cut is None:
            if body:
                notes.add("the request could not be split into messages")
            cut = Split(head=body, separator=b"", raws=(), tail=b"", system=b"", tools=b"")
        messages = self._messages(cut.raws, redact, notes)
        head, head_secrets = self._rest.get(cut.head, redact, _redacted)
        tail, tail_secrets = self._rest.get(cut.tail, redact, _redacted)
        notes.secrets += head_secrets + tail_secrets
        plain = _plain(response, response_encoding, "response", notes)
        answer, stored, kept = self._response(plain, stream, redact, notes)
        ids = conversation.ids(head + tail)
        return Transcript(
            head=head,
            separator=cut.separator,
            tail=tail,
            messages=messages,
            root=self._roots.get(cut.system, redact, _root),
            answer=stored,
            response=kept,
            tools=count(cut.tools),
            usage=answer.usage,
            stop_reason=answer.stop_reason,
            model=answer.model,
            redacted=notes.secrets,
            note=notes.text,
            keys=ids.keys,
            previous=ids.previous,
            answer_id=conversation.answer_id(kept),
        )

    def message(self, raw: bytes) -> Message:
        """One stored message, for display."""
        try:
            return self._reading.message(jsontext.decode(raw))
        except (jsontext.NotJson, BadRequest):
            return Message("user", (Text(raw.decode("utf-8", "replace")),))

    def _messages(self, raws: Sequence[bytes], redact: Redact, notes: _Notes) -> tuple[StoredMessage, ...]:
        read = self._memo.get_all(raws, redact, self._read)
        for one in read:
            if one.secrets or one.note:
                notes.secrets += one.secrets
                notes.add(one.note)
        return tuple(one.stored for one in read)

    def _read(self, raw: bytes, redact: Redact) -> _Read:
        clean, secrets = redact(raw)
        note = None
        try:
            message = self._reading.message(jsontext.decode(clean))
        except (jsontext.NotJson, BadRequest) as error:
            message = Message("user", (Text(clean.decode("utf-8", "replace")),))
            note = f"a message could not be read: {error}"
        stored = StoredMessage(clean, canonical.key(message), message.role, canonical.readable(message))
        return _Read(stored, secrets, note)

    def _response(
        self, body: bytes, stream: bool, redact: Redact, notes: _Notes
    ) -> tuple[Answer, StoredMessage | None, bytes]:
        answer = _assemble(self._reading.assembler(), body, stream)
        notes.add(answer.problem)
        kept, secrets = redact(body)
        if answer.message is None:
            notes.secrets += secrets
            return answer, None, kept
        read = self._read(jsontext.encode(answer.message), redact)
        notes.secrets += max(secrets, read.secrets)
        notes.add(read.note)
        if read.secrets and self._leaks(kept, stream, redact):
            # A secret that a stream delivered in pieces: only the assembled answer could be redacted.
            kept = b""
            notes.add("the response's bytes are not kept: a secret was spread over its events")
        return answer, read.stored, kept

    def _leaks(self, kept: bytes, stream: bool, redact: Redact) -> bool:
        """Whether putting the redacted response together again brings a secret back."""
        again = _assemble(self._reading.assembler(), kept, stream)
        return again.message is None or redact(jsontext.encode(again.message))[1] > 0


def _redacted(raw: bytes, redact: Redact) -> tuple[bytes, int]:
    return redact(raw)


def _root(system: bytes, redact: Redact) -> bytes:
    try:
        value = jsontext.decode(redact(system)[0]) if system else None
    except jsontext.NotJson:
        value = None
    return canonical.digest(canonical.system_texts(value))


def _plain(body: bytes, encodings: str, what: str, notes: _Notes) -> bytes:
    """The decoded body; empty when it cannot be decoded, since what cannot be read cannot be redacted either."""
    try:
        return decoded(body, encodings)
    except Undecodable as error:
        notes.add(f"the {what} is not kept: {error}")
        return b""


def _assemble(assembler: Assembler, body: bytes, stream: bool) -> Answer:
    """Read a response by what it is: some providers stream unasked, and errors come as JSON with any content type."""
    if looks_like_events(body) or (stream and not body.lstrip().startswith(b"{")):
        return _assemble_events(assembler, body)
    try:
        value = jsontext.decode(body) if body else {}
    except jsontext.NotJson:
        return Answer(problem=None if not body.lstrip().startswith(b"{") else "the response is broken JSON")
    if isinstance(value, dict):
        assembler.whole(value)
    return assembler.answer()


def _assemble_events(assembler: Assembler, body: bytes) -> Answer:
    problem = None
    for name, data in events(body):
        if data == "[DONE]":
            continue
        try:
            value = jsontext.decode(data)
        except jsontext.NotJson:
            problem = "an event of the response is not JSON"
            continue
        if isinstance(value, dict):
            assembler.event(name, value)
    answer = assembler.answer()
    answer.problem = answer.problem or problem
    return answer
