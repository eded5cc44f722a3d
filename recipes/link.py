"""A job's way back to the daemon: what `recipes.base.Stream` and `Context` promise, over the control socket.

Nothing here decides what a recipe may see: the daemon's stream does. A daemon that is gone ends the job.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from daemon.core import plain
from daemon.core.client import Client, segment
from daemon.core.errors import EngineError, EngineUnavailable, RecipeError
from daemon.core.learning import Batch, Check, Experience, Feedback, Instruction, Progress, Split, Task, TaskSet
from daemon.core.paths import private_directory
from daemon.core.records import Message
from recipes.base import Answer, Signal, Which
from recipes.directory import JobDirectory, Spec

#: Asked at once; the engine queues the rest behind people's requests.
_AT_ONCE: Final = 8
#: A model may be loading, and people's requests come first.
_PATIENCE_SECONDS: Final = 1800.0
_PAGE: Final = 200
#: Times that a train step is started, and that an answer is asked for, where something ended their process.
_STARTS: Final = 3
_PAUSE_SECONDS: Final = 1.0


class Teller(Protocol):
    """Where progress goes."""

    def progress(self, at: Progress) -> None: ...

    def say(self, text: str) -> None: ...


class Link:
    """The job-side routes of the daemon."""

    def __init__(self, socket: Path, job: str) -> None:
        self._client = Client(socket, timeout=_PATIENCE_SECONDS)
        self._path = f"/reef/jobs/{segment(job)}"

    def offered(self, **query: object) -> Any:
        return self._client.get(f"{self._path}/stream", **query)

    def claim(self, batch: Batch) -> None:
        """All of it or Conflict."""
        notes = {note.id: None for note in batch.notes}
        body: dict[str, object] = {
            "records": [one.receipt for one in batch.experience],
            "reports": list(notes),
            "instructions": [one.id for one in batch.instructions],
        }
        self._client.post(f"{self._path}/claim", body)

    def answer(self, body: Mapping[str, object]) -> Answer:
        """Once more where the engine failed: what a job has come to is not to be lost with an engine's process."""
        for _ in range(_STARTS - 1):
            try:
                return self._answer(body)
            except EngineError as error:
                if type(error) not in (EngineError, EngineUnavailable):  # the others would fail again
                    raise
                time.sleep(_PAUSE_SECONDS)
        return self._answer(body)

    def _answer(self, body: Mapping[str, object]) -> Answer:
        return Answer(**self._client.post(f"{self._path}/answer", body))

    def tasks(self, scenario: str, set: TaskSet) -> list[Task]:
        items: list[Task] = []
        query: dict[str, object] = {"scenario": scenario, "set": set.value, "limit": _PAGE}
        while True:
            page = self._client.get("/reef/tasks", **query)
            items += msgspec.convert(page["items"], list[Task])
            if not page.get("next"):
                return items
            query["before"] = page["next"]

    def model(self) -> tuple[Path, str]:
        told = self._client.get(f"{self._path}/model")
        return Path(told["path"]), told["sha256"]


class JobStream:
    """`recipes.base.Stream`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def experience(
        self, *, split: Split = Split.TRAIN, signals: Sequence[Signal] = (), limit: int = 1000
    ) -> list[Experience]:
        found: dict[tuple[object, str], Experience] = {}  # the same said twice is one
        query: dict[str, object] = {"split": split.value, "signals": ",".join(signals) or None, "after": 0}
        while len(found) < limit:
            told = self._link.offered(**query, limit=min(_PAGE, limit - len(found)))
            for data in told["experience"]:
                one = plain.experience(data)
                found.setdefault((one.prompt, one.answer), one)
            if told["next"] is None:
                break
            query["after"] = told["next"]
        return list(found.values())

    def notes(self) -> list[Feedback]:
        return [Feedback(**note) for note in self._link.offered(limit=0)["notes"]]

    def instructions(self) -> list[Instruction]:
        return [plain.instruction(one) for one in self._link.offered(limit=0)["instructions"]]


class JobContext:
    """`recipes.base.Context`; ``job`` is the whole directory, of which ``directory`` is the recipe's part."""

    def __init__(self, link: Link, spec: Spec, job: JobDirectory, teller: Teller) -> None:
        self.scenario = spec.scenario
        self.incumbent = spec.incumbent
        self.job = job
        private_directory(job.work)
        self.directory = job.work
        self._link = link
        self._spec = spec
        self._teller = teller

    def harness(self) -> Mapping[str, str]:
        return dict(self._spec.harness)

    def base_model(self) -> tuple[Path, str]:
        path, sha256 = self._link.model()
        if self._spec.model is not None and sha256 != self._spec.model:
            raise RecipeError("another model is in use than when the job began", hint="reef models list")
        return path, sha256

    def tasks(self, set: TaskSet) -> list[Task]:
        found = self.whole_tasks(set)
        return found if set is TaskSet.SEARCH else [replace(task, prompt="") for task in found]

    def whole_tasks(self, set: TaskSet) -> list[Task]:
        """With the prompts of those that decide: for the gate alone."""
        return self._link.tasks(self.scenario, set)

    def answer(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        which: Which = Which.BASE,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> list[Answer]:
        asked = {"which": which.value, "max_tokens": max_tokens, "temperature": temperature, "seed": seed}

        def one(conversation: Sequence[Message]) -> Answer:
            messages = [{"role": said.role, "content": said.text} for said in conversation]
            return self._link.answer({"messages": messages, **asked})

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(one, conversations))

    def passes(self, check: Check, answer: Answer, prompt: str = "") -> bool:
        from recipes.tasks import checks  # not at import: only the gate and recipes that measure need it

        return checks.passes(check, answer, prompt)

    def progress(self, step: str, done: int = 0, total: int = 0, note: str = "") -> None:
        self._teller.progress(Progress(step, done, total, note))

    def say(self, text: str) -> None:
        self._teller.say(text)

    def train(self, module: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        from recipes.lora import environment  # not at import: few recipes train

        command = environment.command(module, self.say)
        return trained(command, spec, self._teller, self.directory, keep=self.job.add_point)


#: Takes a curve's name, a place on it, and the value there.
Keep = Callable[[str, int, float], None]


def trained(
    command: Sequence[str], spec: Mapping[str, Any], teller: Teller, folder: Path, *, keep: Keep
) -> Mapping[str, Any]:
    """Run a train step: ``spec`` on its stdin; progress, say, error and result events as lines on its stdout, its
    stderr in the job's log. One that a signal ended starts again, and may go on from what it kept. Raises RecipeError
    with its words.
    """
    for start in range(1, _STARTS + 1):
        code, last = _step(command, spec, teller, folder, keep=keep)
        if code >= 0 or start == _STARTS:
            break
        teller.say(f"the train step was ended by signal {-code}: once more")
    if last.get("event") == "error":
        raise RecipeError(str(last.get("message")), hint=last.get("hint"))
    if code != 0 or last.get("event") != "result":
        how = f"signal {-code}, {_STARTS} times" if code < 0 else f"exit code {code}"
        raise RecipeError(f"the train step ended without a result: {how}", hint="its last words are in the job's log")
    return {name: value for name, value in last.items() if name != "event"}


def _step(
    command: Sequence[str], spec: Mapping[str, Any], teller: Teller, folder: Path, *, keep: Keep
) -> tuple[int, Mapping[str, Any]]:
    """How a train step's process ended, and the last event it told."""
    last: dict[str, Any] = {}
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it was ended before it had read it all
            process.stdin.write(json.dumps(spec).encode())
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        for line in process.stdout:
            try:
                event = json.loads(line)
                _tell(event, teller, keep)
                last = event
            except (ValueError, KeyError, TypeError):
                print(line.decode(errors="replace").rstrip(), file=sys.stderr)  # a library's own words
    return process.returncode, last


def _tell(event: Mapping[str, Any], teller: Teller, keep: Keep) -> None:
    if event["event"] == "progress":
        fields = {name: event[name] for name in ("done", "total", "note") if name in event}
        for name, value in dict(event.get("values") or {}).items():
            keep(str(name), int(event["done"]), float(value))
        teller.progress(Progress(str(event.get("step", "train")), **fields))
    elif event["event"] == "say":
        teller.say(str(event["text"]))
