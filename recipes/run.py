"""A job: one run of a recipe in a process of its own, from experience to a judged candidate.

``python -m recipes.run DIRECTORY``. Read it from top to bottom: select, claim, grow, gate, done. Each step ends with a
file (`recipes.directory`), so that kill -9 at any point and another start go on from the last whole one. Nothing is
published here: the daemon does that from ``result.json``.

Stdout is a channel of JSON lines to the daemon, and only that; what a recipe prints goes to the job's log.
"""

import contextlib
import ctypes
import json
import os
import platform
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from daemon.core.errors import Conflict, RecipeError, ReefError
from daemon.core.learning import Batch, Progress, TaskSet, canonical
from daemon.core.paths import home
from daemon.core.releases import Candidate, GateResult, Pair
from daemon.core.version import __version__
from recipes.base import Proposal, Recipe, Which
from recipes.directory import JobDirectory, Result, Spec
from recipes.gate.judge import judge
from recipes.gate.variant import Variant
from recipes.link import JobContext, JobStream, Link
from recipes.registry import configured, find, load

#: Times that a batch is selected anew because somebody claimed part of it first.
_SELECTIONS: Final = 5
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG, prctl(2)


def main(words: list[str]) -> int:
    channel = Channel.take()
    try:
        _yield_to_people()
        directory = JobDirectory(Path(words[0]))
        with directory.held():
            outcome = run(directory, channel)
    except ReefError as error:
        channel.tell("error", kind=error.kind, message=error.message, hint=error.hint)
        return int(error.exit_code)
    except OSError as error:  # the disk is full, a file is gone
        told = f"{error.strerror or error}: {error.filename or words[0]}"
        channel.tell("error", kind="failed", message=told, hint="reef doctor")
        return 1
    except Exception as error:  # the edge: a recipe may raise anything
        traceback.print_exc()
        channel.tell("error", kind="recipe", message=f"the recipe raised {type(error).__name__}: {error}", hint=None)
        return 1
    channel.tell("done", outcome=outcome)
    return 0


def run(directory: JobDirectory, channel: "Channel") -> str:
    """``nothing`` or ``judged``, once ``result.json`` says the same."""
    spec = directory.spec()
    if spec is None:
        raise ReefError(f"{directory.root} holds no spec.json: the daemon starts jobs, not people")
    if (result := directory.result()) is None:
        result = _result(spec, directory, channel)
        directory.write_result(result)
    if result.reason:
        channel.say(result.reason)
    return "nothing" if result.candidate is None else "judged"


def _result(spec: Spec, directory: JobDirectory, channel: "Channel") -> Result:
    recipe, config = _recipe(spec)
    link = Link(home().socket, spec.id)
    context = JobContext(link, spec, directory, channel)

    # 1. Select what to learn from, and claim it: from here on no other job of this recipe gets it.
    batch = _claimed_batch(recipe, link, directory, channel)
    if batch is None:
        return Result(reason="not enough to learn from yet")

    # 2. Grow a candidate.
    candidate = directory.candidate()
    if candidate is None:
        channel.progress(Progress("grow"))
        proposal = recipe.grow(batch, context)
        changed = {} if proposal is None else _changed(proposal, spec.harness)
        if proposal is None or not (changed or proposal.lora):
            return Result(reason="" if proposal is None else f"{proposal.reason}: that changes nothing")
        plan = _candidate(spec, batch, proposal, changed=changed, config=config)
        candidate = directory.write_candidate(plan, proposal)
    channel.tell("candidate", reason=candidate.reason)

    # 3. Let the gate judge it: the recipe has no say any more.
    channel.progress(Progress("gate"))
    return Result(candidate, _judged(spec, candidate, batch, context=context, channel=channel))


# -- 1. select and claim ------------------------------------------------------------------------------


def _recipe(spec: Spec) -> tuple[Recipe, Mapping[str, Any]]:
    cls = load(find(spec.recipe))
    config, shared = configured(cls, spec.config)
    return cls(config), asdict(shared) | asdict(config)


def _claimed_batch(recipe: Recipe, link: Link, directory: JobDirectory, channel: "Channel") -> Batch | None:
    """The batch on disk comes first, then the claim: whoever resumes claims the same again, which is allowed."""
    for _ in range(_SELECTIONS):
        batch = directory.batch()
        if batch is None:
            channel.progress(Progress("select"))
            batch = recipe.select(JobStream(link))
            if batch is None or not (batch.experience or batch.notes or batch.instructions):
                return batch  # an empty one: a recipe that makes its own experience has nothing to claim
            directory.write_batch(batch)
        try:
            link.claim(batch)
            return batch
        except Conflict:
            directory.forget_batch()
    raise Conflict(f"other jobs claimed this batch {_SELECTIONS} times", hint="reef jobs list")


# -- 2. the candidate ---------------------------------------------------------------------------------


def _changed(proposal: Proposal, incumbent: Mapping[str, str]) -> dict[str, str | None]:
    """The harness files that would be different. Raises RecipeError for a path that leads out of the harness."""
    for path in proposal.harness:
        parts = PurePosixPath(path)
        if not path or parts.is_absolute() or ".." in parts.parts or "\\" in path or str(parts) != path:
            raise RecipeError(f"the recipe proposed the file {path!r}, which is no path below harness/")
    return {path: text for path, text in proposal.harness.items() if incumbent.get(path) != text}


def _candidate(
    spec: Spec, batch: Batch, proposal: Proposal, *, changed: dict[str, str | None], config: Mapping[str, Any]
) -> Candidate:
    said = {note.id: None for note in batch.notes}
    said |= {note.id: None for one in batch.experience for note in one.feedback}
    model = {} if spec.model is None else {"model": spec.model}
    return Candidate(
        scenario=spec.scenario,
        parent=spec.parent,
        reason=" ".join(proposal.reason.split()) or spec.recipe,
        recipe=spec.recipe,
        job=spec.id,
        config=config,
        records=tuple(one.receipt for one in batch.experience),
        reports=tuple(said),
        instructions=tuple(one.id for one in batch.instructions),
        harness=changed,
        environment={"reef": __version__, "python": platform.python_version(), "machine": platform.machine(), **model},
    )


# -- 3. the gate --------------------------------------------------------------------------------------


def _judged(spec: Spec, candidate: Candidate, batch: Batch, *, context: JobContext, channel: "Channel") -> GateResult:
    """A task that came only after its prompt was claimed has been learned, so it cannot tell: it is left out."""
    learned = {said for one in batch.experience for said in one.asked()}
    tasks = context.whole_tasks(TaskSet.GATE)
    held_out = [task for task in tasks if canonical(task.prompt) not in learned]
    if left := len(tasks) - len(held_out):
        channel.say(f"{left} of {len(tasks)} gate tasks are left out: this candidate learned from their prompts")
    after = {**spec.harness, **candidate.harness}
    files = {path: text for path, text in after.items() if text is not None}

    def on_pair(pair: Pair) -> None:
        context.job.add_pair(pair)
        channel.tell("pair", **asdict(pair))

    return judge(
        context,
        tasks=held_out,
        regression=context.whole_tasks(TaskSet.REGRESSION),
        incumbent=Variant(dict(spec.harness), Which.HEAD),
        candidate=Variant(files, Which.CANDIDATE if candidate.lora else Which.HEAD),
        alpha=spec.alpha,
        lost_allowed=spec.lost_allowed,
        done=context.job.pairs(),
        on_pair=on_pair,
    )


# -- the process --------------------------------------------------------------------------------------


class Channel:
    """JSON lines to the daemon. Whole lines only, from any thread."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    @classmethod
    def take(cls) -> "Channel":
        """Our stdout, which from here on is the log's for everybody else."""
        own = os.dup(1)
        os.set_inheritable(own, False)
        os.dup2(2, 1)
        return cls(os.fdopen(own, "w", encoding="utf-8"))

    def tell(self, event: str, **fields: object) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):  # the daemon is gone; so are we in a moment
            self._stream.write(json.dumps({"event": event, **fields}) + "\n")
            self._stream.flush()

    def progress(self, at: Progress) -> None:
        self.tell("progress", **asdict(at))

    def say(self, text: str) -> None:
        self.tell("say", text=text)


def _yield_to_people() -> None:
    """Give way to everything else on the machine, and never outlive the daemon: its end closes our stdin."""
    os.nice(19)
    with contextlib.suppress(OSError, AttributeError):  # Linux: even where a recipe holds the interpreter
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    threading.Thread(target=_watch, name="reef-watch", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    if os.getpgrp() == os.getpid():  # the group is ours: whatever the recipe started goes, too
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
