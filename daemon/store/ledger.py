"""Writing records: one exchange into its rows, inside the writer's transaction.

Every exact byte must come back from what is written here; redaction has seen it (`daemon.store.preparing`). What the
ledger remembers between records is only a shortcut; after a rollback it forgets everything.
"""

import json
import sqlite3
from dataclasses import dataclass
from typing import Final

from daemon.core.prefix import shared
from daemon.core.records import Appended, End, Kind, StoredMessage, Transcript
from daemon.store import kinds, rollups, sessions, spans, summaries, titles, tree
from daemon.store.messages import Frame, Kept, keep_frame, keep_message
from daemon.store.names import Names
from daemon.store.packing import Packer
from daemon.store.placing import Edge, Incoming, Place
from daemon.store.placing import place as place_of
from daemon.store.preparing import Prepared
from daemon.store.recent import Recent, Remembered, Unread
from daemon.store.requests import message_ids, packed, request_hash

#: A request is kept whole again after this many links, so that reading one never walks further.
_DEPTH: Final = 32
_RECORD: Final = f"""INSERT INTO record (receipt, session, scenario, kind, edge,
    parent, retry_of, dialect, "end", status,
    stream, started_ns, duration_us, first_byte_us,
    engine, model_asked, model,
    release_id, weights, agent,
    prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, stop_reason,
    error, preview, messages, tools, redacted, cost_usd) VALUES ({",".join("?" * 31)})"""
_REQUEST: Final = f"INSERT INTO request VALUES ({','.join('?' * 19)})"


class Ledger:
    """The writer's side of records. Used by the writer thread alone."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._packer = Packer()
        self._recent = Recent()
        self.unread = Unread()
        self._spans = spans.Remembered()
        self._counts = rollups.Counts()

    def mark(self) -> int:
        """Where `forget` goes back to, inside a transaction."""
        return self._counts.mark()

    def forget(self, mark: int = 0) -> None:
        """After a rollback, to that mark or of all of the transaction."""
        self.forget_records()
        self._counts.forget(mark)

    def forget_records(self) -> None:
        """Some of those that are remembered may be gone."""
        self._recent.forget()
        self.unread.forget()
        self._spans.forget()

    def finish(self, db: sqlite3.Connection) -> None:
        """Write what a transaction's records add up to, before it is committed."""
        self._counts.write(db)

    def append(self, db: sqlite3.Connection, prepared: Prepared) -> Appended:
        exchange, transcript = prepared.exchange, prepared.transcript
        known = self._recent.get(exchange.scenario, exchange.dialect, transcript)
        raws = tuple([message.raw for message in transcript.messages])
        kept, chain = self._messages(db, prepared, raws, known)
        frame, frame_id, frame_hash = self._frame(db, transcript, known)
        hash = request_hash(frame_hash, [item.hash for item in kept])
        if not kept:  # nothing to chain on: only the very same request again is recognised
            chain = (chain[0], tree.link(chain[0], hash))
        incoming = Incoming(
            exchange, transcript, self._names.id(db, exchange.scenario),
            self._names.optional_id(db, exchange.agent), chain, hash, tuple([item.key for item in kept]),
            kinds.is_chore(transcript.messages), tuple(dict.fromkeys((*exchange.session_keys, *transcript.keys))),
        )  # fmt: skip
        place = place_of(db, incoming)
        session, uid = sessions.enter(db, incoming, place, None if known is None else known.session)
        seq = self._record(db, incoming, place, session)
        answer = (
            None if transcript.answer is None else keep_message(db, self._packer, exchange.dialect, transcript.answer)
        )
        size = len(frame.head) + len(frame.tail) + sum(map(len, raws))
        seen = self._request(db, incoming, place, _Parts(seq, frame_id, kept, answer, known, size))
        answers = () if transcript.answer is None else (transcript.answer,)
        self.unread.put(seq, (*transcript.messages[seen:], *answers))
        self._bodies(db, incoming, seq, place.parent)
        self._points(db, incoming, seq, None if answer is None else answer.key)
        titled = known is not None and known.titled and known.session[0] == session
        titled = self._count(db, incoming, place, (session, seq), titled=titled)
        self._recent.put(
            exchange.scenario, exchange.dialect, transcript,
            Remembered(
                seq, (session, uid), titled, raws, kept, chain, () if answer is None else (answer,), frame, frame_id,
                frame_hash, size,
            ),
        )  # fmt: skip
        t = transcript
        return Appended(
            exchange.receipt, uid, place.kind, seq, t.usage, t.model, t.stop_reason, exchange.agent, exchange.release_id
        )  # fmt: skip

    def _points(self, db: sqlite3.Connection, new: Incoming, seq: int, answer: bytes | None) -> None:
        """Where later requests can join this one."""
        found = tree.points(new.chain, answer, stray=_stray(new.transcript.messages))
        if answer is not None:
            said = (*new.said, answer)
            tail = tree.tail(new.exchange.scenario, new.exchange.dialect, said, len(said) - 1)
            ends = (tail, *summaries.points(new.exchange, new.transcript))
            found += [(point, True) for point in ends if point is not None]
        db.executemany("INSERT OR IGNORE INTO point VALUES (?,?,?)", [(h, seq, a) for h, a in found])

    def _count(self, db: sqlite3.Connection, new: Incoming, place: Place, at: tuple[int, int], *, titled: bool) -> bool:
        exchange, (_, seq) = new.exchange, at
        titled = sessions.count(db, new, place, at, titled=titled)
        self._counts.add(
            rollups.Counted(
                seq, exchange.started_ns, new.scenario, new.agent, self._names.id(db, exchange.model_asked),
                turn=place.main_line and exchange.end is End.OK, failed=exchange.end is not End.OK,
                retry=place.kind is Kind.RETRY, usage=new.transcript.usage, duration_us=max(0, exchange.duration_us),
                began=place.session is None,
            )
        )  # fmt: skip
        if new.transcript.answer_id is not None:
            db.execute("INSERT OR IGNORE INTO answer_id VALUES (?,?,?)", (new.scenario, new.transcript.answer_id, seq))
        return titled

    def _messages(
        self, db: sqlite3.Connection, prepared: Prepared, raws: tuple[bytes, ...], known: Remembered | None
    ) -> tuple[tuple[Kept, ...], tuple[bytes, ...]]:
        exchange, transcript = prepared.exchange, prepared.transcript
        common = 0 if known is None else shared(known.raws, raws)
        kept = [] if known is None else list(known.kept[:common])
        chain = (
            [tree.start(exchange.scenario, exchange.dialect, transcript.root)]
            if known is None
            else list(known.chain[: common + 1])
        )
        alike = {} if known is None else {item.key: item for item in (*known.kept[common:], *known.answers)}
        for message in transcript.messages[common:]:
            item = keep_message(db, self._packer, exchange.dialect, message, like=alike.get(message.key))
            kept.append(item)
            chain.append(tree.link(chain[-1], item.key))
        return tuple(kept), tuple(chain)

    def _frame(
        self, db: sqlite3.Connection, transcript: Transcript, known: Remembered | None
    ) -> tuple[Frame, int, bytes]:
        frame = Frame(transcript.head, transcript.separator, transcript.tail)
        if known is not None and known.frame == frame:
            return frame, known.frame_id, known.frame_hash
        id, hash = keep_frame(db, self._packer, frame, None if known is None else known.frame_id)
        return frame, id, hash

    def _record(self, db: sqlite3.Connection, new: Incoming, place: Place, session: int) -> int:
        e, t, names = new.exchange, new.transcript, self._names
        values = (
            e.receipt, session, new.scenario, place.kind, place.edge,
            place.parent, place.retry_of, e.dialect, e.end, e.status,
            e.stream, e.started_ns, max(0, e.duration_us), None if e.first_byte_us is None else max(0, e.first_byte_us),
            names.id(db, e.engine), names.id(db, e.model_asked), names.optional_id(db, t.model),
            names.id(db, e.release_id), names.optional_id(db, e.weights), new.agent,
            t.usage.prompt, t.usage.cached, t.usage.completion, t.usage.reasoning, t.stop_reason,
            e.error, self._preview(new), len(t.messages), t.tools, t.redacted, t.usage.cost,
        )  # fmt: skip
        return db.execute(_RECORD, values).lastrowid or 0

    def _request(self, db: sqlite3.Connection, new: Incoming, place: Place, parts: "_Parts") -> int:
        """How many of its messages were seen before."""
        exchange, transcript = new.exchange, new.transcript
        ids = [item.id for item in parts.kept]
        base, kept, depth = self._base(db, ids, place, parts.known)
        seen = place.seen or (kept if place.edge in (Edge.REWRITE, Edge.COMPACTION) else 0)
        size = parts.size + len(transcript.separator) * max(0, len(ids) - 1)
        tags = json.dumps(dict(exchange.tags), ensure_ascii=False, sort_keys=True) if exchange.tags else "{}"
        db.execute(
            _REQUEST,
            (
                parts.seq, parts.frame_id, base, kept, depth, packed(ids[kept:]),
                None if parts.answer is None else parts.answer.id, seen, transcript.root,
                new.chain[-1], new.hash, size, exchange.path, exchange.subagent, exchange.cwd,
                exchange.commit, tags, transcript.note, exchange.dirty,
            ),
        )  # fmt: skip
        return seen

    def _base(
        self, db: sqlite3.Connection, ids: list[int], place: Place, known: Remembered | None
    ) -> tuple[int | None, int, int]:
        """What to share with an earlier request: (its seq, message ids kept from it, links below)."""
        base = place.parent if place.retry_of is None else place.retry_of
        if base is None:
            return None, 0, 0
        row = db.execute("SELECT depth FROM request WHERE seq = ?", (base,)).fetchone()
        if row is None or (depth := row[0] + 1) >= _DEPTH:
            return None, 0, 0
        at_hand = known if known is not None and known.seq == base else None
        theirs = message_ids(db, base) if at_hand is None else [item.id for item in at_hand.kept]
        kept = shared(ids, theirs)
        return (base, kept, depth) if kept else (None, 0, 0)

    def _bodies(self, db: sqlite3.Connection, new: Incoming, seq: int, parent: int | None) -> None:
        response = new.transcript.response
        if response:
            db.execute("INSERT INTO response VALUES (?,?,?)", (seq, len(response), self._packer.pack(response)))
        span = new.exchange.span
        if span is not None:
            weights = self._names.id(db, span.weights)
            spans.keep(db, self._packer, span, weights=weights, place=(seq, parent), remembered=self._spans)

    def _preview(self, new: Incoming) -> str:
        """What was answered, else what went wrong, else what was asked."""
        transcript = new.transcript
        texts = ["" if transcript.answer is None else transcript.answer.text, new.exchange.error or ""]
        texts += [message.text for message in transcript.messages[-1:]]
        return next((line for text in texts if (line := titles.one_line(text))), "")


@dataclass(frozen=True, slots=True)
class _Parts:
    seq: int
    frame_id: int
    kept: tuple[Kept, ...]
    answer: Kept | None
    known: Remembered | None
    #: Bytes of the request without its separators.
    size: int


def _stray(messages: tuple[StoredMessage, ...]) -> bool:
    """Whether the last message may be a note that the agent drops: a user's right behind a tool's result or another
    user's."""
    return len(messages) > 1 and messages[-1].role == "user" and messages[-2].role in ("tool", "user")
