"""A job's directory: the files that let it go on after kill -9, each written whole, in this order.

``spec.json`` (the daemon's), ``batch.json``, ``candidate/`` with ``proposal.json`` last in it, ``gate.jsonl`` (a pair a
line; a torn last line does not count) and ``result.json``. ``work/`` is the recipe's own. A file that is there is
complete and is never written again. ``curves.jsonl`` is only for who watches.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from daemon.core import plain
from daemon.core.errors import Conflict, RecipeError
from daemon.core.learning import Batch
from daemon.core.locks import open_lock, try_lock
from daemon.core.paths import open_plain, private_directory, write_private
from daemon.core.releases import BASE_RELEASE, Candidate, GateResult, Pair, Release
from recipes.base import Proposal

#: A process that was killed is gone in less.
_PATIENCE_SECONDS: Final = 5.0
_T = TypeVar("_T")
#: A result with every answer of its gate is far smaller.
_LARGEST: Final = 64 << 20
#: Files that grow though a job gets no further.
_NO_PROGRESS: Final = ("log", "lock", "curves.jsonl")
_CURVES: Final = 8
_DRAWN_MOST: Final = 1e9
_PEFT: Final = ("adapter_model.safetensors", "adapter_config.json")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a job is to do, fixed at its first start. ``recipe`` is a `recipes.registry` name, ``config`` its settings
    as given; ``harness`` are the incumbent's files; ``model`` is the sha256 of the model in use, None: not known.
    """

    id: str
    scenario: str
    recipe: str
    config: Mapping[str, Any] = field(default_factory=dict)
    incumbent: Release | None = None
    harness: Mapping[str, str] = field(default_factory=dict)
    alpha: float = 0.1
    lost_allowed: int = 1
    model: str | None = None

    @property
    def parent(self) -> str:
        return self.incumbent.id if self.incumbent else BASE_RELEASE


@dataclass(frozen=True, slots=True)
class Result:
    """Both None: nothing was proposed, ``reason`` says why."""

    candidate: Candidate | None = None
    gate: GateResult | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """``points``: a place (a step, a number of tasks) and the value there, in order."""

    name: str
    points: tuple[tuple[int, float], ...]


class JobDirectory(NamedTuple):
    root: Path

    @property
    def adapter(self) -> Path:
        """The candidate's LoRA adapter."""
        return self.root / "candidate" / "adapter.gguf"

    @property
    def peft(self) -> Path:
        return self.root / "candidate" / "peft"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @contextmanager
    def held(self) -> Iterator[None]:
        """For one process at a time: what a killed daemon left behind must not write beside its successor, which
        waits for its end. Raises Conflict when that takes too long.
        """
        handle = open_lock(self.root / "lock")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            while not try_lock(handle):
                if time.monotonic() > deadline:
                    raise Conflict(f"another process works on {self.root}", hint="reef jobs list")
                time.sleep(0.05)
            yield
        finally:
            os.close(handle)

    # -- spec and batch -------------------------------------------------------------------------------

    def spec(self) -> Spec | None:
        return self._told("spec.json", Spec)

    def write_spec(self, spec: Spec) -> None:
        private_directory(self.root)
        self._write("spec.json", msgspec.json.encode(spec))

    def batch(self) -> Batch | None:
        data = self._read("batch.json")
        return None if data is None else plain.batch(json.loads(data))

    def write_batch(self, batch: Batch) -> None:
        self._write("batch.json", msgspec.json.encode(plain.of_batch(batch)))

    def forget_batch(self) -> None:
        """Somebody else claimed part of it."""
        (self.root / "batch.json").unlink(missing_ok=True)

    # -- candidate ------------------------------------------------------------------------------------

    def candidate(self) -> Candidate | None:
        data = self._read("candidate/proposal.json")
        return None if data is None else msgspec.json.decode(data, type=Candidate)

    def write_candidate(self, candidate: Candidate, proposal: Proposal) -> Candidate:
        """Copy the proposal's weights beside it; the returned candidate names the copies."""
        private_directory(self.adapter.parent)
        if proposal.lora is not None:
            _copy(proposal.lora, self.adapter)
        if proposal.peft is not None:
            private_directory(self.peft)
            for name in _PEFT:
                _copy(proposal.peft / name, self.peft / name)
        complete = replace(
            candidate,
            lora=str(self.adapter) if proposal.lora is not None else None,
            peft=str(self.peft) if proposal.peft is not None else None,
        )
        self._write("candidate/proposal.json", msgspec.json.encode(complete))
        return complete

    # -- gate and result --------------------------------------------------------------------------------

    def pairs(self) -> list[Pair]:
        """Those that were measured, without a torn last one, which is cut off."""
        path = self.root / "gate.jsonl"
        if not path.exists():
            return []
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(path, len(whole))
        return [msgspec.json.decode(line, type=Pair) for line in whole.splitlines()]

    def was_judged(self) -> bool:
        """Whether any of its answers was compared, however it ended."""
        return (self.root / "gate.jsonl").exists()

    def add_pair(self, pair: Pair) -> None:
        with (self.root / "gate.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(pair) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def add_point(self, name: str, at: int, value: float) -> None:
        """A training's number, such as its loss, at a step of it."""
        with (self.root / "curves.jsonl").open("ab") as file:
            file.write(msgspec.json.encode((name, at, value)) + b"\n")

    def curves(self) -> list[Curve]:
        """What a person watches: a training's numbers by its steps; the share of tasks that pass, by how many were
        tried. What cannot be drawn is left out. Empty where nothing was measured, or nothing of it can be read.
        """
        found: dict[str, dict[int, float]] = {}
        for name, at, value in self._lines("curves.jsonl", tuple[str, int, float]):
            if 0 <= at <= _DRAWN_MOST and abs(value) <= _DRAWN_MOST:  # no NaN, either
                # A training that was resumed tells a step again.
                found.setdefault(name, {})[at] = value
        pairs = self._lines("gate.jsonl", Pair)
        for name, passed in (("served", [pair.incumbent for pair in pairs]),
                             ("candidate", [pair.candidate for pair in pairs])):  # fmt: skip
            if passed:
                found[f"score: {name}"] = {n: count / n for n, count in enumerate(accumulate(map(int, passed)), 1)}
        return [Curve(name, tuple(sorted(points.items()))) for name, points in list(found.items())[:_CURVES]]

    def result(self) -> Result | None:
        return self._told("result.json", Result)

    def write_result(self, result: Result) -> None:
        self._write("result.json", msgspec.json.encode(result))

    def tidy(self) -> None:
        """Spec, batch, pairs, result and log stay; what is large goes, and what a killed process had half written."""
        for folder in (self.adapter.parent, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        for half in self.root.glob(".*"):
            half.unlink(missing_ok=True)

    def forget(self) -> None:
        """A record that it learned from is to be forgotten: what it read, and what it said meanwhile."""
        for name in ("batch.json", "log"):
            (self.root / name).unlink(missing_ok=True)

    def mark(self) -> str:
        """How far the job is: which files there are, and their sizes. The log is no progress."""
        found = (path for path in sorted(self.root.rglob("*")) if path.is_file() and path.name not in _NO_PROGRESS)
        return "".join(f"{path.relative_to(self.root)} {path.stat().st_size}\n" for path in found)[:4000]

    def _lines(self, name: str, kind: type[_T]) -> list[_T]:
        """The lines that are whole and of that kind."""
        found: list[_T] = []
        with contextlib.suppress(OSError), open_plain(self.root / name) as file:
            for line in file.read(_LARGEST).splitlines():
                with contextlib.suppress(msgspec.MsgspecError):
                    found.append(msgspec.json.decode(line, type=kind))
        return found

    def _told(self, name: str, kind: type[_T]) -> _T | None:
        """What the daemon reads, in a folder where a recipe may have put anything. Raises RecipeError."""
        try:
            with open_plain(self.root / name) as file:
                data = file.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise RecipeError(f"{self.root / name} has more than {_LARGEST >> 20} MiB")
            return msgspec.json.decode(data, type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise RecipeError(f"{self.root / name} cannot be read: {error}") from error

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def _write(self, name: str, data: bytes) -> None:
        write_private(self.root / name, data)


def _copy(source: Path, target: Path) -> None:
    """Whole and on disk, or not there."""
    if not source.is_file():
        raise RecipeError(f"the recipe proposed {source}, which is no file")
    part = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, part)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.chmod(0o600)
    part.replace(target)
