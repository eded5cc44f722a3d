"""Real Codex, which speaks Responses only: by a provider that speaks it, and by two that do not.

Its tools are its own (`exec_command`), its conversation a list of items, its retries two nested ones.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest

from adapters import pointing
from tests.e2e.agents import Agent
from tests.e2e.runs import AGAIN, KEY, PROMPT, Run, happened
from tests.fakes import shapes
from tests.fakes.provider import TASK, Call, Turn
from tests.fakes.responses_shape import Responses

pytestmark = pytest.mark.slow

DIALECTS: Final = ("responses", "chat", "messages")
SHAPES: Final[dict[str, Callable[[Any], int]]] = {
    "input": lambda asked: Responses(asked, 0).answered(),
    "system": lambda asked: shapes.Messages(asked, 0).answered(),
    "messages": lambda asked: shapes.Chat(asked, 0).answered(),
}


def _runs(asked: Any) -> Turn:
    """The scripted task by Codex's own tool, in whichever dialect it is asked; or a title."""
    if not asked.get("tools"):
        return Turn('{"title": "Create hello.txt"}')
    answered = next(count(asked) for field, count in SHAPES.items() if field in asked)
    turn = TASK[min(answered, len(TASK) - 1)]
    calls = [call.arguments for call in turn.calls]
    return Turn(turn.text, tuple(Call("exec_command", {"cmd": given["command"]}) for given in calls))  # type: ignore[index]


_FREE: Final = "--dangerously-bypass-approvals-and-sandbox"
CODEX: Final = Agent(
    pointing.AGENTS["codex"],
    "@openai/codex@0.171.0",
    "node_modules/@openai/codex/bin/codex.js",
    ("exec", _FREE),
    again=("exec", "resume", "--last", _FREE),
    node="own",
    script=_runs,
    stored_as="codex",
    terminal=(_FREE,),
    listens="Ask Codex",
    sides=1,  # the title, in a terminal
)
Runs = dict[tuple[str, str], "Future[Run]"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Every run, begun at once, two at a time."""
    wanted = [
        *((spoken, "continued") for spoken in DIALECTS),
        *(("responses", name) for name in ("faults", "typed", "left")),
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {(spoken, name): pool.submit(happened, CODEX, name, spoken) for spoken, name in wanted}


@pytest.mark.parametrize("spoken", DIALECTS)
def test_the_task_is_done_and_gone_on_with_in_one_session(spoken: str, runs: Runs) -> None:
    run = runs[spoken, "continued"].result()
    assert [code for code, _ in run.said] == [0, 0], run.said
    assert TASK[-1].text in run.said[0][1]
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["agent"], session["turns"], session["title"]) == ("codex", 6, PROMPT)
    assert run.kinds == Counter(main=6)
    assert {(record["end"], record["dialect"]) for record in run.records} == {("ok", "responses")}
    assert (run.parts("tool_use"), run.parts("tool_result")) == (6, 6)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_its_tools_tell_how_they_ended_and_the_person_what_came_next(spoken: str, runs: Runs) -> None:
    run = runs[spoken, "continued"].result()
    assert [one["value"] for one in run.signals("tool")] == [0, 0, 3, 0, 0, 3]
    assert [one["text"] for one in run.signals("turn")] == [AGAIN]


@pytest.mark.parametrize("spoken", DIALECTS)
def test_nothing_is_kept_of_the_key(spoken: str, runs: Runs) -> None:
    run = runs[spoken, "continued"].result()
    assert all(KEY in str(one.headers) for one in run.asked)
    assert not any(KEY.encode() in kept for kept in run.kept)


def test_faults_are_survived_and_retries_count_once(runs: Runs) -> None:
    run = runs["responses", "faults"].result()
    assert run.said[0][0] == 0, run.said
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert session["turns"] == 3
    assert run.kinds == Counter(main=3, retry=len(run.broken))
    assert Counter(one["status"] for one in run.broken) == {429: 2, 500: 1, 502: 1, 200: 1}


def test_left_in_the_middle_is_cancelled(runs: Runs) -> None:
    run = runs["responses", "left"].result()
    assert {record["end"] for record in run.records} == {"cancelled"}


def test_typed_prompts_are_turns_of_the_session_that_its_title_is_asked_for(runs: Runs) -> None:
    """The title has a thread and a session of its own, and runs beside the first turn."""
    run = runs["responses", "typed"].result()
    (session,) = run.sessions
    assert (session["title"], session["turns"]) == (PROMPT, 6)
    assert run.kinds == Counter(main=6, side=1)
    assert [one["text"] for one in run.signals("turn")] == [AGAIN]
