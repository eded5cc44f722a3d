"""The stream: what a job may see of its scenario's experience. No recipe gets around what is decided here.

The split follows from a session's id alone, for good: a tenth for search, a tenth for the gate, which no recipe sees.
Prompts of tasks are left out, whoever asked them, so that what the gate measures was never trained on. The rest (who
may train, once a recipe) is the store's (`daemon.store.experience`).
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from daemon.core import plain
from daemon.core.errors import BadRequest, UsageError
from daemon.core.learning import Experience, JobRow, Split, canonical
from daemon.core.records import Dialect, Message
from daemon.store import inband
from daemon.store.experience import Raw, Wanted
from daemon.store.learning import Learning
from daemon.wire.base import dialect as codec_of
from daemon.wire.parts import calls_are_whole

#: Tenths of all sessions, by a hash of their id.
_SEARCH, _GATE = 8, 9
_NUMBER: Final = re.compile(r"r(\d+)-")
_SIGNALS: Final = frozenset({"note", "mark", "edit"})
#: Something to stand between a request's head and tail, so that they parse.
_ANY: Final = b'{"role":"user","content":"."}'
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Ask:
    """``signals``: names of `recipes.base.Signal`; those that records don't carry (traffic, checks) ask for all."""

    split: Split = Split.TRAIN
    signals: tuple[str, ...] = ()
    after: int = 0
    limit: int = _MOST


def split_of(session: str) -> Split:
    """Where a session belongs, for good."""
    tenth = int.from_bytes(blake2b(session.encode(), digest_size=8).digest(), "big") % 10
    return Split.GATE if tenth >= _GATE else Split.SEARCH if tenth >= _SEARCH else Split.TRAIN


def number_of(release: str) -> int:
    """A release's place in its chain; 0 for the base and for what no chain gave."""
    found = _NUMBER.match(release)
    return int(found[1]) if found else 0


def carried(signals: Collection[str]) -> tuple[str, ...]:
    """The signals that records carry; empty where one of the others asks for any record."""
    known = _SIGNALS & set(signals)
    return tuple(sorted(known)) if not set(signals) - _SIGNALS - {"instruction"} else ()


class Stream:
    """``held_out`` gives the prompts of a scenario's tasks. All methods block."""

    def __init__(self, store: Learning, held_out: Callable[[str], Collection[str]]) -> None:
        self._store = store
        self._held_out = held_out

    def offered(self, job: JobRow, head: str, ask: Ask, max_staleness: int | None = None) -> dict[str, Any]:
        """Experience, notes and instructions for a job, as plain data; ``next`` is the next page's ``after``.

        Notes are a person's own words and teach whatever session they were said in.
        """
        experience, cursor = self._experience(job, number_of(head), ask, max_staleness) if ask.limit else ([], None)
        return {
            "experience": [plain.of_experience(one) for one in experience],
            "next": cursor,
            "notes": self._store.notes(job.scenario, job.recipe, job.id),
            "instructions": self._store.instructions(job.scenario, job.recipe, job.id),
        }

    def news(self, scenario: str, recipe: str, signals: Collection[str], enough: int) -> int:
        """Units of news for a recipe since its last job there, counted up to ``enough``."""
        if set(signals) == {"instruction"} or set(signals) == {"check"}:
            return 0
        wanted = Wanted(scenario, recipe, signals=carried(signals), limit=enough)
        return self._store.news(wanted, lambda session: split_of(session) is Split.TRAIN)

    def _experience(
        self, job: JobRow, head: int, ask: Ask, max_staleness: int | None
    ) -> tuple[list[Experience], int | None]:
        if ask.split is Split.GATE:
            raise UsageError("sessions of the gate's split are shown to no recipe", hint="train or search")
        held = {canonical(prompt) for prompt in self._held_out(job.scenario)}
        wanted = Wanted(
            job.scenario, job.recipe, job.id, carried(ask.signals), after=ask.after, limit=min(ask.limit, _MOST)
        )
        found: dict[bytes, Experience] = {}
        cursor: int | None = ask.after
        while cursor is not None and len(found) < wanted.limit:
            room = wanted.limit - len(found)
            raws, cursor = self._store.page(
                replace(wanted, after=cursor, limit=room), lambda session: split_of(session) is ask.split
            )
            for raw, one in _read(raws, job.scenario, head):
                if (max_staleness is not None and one.staleness > max_staleness) or not held.isdisjoint(one.asked()):
                    continue
                known = found.get(raw.content)
                found[raw.content] = one if known is None else _merged(known, one)
        return list(found.values()), cursor


def _merged(first: Experience, again: Experience) -> Experience:
    """The same prompt and answer once more: what was said of it was said of both."""
    known = {said.id for said in first.feedback}
    return replace(first, feedback=first.feedback + tuple(said for said in again.feedback if said.id not in known))


def _read(raws: list[Raw], scenario: str, head: int) -> Iterator[tuple[Raw, Experience]]:
    """Those with words in their answer, and no call in it that was cut off: some providers end such a one as if it were
    whole.
    """
    systems: dict[tuple[bytes, bytes], tuple[Message, ...]] = {}
    parsed: dict[tuple[Dialect, bytes], Message] = {}
    for raw in raws:
        read = partial(_message, parsed, raw.dialect)
        around = (raw.head, raw.tail)
        if around not in systems:
            systems[around] = _system(raw)
        said = read(raw.answer.raw)
        if not said.text.strip() or not calls_are_whole(said):
            continue
        yield (
            raw,
            Experience(
                receipt=raw.receipt,
                session=raw.session,
                scenario=scenario,
                split=split_of(raw.session),
                seq=raw.seq,
                release_id=raw.release_id,
                staleness=max(0, head - number_of(raw.release_id)),
                weights=raw.weights,
                prompt=inband.without([*systems[around], *(read(message.raw) for message in raw.messages)]),
                answer=said.text,
                feedback=raw.feedback,
                completion_ids=raw.completion_ids,
                logprobs=raw.logprobs,
                ended=raw.ended,
            ),
        )


def _message(parsed: dict[tuple[Dialect, bytes], Message], dialect: Dialect, raw: bytes) -> Message:
    """Agents send their history again: each message is parsed once."""
    if (dialect, raw) not in parsed:
        parsed[dialect, raw] = codec_of(dialect).message(raw)
    return parsed[dialect, raw]


def _system(raw: Raw) -> tuple[Message, ...]:
    """What a dialect keeps outside its messages."""
    if raw.dialect is Dialect.CHAT:
        return ()
    try:
        return codec_of(raw.dialect).parse(raw.head + _ANY + raw.tail).messages[:-1]
    except BadRequest:
        return ()
