"""From an exchange to what may be stored of it: parsed, and with no secret in anything that came along.

Outside of the transaction. Whatever goes wrong, something comes back that can be stored, and never anything that
redaction has not seen: the bodies' parts were seen by whoever parsed them, all else is looked at here.
"""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from daemon.core.agents import by_prompt
from daemon.core.records import Exchange, Transcript
from daemon.store import titles
from daemon.store.carried import attributed

Redact = Callable[[bytes], tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """An exchange with its transcript, ready for the transaction."""

    exchange: Exchange
    transcript: Transcript


def prepare(exchange: Exchange, parse: Callable[[], Transcript], redact: Redact) -> Prepared:
    """The exchange split into its messages; where that fails, whole."""
    try:
        transcript = parse()
        prompt = transcript.system or (transcript.messages[0].text if transcript.messages else "")
        agent = by_prompt(exchange.agent, prompt)
        known = exchange if agent == exchange.agent else dataclasses.replace(exchange, agent=agent)
        return _shorn(Prepared(attributed(known, transcript), transcript), redact)
    except Exception as error:  # recording must not depend on an agent's bytes
        return unsplit(exchange, redact, f"not parsed: {type(error).__name__}: {error}")


def unsplit(exchange: Exchange, redact: Redact, note: str) -> Prepared:
    """The exchange with its bodies whole and redacted, and without its token span."""
    request, first = _readable(exchange.request, redact)
    response, second = _readable(exchange.response, redact)
    transcript = Transcript(
        head=request, separator=b"", tail=b"", messages=(), root=bytes(16), answer=None, response=response,
        redacted=first + second, note=titles.one_line(redact(note.encode("utf-8", "replace"))[0].decode()),
    )  # fmt: skip
    return _shorn(Prepared(dataclasses.replace(exchange, span=None), transcript), redact)


def _readable(body: bytes, redact: Redact) -> tuple[bytes, int]:
    """Only text: redaction can't look into compressed bytes, so they are not kept."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return b"", 0
    return redact(body)


def _shorn(prepared: Prepared, redact: Redact) -> Prepared:
    """With secrets out of names, ids and short texts: a key set as a model's name or quoted by an upstream's error, a
    token in a path."""
    e, t = prepared.exchange, prepared.transcript
    tags = json.dumps(dict(e.tags), ensure_ascii=False) if e.tags else ""
    again = (e.model_asked, e.path, e.agent, e.cwd, e.commit, e.subagent, e.spawner, t.model, tags)
    once = [text for text in (e.error, t.note) if text]
    if t.answer_id and t.answer_id.encode("utf-8", "replace") not in t.response:  # what stands there was seen
        once.append(t.answer_id)
    names = "\0".join([name for name in (*again, *e.session_keys, *t.keys) if name])
    if not _tells(names, redact) and not (once and redact("\0".join(once).encode("utf-8", "replace"))[1]):
        return prepared

    def clean(text: str | None) -> str | None:
        return None if text is None else redact(text.encode("utf-8", "replace"))[0].decode("utf-8", "replace")

    def clean_all(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([clean(text) or "" for text in texts])

    exchange = dataclasses.replace(
        e, model_asked=clean(e.model_asked) or "", path=clean(e.path) or "", agent=clean(e.agent), cwd=clean(e.cwd),
        commit=clean(e.commit), subagent=clean(e.subagent), spawner=clean(e.spawner), error=clean(e.error),
        session_keys=clean_all(e.session_keys), tags=json.loads(clean(tags) or "{}"),
    )  # fmt: skip
    transcript = dataclasses.replace(
        t, model=clean(t.model), answer_id=clean(t.answer_id), keys=clean_all(t.keys), note=clean(t.note)
    )
    return Prepared(exchange, transcript)


@lru_cache(maxsize=256)
def _tells(names: str, redact: Redact) -> bool:
    """Whether there is a secret in names that come with each request of a conversation."""
    return redact(names.encode("utf-8", "replace"))[1] > 0
