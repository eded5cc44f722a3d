"""The base model as PyTorch reads it: a Hugging Face directory made from the GGUF that serves, once per file.

Runs in the training environment. What is trained must be what serves: the weights are the GGUF's own, dequantised to
fp32, and so are its vocabulary and chat template (`Chat` renders with the engine's code). Kept in the user's cache
under the GGUF's sha256, in place by one rename, so that it is whole or not there; it can be deleted at any time.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from daemon.core.errors import RecipeError
from daemon.core.locks import locked
from daemon.core.paths import sha256_of
from daemon.core.records import Message, Role, Text
from daemon.engines.llama.template import ChatTemplate
from recipes.lora.environment import cache

#: Raised when what a directory holds changes, so that older ones are made anew.
_LAYOUT = 1


def prepared(gguf: Path, sha256: str, say: Callable[[str], None], root: Path | None = None) -> Path:
    """The directory for ``gguf``; ``sha256`` (hex) is checked. Raises RecipeError for what cannot be trained."""
    root = root or cache() / "bases"
    target = root / f"{sha256}-fp32-{_LAYOUT}"
    if target.exists():
        return target
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(root / "lock"):
        if target.exists():
            return target
        say(f"reading {gguf.name} into PyTorch, once")
        found = sha256_of(gguf)
        if found != sha256:
            raise RecipeError(f"{gguf} is not the model that serves: its sha256 is {found}", hint="reef models list")
        half_made = root / "making"
        shutil.rmtree(half_made, ignore_errors=True)
        try:
            _convert(gguf, half_made)
        except (ValueError, KeyError, NotImplementedError, OSError) as error:
            raise RecipeError(f"{gguf.name} cannot be trained: {error}", hint="reef models add default") from error
        half_made.replace(target)
    return target


def _convert(gguf: Path, target: Path) -> None:
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers 5 takes what came from a GGUF for quantised and refuses to save it, though the weights are fp32 by
    # now: so they move into a model that was never told.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    missing, unexpected = plain.load_state_dict(loaded.state_dict(), strict=False)
    missing = [name for name in missing if name != "lm_head.weight" or not config.tie_word_embeddings]
    if missing or unexpected:
        raise ValueError(f"its weights do not fit {type(plain).__name__}: {[*missing, *unexpected][:3]}")
    plain.tie_weights()
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)
    (target / "reef.json").write_text(json.dumps(_words(GGUFReader(gguf))), encoding="utf-8")


def _words(reader: Any) -> dict[str, Any]:
    """What the engine reads from the GGUF to render a conversation."""

    def value(key: str, default: Any = None) -> Any:
        field = reader.get_field(f"tokenizer.{key}")
        return default if field is None else field.contents()

    tokens = value("ggml.tokens")
    template = value("chat_template")
    if not template:
        raise ValueError("it is a base model: its file has no chat template")

    def text(key: str) -> str:
        number = value(f"ggml.{key}_token_id")
        return "" if number is None else str(tokens[number])

    return {
        "template": template,
        "bos": text("bos"),
        "eos": text("eos"),
        # llama.cpp's default when the file does not say: SentencePiece vocabularies begin with one, BPE ones do not.
        "adds_bos": bool(value("ggml.add_bos_token", value("ggml.model") == "llama")),
    }


class Chat:
    """Conversations to token ids, as the engine makes them of the same GGUF."""

    def __init__(self, directory: Path) -> None:
        from transformers import AutoTokenizer

        words: Mapping[str, Any] = json.loads((directory / "reef.json").read_text("utf-8"))
        self._tokenizer = AutoTokenizer.from_pretrained(directory)
        self._template = ChatTemplate(words["template"], bos=words["bos"], eos=words["eos"])
        self._start = words["bos"] if words["adds_bos"] else ""
        self.end = self._end_of_answer()

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Up to where the model's answer starts."""
        return self._ids(self._template.render(messages))

    def pair(self, messages: Sequence[Message], answer: str) -> tuple[list[int], list[int]]:
        """Prompt and answer; the answer ends with the token that ends the model's turn."""
        text = self._template.render(messages)
        prompt, whole = self._ids(text), self._ids(text + answer)
        if whole[: len(prompt)] != prompt:  # the seam is inside a token: the engine never sees such a one
            whole = prompt + self._raw(answer)
        return prompt, [*whole[len(prompt) :], self.end]

    def _end_of_answer(self) -> int:
        """The first token after an answer in the template's own rendering: end of turn, whatever it is called."""
        mark = "7f3a"
        turns = [message("user", "a"), message("assistant", mark), message("user", "b")]
        return self._raw(self._template.render(turns).partition(mark)[2])[0]

    def _ids(self, text: str) -> list[int]:
        return self._raw(text if text.startswith(self._start) else self._start + text)

    def _raw(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))
