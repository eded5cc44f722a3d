"""What a person says to Reef inside a conversation with an agent: ``reef-good``, ``reef-bad``, ``reef-note``.

Pure. Only a person's own words count, never what a tool gave back or an agent put around them: `person` tells those
apart. What was said to Reef and what it answered is no part of the work: nothing is ever learned from it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, get_args

from daemon.core.records import Message, StoredMessage, Text, ToolResult
from daemon.store import person

Word = Literal["good", "bad", "note"]
#: How the first word may look: OpenCode's commands put a colon behind it, its `run` quotes around all of it.
_SAID: Final = re.compile(rf"(?P<quote>\")?reef-(?P<word>{'|'.join(get_args(Word))}):?(?=\s|\Z|(?(quote)\"|\Z))")
#: How Reef's answer begins.
ANSWER: Final = "Reef: "


@dataclass(frozen=True, slots=True)
class Said:
    """``text`` is the note that came with the word; empty without one."""

    word: Word
    text: str = ""


def read(text: str) -> Said | None:
    """What a user's text says to Reef; None for everything else."""
    words = person.written(text).strip()
    found = _SAID.match(words)
    if found is None:
        return None
    rest = words[found.end() :]
    if found["quote"]:
        rest = rest.removesuffix('"')
    word: Word = found["word"]  # type: ignore[assignment]  # one of three
    return Said(word, _unquoted(rest.strip()))


def said(message: Message) -> Said | None:
    """The same of a message: the first of its texts that a person wrote counts. Nothing of an agent's stands before
    the word in it: a file that is quoted there could end the quotation itself, and speak as the person.
    """
    if message.role != "user" or any(isinstance(part, ToolResult) for part in message.parts):
        return None
    written = (part.text for part in message.parts if isinstance(part, Text) and person.written(part.text).strip())
    return next((read(text) for text in islice(written, 1) if _SAID.match(text.lstrip())), None)


def without(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A conversation without what was said to Reef and answered by it."""
    return tuple(_without(list(messages)))


def _without(messages: list[Message]) -> Iterator[Message]:
    answered = False  # by Reef, so what Reef says next is left out
    for n, message in enumerate(messages):
        if answered and message.role == "assistant":
            answered = False
        elif said(message) is not None and _is_ours(messages[n + 1 :]):
            answered = True
        else:
            yield message


def _is_ours(rest: list[Message]) -> bool:
    """Whether Reef answered: a model may have, where the words came in the middle of its work."""
    answer = next((message for message in rest if message.role != "system"), None)
    return answer is not None and answer.role == "assistant" and answer.text.startswith(ANSWER)


def is_answer(messages: Sequence[StoredMessage], n: int) -> bool:
    """Whether Reef, no model, said a message of a stored conversation."""
    if messages[n].role != "assistant" or not messages[n].text.startswith(ANSWER):
        return False
    asked = next((message for message in reversed(messages[:n]) if message.role != "system"), None)
    return asked is not None and asked.role == "user" and read(asked.text) is not None


def _unquoted(text: str) -> str:
    """Without quotes around all of it, as commands put them around their arguments."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1] else text
