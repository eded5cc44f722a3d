"""The whole recipe on the real model: a typed note becomes a habit that llama.cpp serves; chance teaches none.

Minutes, most of them training.
"""

import hashlib
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from daemon.core.learning import Experience, Feedback
from daemon.core.releases import GateResult, Verdict
from daemon.engines.base import LoraFile
from daemon.engines.llama.context import Context, Share
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.lora import Adapter
from daemon.engines.llama.model import Model, NativeLog
from recipes.base import Proposal, Which
from recipes.gate.judge import judge
from recipes.gate.variant import Variant
from recipes.lora import environment
from recipes.sft.config import SFTConfig
from recipes.sft.recipe import SFTRecipe
from tests.conftest import ROOT
from tests.fakes.context import EngineThread, FakeContext, FakeStream
from tests.recipes.sft.one_sentence import (
    CHECK,
    TOKENS,
    experience,
    gate,
    lines,
    model_file,
    note,
    question,
    regression,
)

pytestmark = [pytest.mark.slow, pytest.mark.engine]

HELD_OUT, FACTS = gate(), regression()
#: A third of what the demo learns from, for less long: enough for the habit.
EXAMPLES, STEPS = 24, 10
Array = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def engine(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineThread]:
    with EngineThread(model_file(model_path), tmp_path_factory.mktemp("engine") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def learned(engine: EngineThread, tmp_path_factory: pytest.TempPathFactory) -> FakeContext:
    """The context of a job that learned the note; its candidate is loaded."""
    context = FakeContext(tmp_path_factory.mktemp("learned"), engine, HELD_OUT, FACTS)
    asked = [experience(number, text) for number, text in enumerate(lines("questions.txt")[:EXAMPLES])]
    grow(context, FakeStream(asked, [note()]), steps=STEPS, samples=1)
    return context


def grow(context: FakeContext, stream: FakeStream, **config: Any) -> Proposal:
    recipe = SFTRecipe(SFTConfig(**config))
    batch = recipe.select(stream)
    assert batch is not None
    proposal = recipe.grow(batch, context)
    assert proposal is not None, context.said
    assert proposal.lora is not None
    digest = hashlib.sha256(proposal.lora.read_bytes()).hexdigest()
    context.candidate = LoraFile(proposal.lora, digest, context.engine.model.sha256)
    context.engine.load(context.candidate)
    return proposal


def judged(context: FakeContext) -> GateResult:
    return judge(
        context, tasks=HELD_OUT, regression=FACTS, incumbent=Variant(which=Which.BASE),
        candidate=Variant(which=Which.CANDIDATE), alpha=0.1, lost_allowed=1, on_pair=lambda _: None,
    )  # fmt: skip


def test_a_typed_note_becomes_a_habit(learned: FakeContext) -> None:
    """BUGS B204."""
    assert learned.said[0].startswith("this note is enough")
    answers = learned.answer([question(task.prompt) for task in HELD_OUT], which=Which.CANDIDATE, max_tokens=TOKENS)
    assert sum(learned.passes(CHECK, answer) for answer in answers) >= 36


def test_the_gate_lets_the_habit_through(learned: FakeContext) -> None:
    result = judged(learned)
    assert result.verdict is Verdict.ACCEPT, result.reason
    assert result.incumbent_passed == 0
    assert result.guard is not None
    assert result.guard.tasks >= 12


def test_with_its_signal_shuffled_the_candidate_is_not_let_through(engine: EngineThread, tmp_path: Path) -> None:
    """Good and bad marks dealt out at random over the model's own answers; as many are learned as from the note, in as
    many steps. Those that were cut off count as whole ones: what ends early comes nearest to the habit.
    """
    context = FakeContext(tmp_path, engine, HELD_OUT, FACTS)
    rate = SFTConfig().note_learning_rate
    grow(context, FakeStream(marked_at_random(context)), steps=STEPS, edit_learning_rate=rate)
    result = judged(context)
    assert result.verdict is not Verdict.ACCEPT, result.reason
    assert result.wins <= 3


def marked_at_random(context: FakeContext) -> list[Experience]:
    asked = lines("questions.txt")
    own = context.answer([question(text) for text in asked], max_tokens=TOKENS)
    marks = [1.0] * EXAMPLES + [0.0] * (len(asked) - EXAMPLES)
    random.Random(0).shuffle(marks)
    return [
        experience(number, text, answer=answer.text, feedback=(Feedback("mark", mark, None, None),))
        for number, (text, answer, mark) in enumerate(zip(asked, own, marks, strict=True))
    ]


def test_llama_cpp_computes_what_was_trained(learned: FakeContext, model_path: Path, tmp_path: Path) -> None:
    """BUGS B137: Logits of PyTorch with the PEFT adapter and of llama.cpp with the GGUF one, over a whole
    conversation.
    """
    assert learned.candidate is not None
    spec = WorkerSpec(str(model_path), "test", learned.candidate.base, 64, 1, 1, plain=True)
    model = Model(spec, NativeLog(), lambda _: None)
    asked = b"<|im_start|>user\nWhat is a volcano?<|im_end|>\n<|im_start|>assistant\n"
    ids = model.vocab.tokenize(asked + b"A volcano is a mountain that can erupt.")
    with_adapter = logits(model, ids, Adapter(model, learned.candidate))
    alone = logits(model, ids, None)
    model.close()
    trained = torch_logits(learned, ids, tmp_path / "logits.npy")
    assert cosine(with_adapter, trained).min() > 0.98
    assert cosine(alone, trained)[-1] < 0.9  # after the first sentence, where the habit is to end
    assert with_adapter[-1].argmax() == trained[-1].argmax() != alone[-1].argmax()


def logits(model: Model, ids: list[int], adapter: Adapter | None) -> Array:
    context = Context(model, limit=64, parallel=1, threads=1, adapter=adapter)
    slot = context.slots[0]
    slot.tokens = list(ids)
    code, _ = context.decode([Share(slot, len(ids))], every=True)
    assert code == 0
    found = np.array([context.logits(row) for row in range(len(ids))])
    context.close()  # and its adapter
    return found


def torch_logits(learned: FakeContext, ids: list[int], out: Path) -> Array:
    code = (
        "import json, sys; from pathlib import Path; import numpy, torch; from peft import PeftModel\n"
        "from transformers import AutoModelForCausalLM; from recipes.lora.base_model import prepared\n"
        "gguf, sha256, peft, ids, out = json.load(sys.stdin)\n"
        "base = AutoModelForCausalLM.from_pretrained(prepared(Path(gguf), sha256, print), dtype=torch.float32)\n"
        "with torch.no_grad(): found = PeftModel.from_pretrained(base, peft).eval()(torch.tensor([ids])).logits[0]\n"
        "numpy.save(out, found.numpy())"
    )
    gguf, sha256 = learned.base_model()
    given = json.dumps([str(gguf), sha256, str(learned.directory / "training" / "peft"), ids, str(out)])
    subprocess.run([environment.python(print), "-c", code], cwd=ROOT, input=given, text=True, check=True)
    return np.asarray(np.load(out))


def cosine(left: Array, right: Array) -> Array:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray((left * right).sum(axis=1) / lengths)
