"""Forgetting: what is named is gone from every file, and what stays is whole."""

import dataclasses
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, NotFound, UsageError
from daemon.core.ids import new_id
from daemon.core.privacy import Purge, Purged
from daemon.core.records import End, StoredMessage, TokenSpan
from daemon.core.rows import NewReport
from daemon.store import audit
from daemon.store import purge as module
from daemon.store.db import Store
from daemon.store.jobs import Claim, NewJob
from tests.fakes.exchanges import STARTED_NS, Conversation, assistant, record, transcript, user

COVERS = ("daemon/store/forget.py", "daemon/store/sweep.py")

LONG = " and so on, at some length, so that it is worth a dictionary" * 8


def purge(store: Store, **wanted: object) -> Purged:
    return store.purges.run(Purge(**wanted), lambda *_: None)  # type: ignore[arg-type]


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def indexed(store: Store) -> None:
    """Wait until all that was said can be searched."""
    newest, pause = store.records()[0][0].seq, threading.Event()
    while True:
        with store._pool.reader() as reader:
            if reader.db.execute("SELECT indexed FROM tally").fetchone()[0] == newest:
                return
        pause.wait(0.01)


def span(*ids: int) -> TokenSpan:
    return TokenSpan(ids, (7, 8), (-0.1, -0.2), "sha")


def test_a_session_goes_with_all_that_was_said_about_it(store: Store) -> None:
    gone, stays = Conversation(store), Conversation(store)
    first = gone.turn("a secret plan", "about pineapples", span=span(1, 2, 3))
    last = gone.turn("go on", "with bananas", span=span(1, 2, 3, 7, 8, 9))
    other = stays.turn("something else", "harmless")
    store.report(NewReport("rep_1", "default", 0.0, "no pineapples", (first.receipt,))).result(20)
    store.report(NewReport("rep_2", "default", 1.0, "fine", (first.receipt, other.receipt))).result(20)
    planned = store.purges.plan(Purge(sessions=(first.session,)))
    purged = purge(store, sessions=(first.session,))
    assert dataclasses.replace(planned, compacted=True) == purged
    assert (purged.records, purged.sessions, purged.reports) == (2, 1, 1)
    assert purged.kept_messages == 1, "the system prompt, which the other conversation has, too"
    assert store.verify() == []
    assert store.counts() == {"records": 1, "sessions": 1, "reports": 1}
    for receipt in (first.receipt, last.receipt):
        with pytest.raises(NotFound):
            store.request(receipt)
    assert [row.receipt for row in store.records()[0]] == [other.receipt]
    assert [report.references for report in store.reports_on([other.receipt])[other.receipt]] == [(other.receipt,)]
    assert store.session(other.session).score == 1.0


@pytest.mark.parametrize("many", [4, 60])
def test_nothing_of_it_is_left_in_any_file(store: Store, path: Path, many: int) -> None:
    """Rows, index, write-ahead log and the space between rows."""
    marks = [f"qx{random.Random(n).randbytes(12).hex()}" for n in range(many)]
    keep = Conversation(store)
    keep.turn("kept words", "a kept answer")
    sessions = []
    for mark in marks:
        one = Conversation(store)
        appended = one.turn(f"{mark} {LONG}", f"answer{mark}", span=span(*range(40)))
        sessions.append(one.turn("more", "and more", error=f"said {mark}", end=End.OK).session)
        store.report(NewReport(new_id("rep"), "default", 1.0, f"note{mark}", (appended.receipt,))).result(20)
        keep.turn(f"kept {LONG}", "kept")
    indexed(store)
    assert marks[-1][8:].encode() in files(path)
    reading = sqlite3.connect(path)
    kinds = ("message", "response", "frame")
    bodies = {kind: set(reading.execute(f"SELECT body FROM {kind}")) for kind in kinds}
    purge(store, sessions=tuple(sessions))
    lost = [blob for kind in kinds for (blob,) in bodies[kind] - set(reading.execute(f"SELECT body FROM {kind}"))]
    reading.close()
    assert len(lost) > 2 * many
    data = files(path)
    assert [mark for mark in marks if mark[4:].encode() in data or bytes.fromhex(mark[2:]) in data] == []
    assert [blob for blob in lost if blob[len(blob) // 2 :][:24] in data] == []
    assert b"kept" in data, "the files were looked at"
    assert store.verify() == []


def test_a_large_index_forgets_words_without_being_made_anew(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ANEW", 0)
    chance = random.Random(7)
    words = [chance.randbytes(8).hex() for _ in range(8000)]
    sessions = [Conversation(store).turn(" ".join(words[n : n + 40]), "ok").session for n in range(0, len(words), 40)]
    indexed(store)
    purge(store, sessions=tuple(sessions[::2]))
    with sqlite3.connect(path) as db:
        index = b"".join(bytes(block) for (block,) in db.execute("SELECT block FROM words_data"))
    db.close()
    gone = [word for n in range(0, len(words), 80) for word in words[n : n + 40]]
    kept = [word for n in range(40, len(words), 80) for word in words[n : n + 40]]
    assert [word for word in gone if word[6:].encode() in index] == []
    assert len([word for word in kept if word[6:].encode() in index]) == len(kept)


def test_one_answer_goes_and_the_conversation_around_it_stays_byte_exact(store: Store) -> None:
    talk = Conversation(store)
    turns = [talk.turn(f"turn {n} {LONG}", f"answer {n}", span=span(*range(n + 3))) for n in range(40)]
    before = {turn.receipt: store.request(turn.receipt) for turn in turns}
    spans = {turn.receipt: store.span(turn.receipt) for turn in turns}
    middle = turns[17].receipt
    purged = purge(store, receipts=(middle,))
    assert (purged.records, purged.sessions) == (1, 0)
    assert purged.messages == 0, "later turns still send what it said"
    assert store.verify() == []
    for receipt in before.keys() - {middle}:
        assert store.request(receipt) == before[receipt]
        assert store.span(receipt) == spans[receipt]
    session = store.session(turns[0].session)
    assert (session.turns, session.records) == (39, 39)
    assert session.title.startswith("turn 0 and so on")
    assert talk.turn("it goes on").session == session.id


def test_the_last_answer_goes_with_what_only_it_held(store: Store) -> None:
    talk = Conversation(store)
    first = talk.turn("hello", "hi")
    last = talk.turn("the very last words", "goodbye")
    purged = purge(store, receipts=(last.receipt,))
    assert purged.messages == 2
    assert store.last() is not None
    assert store.last().receipt == first.receipt  # type: ignore[union-attr]
    assert store.verify() == []


def test_the_first_answer_takes_a_title_that_nobody_else_holds_with_it(store: Store) -> None:
    talk = Conversation(store)
    first = talk.turn("a title to forget", "ok")
    talk.said = [*talk.said[:1], assistant("compacted")]  # the agent forgot it, too
    talk.changes = {"session_keys": ("s1",)}
    purge(store, receipts=(first.receipt,))
    assert "forget" not in repr(store.sessions())
    assert store.verify() == []


def test_a_conversation_that_was_purged_can_go_on(store: Store) -> None:
    """The writer remembers the last requests: what it remembers must not point at what is gone."""
    talk = Conversation(store)
    first = talk.turn(f"hello {LONG}", "hi")
    purge(store, sessions=(first.session,))
    again = talk.turn("still there?", "yes")
    assert store.verify() == []
    assert b"still there" in store.request(again.receipt)
    assert f"hello {LONG}".encode() in store.request(again.receipt), "the agent sent it again"


def test_a_fork_of_what_is_purged_stands_alone(store: Store) -> None:
    talk = Conversation(store)
    talk.turn(f"begin {LONG}", "begun", session_keys=("a",))
    parent = talk.turn("one way", "this way", session_keys=("a",))
    said = talk.said[:3]
    fork = record(store, transcript([*said, user("another way")]), session_keys=("b",))
    raw = store.request(fork.receipt)
    assert store.session(fork.session).parent == parent.session
    purge(store, sessions=(parent.session,))
    assert store.request(fork.receipt) == raw
    assert store.session(fork.session).parent is None
    assert store.verify() == []


@pytest.mark.parametrize("seed", range(8))
def test_whatever_goes_the_rest_stays_whole(store: Store, seed: int) -> None:
    """Forks, retries, failures, moved cache marks: any records may be named."""
    chance = random.Random(seed)

    def dressed(messages: list[StoredMessage]) -> list[StoredMessage]:
        last = messages[-1]
        raw = last.raw[:-1] + b',"cache_control":{"type":"ephemeral"}}'
        return [*messages[:-1], dataclasses.replace(last, raw=raw)]

    talks = [Conversation(store, dress=dressed) for _ in range(3)]
    receipts: list[str] = []
    for n in range(45):
        talk = chance.choice(talks)
        if len(talk.said) > 3 and chance.random() < 0.15:
            talk.said = talk.said[: 1 + 2 * chance.randrange(1, len(talk.said) // 2)]
        end = chance.choice([End.OK] * 4 + [End.ERROR])
        size = chance.choice([0, 1, 8])
        appended = talk.turn(
            f"turn {n}{LONG[: size * 60]}", f"a{n}", end=end, span=span(*range(chance.randrange(2, 9)))
        )
        receipts.append(appended.receipt)
    raws = {receipt: store.request(receipt) for receipt in receipts}
    left = set(receipts)
    for _ in range(4):
        named = chance.sample(sorted(left), min(len(left), chance.randrange(1, 12)))
        left -= set(named)
        purge(store, receipts=tuple(named))
        assert store.verify() == []
        talks[0].turn("in between", "yes")
    assert {receipt: store.request(receipt) for receipt in left} == {receipt: raws[receipt] for receipt in left}
    assert [store.answer(receipt) is not None for receipt in left]


def test_all_of_it_leaves_an_empty_store(store: Store, path: Path) -> None:
    for n in range(3):
        Conversation(store).turn(f"hello {n}", "hi")
    purge(store, before_ns=STARTED_NS * 2)
    assert store.counts() == {"records": 0, "sessions": 0, "reports": 0}
    with sqlite3.connect(path) as db:
        left = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in (
            "message", "frame", "request", "response", "span", "point", "session_key", "reference", "orphan",
        )]  # fmt: skip
    db.close()
    assert left == [0] * 9
    assert Conversation(store).turn("hello again", "hi").seq == 4, "a number is never used again"


def test_a_damaged_database_that_was_kept_aside_is_named(store: Store, path: Path) -> None:
    one = Conversation(store).turn("hello")
    aside = path.with_name("reef.db.damaged-20260101T000000Z")
    aside.write_bytes(b"it may hold it, too")
    assert purge(store, receipts=(one.receipt,)).aside == (str(aside),)


def test_what_is_named_narrows(store: Store) -> None:
    old = Conversation(store, changes={"started_ns": STARTED_NS - 10**18, "cwd": "/work/api"})
    new = Conversation(store, changes={"cwd": "/work/api/src"})
    other = Conversation(store, changes={"scenario": "pi", "cwd": "/work/apis"})
    a, b, c = old.turn("a"), new.turn("b"), other.turn("c")

    def named(**wanted: object) -> int:
        return store.purges.plan(Purge(**wanted)).records  # type: ignore[arg-type]

    assert named(before_ns=STARTED_NS) == 1
    assert named(repository="/work/api") == 2
    assert named(repository="/work/api/") == 2
    assert named(repository="/work/api", before_ns=STARTED_NS) == 1
    assert named(scenario="pi") == 1
    assert named(scenario="pi", sessions=(a.session,)) == 0
    assert named(scenario="nobody") == 0
    assert named(receipts=(a.receipt, b.receipt, c.receipt)) == 3
    assert store.purges.expired(STARTED_NS, 10) == (a.session,)
    for wrong in ({"sessions": ("ses_x",)}, {"receipts": ("rec_x",)}):
        with pytest.raises(NotFound):
            named(**wrong)
    with pytest.raises(UsageError):
        named()


def test_what_a_job_learns_from_waits_for_it_and_releases_are_named(store: Store) -> None:
    one = Conversation(store).turn("teach me", "ok")
    store.learning.create(NewJob("job_1", "default", "sft")).result(20)
    store.learning.claim("job_1", Claim(records=(one.receipt,))).result(20)
    with pytest.raises(Conflict, match="job_1"):
        purge(store, receipts=(one.receipt,))
    store.learning.change("job_1", state="done", release_id="r1").result(20)
    assert purge(store, receipts=(one.receipt,)).releases == ("r1",)
    assert store.learning.job("job_1").records == 1
    assert store.verify() == []


def test_records_are_written_meanwhile(store: Store) -> None:
    sessions = [Conversation(store).turn(f"old {n} {LONG}", "ok").session for n in range(150)]
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        talk = Conversation(store)
        while not stop.is_set():
            written.append(talk.turn(f"old {len(written)} {LONG}", "ok").receipt)

    thread = threading.Thread(target=write)
    thread.start()
    for n in range(0, len(sessions), 30):
        purge(store, sessions=tuple(sessions[n : n + 30]))
    stop.set()
    thread.join()
    assert len(written) > 3
    assert store.verify() == []
    assert all(store.request(receipt) for receipt in written)


def test_what_a_crash_left_half_done_is_done_by_the_next(store: Store) -> None:
    gone, other = Conversation(store).turn("half gone", "yes"), Conversation(store).turn("later", "yes")
    store.purges._remove([gone.seq], lambda *_: None)
    assert b"half gone" in b"".join(message.raw for message in store_messages(store))
    purge(store, sessions=(other.session,))
    assert list(store_messages(store)) == []


@pytest.mark.parametrize("after_ms", [2, 40, 150])
def test_killed_at_any_moment_the_store_is_sound_and_the_next_purge_ends_it(path: Path, after_ms: int) -> None:
    words = [sys.executable, str(Path(__file__).with_name("purging.py")), str(path)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    threading.Event().wait(after_ms / 1000)
    child.kill()
    child.communicate()
    store = Store.open(path, durability="normal")
    assert store.verify() == []
    assert store.audit.check()[2] is None
    purge(store, before_ns=STARTED_NS * 2)
    assert store.verify() == []
    assert list(store_messages(store)) == []
    store.close()


def store_messages(store: Store) -> list[StoredMessage]:
    from daemon.store import messages as content

    with store._pool.reader() as reader:
        ids = [id for (id,) in reader.db.execute("SELECT id FROM message")]
        return content.messages(reader, ids)


def test_the_audit_log_tells_of_it_and_not_what_it_was(store: Store) -> None:
    one = Conversation(store, changes={"cwd": "/secret/place"}).turn("hush", "yes")
    purge(store, repository="/secret/place")
    with store._pool.reader() as reader:
        (entry,), _ = audit.entries(reader, 10, None)
        assert audit.check(reader)[2] is None
    assert (entry.event, entry.facts["records"]) == ("purge", 1)
    assert "secret" not in repr(entry.facts)
    assert one.receipt not in repr(entry.facts)


def test_what_was_said_once_is_found_no_more(store: Store) -> None:
    one = Conversation(store).turn("zebra crossing", "ok")
    two = Conversation(store).turn("zebra stripes", "ok")
    indexed(store)
    assert len(store.learning.added(["zebra"], 10)) == 4
    purge(store, sessions=(one.session,))
    found = store.learning.added(["zebra"], 10)
    assert [b"stripes" in raw for _, raw in found if b"zebra" in raw] == [True]
    assert store.records()[0][0].receipt == two.receipt
