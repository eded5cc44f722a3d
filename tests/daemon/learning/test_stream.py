"""What no recipe gets around: splits, the gate's sessions, prompts of tasks, staleness, the same thing twice."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core import plain
from daemon.core.errors import UsageError
from daemon.core.ids import new_id
from daemon.core.learning import Experience, JobRow, Split, canonical
from daemon.core.records import Dialect, End, Exchange, Text
from daemon.core.rows import NewReport
from daemon.learning.stream import Ask, Stream, carried, number_of, split_of
from daemon.store.db import Store
from daemon.store.jobs import Claim, NewJob
from daemon.wire.base import dialect as codec_of

SPLITS = "tgtgtgtstttttttttttttgts"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store" / "reef.db", durability="normal")
    yield opened
    opened.close()


@pytest.fixture
def job(store: Store) -> JobRow:
    return store.learning.create(NewJob("job_a", "default", "sft")).result(20)


def say(
    store: Store,
    text: str,
    answer: str = "ok",
    dialect: Dialect = Dialect.CHAT,
    why: str = "",
    called: str | None = None,
    **changes: Any,
) -> str:
    """One exchange in its own session, split by the real dialect; its session's id. ``before``: what both said."""
    words = (*changes.pop("before", ()), text)
    said = [{"role": "assistant" if n % 2 else "user", "content": one} for n, one in enumerate(words)]
    if dialect is Dialect.CHAT:
        request = json.dumps({"model": "m", "messages": said}).encode()
        message: dict[str, Any] = {"role": "assistant", "content": answer}
        if called is not None:
            message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": called}}]
        choice = {"message": message, "finish_reason": why or "stop"}
        response = json.dumps({"choices": [choice]}).encode()
    else:
        request = json.dumps({"model": "m", "max_tokens": 9, "system": "Be kind.", "messages": said}).encode()
        content: list[dict[str, Any]] = [{"type": "text", "text": answer}]
        if called is not None:
            content.append({"type": "tool_use", "id": "c", "name": "bash", "input": called})
        response = json.dumps({"role": "assistant", "content": content, "stop_reason": why or "end_turn"}).encode()
    made: dict[str, Any] = {
        "receipt": new_id("rec"), "scenario": "default", "dialect": dialect, "path": "/v1/x", "started_ns": 1,
        "duration_us": 1, "first_byte_us": 1, "request": request, "response": response, "stream": False,
        "status": 200, "end": End.OK, "engine": "e", "model_asked": "m", "release_id": "base",
        "session_keys": (new_id("req"),),
    }  # fmt: skip
    exchange = Exchange(**{**made, **changes})

    def parse() -> Any:
        return codec_of(dialect).transcript(request, response, stream=False, redact=lambda data: (data, 0))

    return store.append(exchange, parse).result(20).session


def say_in(store: Store, split: Split, text: str, **changes: Any) -> str:
    """The same, said again (in other words) until its session falls into a split."""
    for n in range(500):
        session = say(store, f"{text} {n}", **changes)
        if split_of(session) is split:
            return session
    raise AssertionError("no session of that split in 500")


def offered(store: Store, job: JobRow, ask: Ask = Ask(), head: str = "base", **options: Any) -> list[Experience]:  # noqa: B008
    stream = Stream(store.learning, options.pop("held_out", lambda _: ()))
    return [plain.experience(one) for one in stream.offered(job, head, ask, **options)["experience"]]


@pytest.mark.parametrize(("dialect", "why"), [(Dialect.CHAT, "length"), (Dialect.MESSAGES, "max_tokens")])
def test_an_answer_that_was_cut_off_says_so(store: Store, job: JobRow, dialect: Dialect, why: str) -> None:
    say_in(store, Split.TRAIN, "whole", dialect=dialect)
    say_in(store, Split.TRAIN, "cut", dialect=dialect, why=why)
    assert {one.prompt[-1].text.split()[0]: one.ended for one in offered(store, job)} == {"whole": True, "cut": False}


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.MESSAGES])
def test_an_answer_with_a_call_that_was_cut_off_teaches_nothing(store: Store, job: JobRow, dialect: Dialect) -> None:
    """BUGS B009: https://github.com/anthropics/claude-code/issues/19143: its provider said that it stopped by
    itself.
    """
    say_in(
        store, Split.TRAIN, "whole", dialect=dialect, called='{"command": "ls"}' if dialect is Dialect.CHAT else None
    )
    say_in(store, Split.TRAIN, "cut", dialect=dialect, called='{"command": "rm -rf /home/me/pro')
    assert [one.prompt[-1].text.split()[0] for one in offered(store, job)] == ["whole"]


def test_a_split_is_decided_by_the_id_alone_and_is_eight_to_one_to_one() -> None:
    ids = [new_id("ses") for _ in range(5000)]
    counts = {split: sum(split_of(id) is split for id in ids) for split in Split}
    assert abs(counts[Split.TRAIN] - 4000) < 200
    assert abs(counts[Split.SEARCH] - 500) < 120
    assert abs(counts[Split.GATE] - 500) < 120
    assert split_of("ses_06f2m8") is split_of("ses_06f2m8")
    assert "".join(split_of(f"ses_{n}")[0] for n in range(24)) == SPLITS, "a split is for good"


def test_sessions_of_the_gate_are_never_offered(store: Store, job: JobRow) -> None:
    """BUGS B194."""
    sessions = [say(store, f"q{n}") for n in range(40)]
    assert any(split_of(session) is Split.GATE for session in sessions) or say_in(store, Split.GATE, "more")
    for split in (Split.TRAIN, Split.SEARCH):
        found = offered(store, job, Ask(split))
        assert {one.split for one in found} <= {split}
        assert all(split_of(one.session) is split for one in found)
    with pytest.raises(UsageError, match="gate"):
        offered(store, job, Ask(Split.GATE))


def test_a_prompt_of_a_task_is_left_out_however_it_is_written(store: Store, job: JobRow) -> None:
    say_in(store, Split.TRAIN, "What is rain?")
    asked = offered(store, job)[0].prompt[-1].text
    assert offered(store, job, held_out=lambda _: [f"  {asked.upper()}\n"]) == []
    assert len(offered(store, job, held_out=lambda scenario: [asked] if scenario == "other" else [])) > 0
    assert offered(store, job, held_out=lambda _: [f"{asked.rstrip('?')} ?!"]) == []
    assert canonical(" What\n is  RAIN?") == canonical("what is \uff32ain")
    assert canonical("?!") != canonical("...")


def test_staleness_counts_releases(store: Store, job: JobRow) -> None:
    say_in(store, Split.TRAIN, "old", release_id="base")
    say_in(store, Split.TRAIN, "new", release_id="r5-0a1b2c3d")
    found = offered(store, job, head="r6-ffffffff")
    assert {one.staleness for one in found} == {6, 1}
    assert {one.release_id for one in offered(store, job, head="r6-ffffffff", max_staleness=1)} == {"r5-0a1b2c3d"}
    assert [number_of(id) for id in ("base", "r12-ab", "default@0")] == [0, 12, 0]


def test_the_same_prompt_and_answer_is_one_with_all_that_was_said(store: Store, job: JobRow) -> None:
    receipts: list[str] = []
    for n in range(100):
        receipt = new_id("rec")
        if split_of(say(store, "the very same", receipt=receipt)) is Split.TRAIN:
            receipts.append(receipt)
            store.report(NewReport(f"rep_{n}", "default", score=float(n), references=(receipt,))).result(20)
        if len(receipts) == 2:
            break
    (one,) = offered(store, job)
    assert one.receipt == receipts[0]
    assert len(one.feedback) == 2


def test_a_system_prompt_outside_the_messages_comes_along(store: Store, job: JobRow) -> None:
    say_in(store, Split.TRAIN, "hi", dialect=Dialect.MESSAGES)
    one = offered(store, job)[0]
    assert next((said.role, said.text) for said in one.prompt) == ("system", "Be kind.")
    assert one.prompt[-1].parts[0].__class__ is Text
    assert one.answer == "ok"


def test_an_answer_without_words_is_not_offered(store: Store, job: JobRow) -> None:
    say_in(store, Split.TRAIN, "silence", answer=" ")
    assert offered(store, job) == []


def test_pages_cover_everything_once(store: Store, job: JobRow) -> None:
    for n in range(20):
        say(store, f"q{n}")
    stream, after, seen = Stream(store.learning, lambda _: ()), 0, list[int]()
    while True:
        page = stream.offered(job, "base", Ask(after=after, limit=3))
        seen += [one["seq"] for one in page["experience"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == [one.seq for one in offered(store, job)]


def test_notes_and_instructions_come_whatever_the_split(store: Store, job: JobRow) -> None:
    receipt = new_id("rec")
    while split_of(say(store, "x", receipt=receipt)) is not Split.GATE:
        receipt = new_id("rec")
    store.report(NewReport("rep_a", "default", feedback="be brief", references=(receipt,))).result(20)
    told = Stream(store.learning, lambda _: ()).offered(job, "base", Ask(limit=0))
    assert (told["experience"], [note.text for note in told["notes"]]) == ([], ["be brief"])


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (["note"], ("note",)),
        (["mark", "edit", "instruction"], ("edit", "mark")),
        (["traffic", "note"], ()),
        (["check"], ()),
        ([], ()),
    ],
)
def test_signals_that_records_carry(signals: list[str], expected: tuple[str, ...]) -> None:
    assert carried(signals) == expected


def test_news_is_what_came_since_the_last_job(store: Store) -> None:
    stream = Stream(store.learning, lambda _: ())
    receipt = new_id("rec")
    while split_of(say(store, "x", receipt=receipt)) is not Split.TRAIN:
        receipt = new_id("rec")
    store.report(NewReport("rep_a", "default", score=1.0, references=(receipt,))).result(20)
    ask: Callable[[], int] = lambda: stream.news("default", "sft", ["mark", "instruction"], 5)  # noqa: E731
    assert ask() == 1
    assert stream.news("default", "sft", ["instruction"], 5) == 0
    store.learning.create(NewJob("job_b", "default", "sft")).result(20)
    assert ask() == 0
    store.report(NewReport("rep_b", "default", score=0.0, references=(receipt,))).result(20)
    assert ask() == 1
    store.learning.claim("job_b", Claim(records=(receipt,))).result(20)
    assert ask() == 0, "about a record that is used up"


def test_what_was_said_to_reef_teaches_nothing(store: Store, job: JobRow) -> None:
    """Agents send it again with all that they ask later."""
    before = ["What is rain?", "Water.", "reef-good short", "Reef: recorded good on rec_1"]
    say_in(store, Split.TRAIN, "And snow?", before=before)
    (one,) = offered(store, job)
    assert [message.text for message in one.prompt[:-1]] == ["What is rain?", "Water."]
    assert one.prompt[-1].text.startswith("And snow?")
