"""The vendors' Python clients behind one face: ask for something, get what the client made of the answer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anthropic
import openai

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOKENS = 40


@dataclass
class Said:
    """``calls``: names and arguments; ``tokens``: what the client says was written."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tokens: int = 0


class Vendor(Protocol):
    """``error`` is the class of all of the client's errors, ``late`` the one for its timeouts."""

    error: type[Exception]
    late: type[Exception]
    client: Any

    async def ask(self, prompt: str, *, stream: bool, tools: bool = False, thinking: bool = False) -> Said: ...


class ChatClient:
    """OpenAI's, chat.completions."""

    error, late = openai.APIStatusError, openai.APITimeoutError

    def __init__(self, url: str, token: str, **more: Any) -> None:
        self.client: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=token, **more)

    async def ask(self, prompt: str, *, stream: bool, tools: bool = False, thinking: bool = False) -> Said:
        wanted: dict[str, Any] = {"model": "default", "messages": [{"role": "user", "content": prompt}]}
        wanted |= {"max_tokens": TOKENS}
        if tools:
            function = {"name": "bash", "parameters": SCHEMA}
            wanted |= {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
        if thinking:
            wanted |= {"reasoning_effort": "low"}
        if not stream:
            return self._said(await self.client.chat.completions.create(**wanted))
        wanted |= {"stream_options": {"include_usage": True}}
        async with self.client.chat.completions.stream(**wanted) as events:
            said = Said()
            async for event in events:
                if event.type == "chunk":
                    for choice in event.chunk.choices:
                        said.thinking += getattr(choice.delta, "reasoning_content", None) or ""
            try:
                whole = self._said(await events.get_final_completion())
            except openai.LengthFinishReasonError as cut:  # an answer all the same
                whole = self._said(cut.completion)
        whole.thinking = said.thinking
        return whole

    @staticmethod
    def _said(answer: Any) -> Said:
        message = answer.choices[0].message
        calls = [(one.function.name, json.loads(one.function.arguments)) for one in message.tool_calls or []]
        thinking = getattr(message, "reasoning_content", None) or ""
        return Said(message.content or "", thinking, calls, answer.usage.completion_tokens)


class MessagesClient:
    """Anthropic's."""

    error, late = anthropic.APIStatusError, anthropic.APITimeoutError

    def __init__(self, url: str, token: str, **more: Any) -> None:
        self.client: Any = anthropic.AsyncAnthropic(base_url=url, api_key=token, **more)

    async def ask(self, prompt: str, *, stream: bool, tools: bool = False, thinking: bool = False) -> Said:
        wanted: dict[str, Any] = {"model": "default", "messages": [{"role": "user", "content": prompt}]}
        wanted |= {"max_tokens": TOKENS}
        if tools:
            wanted |= {"tools": [{"name": "bash", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}}
        if thinking:
            wanted |= {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1024 + TOKENS}
        if not stream:
            return self._said(await self.client.messages.create(**wanted))
        async with self.client.messages.stream(**wanted) as events:
            return self._said(await events.get_final_message())

    @staticmethod
    def _said(answer: Any) -> Said:
        said = Said(tokens=answer.usage.output_tokens)
        for block in answer.content:
            if block.type == "text":
                said.text += block.text
            elif block.type == "thinking":
                said.thinking += block.thinking
            elif block.type == "tool_use":
                said.calls.append((block.name, block.input))
        return said


class ResponsesClient:
    """OpenAI's, responses."""

    error, late = openai.APIStatusError, openai.APITimeoutError

    def __init__(self, url: str, token: str, **more: Any) -> None:
        self.client: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=token, **more)

    async def ask(self, prompt: str, *, stream: bool, tools: bool = False, thinking: bool = False) -> Said:
        wanted: dict[str, Any] = {"model": "default", "input": prompt, "max_output_tokens": TOKENS}
        if tools:
            function = {"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}
            wanted |= {"tools": [function], "tool_choice": "required"}
        if thinking:
            wanted |= {"reasoning": {"effort": "low", "summary": "auto"}}
        if not stream:
            return self._said(await self.client.responses.create(**wanted))
        last: Any = None
        async with self.client.responses.stream(**wanted) as events:
            async for event in events:
                if event.type in ("response.completed", "response.incomplete"):
                    last = event.response
        return self._said(last)

    @staticmethod
    def _said(answer: Any) -> Said:
        said = Said(answer.output_text, tokens=answer.usage.output_tokens)
        for item in answer.output:
            if item.type == "function_call":
                said.calls.append((item.name, json.loads(item.arguments)))
            elif item.type == "reasoning":
                said.thinking += "".join(part.text for part in item.summary)
        return said


VENDORS: dict[str, type[Any]] = {"chat": ChatClient, "messages": MessagesClient, "responses": ResponsesClient}


@asynccontextmanager
async def vendor(name: str, url: str, token: str, **more: Any) -> AsyncIterator[Vendor]:
    """A client of that dialect; it retries nothing unless told so."""
    made: Vendor = VENDORS[name](url, token, **{"max_retries": 0, **more})
    try:
        yield made
    finally:
        await made.client.close()
