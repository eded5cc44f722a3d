"""A note, the playbook recipe and the gate over HTTP, with a provider whose model follows the rules it is told."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.request import Request, urlopen

import pytest

from daemon.core import playbook
from daemon.core.learning import Batch, Feedback, TaskSet
from daemon.core.records import Message
from daemon.core.releases import Pair, Verdict
from recipes.base import Answer, Which
from recipes.gate.judge import judge
from recipes.gate.variant import Variant
from recipes.playbook.recipe import PlaybookConfig, PlaybookRecipe
from tests.fakes.obedient import FakeJob, follows_rules, task
from tests.fakes.provider import Provider, running_provider


@dataclass
class HttpJob(FakeJob):
    """A job whose answers come from a provider's chat completions."""

    url: str = ""

    def _answer(self, conversation: Sequence[Message], which: Which, max_tokens: int) -> Answer:
        messages = [{"role": message.role, "content": message.text} for message in conversation]
        body = json.dumps({"model": "m", "messages": messages, "max_tokens": max_tokens, "temperature": 0}).encode()
        request = Request(f"{self.url}/v1/chat/completions", body, {"content-type": "application/json"})
        with urlopen(request, timeout=10) as response:
            choice = json.load(response)["choices"][0]
        return Answer(choice["message"]["content"], choice["finish_reason"] == "stop", 1, None)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.reply = follows_rules
        yield running


def test_a_note_passes_the_gate_where_rules_are_followed(provider: Provider) -> None:
    job = HttpJob(url=provider.url)
    note = Feedback("rep_1", None, "Answer in one short sentence.", None)
    proposal = PlaybookRecipe(PlaybookConfig()).grow(Batch(notes=(note,)), job)
    assert proposal is not None
    pairs: list[Pair] = []
    result = judge(
        job,
        tasks=[task(number) for number in range(12)],
        regression=[task(number, TaskSet.REGRESSION, form="max_words:40") for number in range(4)],
        incumbent=Variant(job.harness()),
        candidate=Variant({path: text for path, text in proposal.harness.items() if text is not None}),
        alpha=0.1,
        lost_allowed=0,
        on_pair=pairs.append,
    )
    assert (result.verdict, result.wins, result.losses) == (Verdict.ACCEPT, 5, 0)
    assert len(pairs) == 5 + 4
    told = {json.dumps(request.json()["messages"][:-1]) for request in provider.requests}
    rule = [{"role": "system", "content": "- Answer in one short sentence."}]
    assert told == {"[]", json.dumps(rule)}  # both sides were asked, and nothing but the rule's words was told
    assert playbook.PATH in proposal.harness
