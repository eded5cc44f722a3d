"""The worker process spoken to directly, frame by frame, as no daemon would."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import ChatRequest, Message, Sampling, Text, Tool, ToolChoice
from daemon.engines.llama.frames import HEADER, WorkerSpec, encode_request, pack, unpack
from daemon.engines.llama.worker import forced_grammar
from tests.conftest import ROOT
from tests.fakes.lora import lora_file

CLOCK = Tool("clock", "", {"properties": {}})
HI = (Message("user", (Text("Hi"),)),)


class Worker:
    """A worker process and its pipes."""

    def __init__(self, spec: WorkerSpec, *program: str) -> None:
        command = [sys.executable, *(program or ("-P", "-m", "daemon.engines.llama.worker"))]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)
        self.stdin, self.stdout = cast(BinaryIO, self.process.stdin), cast(BinaryIO, self.process.stdout)
        self.send(spec)

    def send(self, message: object) -> None:
        self.stdin.write(pack(message))
        self.stdin.flush()

    def frame(self) -> dict[str, Any] | None:
        header = self.stdout.read(HEADER.size)
        return unpack(self.stdout.read(HEADER.unpack(header)[0])) if header else None

    def until(self, key: str) -> dict[str, Any]:
        while (frame := self.frame()) is not None:
            if key in frame:
                return frame
        raise AssertionError(f"the worker ended without {key}: {self.errors()}")

    def errors(self) -> str:
        return cast(BinaryIO, self.process.stderr).read().decode()

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(60)
        self.stdout.close()
        cast(BinaryIO, self.process.stderr).close()


@pytest.fixture(scope="module")
def worker(model_path: Path) -> Iterator[Worker]:
    worker = Worker(WorkerSpec(str(model_path), "smollm2", "5a" * 32, 256, 2, 1, plain=True))
    ready = worker.until("ready")["ready"]
    assert ready["limit"] == 256
    assert ready["widest"] >= 16
    yield worker
    worker.close()
    assert worker.process.returncode == 0


def request(number: int, **more: Any) -> dict[str, Any]:
    body = encode_request(ChatRequest("m", HI, sampling=Sampling(max_tokens=2, temperature=0), **more))
    return {"do": "generate", "number": number, "request": body}


def answer(worker: Worker, number: int) -> list[list[Any]]:
    """All events of a request."""
    events: list[list[Any]] = []
    while not events or events[-1][1] not in ("Finished", "Error", "Counted", "Loaded"):
        events += [event for event in worker.until("events")["events"] if event[0] == number]
    return events


@pytest.mark.engine
def test_a_request_is_answered_in_frames(worker: Worker) -> None:
    worker.send(request(1))
    events = answer(worker, 1)
    assert events[0][1] == "Started"
    assert events[-1][1] == "Finished"
    assert events[-1][2]["span"]["weights"] == "5a" * 32


@pytest.mark.engine
def test_an_odd_request_is_refused_and_the_next_answered(worker: Worker) -> None:
    odd = request(2)
    odd["request"]["sampling"] = {"max_tokens": "many"}
    worker.send(odd)
    [[_, kind, error]] = answer(worker, 2)
    assert (kind, error["kind"]) == ("Error", "engine_error")
    worker.send(request(3))
    assert answer(worker, 3)[-1][1] == "Finished"


@pytest.mark.engine
def test_cancelling_what_is_not_known_is_nothing(worker: Worker) -> None:
    worker.send({"do": "cancel", "number": 999})
    worker.send({**request(4), "do": "count"})
    [[_, kind, count]] = answer(worker, 4)
    assert kind == "Counted"
    assert count > 10


@pytest.mark.engine
def test_weights_are_loaded_answered_with_and_refused_in_frames(
    worker: Worker, model_path: Path, tmp_path: Path
) -> None:
    made = lora_file(model_path, tmp_path, scale=0.1)
    data = made.path.read_bytes().replace(made.base.encode(), b"5a" * 32)
    made.path.write_bytes(data)
    lora = [str(made.path), hashlib.sha256(data).hexdigest(), "5a" * 32]
    worker.send({"do": "load", "number": 20, "lora": lora})
    [[_, kind, value]] = answer(worker, 20)
    assert kind == "Loaded"
    assert value["change"] > 0
    worker.send({**request(21), "lora": lora, "background": True})
    assert answer(worker, 21)[-1][2]["span"]["weights"] == f"{'5a' * 32}+{lora[1]}"
    worker.send({"do": "load", "number": 22, "lora": [lora[0], "00" * 32, lora[2]]})
    [[_, kind, error]] = answer(worker, 22)
    assert (kind, error["kind"]) == ("Error", "bad_weights")
    worker.send(request(23))
    assert answer(worker, 23)[-1][2]["span"]["weights"] == "5a" * 32


@pytest.mark.engine
def test_what_native_code_prints_does_not_reach_the_frames(model_path: Path) -> None:
    program = (
        "import ctypes, runpy\n"
        "libc = ctypes.CDLL(None)\n"
        "import daemon.engines.llama.model as model\n"
        "before = model.Model.__init__\n"
        "def loud(*all):\n"
        "    libc.puts(b'printed by native code'); libc.fflush(None)\n"
        "    before(*all)\n"
        "model.Model.__init__ = loud\n"
        "runpy.run_module('daemon.engines.llama.worker', run_name='__main__')\n"
    )
    worker = Worker(WorkerSpec(str(model_path), "m", "", 256, 1, 1, plain=True), "-c", program)
    worker.until("ready")  # every frame before it could be read
    worker.stdin.close()
    assert "printed by native code" in worker.errors()
    worker.close()


@pytest.mark.engine
def test_a_closed_pipe_ends_it_before_it_has_loaded(model_path: Path) -> None:
    worker = Worker(WorkerSpec(str(model_path), "m", "", 256, 1, 1, plain=True))
    worker.close()
    assert worker.process.returncode == 0


@pytest.mark.engine
def test_a_model_that_cannot_be_loaded_is_told_in_a_frame(tmp_path: Path) -> None:
    worker = Worker(WorkerSpec(str(tmp_path / "none.gguf"), "none", "", 256, 1, 1))
    failed = worker.until("failed")["failed"]
    assert failed["kind"] == "engine_unavailable"
    assert "'none' cannot be loaded" in failed["message"]
    assert worker.frame() is None
    worker.close()


def test_which_requests_are_forced() -> None:
    def grammar(**more: Any) -> str | None:
        return forced_grammar(ChatRequest("m", HI, **more))

    assert grammar() is None
    assert grammar(tools=(CLOCK,)) is None
    assert grammar(tools=(CLOCK,), tool_choice=ToolChoice("none")) is None
    assert "clock" in (grammar(tools=(CLOCK,), tool_choice=ToolChoice("required")) or "")
    assert "clock" in (grammar(tools=(CLOCK,), tool_choice=ToolChoice("named", "clock")) or "")
    assert "clock" not in (grammar(response_schema={"type": "null"}) or "clock")
    assert "clock" in (grammar(tools=(CLOCK,), response_schema={"type": "null"}) or "")
    assert "clock" not in (
        grammar(tools=(CLOCK,), tool_choice=ToolChoice("none"), response_schema={"type": "null"}) or "clock"
    )


def test_a_choice_among_no_tools_is_refused() -> None:
    for choice in (ToolChoice("required"), ToolChoice("named", "clock")):
        with pytest.raises(BadRequest, match="tool_choice"):
            forced_grammar(ChatRequest("m", HI, tool_choice=choice))
