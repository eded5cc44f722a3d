"""The words of learning as plain data and back: what jobs keep in their directories and fetch over the socket.

Parts of a message carry their type's name, since nothing else tells them apart. `batch(of_batch(x)) == x` holds for
every batch, else a job that resumes learns from something else than it claimed.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from daemon.core.learning import Batch, Experience, Feedback, Instruction, Split
from daemon.core.records import Image, Message, Part, Text, Thinking, ToolResult, ToolUse

_TYPES: Final[dict[str, type[Part]]] = {
    "text": Text, "thinking": Thinking, "image": Image, "tool_use": ToolUse, "tool_result": ToolResult,
}  # fmt: skip
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}


def of_message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": [{"type": _NAMES[type(part)], **asdict(part)} for part in message.parts]}


def message(data: Mapping[str, Any]) -> Message:
    parts = ({**part} for part in data["parts"])
    return Message(data["role"], tuple(_TYPES[part.pop("type")](**part) for part in parts))


def of_experience(one: Experience) -> dict[str, Any]:
    return asdict(one) | {"prompt": [of_message(said) for said in one.prompt]}


def experience(data: Mapping[str, Any]) -> Experience:
    changed = {
        "split": Split(data["split"]),
        "prompt": tuple(message(said) for said in data["prompt"]),
        "feedback": tuple(Feedback(**said) for said in data["feedback"]),
        "completion_ids": tuple(data["completion_ids"]),
        "logprobs": tuple(data["logprobs"]),
    }
    return Experience(**{**data, **changed})


def instruction(data: Mapping[str, Any]) -> Instruction:
    return Instruction(**{**data, "requires": tuple(data["requires"])})


def of_batch(batch: Batch) -> dict[str, Any]:
    return asdict(batch) | {"experience": [of_experience(one) for one in batch.experience]}


def batch(data: Mapping[str, Any]) -> Batch:
    return Batch(
        tuple(experience(one) for one in data["experience"]),
        tuple(Feedback(**note) for note in data["notes"]),
        tuple(instruction(one) for one in data["instructions"]),
    )
