from dataclasses import replace
from pathlib import Path

import pytest

from daemon.core.errors import EngineUnavailable
from daemon.engines.llama.frames import WorkerSpec
from daemon.engines.llama.model import Model, NativeLog

pytestmark = pytest.mark.engine


def test_it_tells_what_the_file_says(model: Model) -> None:
    assert model.trained_context == 8192
    assert model.metadata("general.architecture") == "llama"
    assert model.metadata("no.such.key") is None
    assert "<|im_start|>" in model.chat_template()
    assert model.template(b"tool_use") is None
    assert model.can_cut


def test_progress_is_told(model_path: Path) -> None:
    told: list[float] = []
    spec = WorkerSpec(str(model_path), "m", "", None, 1, 1, plain=True)
    Model(spec, NativeLog(), told.append).close()
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_cut_file_is_refused_with_llama_cpps_reason(model_path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(model_path.read_bytes()[:6_000_000])
    spec = WorkerSpec(str(cut), "cut", "", None, 1, 1, plain=True)
    with pytest.raises(EngineUnavailable) as refused:
        Model(spec, NativeLog(), lambda _: None)
    assert "'cut' cannot be loaded" in refused.value.message
    assert "bounds" in refused.value.message or "corrupt" in refused.value.message
    with pytest.raises(EngineUnavailable, match="gone"):
        Model(replace(spec, path=str(tmp_path / "gone.gguf"), name="gone"), NativeLog(), lambda _: None)


def test_tokens_and_text(model: Model) -> None:
    vocab = model.vocab
    text = "<|im_start|>user\nHéllo 🦀<|im_end|>".encode()
    tokens = vocab.tokenize(text)
    assert b"".join(map(vocab.piece, tokens)) == text
    assert vocab.is_special(tokens[0])
    assert vocab.is_control(tokens[0])
    assert not vocab.is_special(tokens[1])
    assert vocab.is_end(tokens[-1])
    assert vocab.tokenize(b"") == []
    assert vocab.widest() >= max(len(vocab.piece(token)) for token in range(vocab.size))


def test_a_beginning_of_sequence_is_never_doubled(model: Model) -> None:
    vocab = model.vocab
    assert vocab.start("<|im_start|>user\n") == b"<|im_start|>user\n"  # this model wants none
    vocab.adds_bos, before = True, vocab.adds_bos
    try:
        once = b"<|im_start|>Hi"  # its beginning-of-sequence happens to be this
        assert vocab.start("Hi") == once
        assert vocab.start("<|im_start|>Hi") == once
    finally:
        vocab.adds_bos = before
