"""Tool calls in a model's text: how we write them, and how we read what models really write.

Read leniently, and never later than needed: ``<tool_call>{…}</tool_call>``, a JSON code block, or a bare JSON object at
the start of a line, as long as it names a tool on offer; all else stays text, and text is held back only while it may
still become a call. How the text is cut into pieces never changes the outcome.
"""

import json
import re
import secrets
from collections.abc import Collection, Sequence
from typing import Any, Final

from daemon.core.generation import TextDelta, ToolArguments, ToolStart
from daemon.core.records import Tool

CallEvent = TextDelta | ToolStart | ToolArguments

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"
_FENCE: Final = "```"
_OPEN_HEAD: Final = re.compile(OPEN + r"\s*")
_FENCE_HEAD: Final = re.compile(r"```[ \t]*(json|tool_call)?\s*")
_FENCE_WORDS: Final = ("json", "tool_call")
#: Keys with which an object may start for us to take it for a call.
_KEYS: Final = ("name", "arguments", "parameters", "function", "type", "id")
_FIRST_KEY: Final = re.compile(r'\{\s*(?:"([^"\\]*)("?))?')
_NAME_FIRST: Final = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]*)"')
_CUT_SHORT: Final = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')

_LENIENT: Final = json.JSONDecoder(strict=False)  # models write raw newlines into strings


def call_text(name: str, arguments: str) -> str:
    """A call as models without a tool template are told to write it."""
    return f'{OPEN}\n{{"name": {json.dumps(name)}, "arguments": {arguments or "{}"}}}\n{CLOSE}'


def tools_text(tools: Sequence[Tool]) -> str:
    """The tools on offer, for the system message of a model whose template knows none."""
    listed = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}, ensure_ascii=False
        )
        for tool in tools
    )
    example = call_text("NAME", '{"KEY": "VALUE"}')
    return (
        f"You can call these tools:\n{listed}\n"
        f"To call one, write only:\n{example}\n"
        "Its result comes back in <tool_response>. Answer in plain words when no tool is needed."
    )


def new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


class CallParser:
    """Splits streamed text into text and calls of the tools in ``names``. ``calls`` counts those found."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._buffer = ""
        self._blank = True  # nothing but spaces since the last line break
        self._closer: str | None = None  # after a call: what may end its block
        self._scan = _Braces()
        self.calls = 0

    def feed(self, text: str) -> list[CallEvent]:
        self._buffer += text
        return self._drain(last=False)

    def finish(self) -> list[CallEvent]:
        """The text ended: a call cut short is still a call, everything else held back is text."""
        return self._drain(last=True)

    def _drain(self, *, last: bool) -> list[CallEvent]:
        events: list[CallEvent] = []
        if not self._names:
            return self._emit(len(self._buffer))
        while self._buffer:
            if self._closer is not None:
                found = self._after_call(last)
            else:
                events += self._emit(self._marker())
                found = self._candidate(last) if self._buffer else None
                found = self._emit(1) if found == [] else found
            if found is None:
                break
            events += found
        return events

    def _emit(self, count: int) -> list[CallEvent]:
        """Release ``count`` characters as text."""
        if not count:
            return []
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        self._scan = _Braces()
        for char in text:
            self._blank = char == "\n" or (self._blank and char.isspace())
        return [TextDelta(text)]

    def _marker(self) -> int:
        """Where the next thing that may become a call starts; the buffer's length when nothing does."""
        blank = self._blank
        for index, char in enumerate(self._buffer):
            if char == "<" and OPEN.startswith(self._buffer[index : index + len(OPEN)]):
                return index
            if blank and (char == "{" or (char == "`" and _FENCE.startswith(self._buffer[index : index + 3]))):
                return index
            blank = char == "\n" or (blank and char.isspace())
        return len(self._buffer)

    def _candidate(self, last: bool) -> list[CallEvent] | None:
        """The buffer starts with a marker: its call; [] when it is text after all; None while that is open."""
        start = self._object_start()
        undecided: list[CallEvent] | None = [] if last else None
        if start is None:
            return undecided
        if start < 0 or not self._plausible(start):
            return []
        end = self._scan.end(self._buffer, start)
        if end is None:
            return self._cut_short(start) if last else None
        call = read_call(self._buffer[start:end], self._names)
        if call is None:
            return []
        opener = self._buffer[:start]
        self._closer = CLOSE if opener.startswith(OPEN) else _FENCE if opener else ""
        return self._take(end, call)

    def _object_start(self) -> int | None:
        """Index of the object's brace; -1 when there cannot be one; None when it has not come yet."""
        text = self._buffer
        if text[0] == "{":
            return 0
        head = _OPEN_HEAD.match(text)
        if head is not None:
            start = head.end()
        elif text.startswith(_FENCE):
            head = _FENCE_HEAD.match(text)
            start = head.end() if head else 0
            rest = text[start:]
            if rest and head and head[1] is None and any(word.startswith(rest) for word in _FENCE_WORDS):
                return None
        else:
            return None  # part of a marker
        if start == len(text):
            return None
        return start if text[start] == "{" else -1

    def _plausible(self, start: int) -> bool:
        """Whether what has come of the object can still be a call of a known tool."""
        key = _FIRST_KEY.match(self._buffer, start)
        if key is None or (key[1] is None and key.end() < len(self._buffer)):
            return False
        if key[1] is not None and (key[1] not in _KEYS if key[2] else not any(k.startswith(key[1]) for k in _KEYS)):
            return False
        name = _NAME_FIRST.match(self._buffer, start)
        return name is None or name[1] in self._names

    def _after_call(self, last: bool) -> list[CallEvent] | None:
        """Drop what closes a call's block, and spaces; take further calls in it. None: more text must come first."""
        closer = self._closer or ""
        self._buffer = rest = self._buffer.lstrip()
        if closer and rest.startswith(closer):
            self._buffer, self._closer = rest[len(closer) :], ""
            return []
        if not last and (not rest or (closer and closer.startswith(rest))):
            return None
        if closer and rest.startswith("{"):
            end = self._scan.end(rest, 0)
            if end is None and not last:
                return None
            call = read_call(rest[:end], self._names)
            if end is not None and call is not None:
                return self._take(end, call)
        self._closer, self._blank, self._scan = None, True, _Braces()
        return []

    def _take(self, end: int, call: tuple[str, str]) -> list[CallEvent]:
        """The buffer's text up to ``end`` is ``call``."""
        self._buffer, self._scan = self._buffer[end:], _Braces()
        return self._events(*call)

    def _cut_short(self, start: int) -> list[CallEvent]:
        """A call whose object never ended: its arguments as far as they go."""
        head = _CUT_SHORT.match(self._buffer, start)
        if head is None:
            return []
        rest = self._buffer[head.end() :]
        try:
            _, end = _LENIENT.raw_decode(rest)
            rest = rest[:end]
        except ValueError:
            rest = rest.removesuffix("\n" + CLOSE)
        self._buffer = ""
        return self._events(head[1], rest)

    def _events(self, name: str, arguments: str) -> list[CallEvent]:
        index = self.calls
        self.calls += 1
        return [ToolStart(index, new_call_id(), name), ToolArguments(index, arguments)]


class _Braces:
    """Finds the end of a JSON object, reading each character once however often it is asked."""

    def __init__(self) -> None:
        self._at = -1
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def end(self, text: str, start: int) -> int | None:
        """Index after the brace that closes the one at ``start``; None when it has not come."""
        self._at = max(self._at, start)
        while self._at < len(text):
            char = text[self._at]
            self._at += 1
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = char == "\\"
                self._quoted = char != '"'
            elif char == '"':
                self._quoted = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return self._at
        return None


def read_call(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Name and arguments (JSON text, as written where it is valid) of a JSON object that calls a known tool."""
    try:
        call = _LENIENT.decode(text)
    except ValueError:
        return None
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or call["name"] not in names:
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        return call["name"], arguments
    return call["name"], _as_written(text, arguments)


def _as_written(text: str, value: Any) -> str:
    """The slice of ``text`` that spells ``value``, so that numbers and spacing stay the model's; else spelled anew."""
    for match in re.finditer(r'"(?:arguments|parameters)"\s*:\s*', text):
        try:
            found, end = json.JSONDecoder().raw_decode(text, match.end())
        except ValueError:
            continue
        if found == value:
            return text[match.end() : end]
    return json.dumps(value, ensure_ascii=False)
