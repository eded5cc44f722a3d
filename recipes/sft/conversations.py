"""Conversations as examples to learn from, and as questions to ask again. Pure: nothing here asks a model.

An example never holds what only the teacher was told: a note stands in the question that is asked again, not in the
one that is learned from.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from daemon.core.learning import Experience
from daemon.core.records import Message, Text

Conversation = tuple[Message, ...]


def plain(experience: Experience) -> bool:
    """Text alone, and a person asked last: the tools on offer are not recorded with an exchange, so one with tools
    would be learned as if there had been none.
    """
    texts = all(isinstance(part, Text) for message in experience.prompt for part in message.parts)
    return texts and bool(experience.prompt) and experience.prompt[-1].role == "user"


def hinted(prompt: Conversation, note: str, shown: Sequence[Experience] = ()) -> Conversation:
    """The question with ``note`` at the end of its last message, where small models obey it best (a system message they
    mostly ignore); with edited answers to other questions ``shown`` as earlier turns.
    """
    last = prompt[-1]
    asked = replace(last, parts=(Text(f"{last.text}\n\n{note}"),))
    turns: list[Message] = []
    for one in shown:
        turns += [one.prompt[-1], Message("assistant", (Text(one.edit or one.answer),))]
    return (*prompt[:-1], *turns, asked)


def example(prompt: Sequence[Message], answer: str) -> dict[str, Any]:
    """As `recipes.lora.train.Spec` takes it."""
    return {"messages": [{"role": turn.role, "content": turn.text} for turn in prompt], "answer": answer}
