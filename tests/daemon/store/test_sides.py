"""Calls beside a conversation, titles and chores: which session they belong to, and that they are none of its turns."""

from dataclasses import dataclass
from typing import Any

import pytest

from daemon.core.records import Dialect, Kind, StoredMessage
from daemon.core.rows import SessionRow
from daemon.store.db import Store
from tests.fakes.exchanges import STARTED_NS, Conversation, assistant, record, system, tool, transcript, user

COVERS = ("daemon/store/kinds.py", "daemon/store/placing.py")


def only(store: Store) -> SessionRow:
    rows, _ = store.sessions()
    assert len(rows) == 1
    return rows[0]


def test_a_title_call_before_the_conversation_is_a_side_call(store: Store) -> None:
    """OpenCode asks for a title first, under the same session id, without tools."""
    key = {"session_keys": ("ses_1",)}
    title = transcript([system("t"), user("Generate a title for this conversation:\n"), user("Create x")], tools=0)
    side = record(store, title, **key)
    main = record(store, transcript([system("s"), user("Create x")]), **key)
    row = only(store)
    assert (side.kind, main.kind) == (Kind.SIDE, Kind.MAIN)
    assert (row.turns, row.title) == (1, "Create x")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.1.197", "the language the user wrote in, regardless of the language of the examples above."),
        ("2.1.332", "the predominant language of the session — a stray word or code token …"),
        ("2.1.332", "German. Keep technical terms and code identifiers in their original form."),
    ],
)
def test_claude_codes_title_call_before_the_conversation_is_a_side_call(store: Store, version: str, words: str) -> None:
    """It quotes the prompt, under the same session id and before it; what it is stands deep in its system prompt."""
    key = {"session_keys": ("e3b1",), "agent": "claude-code", "dialect": Dialect.MESSAGES}
    billing = f"x-anthropic-billing-header: cc_version={version}.18b; cc_entrypoint=cli;"
    asked = user(f"<session>\nSay hi to me\n</session>\n\nWrite the title in {words}")
    side = record(store, transcript([asked], '{"title": "Greeting"}', tools=0, system=billing), **key)
    main = record(store, transcript([user("Say hi to me")], "Hi!", tools=12, system=billing), **key)
    row = only(store)
    assert (side.kind, main.kind) == (Kind.SIDE, Kind.MAIN)
    assert (row.turns, row.title, store.record(main.receipt).edge) == (1, "Say hi to me", "start")


def test_a_call_without_tools_beside_a_conversation_with_tools_is_a_side_call(store: Store) -> None:
    key = {"session_keys": ("k",)}
    record(store, transcript([system("s"), user("Create hello.txt")]), **key)
    side = record(store, transcript([system("other"), user("Summarise")], tools=0), **key)
    assert side.kind is Kind.SIDE
    assert store.record(side.receipt).parent is None


def test_a_side_call_without_a_key_finds_its_conversation(store: Store) -> None:
    """Hermes asks for a title afterwards: no header, no tools, the conversation quoted."""
    main = record(store, transcript([system("s"), user("Create hello.txt containing reef")], "done"))
    quote = user("User: Create hello.txt containing reef\n\nAssistant: done")
    side = record(store, transcript([system("You write titles."), quote], "Hello file", tools=0))
    assert (side.kind, side.session) == (Kind.SIDE, main.session)
    assert only(store).turns == 1


@dataclass(frozen=True)
class Chore:
    messages: list[StoredMessage]
    tools: int


@pytest.mark.parametrize(
    "chore",
    [
        Chore([system("Managed memory has TWO directories: …"), user("extract")], 6),
        Chore([system("You … generates concise, one-line Git commit messages …"), user("diff")], 0),
    ],
)
def test_known_chores_are_side_calls_of_the_last_conversation(store: Store, chore: Chore) -> None:
    main = record(store, transcript([system("s"), user("work")]))
    side = record(store, transcript(chore.messages, tools=chore.tools))
    assert (side.kind, side.session) == (Kind.SIDE, main.session)


def title_of(prompt: str, thread: str, **changes: Any) -> dict[str, Any]:
    """Codex asks under an id of its own, in a terminal, while the first turn is under way."""
    asked = f"Generate a concise, single-line task title of at most 36 characters. …\n\nUser prompt:\n{prompt}"
    made = transcript([system("You are a coding agent"), user("<environment_context>"), user(asked)], tools=0)
    return {"made": made, "session_keys": (thread,), "agent": "codex", **changes}


@pytest.mark.parametrize("title_first", [False, True])
def test_a_title_under_an_id_of_its_own_belongs_to_the_session_whose_words_it_repeats(
    store: Store, title_first: bool
) -> None:
    prompt = "Create hello.txt,\nthen look at it"
    talk = Conversation(store, changes={"agent": "codex", "session_keys": ("t1",)})
    ask = title_of(prompt, "t2", started_ns=STARTED_NS + 14_000_000)
    side = record(store, **ask) if title_first else None
    main = talk.turn(prompt)
    side = side or record(store, **ask)
    again = record(store, transcript([*ask["made"].messages, assistant("ok"), tool("no")]), session_keys=("t2",))
    last = talk.turn("go on")
    assert {one.session for one in (main, side, again, last)} == {only(store).id}
    assert [one.kind for one in (main, side, again, last)] == [Kind.MAIN, Kind.SIDE, Kind.SIDE, Kind.MAIN]
    assert (only(store).title, only(store).turns) == ("Create hello.txt, then look at it", 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"made": title_of("Create", "")["made"]},
        {"agent": "other"},
        {"scenario": "other"},
        {"started_ns": STARTED_NS + 300 * 10**9},
    ],
)
@pytest.mark.parametrize("title_first", [False, True])
def test_a_title_is_not_given_to_a_session_that_may_be_another(
    store: Store, changes: dict[str, Any], title_first: bool
) -> None:
    """Other words, another agent, another scenario, much later."""
    ask = {**title_of("Create hello.txt", "t2"), **changes}
    if title_first:
        record(store, **ask)
    Conversation(store, changes={"agent": "codex", "session_keys": ("t1",)}).turn("Create hello.txt")
    if not title_first:
        record(store, **ask)
    assert sorted(row.turns for row in store.sessions()[0]) == [0, 1]


def test_a_side_call_that_goes_on_stays_one(store: Store) -> None:
    key = {"session_keys": ("k",)}
    record(store, transcript([system("s"), user("work")]), **key)
    first = [system("other"), user("summarise")]
    record(store, transcript(first, "half", tools=0), **key)
    again = record(store, transcript([*first, assistant("half"), user("go on")], tools=0), **key)
    assert again.kind is Kind.SIDE
