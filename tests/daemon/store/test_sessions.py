"""Which session a record falls into, as agents really behave, and what its row says."""

import pytest

from daemon.core.errors import NotFound, UsageError
from daemon.core.privacy import Purge
from daemon.core.records import End, Kind, StoredMessage, Usage
from daemon.core.rows import SessionRow
from daemon.store.db import Store
from tests.fakes.exchanges import (
    STARTED_NS,
    Conversation,
    assistant,
    message,
    record,
    system,
    tool,
    transcript,
    user,
)


def only(store: Store) -> SessionRow:
    rows, _ = store.sessions()
    assert len(rows) == 1
    return rows[0]


# -- by the prefix tree ------------------------------------------------------------------------------


def test_turns_that_go_on_are_one_session(store: Store) -> None:
    talk = Conversation(store)
    receipts = [talk.turn(f"q{n}", f"a{n}").receipt for n in range(3)]
    row = only(store)
    assert (row.turns, row.records, row.title) == (3, 3, "q0")
    assert [store.record(r).parent for r in receipts] == [None, receipts[0], receipts[1]]


def test_two_conversations_stay_apart(store: Store) -> None:
    one, two = Conversation(store), Conversation(store)
    for n in range(3):
        one.turn(f"one {n}")
        two.turn(f"two {n}")
    assert sorted(row.turns for row in store.sessions()[0]) == [3, 3]


def test_equal_beginnings_are_told_apart_by_who_went_on(store: Store) -> None:
    """The same prompt and the same answer twice; then both go on."""
    one, two = Conversation(store), Conversation(store)
    for talk in (one, two):
        talk.turn("same", "same")
    two.turn("second goes on")
    one.turn("first goes on")
    assert sorted(row.turns for row in store.sessions()[0]) == [2, 2]


def test_scenarios_never_share_a_session(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q", "a")
    talk.turn("q2", "a2", scenario="other")
    assert {row.scenario for row in store.sessions()[0]} == {"default", "other"}


def test_tool_results_go_on_too(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("do it", "calling two tools")
    talk.send([*talk.said, tool("first result"), tool("second result")], "done")
    assert only(store).turns == 2


def test_moving_cache_marks_do_not_cut_a_session(store: Store) -> None:
    def mark_newest(messages: list[StoredMessage]) -> list[StoredMessage]:
        *before, last = messages
        return [*before, message(last.role, last.text, cache_control={"type": "ephemeral"})]

    talk = Conversation(store, dress=mark_newest)
    receipts = [talk.turn(f"q{n}").receipt for n in range(5)]
    assert only(store).turns == 5
    assert [m.text for m in store.new_messages(receipts[4])] == ["q4"]


def test_a_note_that_the_agent_drops_again_does_not_cut_a_session(store: Store) -> None:
    """OpenClaw adds a user message after tool results and leaves it out of the next request."""
    note = user("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>> the time is now")
    said = [system("s"), user("do it")]
    record(store, transcript(said, "calling"))
    said += [assistant("calling"), tool("result")]
    record(store, transcript([*said, note], "calling again"))
    said += [assistant("calling again"), tool("second result")]
    record(store, transcript([*said, note], "done"))
    assert only(store).turns == 3


def test_an_answer_that_comes_back_altered_still_goes_on(store: Store) -> None:
    talk = Conversation(store)
    first = talk.turn("q", "the answer as sent")
    second = talk.send([*talk.said[:-1], assistant("the answer, rephrased"), user("more")])
    assert only(store).turns == 2
    assert store.record(second.receipt).parent == first.receipt
    assert [m.text for m in store.new_messages(second.receipt)] == ["the answer, rephrased", "more"]


def test_altered_answers_of_equal_questions_are_not_guessed(store: Store) -> None:
    for answer in ("a", "b"):
        record(store, transcript([system("s"), user("same")], answer))
    record(store, transcript([system("s"), user("same"), assistant("c"), user("more")]))
    assert len(store.sessions()[0]) == 3


def test_going_on_from_the_middle_is_a_child_session(store: Store) -> None:
    talk = Conversation(store)
    first = talk.turn("q0", "a0")
    middle = list(talk.said)
    talk.turn("q1", "a1")
    talk.said = middle
    fork = talk.turn("another q1")
    child, parent = store.session(fork.session), store.session(first.session)
    assert child.parent == parent.id
    assert (parent.turns, child.turns) == (2, 1)
    assert store.record(fork.receipt).parent == first.receipt


def test_a_fork_counts_its_own_tokens_only(store: Store) -> None:
    """BUGS B147: 100 tokens, and a fork of 50 more: 150 in all (ccusage/ccusage#897)."""
    base = [system("s"), user("q")]
    record(store, transcript(base, "a", usage=Usage(prompt=60, completion=40)))
    grown = [*base, assistant("a"), user("x")]
    record(store, transcript(grown, "b", usage=Usage(prompt=0, completion=0)))
    record(store, transcript([*grown[:-1], user("y")], "c", usage=Usage(prompt=30, completion=20)))
    rows, _ = store.sessions()
    assert sum(row.prompt_tokens + row.completion_tokens for row in rows) == 150
    assert len(rows) == 2


def test_after_a_failed_turn_the_conversation_goes_on(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q0", "a0")
    talk.turn("q1", end=End.ERROR, status=500, error="boom")
    talk.turn("q1, said otherwise")
    row = only(store)
    assert (row.turns, row.records) == (2, 3)


def test_a_broken_off_answer_that_the_agent_patches_up_goes_on(store: Store) -> None:
    """Qwen Code sends the part it got and an instruction to resume."""
    talk = Conversation(store)
    said = [*talk.said, user("q")]
    talk.turn("q", end=End.INCOMPLETE)
    talk.send([*said, assistant("half an ans"), user("The connection dropped. Resume directly.")], "wer")
    assert only(store).records == 2


# -- by keys -----------------------------------------------------------------------------------------


def test_a_key_keeps_unlike_requests_together(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("claude:1",)})
    talk.turn("before")
    talk.said = [system("You help."), user("<summary>")]
    compacted = talk.turn("after")
    assert only(store).turns == 2
    assert store.record(compacted.receipt).parent is not None


def test_keys_belong_to_their_scenario(store: Store) -> None:
    for scenario in ("a", "b"):
        record(store, transcript([user("hi")]), scenario=scenario, session_keys=("k",))
    assert len(store.sessions()[0]) == 2


def test_another_key_is_another_session_even_with_the_same_words(store: Store) -> None:
    for key in ("one", "two"):
        record(store, transcript([system("s"), user("same")], "same"), session_keys=(key,))
    assert len(store.sessions()[0]) == 2


def test_the_strongest_key_decides(store: Store) -> None:
    """One wrapper run (the weaker key) holds two of the agent's own sessions."""
    for own in ("agent:1", "agent:2", "agent:1"):
        record(store, transcript([user(f"in {own}")]), session_keys=(own, "wrapper:1"))
    assert sorted(row.records for row in store.sessions()[0]) == [1, 2]


def test_a_weaker_key_holds_until_the_stronger_one_is_known(store: Store) -> None:
    record(store, transcript([user("first call, before the agent knows its id")]), session_keys=("wrapper:1",))
    record(store, transcript([user("second call")]), session_keys=("agent:1", "wrapper:1"))
    record(store, transcript([user("third call, agent id only")]), session_keys=("agent:1",))
    assert only(store).records == 3


def test_a_conversation_without_a_key_takes_the_one_that_comes(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q0")
    talk.turn("q1", session_keys=("k",))
    talk.said = [user("unlike anything before")]
    talk.turn("q2", session_keys=("k",))
    assert only(store).turns == 3


def test_a_new_key_that_goes_on_from_another_session_is_its_child(store: Store) -> None:
    """Pi's fork: a new session id with the old session's history."""
    talk = Conversation(store, changes={"session_keys": ("old",)})
    first = talk.turn("q0")
    fork = talk.turn("q1", session_keys=("new",))
    assert store.session(fork.session).parent == first.session
    assert store.record(fork.receipt).parent == first.receipt


def test_a_fork_inside_a_keyed_session_stays_in_it(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("k",)})
    first = talk.turn("q0")
    middle = list(talk.said)
    talk.turn("q1")
    talk.said = middle
    fork = talk.turn("other q1")
    assert only(store).turns == 3
    assert store.record(fork.receipt).parent == first.receipt


def test_values_that_look_like_sql_are_only_values(store: Store) -> None:
    """CVE-2026-42208: a header concatenated into SQL."""
    evil = "'; DROP TABLE record; --"
    appended = record(
        store, transcript([user(evil)]), session_keys=(evil,), scenario=evil, model_asked=evil, agent=evil, cwd=evil,
        tags={evil: evil},
    )  # fmt: skip
    assert store.sessions(scenario=evil)[0][0].id == appended.session
    assert store.record(appended.receipt).model_asked == evil
    with pytest.raises(NotFound):
        store.session(evil)
    assert store.verify() == []


# -- kinds -------------------------------------------------------------------------------------------


def test_a_retry_is_the_same_turn(store: Store) -> None:
    talk = Conversation(store)
    failed = talk.turn("q", end=End.ERROR, status=429)
    assert only(store).turns == 0
    again = talk.turn("q", end=End.CANCELLED)
    answered = talk.turn("q", "a")
    assert [failed.kind, again.kind, answered.kind] == [Kind.MAIN, Kind.RETRY, Kind.RETRY]
    row = only(store)
    assert (row.turns, row.records) == (1, 3)
    talk.turn("next")
    assert only(store).turns == 2


def test_the_same_request_after_an_answer_is_no_retry(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("k",)})
    said = list(talk.said)
    talk.turn("q", "a")
    talk.said = said
    assert talk.turn("q", "b").kind is Kind.MAIN


def test_sub_agents_share_the_session_and_count_apart(store: Store) -> None:
    keys = {"session_keys": ("claude:1",)}
    main = Conversation(store, changes=keys)
    helper = Conversation(store, said=[system("You search.")], changes={**keys, "subagent": "agent-1"})
    main.turn("q0")
    spawned = helper.turn("find it")
    helper.turn("and this")
    main.turn("q1")
    row = only(store)
    assert spawned.kind is Kind.SUBAGENT
    assert (row.turns, row.records, row.title) == (2, 4, "q0")


def test_a_sub_agents_sub_agent_hangs_on_it_and_not_on_the_main_line(store: Store) -> None:
    keys = {"session_keys": ("claude:1",)}
    main = Conversation(store, changes=keys)
    helper = Conversation(store, said=[system("You search.")], changes={**keys, "subagent": "agent-1"})
    nested = {**keys, "subagent": "agent-2", "spawner": "agent-1"}
    began = main.turn("q0")
    spawned = helper.turn("find it")
    main.turn("q1")
    deeper = Conversation(store, said=[system("You read.")], changes=nested).turn("read it")
    assert store.record(spawned.receipt).parent == began.receipt
    assert store.record(deeper.receipt).parent == spawned.receipt


def test_sub_agents_that_were_told_the_same_stay_apart(store: Store) -> None:
    keys = {"session_keys": ("claude:1",)}
    Conversation(store, changes=keys).turn("q0")
    helpers = [Conversation(store, changes={**keys, "subagent": name}) for name in ("agent-1", "agent-2")]
    failed = helpers[0].turn("find it", end=End.ERROR)
    first = [helper.turn("find it") for helper in helpers]
    second = [helper.turn("go on") for helper in helpers]
    third = [helper.turn("and on") for helper in helpers]
    assert [one.kind for one in (failed, *first)] == [Kind.SUBAGENT, Kind.RETRY, Kind.SUBAGENT]
    assert [store.record(one.receipt).parent for one in second] == [one.receipt for one in first]
    assert [store.record(one.receipt).parent for one in third] == [one.receipt for one in second]


def test_a_second_try_without_streaming_is_a_retry_of_a_known_session(store: Store) -> None:
    """Claude Code, after an error inside a stream, asks again with other limits and without one."""
    key = {"session_keys": ("claude:1",)}
    said = [system("s"), user("hi")]
    failed = record(store, transcript(said, None), end=End.ERROR, **key)
    again = record(store, transcript(said, "hello", tail=b'],"stream":false,"max_tokens":9}'), **key)
    other = record(store, transcript(said, "hello", tail=b'],"max_tokens":1}'))
    assert (again.kind, again.session) == (Kind.RETRY, failed.session)
    assert (other.kind, other.session == failed.session) == (Kind.MAIN, False)
    assert store.session(failed.session).turns == 1


def test_a_request_to_resume_that_the_agent_drops_again_does_not_cut_a_session(store: Store) -> None:
    """Qwen Code, without a key, after an answer that broke off: its part, a note to go on; later the whole answer."""
    said = [system("s"), user("Create hello.txt")]
    cut = record(store, transcript(said, "I'll"), end=End.INCOMPLETE)
    resume = record(store, transcript([*said, assistant("I'll"), user("Resume directly.")], "run a command."))
    whole = [*said, assistant("I'll run a command."), tool("ok")]
    record(store, transcript(whole, "one more"))
    last = record(store, transcript([*whole, assistant("one more"), tool("ok")], "Done."))
    row = only(store)
    assert (row.id, row.turns, row.records) == (cut.session, 3, 4)
    assert (resume.kind, last.kind) == (Kind.MAIN, Kind.MAIN)
    assert [message.text for message in store.new_messages(last.receipt)] == ["ok"]


def test_a_title_is_what_the_person_asked_and_no_example_before_it(store: Store) -> None:
    """Aider puts made-up turns before the request, always the same."""
    examples = [system("s"), user("Change get_factorial()"), assistant("Sure."), user("Forget that."), assistant("Ok.")]
    talk = Conversation(store, said=examples)
    talk.turn("Create hello.txt")
    talk.turn("and now this")
    assert only(store).title == "Create hello.txt"


# -- rows --------------------------------------------------------------------------------------------


def test_a_row_sums_up_its_records(store: Store) -> None:
    talk = Conversation(store, changes={"agent": "pi", "cwd": "/home/dev/x"})
    talk.turn("q0")
    talk.turn("q1", started_ns=STARTED_NS + 10**9)
    row = only(store)
    assert (row.agent, row.cwd, row.score, row.reports) == ("pi", "/home/dev/x", None, 0)
    assert (row.prompt_tokens, row.completion_tokens) == (20 + 40, 10)
    assert (row.created_ns, row.updated_ns) == (STARTED_NS, STARTED_NS + 10**9 + 10**6)


def test_a_clock_that_steps_back_splits_nothing(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("q0")
    back = talk.turn("q1", started_ns=STARTED_NS - 3600 * 10**9, duration_us=-5, first_byte_us=-7)
    row, last = only(store), store.record(back.receipt)
    assert row.updated_ns >= row.created_ns
    assert (last.duration_us, last.first_byte_us) == (0, 0)
    assert store.records()[0][0].receipt == back.receipt


def test_the_list_shows_what_moved_last_page_by_page(store: Store) -> None:
    talks = [Conversation(store) for _ in range(5)]
    for number, talk in enumerate(talks):
        talk.turn(f"talk {number}")
    talks[1].turn("again")
    titles: list[str] = []
    cursor: str | None = None
    while True:
        rows, cursor = store.sessions(limit=2, before=cursor)
        titles += [row.title for row in rows]
        if cursor is None:
            break
    assert titles == ["talk 1", "talk 4", "talk 3", "talk 2", "talk 0"]


def test_the_list_goes_on_from_any_row_in_both_directions(store: Store) -> None:
    for number in range(5):
        Conversation(store).turn(f"talk {number}")
    rows, _ = store.sessions()
    assert [row.seq for row in rows] == [5, 4, 3, 2, 1]
    newer, cursor = store.sessions(limit=2, after=str(rows[3].seq))
    assert ([row.title for row in newer], cursor) == (["talk 2", "talk 3"], "4")
    assert [row.title for row in store.sessions(after=cursor)[0]] == ["talk 4"]
    assert store.sessions(after="0", limit=1)[0][0].title == "talk 0"
    assert [row.title for row in store.sessions(before=str(newer[0].seq))[0]] == ["talk 1", "talk 0"]
    with pytest.raises(UsageError, match="exclude each other"):
        store.sessions(before="1", after="1")


def test_the_list_of_an_unknown_scenario_is_empty(store: Store) -> None:
    record(store, transcript([user("hi")]))
    assert store.sessions(scenario="nobody") == ([], None)


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1 or 1=1", "٣", "9" * 30])
def test_a_cursor_that_nobody_gave_out_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        store.sessions(before=cursor)


def test_an_unknown_session_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="ses_nobody"):
        store.session("ses_nobody")


def test_a_session_has_the_name_of_the_agent_whose_prompt_it_is(store: Store) -> None:
    """aider, mini-swe-agent and Hermes only name the library that they send with."""
    prompt = "You are Hermes Agent, an intelligent AI assistant created by Nous Research. You are helpful."
    beside = record(store, transcript([user("one")], system=prompt), agent="OpenAI")
    within = record(store, transcript([system(prompt), user("two")]), agent="OpenAI")
    script = record(store, transcript([system("Write haikus."), user("three")]), agent="OpenAI")
    agents = [store.session(one.session).agent for one in (beside, within, script)]
    assert agents == [one.agent for one in (beside, within, script)] == ["hermes", "hermes", "OpenAI"]
    assert store.record(within.receipt).agent == "hermes"


# -- what the list says beside it --------------------------------------------------------------------


def test_a_row_sums_up_what_its_records_cost_and_took(store: Store) -> None:
    talk = Conversation(store)
    for cost in (0.25, None, 0.5):
        said = [*talk.said, user(f"q {cost}")]
        talk.said = [*said, assistant("a")]
        record(store, transcript(said, "a", usage=Usage(10, 5, cost=cost)), duration_us=2000)
    row = only(store)
    assert (row.cost_usd, row.duration_us) == (0.75, 6000)
    assert [one.cost_usd for one in store.records()[0]] == [0.5, None, 0.25]


def test_a_cost_that_nobody_knows_is_not_nothing(store: Store) -> None:
    Conversation(store).turn("q")
    assert only(store).cost_usd is None


def test_a_row_says_how_its_main_line_ended_and_what_served_it(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    talk.turn("q0", release_id="default@1")
    talk.turn("q1", end=End.ERROR, status=500, release_id="default@2")
    assert (only(store).status, only(store).release_id) == (End.ERROR, "default@2")
    record(store, transcript([user("title?")]), session_keys=("s1",), side=True, release_id="default@3")
    assert (only(store).status, only(store).release_id) == (End.ERROR, "default@2"), "a side call is none of it"


def test_a_row_counts_its_records_by_their_kind(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    talk.turn("q0")
    talk.turn("q1", end=End.ERROR, status=500)
    talk.turn("q1")
    for number in range(3):
        record(store, transcript([user(f"look {number}")]), session_keys=("s1",), subagent=f"sub{number}")
    for number in range(2):
        record(store, transcript([user(f"title {number}")]), session_keys=("s1",), side=True)
    row = only(store)
    assert (row.records, row.subagents, row.side, row.retries) == (8, 3, 2, 1)


def test_a_session_without_a_main_line_has_no_end(store: Store) -> None:
    record(store, transcript([user("title")]), session_keys=("s1",), side=True)
    assert (only(store).status, only(store).release_id) == (None, None)


def test_what_is_purged_is_counted_no_more(store: Store) -> None:
    talk = Conversation(store, changes={"session_keys": ("s1",)})
    stays = talk.turn("q0")
    before = only(store)
    gone = [
        record(store, transcript([user("x")], usage=Usage(1, 1, cost=0.5)), session_keys=("s1",), side=True),
        talk.turn("q1", end=End.ERROR, status=500),
        talk.turn("q1"),
    ]
    store.purges.run(Purge(receipts=tuple(one.receipt for one in gone)), lambda *_: None)
    after = only(store)
    assert stays.receipt == store.records()[0][0].receipt
    assert after == before


def test_a_page_over_many_scenarios_is_the_latest_of_all(store: Store) -> None:
    for number in range(12):
        record(store, transcript([user(f"q{number}")]), scenario=f"s{number % 4}")
    seen, cursor = [], None
    while True:
        page, cursor = store.sessions(limit=5, before=cursor)
        seen += [row.seq for row in page]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 12
    assert [row.seq for row in store.sessions(after="4", limit=3)[0]] == [5, 6, 7]
