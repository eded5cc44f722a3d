"""A conversation as the text a model was trained on: the GGUF's own chat template, rendered as Hugging Face does.

Templates differ in what they know. Each is probed once with small conversations, and what it lacks is said in words it
has: no system role, none in mid-conversation, no tools, roles that must alternate. Rendering never changes earlier text
when a conversation grows, because prefixes are reused.
"""

import datetime
import json
from collections.abc import Sequence
from typing import Any, Final

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from daemon.core.errors import BadRequest
from daemon.core.records import Image, Message, Text, Thinking, Tool, ToolResult, ToolUse
from daemon.engines.llama.calls import call_text, tools_text

Turn = dict[str, Any]

_PROBE: Final = "probe-7f3a"
_PROBE_TOOL: Final = Tool(_PROBE, "", {"type": "object", "properties": {}})
_CALLED: Final = "called-7f3a"
_PROBE_CALL: Final = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": _CALLED, "arguments": {}}}],
}


class _Generation(Extension):  # type: ignore[misc]  # jinja2 is untyped here: see pyproject.toml
    """``{% generation %}…{% endgeneration %}`` marks the assistant's part for training; the content passes through."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own interface)

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """One model's template. ``source`` is Jinja; ``tool_source`` a variant for requests with tools, if there is one."""

    def __init__(self, source: str, *, bos: str = "", eos: str = "", tool_source: str | None = None) -> None:
        """Raises BadRequest when the template cannot be compiled."""
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals.update(raise_exception=_raise, strftime_now=_strftime_now, bos_token=bos, eos_token=eos)
        try:
            self._plain = environment.from_string(source)
            self._tools = environment.from_string(tool_source) if tool_source else self._plain
        except jinja2.TemplateError as error:
            raise BadRequest(f"the model's chat template cannot be read: {error}") from error
        self._probe()

    def _probe(self) -> None:
        user, answer, system = _turn("user", "a"), _turn("assistant", "b"), _turn("system", _PROBE)
        result = {"role": "tool", "name": _PROBE, "tool_call_id": "call_1", "content": "result-7f3a"}
        self._knows_system = self._shows(_PROBE, [system, user])
        self._knows_late_system = self._shows(_PROBE, [user, answer, system, user])
        self._knows_repeats = self._shows(_PROBE, [user, _turn("user", _PROBE)])
        self._knows_tools = (
            self._shows(_PROBE, [user], [_PROBE_TOOL])
            and self._shows(_CALLED, [user, _PROBE_CALL], [_PROBE_TOOL])
            and self._shows("result-7f3a", [user, _PROBE_CALL, result], [_PROBE_TOOL])
        )

    def _shows(self, marker: str, turns: list[Turn], tools: Sequence[Tool] = ()) -> bool:
        try:
            return marker in self._text(turns, tools)
        except BadRequest:
            return False

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """The prompt, up to where the model's answer starts; a trailing assistant message is what it goes on from."""
        head = ""
        if messages[-1].role == "assistant" and messages[-1].text:
            head = messages[-1].text.rstrip()
            messages = messages[:-1]
        return self._text(self._turns(messages, tools), tools if self._knows_tools else ()) + head

    def _text(self, turns: list[Turn], tools: Sequence[Tool]) -> str:
        template = self._tools if tools else self._plain
        try:
            return str(template.render(messages=turns, tools=_listed(tools), add_generation_prompt=True))
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise BadRequest(f"the model's chat template refused the conversation: {error}") from error

    def _turns(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Turn]:
        lead = 0
        while lead < len(messages) and messages[lead].role == "system":
            lead += 1
        system = [message.text for message in messages[:lead] if message.text]
        if tools and not self._knows_tools:
            system.append(tools_text(tools))
        turns: list[Turn] = []
        names: dict[str, str] = {}
        for message in messages[lead:]:
            turns += self._system(message) if message.role == "system" else self._message(message, names)
        if system and self._knows_system:
            turns.insert(0, _turn("system", "\n\n".join(system)))
        elif system:
            turns.insert(0, _turn("user", "\n\n".join(system)))
        if not self._knows_system or not self._knows_repeats:
            turns = _joined(turns)
        return turns

    def _system(self, message: Message) -> list[Turn]:
        if self._knows_late_system:
            return [_turn("system", message.text)]
        return [_turn("user", f"<system>\n{message.text}\n</system>")]

    def _message(self, message: Message, names: dict[str, str]) -> list[Turn]:
        """A message's turns: results first, each its own, then its text. ``names`` maps call ids to tool names."""
        turns = [self._result(part, names) for part in message.parts if isinstance(part, ToolResult)]
        if not self._knows_tools and turns:
            turns = [_turn("user", "\n".join(turn["content"] for turn in turns))]
        if message.role == "assistant":
            return [*turns, self._answer(message, names)]
        text = _shown(message)
        return [*turns, _turn("user", text)] if text or not turns else turns

    def _result(self, part: ToolResult, names: dict[str, str]) -> Turn:
        content = f"Error: {part.content}" if part.is_error else part.content
        if self._knows_tools:
            name = names.get(part.id, "")
            return {"role": "tool", "tool_call_id": part.id, "name": name, "content": content}
        return _turn("user", f"<tool_response>\n{content}\n</tool_response>")

    def _answer(self, message: Message, names: dict[str, str]) -> Turn:
        calls = [part for part in message.parts if isinstance(part, ToolUse)]
        names.update((call.id, call.name) for call in calls)
        turn = _turn("assistant", _shown(message))
        thinking = "".join(part.text for part in message.parts if isinstance(part, Thinking))
        if thinking:
            turn["reasoning_content"] = thinking
        if calls and self._knows_tools:
            turn["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": _arguments(c.arguments)}}
                for c in calls
            ]
        elif calls:
            written = [call_text(call.name, call.arguments) for call in calls]
            turn["content"] = "\n".join([turn["content"], *written] if turn["content"] else written)
        return turn


def _turn(role: str, content: str) -> Turn:
    return {"role": role, "content": content}


def _shown(message: Message) -> str:
    """Text parts joined; an image leaves a mark, since these models read text only."""
    parts = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, Image):
            parts.append(f"[{part.media_type} left out: this model reads text only]")
    return "".join(parts)


def _joined(turns: list[Turn]) -> list[Turn]:
    """Neighbours of the same role made one, for templates whose roles must alternate."""
    joined: list[Turn] = []
    for turn in turns:
        if joined and turn["role"] == joined[-1]["role"] and turn["role"] in ("user", "system"):
            joined[-1] = {**turn, "content": f"{joined[-1]['content']}\n\n{turn['content']}"}
        else:
            joined.append(turn)
    return joined


def _listed(tools: Sequence[Tool]) -> list[dict[str, Any]] | None:
    if not tools:
        return None
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
        }
        for tool in tools
    ]


def _arguments(text: str) -> object:
    """Templates expect an object; a text that is none is passed as it is."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _tojson(value: object, indent: int | None = None, **_: Any) -> str:
    """Hugging Face's filter: no HTML escapes, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(layout: str) -> str:
    return datetime.datetime.now().astimezone().strftime(layout)
