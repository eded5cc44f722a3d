"""Scripts of engine events for the tests of the renderers."""

from daemon.core.generation import (
    EngineEvent,
    Finished,
    FinishReason,
    Started,
    TextDelta,
    TokenLogprob,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import Usage

USAGE = Usage(prompt=20, completion=7, cached=12)


def spoken(*texts: str, reason: FinishReason = "stop", stop_sequence: str | None = None) -> list[EngineEvent]:
    return [
        Started(20, 12),
        *(TextDelta(text) for text in texts),
        Finished(reason, USAGE, stop_sequence=stop_sequence),
    ]


def called(*, text: str = "", second: str = '{"command": "pwd"}') -> list[EngineEvent]:
    """Text (or none), then two calls."""
    return [
        Started(20, 12),
        TextDelta(text),
        ToolStart(0, "call_a", "bash"),
        ToolArguments(0, '{"command": '),
        ToolArguments(0, '"ls"}'),
        ToolStart(1, "call_b", "bash"),
        ToolArguments(1, second),
        Finished("tool_calls", USAGE),
    ]


def weighed() -> list[EngineEvent]:
    """Two tokens with their log-probabilities."""
    return [
        Started(20, 12),
        TextDelta("Hi", (TokenLogprob(1, "Hi", -0.5, ((1, "Hi", -0.5), (2, "Ho", float("-inf")))),)),
        TextDelta("é", (TokenLogprob(3, "é", -1.0),)),
        Finished("stop", USAGE),
    ]
