"""The gate over the real model in the engine that serves; it follows rules of a system message now and then only."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from daemon.core import playbook
from daemon.core.learning import Check, Task, TaskSet
from daemon.core.records import ChatRequest, Message, Sampling
from daemon.core.releases import Verdict
from daemon.engines.llama_cpp import LlamaCpp
from recipes.base import Answer, Which
from recipes.gate.judge import judge
from recipes.gate.variant import Variant
from tests.daemon.engines.asking import collect, new_engine
from tests.fakes.obedient import FakeJob

pytestmark = pytest.mark.engine

PROMPTS = (
    "Why is the sky blue?", "How does a magnet work?", "What is bread made of?", "What is a volcano?",
    "How do birds fly?", "What is gravity?", "What is a mountain?", "How does a bicycle stay upright?",
)  # fmt: skip
TASKS = [
    Task(f"tsk_{number}", "default", TaskSet.GATE, prompt, Check(form="one_sentence"), max_tokens=36)
    for number, prompt in enumerate(PROMPTS)
]


@dataclass
class EngineJob(FakeJob):
    """A job whose answers come from an engine, as a job asks for them: together, and behind all others."""

    engine: LlamaCpp | None = None
    runner: asyncio.Runner | None = None

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        which: Which = Which.BASE,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> list[Answer]:
        assert self.runner is not None
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
        return self.runner.run(self._all([ChatRequest("m", tuple(said), sampling=sampling) for said in conversations]))

    async def _all(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        assert self.engine is not None
        answers = await asyncio.gather(*(collect(self.engine, request, background=True) for request in requests))
        return [
            Answer(found.text, found.finished.reason != "length", len(found.span.completion_ids), found.span.weights)
            for found in answers
        ]


@pytest.fixture
def job(model_path: Path, tmp_path: Path) -> Iterator[EngineJob]:
    with asyncio.Runner() as runner:
        engine = new_engine(model_path, tmp_path / "engine.log", context=1024)
        runner.run(engine.warm())
        yield EngineJob(engine=engine, runner=runner)
        runner.run(engine.close())


def test_a_rule_that_the_model_hardly_follows_is_not_accepted_and_the_reason_says_so(job: EngineJob) -> None:
    rules = playbook.added((), "Answer in one short sentence.")
    result = judge(
        job, tasks=TASKS, regression=[], incumbent=Variant(), candidate=Variant({playbook.PATH: playbook.dump(rules)}),
        alpha=0.1, lost_allowed=1, on_pair=lambda _: None,
    )  # fmt: skip
    assert result.verdict is Verdict.INCONCLUSIVE, result.reason
    assert len(result.pairs) == len(TASKS)
    assert result.reason.startswith("the model "), result.reason
    assert "the rules" in result.reason
    assert "more task" in result.reason
    assert any(pair.incumbent_answer != pair.candidate_answer for pair in result.pairs)  # it was told something


@pytest.mark.slow
def test_the_model_against_itself_is_not_accepted(job: EngineJob) -> None:
    again = Variant({}, Which.BASE)  # the same weights under another name
    tasks = [replace(each, check=Check(expression=r"(?i)\bis\b.*\b(of|by)\b"), max_tokens=16) for each in TASKS[:6]]
    result = judge(
        job, tasks=tasks, regression=[], incumbent=Variant(), candidate=again, alpha=0.1, lost_allowed=1,
        on_pair=lambda _: None,
    )  # fmt: skip
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.ties >= 4
