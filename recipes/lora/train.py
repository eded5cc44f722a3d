"""Trains a LoRA adapter: ``python -m recipes.lora.train`` in the training environment, a `Spec` as JSON on stdin.

Plain supervised learning, read top to bottom: low-rank matrices beside every linear layer of the base model, moved
until it gives the answers it was shown. stdout has JSON lines (``progress``, ``say``), the last one the ``result`` or
the ``error``. It owns ``directory``: a checkpoint every few steps, so that a killed run goes on from there, and at the
end ``peft/`` in PEFT's own format, in place by one rename. It never writes a loss that is no number into it.
"""

import dataclasses
import hashlib
import json
import math
import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from daemon.core.errors import RecipeError, ReefError
from daemon.core.locks import locked
from daemon.core.paths import write_private
from recipes.lora import base_model

#: Steps over which the learning rate rises: AdamW's first estimates are poor.
_WARM_UP: Final = 4
_LAST_SHARE: Final = 0.1
_CHECKPOINT_STEPS: Final = 4

#: Token ids of a prompt, and of the answer to it.
Pair = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Spec:
    """``examples``: ``{"messages": [{"role", "content"}], "answer": text}``. ``gguf`` serves; ``sha256`` is its own.

    ``longest`` is in tokens, prompt and answer together: longer examples are left out and counted.
    """

    gguf: str
    sha256: str
    directory: str
    examples: Sequence[Mapping[str, Any]]
    steps: int = 14
    learning_rate: float = 3e-4
    batch_size: int = 8
    rank: int = 16
    alpha: int = 32
    seed: int = 0
    longest: int = 2048

    def digest(self) -> str:
        """Two runs with the same digest train the same."""
        fields = {name: value for name, value in dataclasses.asdict(self).items() if name not in ("directory", "gguf")}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def train(spec: Spec) -> dict[str, Any]:
    """The result: where the adapter is, and how it went. Raises RecipeError when nothing good can come of it."""
    directory = Path(spec.directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A job that was killed can leave its training running: the next one waits, and finds it done.
    with locked(directory / "lock"):
        return _trained(spec, directory)


def _trained(spec: Spec, directory: Path) -> dict[str, Any]:
    finished = directory / "result.json"
    if finished.exists():
        told: dict[str, Any] = json.loads(finished.read_text("utf-8"))
        if told["spec"] == spec.digest():
            return told
    base = base_model.prepared(Path(spec.gguf), spec.sha256, _say)
    pairs, left_out = _pairs(spec, base_model.Chat(base))
    run = _Run(spec, base, pairs)
    first = run.resume(directory / "checkpoint.pt")
    started = time.monotonic()
    for step, batch in enumerate(_batches(len(pairs), spec)):
        if step < first:
            continue
        loss = run.step(step, [pairs[index] for index in batch])
        told = {"step": "train", "done": step + 1, "total": spec.steps, "note": f"loss {loss:.3f}"}
        _emit("progress", **told, values={"loss": loss})
        if (step + 1) % _CHECKPOINT_STEPS == 0 and step + 1 < spec.steps:
            run.checkpoint(directory / "checkpoint.pt", step + 1)
    peft = run.save(directory / "peft")
    told = {
        "peft": str(peft),
        "spec": spec.digest(),
        "examples": len(pairs),
        "left_out": left_out,
        "steps": spec.steps,
        "resumed_at": first,
        "loss_first": round(run.losses[0], 4),
        "loss_last": round(run.losses[-1], 4),
        "seconds": round(time.monotonic() - started, 1),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // (1024 if sys.platform == "linux" else 1 << 20),
    }
    write_private(finished, json.dumps(told).encode())
    (directory / "checkpoint.pt").unlink(missing_ok=True)
    return told


def _pairs(spec: Spec, chat: base_model.Chat) -> tuple[list[Pair], int]:
    """Examples as token ids, and how many were too long. The loss is on the answer alone: nobody wants it to learn
    to ask.
    """
    pairs = []
    for example in spec.examples:
        messages = [base_model.message(turn["role"], turn["content"]) for turn in example["messages"]]
        pair = chat.pair(messages, example["answer"])
        if len(pair[0]) + len(pair[1]) <= spec.longest:
            pairs.append(pair)
    if not pairs:
        raise RecipeError(f"nothing to train on: {len(spec.examples)} examples, none within {spec.longest} tokens")
    return pairs, len(spec.examples) - len(pairs)


def _batches(count: int, spec: Spec) -> list[list[int]]:
    """Which examples go into each step: every one once, shuffled, before any comes again. A function of the seed
    alone, so that a resumed run sees what it would have seen.
    """
    chance = random.Random(spec.seed)
    queue: list[int] = []
    size = min(spec.batch_size, count)
    batches = []
    for _ in range(spec.steps):
        if len(queue) < size:
            queue = chance.sample(range(count), count) + queue
        batches.append([queue.pop() for _ in range(size)])
    return batches


class _Run:
    """Model, adapter and optimiser while they learn. fp32: without special hardware bf16 is three times slower."""

    def __init__(self, spec: Spec, base: Path, pairs: Sequence[Pair]) -> None:
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM

        self._spec = spec
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self.losses: list[float] = []
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        torch.manual_seed(spec.seed)
        config = LoraConfig(
            r=spec.rank,
            lora_alpha=spec.alpha,
            lora_dropout=0.0,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        self._model = get_peft_model(model, config).to(self._device)
        self._model.train()
        self._weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(self._weights, lr=spec.learning_rate, weight_decay=0.0)

    def step(self, step: int, batch: Sequence[Pair]) -> float:
        """One update; returns the loss before it."""
        import torch

        # Up over the first steps, then down in a line: what is learned last should move least.
        share = min(1.0, (step + 1) / _WARM_UP) * max(_LAST_SHARE, 1 - step / self._spec.steps)
        for group in self._optimizer.param_groups:
            group["lr"] = self._spec.learning_rate * share
        loss = self._loss(batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        value: float = loss.item()
        if not (math.isfinite(value) and math.isfinite(norm.item())):
            raise RecipeError(
                f"the loss is {value} at step {step + 1} of {self._spec.steps}",
                hint=f"lower the learning rate: it is {self._spec.learning_rate}",
            )
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.losses.append(value)
        return value

    def _loss(self, batch: Sequence[Pair]) -> Any:
        """Cross-entropy at the answers' tokens: the mean over each answer, then over the batch.

        Not the mean over all tokens: ten long answers would drown twelve short ones. The vocabulary's logits are only
        computed where an answer is, which saves a quarter of the time.
        """
        import torch
        from torch.nn import functional

        longest = max(len(prompt) + len(answer) for prompt, answer in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        read, learned = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, (prompt, answer) in enumerate(batch):
            end = len(prompt) + len(answer)
            ids[row, :end] = torch.tensor(prompt + answer)
            read[row, :end] = 1
            learned[row, len(prompt) : end] = True
        ids, read, learned = ids.to(self._device), read.to(self._device), learned.to(self._device)
        causal = self._model.get_base_model()
        hidden = causal.model(input_ids=ids, attention_mask=read, use_cache=False).last_hidden_state
        here = learned[:, 1:]  # the state at one token foretells the next
        logits = causal.lm_head(hidden[:, :-1][here])
        losses = functional.cross_entropy(logits.float(), ids[:, 1:][here], reduction="none")
        rows = torch.nonzero(here)[:, 0]
        totals = torch.zeros(len(batch), device=self._device).index_add(0, rows, losses)
        return (totals / here.sum(dim=1)).mean()

    def checkpoint(self, path: Path, step: int) -> None:
        import torch

        state = {
            "spec": self._spec.digest(),
            "step": step,
            "losses": self.losses,
            "weights": [weight.detach().cpu() for weight in self._weights],
            "optimizer": self._optimizer.state_dict(),
        }
        half = path.with_suffix(".half")
        torch.save(state, half)
        half.replace(path)

    def resume(self, path: Path) -> int:
        """The step to go on from: 0 without a checkpoint of this very spec."""
        import torch

        if not path.exists():
            return 0
        state = torch.load(path, map_location=self._device, weights_only=True)
        if state["spec"] != self._spec.digest():
            return 0
        with torch.no_grad():
            for weight, saved in zip(self._weights, state["weights"], strict=True):
                weight.copy_(saved)
        self._optimizer.load_state_dict(state["optimizer"])
        self.losses = list(state["losses"])
        step = int(state["step"])
        _say(f"going on at step {step + 1} of {self._spec.steps}")
        return step

    def save(self, target: Path) -> Path:
        """PEFT's two files, in place by one rename."""
        import torch

        if not all(bool(torch.isfinite(weight).all()) for weight in self._weights):
            raise RecipeError("the trained weights are not finite", hint="lower the learning rate")
        half = target.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        # The cache's path is nobody's business where this adapter may go.
        self._model.peft_config["default"].base_model_name_or_path = Path(self._spec.gguf).name
        self._model.save_pretrained(half)
        (half / "README.md").unlink(missing_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        half.replace(target)
        return target


_stdout = sys.stdout


def _emit(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), file=_stdout, flush=True)


def _say(text: str) -> None:
    _emit("say", text=text)


def main() -> int:
    # Hugging Face must not reach for its hub, nor draw bars: all there is to read lies on this disk.
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", TOKENIZERS_PARALLELISM="false")
    # PyTorch's threads wait for each other thousands of times a step. Spinning they would burn what the others need:
    # beside other work a step took four times the processor's time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        spec = Spec(**json.load(sys.stdin))
        with redirect_stdout(sys.stderr):
            result = train(spec)
    except ReefError as error:
        _emit("error", kind=error.kind, message=error.message, hint=error.hint)
        return 1
    except Exception as error:  # an edge: the recipe's words for it, the stack for the job's log
        import traceback

        traceback.print_exc()
        _emit("error", kind="recipe", message=f"training failed: {error!r}", hint=None)
        return 1
    _emit("result", **result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
