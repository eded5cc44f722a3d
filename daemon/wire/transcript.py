"""What is kept of one exchange: the split request, what the answer amounts to, and neither with a secret in it.

Runs off the event loop, once an exchange. A conversation is sent again and again, so each message is read and
redacted once and remembered by its bytes. Nothing an agent or a provider sends may raise here: a record that cannot
be parsed is stored whole, with a note.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from daemon.core.errors import BadRequest
from daemon.core.records import Message, StoredMessage, Text, Transcript
from daemon.wire import canonical, conversation, jsontext
from daemon.wire.answer import Answer, Assembler, assemble
from daemon.wire.base import Redact
from daemon.wire.encoding import Undecodable, decoded
from daemon.wire.memo import Memo
from daemon.wire.parts import calls_are_whole
from daemon.wire.split import MESSAGES, Names, Split, Splitter, count

_BEGINNING: Final = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """What a dialect brings: how one message is read (raises BadRequest), and how an answer is put together."""

    message: Callable[[object], Message]
    assembler: Callable[[], Assembler]
    names: Names = MESSAGES
    #: Which items of the list are one message where they follow each other; None: each is one. What is read is a list
    #: then, and ``raw`` is its items with what separates them.
    joins: Callable[[object], bool] | None = None

    def load(self, raw: bytes) -> object:
        """Raises NotJson."""
        return jsontext.decode(raw if self.joins is None else b"[" + raw + b"]")

    def dump(self, message: dict[str, Any] | list[dict[str, Any]]) -> bytes:
        return jsontext.encode(message)[1:-1] if isinstance(message, list) else jsontext.encode(message)


@dataclass(frozen=True, slots=True)
class _Read:
    stored: StoredMessage
    secrets: int
    note: str | None
    broken_call: bool = False


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


class Transcriber:
    """The recording half of a codec: transcripts and stored messages of one dialect. Thread-safe."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._splitter = Splitter(reading.names)
        self._memo: Memo[_Read] = Memo()
        self._joins: Memo[bool] = Memo()
        self._rest: Memo[tuple[bytes, int]] = Memo()
        self._roots: Memo[tuple[bytes, str]] = Memo()

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
        cut = self._cut(body, notes)
        messages = self._messages(self._joined(cut, redact), redact, notes)
        head, head_secrets = self._rest.get(cut.head, redact, _redacted)
        tail, tail_secrets = self._rest.get(cut.tail, redact, _redacted)
        notes.secrets += head_secrets + tail_secrets
        root, system = self._roots.get(cut.system, redact, _root)
        plain = _plain(response, response_encoding, "response", notes)
        answer, stored, kept = self._response(plain, stream, redact, notes)
        # What stands in place of a list of messages leaves a hole that must be filled to be read.
        alone = messages and not head.rstrip().endswith(b"[")
        ids = conversation.ids(head + (b"null" if alone else b"") + tail)
        return Transcript(
            head=head,
            separator=cut.separator,
            tail=tail,
            messages=messages,
            root=root,
            system=system,
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

    def newest(self, body: bytes) -> Message | None:
        """The last message of a request that is no system's."""
        cut = self._splitter.split(body)
        read = (self.message(raw) for raw in reversed(cut.raws if cut is not None else ()))
        return next((message for message in read if message.role != "system"), None)

    def message(self, raw: bytes) -> Message:
        """One stored message, for display."""
        try:
            return self._reading.message(self._reading.load(raw))
        except (jsontext.NotJson, BadRequest):
            return Message("user", (Text(raw.decode("utf-8", "replace")),))

    def _cut(self, body: bytes, notes: _Notes) -> Split:
        cut = self._splitter.split(body)
        if cut is None and body:
            notes.add("the request could not be split into messages")
        return cut or Split(head=body, separator=b"", raws=(), tail=b"", system=b"", tools=b"")

    def _joined(self, cut: Split, redact: Redact) -> Sequence[bytes]:
        """The messages: items that are one are joined as they stand in the body."""
        joins = self._reading.joins
        if joins is None:
            return cut.raws

        def same(raw: bytes, _: Redact) -> bool:
            try:
                return joins(jsontext.decode(raw))
            except jsontext.NotJson:
                return False

        rows: list[list[bytes]] = []
        open = False
        for raw, one in zip(cut.raws, self._joins.get_all(cut.raws, redact, same), strict=True):
            if one and open:
                rows[-1].append(raw)
            else:
                rows.append([raw])
            open = one
        return [row[0] if len(row) == 1 else cut.separator.join(row) for row in rows]

    def _messages(self, raws: Sequence[bytes], redact: Redact, notes: _Notes) -> tuple[StoredMessage, ...]:
        read = self._memo.get_all(raws, redact, self._read)
        for one in read:
            if one.secrets or one.note:
                notes.secrets += one.secrets
                notes.add(one.note)
        return tuple([one.stored for one in read])

    def _read(self, raw: bytes, redact: Redact) -> _Read:
        clean, secrets = redact(raw)
        note, broken_call = None, False
        try:
            message = self._reading.message(self._reading.load(clean))
            broken_call = not calls_are_whole(message)
        except (jsontext.NotJson, BadRequest) as error:
            message = Message("user", (Text(clean.decode("utf-8", "replace")),))
            note = f"a message could not be read: {error}"
        stored = StoredMessage(clean, canonical.key(message), message.role, canonical.readable(message))
        return _Read(stored, secrets, note, broken_call)

    def _response(
        self, body: bytes, stream: bool, redact: Redact, notes: _Notes
    ) -> tuple[Answer, StoredMessage | None, bytes]:
        answer = assemble(self._reading.assembler(), body, stream)
        notes.add(answer.problem)
        kept, secrets = redact(body)
        if answer.message is None:
            notes.secrets += secrets
            return answer, None, kept
        # Most agents send it again as it stands here.
        read = self._memo.get(self._reading.dump(answer.message), redact, self._read)
        notes.secrets += max(secrets, read.secrets)
        notes.add(read.note)
        if read.broken_call:
            notes.add("the arguments of a call are no whole JSON object")
        if read.secrets and self._leaks(kept, stream, redact):
            # A secret that a stream delivered in pieces: only the assembled answer could be redacted.
            kept = b""
            notes.add("the response's bytes are not kept: a secret was spread over its events")
        return answer, read.stored, kept

    def _leaks(self, kept: bytes, stream: bool, redact: Redact) -> bool:
        """Whether putting the redacted response together again brings a secret back."""
        again = assemble(self._reading.assembler(), kept, stream)
        return again.message is None or redact(self._reading.dump(again.message))[1] > 0


def _redacted(raw: bytes, redact: Redact) -> tuple[bytes, int]:
    return redact(raw)


def _root(system: bytes, redact: Redact) -> tuple[bytes, str]:
    try:
        value = jsontext.decode(redact(system)[0]) if system else None
    except jsontext.NotJson:
        value = None
    texts = canonical.system_texts(value)
    return canonical.digest(texts), texts[0][:_BEGINNING] if texts else ""


def _plain(body: bytes, encodings: str, what: str, notes: _Notes) -> bytes:
    """The decoded body; empty when it cannot be decoded, since what cannot be read cannot be redacted either."""
    try:
        return decoded(body, encodings)
    except Undecodable as error:
        notes.add(f"the {what} is not kept: {error}")
        return b""
