"""The frames between the daemon and the worker: four bytes of length (little-endian), then JSON.

Both ends are the same code of the same version, so the format may change at will. Dataclasses of `daemon.core.records`
travel as JSON objects beside their class name; this module is the only one that knows which.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from daemon.core.errors import BadRequest, BadWeights, ContextOverflow, EngineError, EngineUnavailable
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta, ToolArguments, ToolStart
from daemon.core.records import (
    ChatRequest,
    Image,
    Message,
    Part,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from daemon.engines.base import LoraFile

HEADER: Final = struct.Struct("<I")

_PARTS: Final[dict[str, type[Part]]] = {kind.__name__: kind for kind in (Text, Thinking, Image, ToolUse, ToolResult)}
_EVENTS: Final[dict[str, type[EngineEvent]]] = {
    kind.__name__: kind for kind in (Started, TextDelta, ToolStart, ToolArguments, Finished)
}
_ERRORS: Final = {kind.kind: kind for kind in (EngineError, EngineUnavailable, BadRequest, BadWeights)}


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """The first frame: what to load, and how. ``plain`` leaves out kernels that some processors fault on; ``beat``:
    seconds between signs of life.
    """

    path: str
    name: str
    sha256: str
    context: int | None
    parallel: int
    threads: int | None
    plain: bool = False
    beat: float = 5.0


@dataclass(frozen=True, slots=True)
class Ready:
    """The model is loaded. ``limit``: longest conversation in tokens; ``widest``: bytes of the longest token."""

    limit: int
    widest: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A LoRA adapter is in memory. ``change``: see `TokenEngine.load`."""

    change: float


def pack(message: object) -> bytes:
    body = msgspec.json.encode(message)
    return HEADER.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = msgspec.json.decode(body)
    return message


_T = TypeVar("_T")


def build(kind: type[_T], raw: object) -> _T:
    """A dataclass from its JSON object."""
    return msgspec.convert(raw, kind)


def encode_request(request: ChatRequest) -> dict[str, Any]:
    """The parts of a request that the worker reads; what only the dialect needs stays behind."""
    return {
        "model": request.model,
        "messages": [[m.role, [[type(p).__name__, _read(p)] for p in m.parts]] for m in request.messages],
        "tools": request.tools,
        "tool_choice": request.tool_choice,
        "parallel_tool_calls": request.parallel_tool_calls,
        "sampling": request.sampling,
        "response_schema": request.response_schema,
    }


def _read(part: Part) -> Part:
    """Without the pictures, which these models cannot see."""
    if isinstance(part, Image):
        return replace(part, url="")
    return replace(part, images=()) if isinstance(part, ToolResult) and part.images else part


def decode_request(raw: Mapping[str, Any]) -> ChatRequest:
    return ChatRequest(
        model=raw["model"],
        messages=tuple(
            Message(role, tuple(build(_PARTS[kind], value) for kind, value in parts)) for role, parts in raw["messages"]
        ),
        tools=build(tuple[Tool, ...], raw["tools"]),
        tool_choice=build(ToolChoice, raw["tool_choice"]),
        parallel_tool_calls=raw["parallel_tool_calls"],
        sampling=build(Sampling, raw["sampling"]),
        response_schema=raw["response_schema"],
    )


def encode_lora(lora: LoraFile | None) -> list[str] | None:
    return None if lora is None else [str(lora.path), lora.sha256, lora.base]


def decode_lora(raw: list[str] | None) -> LoraFile | None:
    return None if raw is None else LoraFile(Path(raw[0]), raw[1], raw[2])


def encode_event(event: EngineEvent | Loaded) -> list[object]:
    return [type(event).__name__, event]


def decode_event(kind: str, raw: object) -> EngineEvent:
    return build(_EVENTS[kind], raw)


def encode_error(error: EngineError) -> dict[str, Any]:
    extra = [error.tokens, error.limit] if isinstance(error, ContextOverflow) else None
    return {"kind": error.kind, "message": error.message, "hint": error.hint, "overflow": extra}


def decode_error(raw: Mapping[str, Any]) -> EngineError:
    if raw["overflow"]:
        return ContextOverflow(*raw["overflow"])
    return _ERRORS[raw["kind"]](raw["message"], hint=raw["hint"])
