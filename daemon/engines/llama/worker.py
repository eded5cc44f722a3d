"""The worker process: loads one model, answers frames on stdin with frames on stdout, dies with the daemon.

The main thread makes every decoding call; a second one reads commands, renders prompts and can always end the process,
whatever native code does; a third brings LoRA adapters in; a fourth tells how long these three have been at it. The
real stdout is kept for frames alone: native libraries print to descriptor 1.
"""

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import Any, BinaryIO

from daemon.core.errors import BadRequest, EngineError
from daemon.core.generation import Finished
from daemon.core.records import ChatRequest
from daemon.engines.base import LoraFile
from daemon.engines.llama.context import Context
from daemon.engines.llama.frames import (
    HEADER,
    Loaded,
    Ready,
    WorkerSpec,
    build,
    decode_lora,
    decode_request,
    encode_error,
    encode_event,
    pack,
    unpack,
)
from daemon.engines.llama.generation import Generation, Prompt
from daemon.engines.llama.grammar import call_grammar, schema_grammar
from daemon.engines.llama.lora import Adapter, check
from daemon.engines.llama.model import Model, NativeLog
from daemon.engines.llama.sampling import Defaults, Sampler
from daemon.engines.llama.template import ChatTemplate
from daemon.engines.llama.turns import Batch, Turns

_LONGEST_DEFAULT = 8192


class Output:
    """Frames to the daemon, from any thread, one at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        with self._lock:
            self._file.write(pack(message))
            self._file.flush()


class Served:
    """A loaded model with everything needed to answer from it."""

    def __init__(self, spec: WorkerSpec, output: Output) -> None:
        self._output = output
        self._told = -1.0
        self.model = Model(spec, NativeLog(), self._progress)
        source = self.model.chat_template()
        vocab = self.model.vocab
        self.template = ChatTemplate(source, bos=vocab.bos, eos=vocab.eos, tool_source=self.model.template(b"tool_use"))
        self._defaults = Defaults.of(self.model)
        self._spec = spec
        self.context = self._new_context(None)
        self.turns = Turns(self.context, self._send, bring=self._bring, check=self._check)

    def _new_context(self, adapter: Adapter | None) -> Context:
        parallel = max(self._spec.parallel, 1)
        return Context(
            self.model,
            limit=self._spec.context or min(self.model.trained_context, _LONGEST_DEFAULT),
            parallel=parallel,
            background=parallel,
            threads=self._spec.threads or len(os.sched_getaffinity(0)),
            adapter=adapter,
        )

    def _check(self, lora: LoraFile) -> None:
        check(lora, self.model)

    def _bring(self, lora: LoraFile) -> Context:
        check(lora, self.model)
        with self.model.adapters:
            adapter = Adapter(self.model, lora)
            try:
                return self._new_context(adapter)
            except EngineError:
                adapter.close()
                raise

    def _progress(self, done: float) -> None:
        if done - self._told >= 0.05 or done >= 1:
            self._told = done
            self._output.send({"loading": done})

    def _send(self, batch: Batch) -> None:
        message: dict[str, object] = {
            "events": [
                [number, "Error", encode_error(item)]
                if isinstance(item, EngineError)
                else [number, *encode_event(item)]
                for number, item in batch
            ]
        }
        if any(isinstance(item, Finished | Loaded) for _, item in batch):
            message["speed"] = [self.turns.speed.prompt, self.turns.speed.decode]
            message["loras"] = self.turns.loras
        self._output.send(message)

    def handle(self, command: Mapping[str, Any]) -> None:
        number = command["number"]
        if command["do"] == "cancel":
            self.turns.cancel(number)
            return
        try:
            lora = decode_lora(command.get("lora"))
            if command["do"] == "load" and lora is not None:
                self.turns.load(number, lora)
                return
            request = decode_request(command["request"])
            text = self.prompt_text(request)
            if command["do"] == "count":
                count = len(self.model.vocab.tokenize(text))
                self._output.send({"events": [[number, "Counted", count]]})
                return
            sampler = Sampler(self.model.vocab, request.sampling, self._defaults, forced_grammar(request))
            prompt = Prompt.of(request, text, sampler)
            vocab, background = self.model.vocab, command.get("background", False)
            alone = background and request.sampling.temperature == 0
            self.turns.submit(Generation(number, prompt, vocab, lora=lora, background=background, alone=alone))
        except EngineError as error:
            self._output.send({"events": [[number, "Error", encode_error(error)]]})
        except Exception as error:  # an edge: one request's odd input must not end the thread that serves all
            failure = EngineError(f"the engine could not prepare the request: {error!r}", hint="reef logs")
            self._output.send({"events": [[number, "Error", encode_error(failure)]]})

    def prompt_text(self, request: ChatRequest) -> bytes:
        offered = () if request.tool_choice.mode == "none" else request.tools
        return self.model.vocab.start(self.template.render(request.messages, offered))


def forced_grammar(request: ChatRequest) -> str | None:
    """The grammar that the request asks for, if any. Raises BadRequest for a choice among no tools."""
    choice = request.tool_choice
    if choice.mode in ("required", "named"):
        tools = [tool for tool in request.tools if choice.mode == "required" or tool.name == choice.name]
        if not tools:
            raise BadRequest(f"tool_choice asks for {choice.name or 'a tool'!r}, which is not among the tools")
        return call_grammar(tools)
    if request.response_schema is not None:
        return schema_grammar(request.response_schema, request.tools if choice.mode == "auto" else ())
    return None


def _private_stdout() -> BinaryIO:
    """The pipe to the daemon, on a descriptor of its own; descriptor 1 goes where 2 goes."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def _read(file: BinaryIO) -> dict[str, Any]:
    """The next frame. The end of the pipe is the end of the daemon: leave at once, native calls or not."""
    header = file.read(HEADER.size)
    body = file.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else b""
    if not body:
        os._exit(0)
    return unpack(body)


def main() -> None:
    faulthandler.enable()  # a crash in native code leaves its Python stack in the log
    output = Output(_private_stdout())
    commands = sys.stdin.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the daemon decides
    spec = build(WorkerSpec, _read(commands))
    ready = threading.Event()
    served: list[Served] = []
    command_began: list[float] = []

    def read_commands() -> None:
        while True:
            command = _read(commands)
            ready.wait()
            command_began.append(time.monotonic())
            served[0].handle(command)
            command_began.clear()

    def beat() -> None:
        """How long what goes on has been going on."""
        while True:
            time.sleep(spec.beat)
            turns = [one.turns for one in served]
            began = [*command_began, *(one.round_began for one in turns), *(one.chore_began for one in turns)]
            now = time.monotonic()
            output.send({"beat": now - min((one for one in began if one is not None), default=now)})

    for name, work in (("commands", read_commands), ("beat", beat)):
        threading.Thread(target=work, name=name, daemon=True).start()
    try:
        served.append(Served(spec, output))
        ready.set()
        engine = served[0]
        output.send({"ready": Ready(engine.context.limit, engine.model.vocab.widest())})
        engine.turns.run()
    except EngineError as error:
        output.send({"failed": encode_error(error)})
    except Exception:  # an edge: the daemon sees the process end, a person the reason in the log
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)  # the other thread sits in a read that Python would wait for


if __name__ == "__main__":
    main()
