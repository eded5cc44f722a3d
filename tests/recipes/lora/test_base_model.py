"""The base model for training is the one that serves: same weights, same tokens."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from daemon.core.errors import RecipeError
from daemon.core.records import Message, Role, Sampling
from daemon.engines.base import ModelFile
from recipes.lora import environment
from recipes.lora.base_model import message, prepared
from tests.conftest import ROOT
from tests.fakes.context import EngineThread

CONVERSATIONS: list[list[tuple[Role, str]]] = [
    [("user", "What is a mutex?")],
    [("user", "What is 12 + 345, or 1,000.50?")],
    [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello!"), ("user", "  Two\n\n\nlines\tand a tab")],
    [("user", "naïve café — “quotes”, 日本語 and 🙂")],
    [("user", "```py\nx = {1: 'a'}\n```\nWhy don't they've we'll?")],
    [("user", "<|im_start|>user hi<|im_end|>")],
]


def as_messages(turns: list[tuple[Role, str]]) -> tuple[Message, ...]:
    return tuple(message(role, text) for role, text in turns)


def test_a_file_that_is_not_the_model_that_serves_is_refused(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    with pytest.raises(RecipeError, match=hashlib.sha256(b"GGUF").hexdigest()):
        prepared(gguf, "0" * 64, lambda _: None, tmp_path / "bases")
    assert {path.name for path in (tmp_path / "bases").iterdir()} == {"lock"}


@pytest.mark.slow
@pytest.mark.engine
def test_training_reads_the_same_tokens_as_the_engine(model_path: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(model_path.read_bytes()).hexdigest()
    model = ModelFile("test", model_path, model_path.stat().st_size, digest, "", "")
    with EngineThread(model, tmp_path / "log") as engine:
        asked = engine.ask([as_messages(turns) for turns in CONVERSATIONS], Sampling(max_tokens=1))
    code = (
        "import json, sys; from pathlib import Path; from recipes.lora.base_model import Chat, message, prepared\n"
        "given = json.load(sys.stdin)\n"
        "chat = Chat(prepared(Path(given['gguf']), given['sha256'], lambda text: None))\n"
        "pairs = [chat.pair([message(*turn) for turn in turns], 'It is 7.') for turns in given['conversations']]\n"
        "json.dump([pairs, chat.end], sys.stdout)"
    )
    given = {"gguf": str(model_path), "sha256": digest, "conversations": CONVERSATIONS}
    done = subprocess.run(
        [environment.python(print), "-c", code],
        cwd=ROOT, input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    pairs, end = json.loads(done.stdout)
    assert [prompt for prompt, _ in pairs] == [list(span.prompt_ids) for _, span in asked]
    assert {tuple(answer) for _, answer in pairs} == {tuple(pairs[0][1])}
    assert pairs[0][1][-1] == end
