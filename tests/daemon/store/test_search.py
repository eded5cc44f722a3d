"""The index fills by itself, after the acknowledgement."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.core.errors import UsageError
from daemon.core.records import Dialect, End, Message, Text
from daemon.core.rows import NewReport
from daemon.store.db import Store
from daemon.store.query import parse
from tests.fakes.exchanges import STARTED_NS, Conversation, record, submit, system, transcript, user

DAY = 86_400_000_000_000


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def found(path: Path, query: str) -> list[str]:
    db = sqlite3.connect(path)
    rows = db.execute(
        "SELECT r.preview FROM words CROSS JOIN record r ON r.seq = words.rowid WHERE words MATCH ? ORDER BY r.seq",
        (query,),
    ).fetchall()
    db.close()
    return [preview for (preview,) in rows]


def indexed(path: Path) -> int:
    db = sqlite3.connect(path)
    mark: int = db.execute("SELECT indexed FROM tally").fetchone()[0]
    db.close()
    return mark


def test_what_was_said_is_found_where_it_was_new(store: Store, path: Path) -> None:
    talk = Conversation(store, said=[system("everyone has this prompt")])
    talk.turn("how do tides work", "by the moon")
    talk.turn("and on a lake", "hardly at all")
    until(lambda: indexed(path) == 2)
    assert found(path, "tides") == ["by the moon"]
    assert found(path, "moon") == ["by the moon"]
    assert found(path, "lake AND hardly") == ["hardly at all"]
    assert found(path, "tid*") == ["by the moon"]
    assert found(path, "prompt") == []


def test_a_burst_is_indexed_to_the_end(store: Store, path: Path) -> None:
    for number in range(100):
        submit(store, transcript([user(f"needle{number}")]))
    until(lambda: indexed(path) == 100)
    assert len(found(path, "needle99")) == 1


def test_what_a_crash_left_out_is_indexed_later(path: Path) -> None:
    store = Store.open(path, durability="normal")
    Conversation(store).turn("needle", "first")
    store.close()
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE tally SET indexed = 0")
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.close()
    store = Store.open(path, durability="normal")
    until(lambda: indexed(path) == 1)
    assert found(path, "needle") == ["first"]
    store.close()


# -- queries -----------------------------------------------------------------------------------------


def read(_: Dialect, raw: bytes) -> Message:
    said = json.loads(raw)
    return Message(said["role"], (Text(said["content"]),))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[str]]]:
    path = tmp_path_factory.mktemp("searched") / "reef.db"
    store = Store.open(path, durability="normal", read=read)
    yield store, filled(store, path)
    store.close()


def filled(store: Store, path: Path) -> list[str]:
    """Receipts of seven records, oldest first, once they are indexed."""
    pi, codex = (Conversation(store, changes={"agent": name, "session_keys": (name,)}) for name in ("pi", "codex"))
    made = [
        pi.turn("how do tides work", "by the moon", model_asked="small"),
        codex.turn("fix foo_bar.py please", "fixed it", model_asked="large", scenario="work", duration_us=2_000_000),
        pi.turn("and on a lake", end=End.ERROR, status=429, error="rate limit"),
        pi.turn("and on a lake", "hardly at all, the moon is far"),
        record(store, transcript([user("moon title")], "Tides", tools=0), session_keys=("pi",), side=True),
        codex.turn("foo and bar", "no", scenario="work", started_ns=STARTED_NS + DAY, release_id="r12-aabbccdd"),
        codex.turn("stop", end=End.CANCELLED, scenario="work", started_ns=STARTED_NS + 2 * DAY),
    ]
    store.report(NewReport("rep_1", "default", score=1.0, references=(made[3].receipt,))).result(20)
    store.report(NewReport("rep_2", "default", score=0.0, references=(made[0].receipt,))).result(20)
    store.undo("default", None).result(20)
    store.report(NewReport("rep_3", "work", feedback="so so", references=(made[5].receipt,))).result(20)
    until(lambda: indexed(path) == len(made))
    return [one.receipt for one in made]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [6, 5, 4, 3, 2, 1, 0]),
        ("moon", [4, 3, 0]),
        ("MOON tides", [4, 0]),
        ("moon -title", [3, 0]),
        ("-moon agent:pi", [2]),
        ("tid*", [4, 0]),
        ('"the moon"', [3, 0]),
        ('"moon the"', []),
        ("foo_bar.py", [1]),
        ("agent:pi", [3, 2, 0]),
        ("-agent:pi", [6, 5, 4, 1]),
        ("agent:pi agent:codex", []),
        ("model:large", [1]),
        ("scenario:work foo", [5, 1]),
        ("status:error", [2]),
        ("status:429", [2]),
        ("status:failed", [6, 2]),
        ("status:cancelled scenario:work", [6]),
        ("status:ok agent:codex", [5, 1]),
        ("kind:side", [4]),
        ("kind:retry", [3]),
        ("-kind:main moon", [4, 3]),
        ("has:feedback", [5, 3]),
        ("has:error agent:pi", [2]),
        ("has:tools -has:feedback agent:pi", [2, 0]),
        ("signal:turn", [5, 1, 0]),
        ("has:signal", [6, 5, 2, 1, 0]),
        ("agent:nobody", []),
        ("session:ses_none moon", []),
        ("release:default@0 moon kind:main", [0]),
        ("release:12", [5]),
        ("release:r12", [5]),
        ("release:r12-aa", [5]),
        ("release:1", []),
        ("score:good", [3]),
        ("score:>0.5 moon", [3]),
        ("score:bad", []),
        ("-score:good moon", [4, 0]),
        ("has:note", [5]),
        ("tokens:>30", [6, 5, 3, 2]),
        ("latency:>1s", [1]),
        ("latency:<=1ms agent:codex", [6, 5]),
        ('agent:"\' OR 1=1 --"', []),
        ("since:2023-11-15T23:00:00+00:00", [6]),
        ("until:2023-11-15T00:00:00+00:00 foo", [1]),
        ("since:2023-11-15T00:00:00+00:00 until:2023-11-16T00:00:00+00:00", [5]),
    ],
)
def test_a_query_finds_what_fits_and_nothing_else(
    searched: tuple[Store, list[str]], query: str, numbers: list[int]
) -> None:
    store, receipts = searched
    page = store.search(parse(query))
    assert [receipts.index(hit.record.receipt) for hit in page.items] == numbers
    assert (page.next, page.unindexed) == (None, 0)


@pytest.mark.parametrize("query", ["", "moon", "agent:pi", '"the moon"', "-kind:side", "status:failed"])
def test_pages_join_up(searched: tuple[Store, list[str]], query: str) -> None:
    store, _ = searched
    whole = [hit.record.receipt for hit in store.search(parse(query)).items]
    found: list[str] = []
    cursor = None
    for _ in range(20):
        page = store.search(parse(query), limit=2, before=cursor)
        found += [hit.record.receipt for hit in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert found == whole


def test_a_session_may_be_named_by_the_beginning_of_its_id(searched: tuple[Store, list[str]]) -> None:
    store, receipts = searched
    session = store.record(receipts[0]).session
    whole = [hit.record.receipt for hit in store.search(parse(f"session:{session}")).items]
    assert [receipts.index(one) for one in whole] == [4, 3, 2, 0]
    for query in (f"session:{session[:-1]}", f"session:{session[:-2]} moon"):
        found = [hit.record.receipt for hit in store.search(parse(query)).items]
        assert found == [one for one in whole if "moon" not in query or one != receipts[2]]
    assert store.search(parse(f"-session:{session[:-1]} moon")).items == ()


def test_a_hit_shows_the_line_that_was_sought(searched: tuple[Store, list[str]]) -> None:
    store, _ = searched
    assert [hit.snippet for hit in store.search(parse("far")).items] == ["hardly at all, the moon is far"]
    assert [hit.snippet for hit in store.search(parse("agent:pi"), limit=1).items] == [None]


def test_a_hit_has_the_rating_that_stands_on_it(searched: tuple[Store, list[str]]) -> None:
    store, receipts = searched
    scores = {receipts.index(hit.record.receipt): hit.score for hit in store.search(parse("")).items}
    assert scores == {0: None, 1: None, 2: None, 3: 1.0, 4: None, 5: None, 6: None}


def test_sessions_with_a_match_come_once_over_all_pages(searched: tuple[Store, list[str]]) -> None:
    store, receipts = searched
    pi, codex = (store.record(receipts[n]).session for n in (0, 1))
    whole, cursor = store.sessions_with(parse("-status:cancelled"))
    assert ([row.id for row in whole], cursor) == ([codex, pi], None)
    found: list[str] = []
    for _ in range(3):
        page, cursor = store.sessions_with(parse("-status:cancelled"), limit=1, before=cursor)
        found += [row.id for row in page]
        if cursor is None:
            break
    assert found == [codex, pi]
    assert [row.id for row in store.sessions_with(parse("lake"))[0]] == [pi]


@pytest.mark.parametrize(
    "query", ["", "since:2023-01-01", "kind:main", '"question number"', "question", "status:ok -odd"]
)
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_sessions_with_a_match_are_the_same_from_both_ends(many: Store, query: str, limit: int) -> None:
    """Each at the place of its newest match, whichever page it comes on."""
    whole = [(row.id, row.seq) for row in many.sessions_with(parse(query))[0]]
    assert len(whole) == 6
    assert [seq for _, seq in whole] == sorted((seq for _, seq in whole), reverse=True)
    down, up = list[tuple[str, int]](), list[tuple[str, int]]()
    cursor: str | None = str((1 << 62) - 1)
    while cursor is not None:
        page, cursor = many.sessions_with(parse(query), limit=limit, before=cursor)
        down += [(row.id, row.seq) for row in page]
    cursor = "0"
    while cursor is not None:
        page, cursor = many.sessions_with(parse(query), limit=limit, after=cursor)
        up += [(row.id, row.seq) for row in page]
    assert down == up[::-1] == whole
    ids = [id for id, _ in whole]
    for n, (_, seq) in enumerate(whole):  # any row's place is a cursor
        newer, older = (
            many.sessions_with(parse(query), after=str(seq)),
            many.sessions_with(parse(query), before=str(seq)),
        )
        assert ([row.id for row in newer[0]][::-1], [row.id for row in older[0]]) == (ids[:n], ids[n + 1 :])
    with pytest.raises(UsageError, match="exclude each other"):
        many.sessions_with(parse(query), before="1", after="1")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Six conversations whose turns are mixed; a session's last record fits some queries and others not."""
    path = tmp_path_factory.mktemp("many") / "reef.db"
    store = Store.open(path, durability="normal", read=read)
    talks = [Conversation(store, changes={"session_keys": (f"s{n}",)}) for n in range(6)]
    for n in range(24):
        talks[n * 5 % 6].turn(f"question number {n}", end=End.ERROR if n > 20 else End.OK)
    until(lambda: indexed(path) == 24)
    yield store
    store.close()


def test_a_page_looks_at_a_bounded_number_of_records(store: Store, path: Path) -> None:
    """What fits lies below many that do not: the page is short, and the next ones find it."""
    wanted = record(store, transcript([user("rare one")]), release_id="old@1")
    for _ in range(3000):
        last = submit(store, transcript([user("many")]))
    last.result(60)
    cursor, pages = None, 0
    while True:
        page = store.search(parse("release:old@1"), before=cursor)
        pages += 1
        if page.items or page.next is None:
            break
        cursor = page.next
    assert [hit.record.receipt for hit in page.items] == [wanted.receipt]
    assert pages == 2


def test_what_is_not_indexed_yet_is_told(store: Store, path: Path) -> None:
    record(store, transcript([user("needle")]))
    until(lambda: indexed(path) == 1)
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE tally SET indexed = 0")
    assert store.search(parse("needle")).unindexed == 1
    assert store.search(parse("agent:pi")).unindexed == 0
    db.close()
