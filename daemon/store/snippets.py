"""The line of a record around what was asked for: what it added to its conversation, system prompts left out."""

from collections.abc import Sequence
from typing import Final

from daemon.store import messages as content
from daemon.store import titles
from daemon.store.connection import Reader
from daemon.store.query import Query
from daemon.store.requests import new_ids

_AROUND: Final = 60


def snippets(reader: Reader, seqs: Sequence[int], query: Query) -> dict[int, str | None]:
    """For each record the line around what was asked for; None where a phrase does not stand in any one message."""
    ids = {seq: new_ids(reader.db, seq) for seq in seqs}
    for seq in seqs:
        (answer,) = reader.db.execute("SELECT answer FROM request WHERE seq = ?", (seq,)).fetchone()
        ids[seq] += [answer] if answer is not None else []
    wanted = list({id for each in ids.values() for id in each})
    texts = {
        id: one.text for id, one in zip(wanted, content.messages(reader, wanted), strict=True) if one.role != "system"
    }
    return {seq: line([texts[id] for id in ids[seq] if id in texts], query) for seq in seqs}


def line(texts: list[str], query: Query) -> str | None:
    folded = [" ".join(text.casefold().split()) for text in texts]
    phrases = [" ".join(phrase.casefold().split()) for phrase in query.phrases]
    if not all(any(phrase in text for text in folded) for phrase in phrases):
        return None
    sought = [*phrases, *(word.rstrip("*").casefold() for word in query.words)]
    for text, low in zip(texts, folded, strict=True):
        plain = " ".join(text.split())
        for word in sought:
            if (at := low.find(word)) >= 0:
                begin = max(0, at - _AROUND)
                line = titles.one_line(plain[begin : at + len(word) + _AROUND])
                return f"…{line}" if begin else line
    return ""
