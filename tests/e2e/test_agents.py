"""Real coding agents through the real daemon: each finishes the scripted task, survives a bad provider, and is left.

Several run at once, `AT_ONCE`; the tests look at what became of them.
"""

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.e2e.agents import AGENTS
from tests.e2e.runs import AGAIN, KEY, PROMPT, SCENARIOS, Run, happened
from tests.fakes.provider import TASK

pytestmark = pytest.mark.slow

AT_ONCE = 3
#: For some agents a dialect that they do not speak, in which the provider is asked in the runs of `TRANSLATED`.
TRANSLATED = ("translated", "spoilt")
OTHER = {"claude-code": "chat", "pi": "messages"}


Runs = dict[tuple[str, str], "Future[Run]"]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """Every run that the chosen tests name (``test_SCENARIO_…[AGENT]``), begun at once, the long ones first."""
    chosen = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = {
        (scenario, str(item.callspec.params["agent"]))
        for item in chosen
        for scenario in SCENARIOS
        if item.module is request.module and item.name.startswith(f"test_{scenario}_")
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (name, scenario): pool.submit(
                happened, AGENTS[name], scenario, *([OTHER[name]] if scenario in TRANSLATED else [])
            )
            for scenario in SCENARIOS
            for name in AGENTS
            if (scenario, name) in wanted
        }


def agents(*, lasting: bool = False, typing: bool = False) -> pytest.MarkDecorator:
    """Every agent, or those that go on with a conversation, or in a terminal."""
    chosen = [
        name
        for name, told in AGENTS.items()
        if (told.again or not lasting) and (told.terminal is not None or not typing)
    ]
    return pytest.mark.parametrize("agent", chosen)


@agents()
def test_task_is_done_and_is_one_session(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "task"].result(), AGENTS[agent]
    assert run.said[0][0] == 0, run.said
    assert TASK[-1].text in run.said[0][1]
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["agent"], session["turns"]) == (told.stored_as, told.turns)
    assert run.kinds["side"] <= told.sides
    assert run.kinds - Counter(side=told.sides) == Counter(main=told.turns)
    assert {record["end"] for record in run.records} == {"ok"}
    assert len({record["receipt"] for record in run.records}) == len(run.asked)
    assert (run.parts("tool_use"), run.parts("tool_result")) == (told.calls, len(told.statuses))


@agents()
def test_task_keeps_nothing_of_the_key_that_the_agent_sent(agent: str, runs: Runs) -> None:
    run = runs[agent, "task"].result()
    assert all(KEY in str(one.headers) for one in run.asked)
    assert not any(KEY.encode() in kept for kept in run.kept)


@agents()
def test_task_tells_how_its_tools_ended(agent: str, runs: Runs) -> None:
    told = AGENTS[agent]
    assert tuple(one["value"] for one in runs[agent, "task"].result().signals("tool")) == told.statuses


@agents()
def test_task_is_called_what_the_person_typed(agent: str, runs: Runs) -> None:
    assert runs[agent, "task"].result().sessions[0]["title"].strip('"') == PROMPT


@agents()
def test_task_is_shown_as_a_conversation(agent: str, runs: Runs) -> None:
    run = runs[agent, "task"].result()
    lines = [line.strip() for line in run.shown.splitlines()]
    assert all(any(record["receipt"] in line for line in lines) for record in run.records)
    assert PROMPT in run.shown
    assert any(TASK[-1].text in line for line in lines)
    assert sum(line.startswith("> ") for line in lines) == run.parts("tool_use") + run.parts("tool_use", of="side")
    assert "\x1b" not in run.shown


@agents()
def test_task_is_shown_on_a_screen_or_two(agent: str, runs: Runs) -> None:
    assert len(runs[agent, "task"].result().shown.splitlines()) < 60


@agents()
def test_faults_are_survived_and_retries_count_once(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "faults"].result(), AGENTS[agent]
    assert run.said[0][0] == 0, run.said
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["turns"], run.provider.faults) == (told.turns, deque())
    assert Counter(one["status"] for one in run.broken) == {429: 2, 500: 1, 502: 1} | ({200: 1} if told.streams else {})
    repeated = len(run.broken) - told.resumes
    assert run.kinds - Counter(side=told.sides) == Counter(main=told.turns + told.resumes, retry=repeated)
    assert len(run.signals("retried")) == repeated


@agents()
def test_faults_are_not_answered_by_the_person(agent: str, runs: Runs) -> None:
    run = runs[agent, "faults"].result()
    assert run.signals("turn") + run.signals("stopped") == []


@agents()
def test_left_in_the_middle_is_cancelled(agent: str, runs: Runs) -> None:
    run = runs[agent, "left"].result()
    assert {record["end"] for record in run.records} == {"cancelled"}
    assert [session["turns"] for session in run.sessions] == [0]
    assert len(run.signals("stopped")) == len(run.records)


@agents(lasting=True)
def test_continued_conversation_is_one_session(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "continued"].result(), AGENTS[agent]
    assert [code for code, _ in run.said] == [0, 0], run.said
    (session,) = run.sessions
    assert session["turns"] == 2 * told.turns
    assert run.kinds["main"] == 2 * told.turns


@agents(lasting=True)
def test_continued_words_are_a_turn(agent: str, runs: Runs) -> None:
    run = runs[agent, "continued"].result()
    assert [one["text"].strip('"') for one in run.signals("turn")] == [AGAIN]


@agents(typing=True)
def test_typed_prompts_are_turns_of_one_session(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "typed"].result(), AGENTS[agent]
    (session,) = run.sessions
    assert (session["title"], session["turns"]) == (PROMPT, 2 * told.turns)
    assert run.kinds["main"] == 2 * told.turns
    assert [one["text"] for one in run.signals("turn")] == [AGAIN]


@pytest.mark.parametrize("agent", ["qwen-code"])
def test_compressed_conversation_goes_on_in_its_session(agent: str, runs: Runs) -> None:
    """It sends no id: only the summary ties what comes after it to what was before."""
    run, told = runs[agent, "compressed"].result(), AGENTS[agent]
    (session,) = run.sessions
    assert (session["title"], session["turns"]) == (PROMPT, 2 * told.turns)
    assert [record["edge"] for record in run.records].count("compaction") == 1
    assert [one["text"] for one in run.signals("turn")] == [AGAIN]


@pytest.mark.parametrize("agent", ["claude-code"])
def test_spawned_agents_are_told_from_the_one_that_asked(agent: str, runs: Runs) -> None:
    run = runs[agent, "spawned"].result()
    assert run.said == [(0, f"{TASK[-1].text}\n")]
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["turns"], run.kinds) == (2, Counter(main=2, subagent=3))
    assert (run.parts("tool_use"), run.parts("tool_use", of="subagent")) == (1, 3)
    first, spawned = run.trace["records"][:2]
    assert (spawned["record"]["kind"], spawned["record"]["edge"]) == ("subagent", "spawn")
    assert spawned["record"]["parent"] == first["record"]["receipt"]


@pytest.mark.parametrize("agent", OTHER)
def test_translated_task_is_done_just_the_same(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "translated"].result(), AGENTS[agent]
    assert run.said == [(0, f"{TASK[-1].text}\n")]
    assert run.files == {"hello.txt": "hello-reef\n"}
    assert all(OTHER[agent] in one.path for one in run.asked)
    assert run.kinds == Counter(main=told.turns)
    assert tuple(one["value"] for one in run.signals("tool")) == told.statuses
    assert not any(KEY.encode() in kept for kept in run.kept)


@pytest.mark.parametrize("agent", ["claude-code", "pi"])
def test_spoilt_translation_is_survived(agent: str, runs: Runs) -> None:
    run, told = runs[agent, "spoilt"].result(), AGENTS[agent]
    assert run.said == [(0, f"{TASK[-1].text}\n")]
    assert [session["turns"] for session in run.sessions] == [told.turns]
    assert run.kinds == Counter(main=told.turns, retry=len(run.broken))
