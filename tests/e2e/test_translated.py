"""Real agents by providers that do not speak their dialect: the task is done, and the record is in the agent's own."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.e2e.agents import AGENTS
from tests.e2e.runs import PROMPT, Run, happened
from tests.fakes.provider import TASK

pytestmark = pytest.mark.slow

#: (agent, what it speaks, the only dialect of its provider)
PAIRS = [
    ("claude-code", "messages", "chat"),
    ("claude-code", "messages", "responses"),
    ("pi", "chat", "messages"),
    ("opencode", "chat", "responses"),
]
Runs = dict[tuple[str, str], "Future[Run]"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with ThreadPoolExecutor(2) as pool:
        yield {(agent, spoken): pool.submit(happened, AGENTS[agent], "task", spoken) for agent, _, spoken in PAIRS}


@pytest.mark.parametrize(("agent", "own", "spoken"), PAIRS, ids=[f"{agent}-by-{spoken}" for agent, _, spoken in PAIRS])
def test_the_task_is_done_in_translation(agent: str, own: str, spoken: str, runs: Runs) -> None:
    run, told = runs[agent, spoken].result(), AGENTS[agent]
    assert run.said[0][0] == 0, run.said
    assert TASK[-1].text in run.said[0][1]
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["agent"], session["turns"], session["title"].strip('"')) == (told.stored_as, 3, PROMPT)
    assert run.kinds - Counter(side=told.sides) == Counter(main=3)
    assert {(record["end"], record["dialect"]) for record in run.records} == {("ok", own)}
    assert not any(own in one.path for one in run.provider.requests if own != "chat")
