"""Which session a record falls into by the ids that bodies carry. `test_sessions` has headers and the prefix tree."""

import pytest

from daemon.core.records import Kind
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation, assistant, record, system, tool, transcript, user


def test_a_key_in_the_body_is_a_session_of_its_own(store: Store) -> None:
    """Two that say the same, told apart by what `prompt_cache_key` or `metadata.user_id` names."""
    said = [system("s"), user("same")]
    one = record(store, transcript(said, keys=("one",)))
    two = record(store, transcript(said, keys=("two",)))
    again = record(store, transcript([system("compacted"), user("go on")], keys=("one",)))
    assert one.session == again.session != two.session


def test_headers_come_before_bodies(store: Store) -> None:
    one = record(store, transcript([user("a")], keys=("body",)), session_keys=("header",))
    by_body = record(store, transcript([user("b")], keys=("body",)))
    other = record(store, transcript([user("c")], keys=("body",)), session_keys=("other",))
    assert one.session == by_body.session != other.session


def test_an_answer_named_as_the_previous_one_is_gone_on_from(store: Store) -> None:
    """Responses sessions that only send what is new."""
    first = record(store, transcript([user("q")], "a", answer_id="resp_1"))
    second = record(store, transcript([user("and?")], "b", previous="resp_1", answer_id="resp_2"))
    fork = record(store, transcript([user("or?")], "c", previous="resp_1", answer_id="resp_3"))
    assert first.session == second.session
    assert store.record(second.receipt).parent == store.record(fork.receipt).parent == first.receipt
    assert [m.text for m in store.new_messages(second.receipt)] == ["and?"]
    assert store.session(fork.session).parent == first.session


def test_an_unknown_previous_answer_begins_a_session(store: Store) -> None:
    one = record(store, transcript([user("q")], previous="resp_of_another_daemon"))
    assert (one.kind, store.record(one.receipt).parent) == (Kind.MAIN, None)


def test_what_headers_call_no_turn_is_a_side_call(store: Store) -> None:
    """Codex: `request_kind` of the turn metadata is not `turn`."""
    talk = Conversation(store, changes={"session_keys": ("k",)})
    turn = talk.turn("q", "a")
    side = record(store, transcript([user("remember what was said")]), session_keys=("k",), side=True)
    assert (side.kind, side.session) == (Kind.SIDE, turn.session)
    assert talk.turn("q2").kind is Kind.MAIN
    assert assistant("a") in store.messages(store.records()[0][0].receipt)


def test_quotes_in_ids_are_only_text(store: Store) -> None:
    key = "'; DROP TABLE record; --"
    one = record(store, transcript([user("q")], keys=(key,), answer_id=key), session_keys=(key + '"',), model_asked=key)
    two = record(store, transcript([user("r")], keys=(key,), previous=key))
    assert one.session == two.session
    assert store.counts()["records"] == 2


def test_a_resumed_conversation_under_a_new_beginning_goes_on(store: Store) -> None:
    """Qwen Code writes its first message anew (the directory has changed) and sends no id."""
    said = [system("s"), user("files: a"), user("do it"), assistant("calling"), tool("done 7f3")]
    first = record(store, transcript(said, "it is done"))
    resumed = [system("s"), user("files: a b"), *said[2:], assistant("it is done"), user("again")]
    second = record(store, transcript(resumed, "done again"))
    assert (second.session, second.kind) == (first.session, Kind.MAIN)
    assert store.record(second.receipt).parent == first.receipt
    third = record(store, transcript([*resumed, assistant("done again"), user("more")]))
    assert third.session == first.session
    assert store.session(first.session).turns == 3


#: How agents ask, in the person's name and as the next turn of the conversation, for what is none (seen in terminals).
ASIDES = (
    "[SUGGESTION MODE: Suggest what the user might naturally type next.]\n\nFIRST: Read the LAST FEW LINES",
    "You are the component that summarizes a conversation when its context window is about to overflow. The",
    "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read, Bash",
)


@pytest.mark.parametrize("key", [(), ("k",)], ids=["no key", "key"])
@pytest.mark.parametrize("aside", ASIDES)
def test_what_an_agent_asks_in_the_persons_name_is_a_side_call(store: Store, aside: str, key: tuple[str, ...]) -> None:
    said = [system("s"), user("do it"), assistant("done")]
    first = record(store, transcript(said[:2], "done", tools=3), session_keys=key)
    asked = record(store, transcript([*said, user(aside)], "run the tests", tools=3), session_keys=key)
    second = record(store, transcript([*said, user("now?")], "yes", tools=3), session_keys=key)
    assert (asked.kind, asked.session) == (Kind.SIDE, first.session)
    assert (second.kind, second.session) == (Kind.MAIN, first.session)
    assert store.record(second.receipt).parent == first.receipt
    assert store.session(first.session).turns == 2


def test_equal_ends_of_several_conversations_are_not_guessed(store: Store) -> None:
    end = [user("do it"), assistant("calling"), tool("done")]
    for beginning in ("one", "two"):
        record(store, transcript([system("s"), user(beginning), *end], "it is done"))
    record(store, transcript([system("s"), user("three"), *end, assistant("it is done"), user("again")]))
    assert store.counts()["sessions"] == 3


def test_a_chore_that_repeats_a_long_conversation_is_a_side_call(store: Store) -> None:
    """Qwen Code's memory extraction has tools, and all that was said."""
    talk = Conversation(store)
    for n in range(5):
        talk.turn(f"q{n}")
    memory = "Managed memory has TWO directories"
    for chore in ([system(memory), *talk.said[1:], user("extract")], [system("x"), *talk.said[1:], user(memory)]):
        side = record(store, transcript(chore))
        assert (side.kind, store.counts()["sessions"]) == (Kind.SIDE, 1)


def test_a_resumed_conversation_is_known_past_what_was_said_to_reef(store: Store) -> None:
    """Qwen Code writes the beginning anew, and what Reef answered has no record."""
    talk = Conversation(store)
    talk.turn("one")
    last = talk.turn("two", "the second")
    said = [user("reef-good"), assistant("Reef: recorded good on rec_1")]
    again = record(store, transcript([system("Another day."), *talk.said[1:], *said, *said, user("three")]))
    assert again.session == last.session
    assert store.record(again.receipt).parent == last.receipt


def test_a_shorter_history_of_the_same_session_is_a_compaction(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("k",)})
    before = [talk.turn(f"q{n}", f"a{n}") for n in range(4)][-1]
    summary = [system("You help."), user("This session is being continued from a previous conversation. …")]
    after = record(store, transcript(summary, "go on"), session_keys=("k",))
    row = store.record(after.receipt)
    assert (row.edge, row.parent, after.session) == ("compaction", before.receipt, before.session)
    assert store.session(after.session).title == "q0"
    edited = [*talk.said[:3], user("another q1"), assistant("x"), user("y"), assistant("z"), user("w"), assistant("v")]
    rewritten = record(store, transcript([system("Other."), *edited]), session_keys=("k",))
    assert store.record(rewritten.receipt).edge == "rewrite"


def test_forks_and_subagents_are_edges_of_one_tree(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("k",)})
    first = talk.turn("q0", "a0")
    middle = list(talk.said)
    talk.turn("q1", "a1")
    talk.said = middle
    fork = talk.turn("another q1", "b1")
    spawned = record(store, transcript([system("sub"), user("task")]), session_keys=("k",), subagent="sub-1")
    nested = record(
        store, transcript([system("sub"), user("part")]), session_keys=("k",), subagent="sub-2", spawner="sub-1"
    )
    rows = {one.receipt: store.record(one.receipt) for one in (first, fork, spawned, nested)}
    assert [rows[one.receipt].edge for one in (first, fork, spawned, nested)] == ["start", "fork", "spawn", "spawn"]
    assert rows[fork.receipt].parent == first.receipt
    assert rows[nested.receipt].parent == spawned.receipt
    assert len({one.session for one in (first, fork, spawned, nested)}) == 1


def test_the_call_that_sums_up_is_no_turn_and_what_comes_after_it_a_compaction(store: Store) -> None:
    """Claude Code: all that was said, with a last message that asks for a summary."""
    talk = Conversation(store, changes={"session_keys": ("k",)})
    for n in range(3):
        last = talk.turn(f"q{n}", f"a{n}")
    asked = user("Your task is to create a detailed summary of the conversation so far, paying close attention to …")
    summing = record(store, transcript([*talk.said, asked], "<summary>x</summary>"), session_keys=("k",))
    assert (summing.kind, store.record(summing.receipt).parent) == (Kind.SIDE, last.receipt)
    after = record(store, transcript([system("You help."), user("<summary>x</summary>")]), session_keys=("k",))
    assert (after.kind, store.record(after.receipt).edge) == (Kind.MAIN, "compaction")
    assert store.session(after.session).turns == 4
