"""What the store offers to learn from: who may train, what was said, what is used up; and how fast a page is."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daemon.core.records import End, TokenSpan
from daemon.core.rows import NewReport
from daemon.store.connection import open_writer
from daemon.store.db import Store
from daemon.store.experience import Raw, Wanted
from daemon.store.jobs import Claim, NewJob
from daemon.store.migrations import migrate
from tests.fakes.exchanges import Conversation, record, system, transcript, user

WANTED = Wanted("default", "sft")


def everything(_session: str) -> bool:
    return True


def say(store: Store, text: str, answer: str = "ok", **changes: Any) -> str:
    """One exchange of a session of its own; its receipt."""
    return record(store, transcript([system(f"You help with {text}."), user(text)], answer), **changes).receipt


def report(store: Store, *receipts: str, **changes: Any) -> str:
    row, _ = store.report(
        NewReport(**{"id": f"rep_{time.monotonic_ns()}", "scenario": "default", "references": receipts, **changes})
    ).result(20)
    return row.id


def page(store: Store, wanted: Wanted = WANTED, keep: Callable[[str], bool] = everything) -> list[Raw]:
    return store.learning.page(wanted, keep)[0]


def receipts(raws: list[Raw]) -> list[str]:
    return [raw.receipt for raw in raws]


def test_turns_are_offered_whole_the_last_of_a_session_included(store: Store) -> None:
    talk = Conversation(store)
    first, second = talk.turn("one", "1"), talk.turn("two", "2")
    found = page(store)
    assert receipts(found) == [first.receipt, second.receipt]
    assert [message.text for message in found[1].messages] == ["You help.", "one", "1", "two"]
    assert (found[1].answer.text, found[1].session) == ("2", second.session)


@pytest.mark.parametrize("keys", [(), ("fork",)])
def test_a_fork_offers_its_own_turn_and_not_its_parents_again(store: Store, keys: tuple[str, ...]) -> None:
    """BUGS B146: A sub-agent's session that replays its parent's history: 91 times the tokens (ccusage/ccusage#950)."""
    talk = Conversation(store, changes={"session_keys": ("parent",)} if keys else {})
    first = talk.turn("one", "1")
    middle = list(talk.said)
    second = talk.turn("two", "2")
    talk.said = middle
    fork = talk.turn("other two", "3", session_keys=keys)
    assert store.session(fork.session).parent == first.session
    assert receipts(page(store)) == [first.receipt, second.receipt, fork.receipt]
    assert [message.text for message in store.new_messages(fork.receipt)] == ["other two"]


@pytest.mark.parametrize("end", [End.ERROR, End.INCOMPLETE, End.CANCELLED])
def test_what_did_not_end_ok_is_not_offered(store: Store, end: End) -> None:
    record(store, transcript([user("x")], None), end=end, status=500)
    assert page(store) == []


def test_side_calls_and_secrets_are_not_offered(store: Store) -> None:
    record(store, transcript([user("Generate a title for this conversation: x")], "A title", tools=0))
    record(store, transcript([user("my key is <secret>")], "ok", redacted=1))
    assert page(store) == []


def test_a_retry_stands_for_the_turn_that_failed(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("again", end=End.ERROR, status=500)
    retry = talk.turn("again", "now it works")
    assert retry.kind == "retry"
    assert receipts(page(store)) == [retry.receipt]


def test_another_scenario_is_another_world(store: Store) -> None:
    say(store, "work", scenario="work/api")
    assert page(store) == []
    assert page(store, Wanted("nobody", "sft")) == []


def test_feedback_is_joined_and_what_was_taken_back_is_not(store: Store) -> None:
    receipt = say(store, "rate me")
    report(store, receipt, score=0.0)
    store.undo("default", receipt).result(20)
    report(store, receipt, score=1.0, feedback="well done")
    report(store, receipt, metadata={"edited": "better"}, score=None)
    (found,) = page(store)
    assert [(f.score, f.text, f.edit, f.general) for f in found.feedback] == [
        (1.0, "well done", None, False),
        (None, None, "better", False),
    ]


def test_a_report_without_references_is_said_of_the_whole_last_session(store: Store) -> None:
    say(store, "an older session")
    talk = Conversation(store)
    talk.turn("one"), talk.turn("two")
    report(store, feedback="too long", score=0.0)
    found = page(store)
    assert [[f.general for f in raw.feedback] for raw in found] == [[], [True], [True]]


@pytest.mark.parametrize("signal", ["note", "mark", "edit"])
def test_only_what_carries_a_signal(store: Store, signal: str) -> None:
    carried = {
        "mark": report(store, marked := say(store, "m"), score=1.0) and marked,
        "note": report(store, noted := say(store, "n"), feedback="hm") and noted,
        "edit": report(store, edited := say(store, "e"), metadata={"edited": "so"}) and edited,
    }
    say(store, "nothing said")
    assert receipts(page(store, replace(WANTED, signals=(signal,)))) == [carried[signal]]


def test_sessions_are_kept_out_by_their_id(store: Store) -> None:
    first = say(store, "a")
    out = store.record(first).session
    say(store, "b")
    assert first not in receipts(page(store, keep=lambda session: session != out))


def test_pages_follow_each_other(store: Store) -> None:
    said = [say(store, f"q{n}") for n in range(5)]
    one = page(store, replace(WANTED, limit=3))
    two = page(store, replace(WANTED, limit=3, after=one[-1].seq))
    assert receipts(one + two) == said
    assert page(store, replace(WANTED, after=two[-1].seq)) == []


def test_what_a_job_claimed_is_gone_for_its_recipe_only(store: Store) -> None:
    one, two = say(store, "one"), say(store, "two")
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    store.learning.claim("job_a", Claim(records=(one,))).result(20)
    assert receipts(page(store)) == [two]
    assert receipts(page(store, replace(WANTED, job="job_a"))) == [one, two]
    assert receipts(page(store, replace(WANTED, recipe="playbook"))) == [one, two]


def test_the_same_prompt_and_answer_again_is_used_up_with_the_first(store: Store) -> None:
    first = record(store, transcript([user("x")], "y")).receipt
    again = record(store, transcript([user("x")], "y")).receipt
    other = record(store, transcript([user("x")], "z")).receipt
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    store.learning.claim("job_a", Claim(records=(first,))).result(20)
    assert receipts(page(store)) == [other]
    assert again not in receipts(page(store))


def test_token_ids_and_logprobs_come_along(store: Store) -> None:
    span = TokenSpan((1, 2, 3), (7, 8), (-0.5, -0.25), "abc+def")
    say(store, "spanned", span=span, weights="abc+def")
    (found,) = page(store)
    assert (found.completion_ids, found.logprobs, found.weights) == ((7, 8), (-0.5, -0.25), "abc+def")


def test_notes_are_reports_with_text_that_nobody_used(store: Store) -> None:
    receipt = say(store, "x")
    used, kept = report(store, receipt, feedback="one"), report(store, receipt, feedback="two", score=1.0)
    report(store, receipt, score=1.0)
    assert [note.id for note in store.learning.notes("default", "sft")] == [used, kept]
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    store.learning.claim("job_a", Claim(reports=(used,))).result(20)
    assert [note.text for note in store.learning.notes("default", "sft")] == ["two"]
    assert [note.text for note in store.learning.notes("default", "sft", "job_a")] == ["one", "two"]


def test_news_counts_what_came_since_the_last_job(store: Store) -> None:
    told = replace(WANTED, signals=("note", "mark"), limit=10)
    first = say(store, "a")
    report(store, first, score=1.0)
    report(store, first, feedback="a note")
    report(store, first, metadata={"edited": "not this recipe's"})
    assert store.learning.news(told, everything) == 2
    assert store.learning.news(told, lambda _: False) == 1, "a note teaches whatever session it was said in"
    assert store.learning.news(replace(told, limit=1), everything) == 1
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    assert store.learning.news(told, everything) == 0
    report(store, first, score=0.0)
    assert store.learning.news(told, everything) == 1


def test_a_note_that_a_job_took_right_after_it_began_is_no_news(store: Store) -> None:
    receipt = say(store, "a")
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    note = report(store, receipt, feedback="just in time")
    assert store.learning.news(replace(WANTED, signals=("note",), limit=10), everything) == 1
    store.learning.claim("job_a", Claim(reports=(note,))).result(20)
    assert store.learning.news(replace(WANTED, signals=("note",), limit=10), everything) == 0


def test_news_without_signals_counts_records(store: Store) -> None:
    say(store, "a"), say(store, "b")
    assert store.learning.news(replace(WANTED, limit=10), everything) == 2
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    say(store, "c")
    assert store.learning.news(replace(WANTED, limit=10), everything) == 1
    assert store.learning.scenarios() == ["default"]


def _grown(path: Path, records: int) -> None:
    """Many records by copying one: rows as the ledger writes them, at a speed that a test can afford."""
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    db.execute("BEGIN")
    seq, session = db.execute("SELECT seq, session FROM record LIMIT 1").fetchone()
    columns = [name for _, name, *_ in db.execute("PRAGMA table_info(record)") if name not in ("seq", "receipt")]
    quoted = ",".join(f'"{name}"' for name in columns)
    db.execute(
        f"""WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO record (receipt, {quoted}) SELECT 'rec_' || i, {quoted} FROM n, record WHERE seq = ?""",
        (records, seq),
    )
    names = [name for _, name, *_ in db.execute("PRAGMA table_info(request)") if name not in ("seq", "chain")]
    quoted = ",".join(f'"{name}"' for name in names)
    db.execute(
        f"""INSERT INTO request (seq, chain, {quoted}) SELECT r.seq, randomblob(16), {",".join("q." + n for n in names)}
        FROM record r, request q WHERE q.seq = ? AND r.seq > ? AND r.session = ?""",
        (seq, seq, session),
    )
    db.execute("COMMIT")
    db.close()


def test_a_page_out_of_100_000_records_is_fast(store: Store, path: Path) -> None:
    marked = say(store, "like many")
    report(store, marked, score=1.0)
    _grown(path, 100_000)
    store.learning.create(NewJob("job_a", "default", "sft")).result(20)
    db = open_writer(path, "normal")
    migrate(db)
    db.execute("PRAGMA busy_timeout = 60000")  # the store is reading the new records
    db.execute("INSERT INTO claim SELECT 'sft', 'record', seq, 1, NULL FROM record WHERE seq BETWEEN 2 AND 20000")
    db.close()
    for wanted, seconds in (
        (replace(WANTED, limit=50, recipe="playbook"), 0.1),
        (replace(WANTED, limit=50, after=50_000), 0.1),
        (replace(WANTED, limit=50, signals=("mark",)), 0.1),
        (replace(WANTED, limit=50), 0.2),  # walks over all that is used up
    ):
        best = min(_timed(store, wanted) for _ in range(10))
        assert best < seconds, (wanted, best)


def _timed(store: Store, wanted: Wanted) -> float:
    start = time.perf_counter()
    assert page(store, wanted)
    return time.perf_counter() - start
