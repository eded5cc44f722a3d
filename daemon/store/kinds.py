"""What a record is to its session, decided from plain facts. Pure.

Sessions, turn counts, feedback without references and everything that trains hang on this: a side call taken
for the conversation makes ``reef bad`` rate a title.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from daemon.core.records import Kind, StoredMessage

#: A side call is short; a conversation that merely quotes one of these forms is not.
_SHORT: Final = 6
#: How Codex asks for a title, in a terminal and under an id of its own; and what stands before the words it repeats.
_TITLE: Final = "Generate a concise, single-line task title"
_TYPED: Final = "\n\nUser prompt:\n"
#: How Qwen Code asks for what is to be remembered.
_MEMORY: Final = "Managed memory has TWO directories"
#: How the prompts begin of requests for a summary that hold a conversation as text.
_SUMMARIZERS: Final = (
    "You are a context summarization assistant.",  # Pi
    "You are a summarization agent creating a context checkpoint.",  # Hermes
)
#: How agents' own chores begin or what gives them away, as their requests were seen.
_CHORES: Final = (
    "Generate a title for this conversation:",  # OpenCode
    "\n</session>\n\nWrite the title in ",  # Claude Code, behind the words that it repeats
    "Generate a short, descriptive title (3-7 words) for a conversation",  # Hermes
    _MEMORY,
    "generates concise, one-line Git commit messages",  # Aider
    _TITLE,
    *_SUMMARIZERS,
)
#: How agents ask for the summary that takes the place of a history: in the last message, within so many letters.
_COMPACTIONS: Final = (
    "Your task is to create a detailed summary of the conversation so far",  # Claude Code
    "You are performing a CONTEXT CHECKPOINT COMPACTION",  # Codex
    "Provide a detailed prompt for continuing our conversation above",  # OpenCode
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",  # Claude Code, before the words above
    "You are the component that summarizes a conversation",  # Qwen Code
    "First, reason in your <analysis> block. Then, produce the <state_snapshot>",  # Qwen Code, where that failed
)
#: How agents ask after an answer what the person may type next.
_GUESS: Final = "[SUGGESTION MODE:"  # Qwen Code and Claude Code, in a terminal
_LOOK: Final = 2000
#: A chore that sums up a conversation repeats how it began; shorter beginnings prove nothing.
_QUOTE: Final = 12


@dataclass(frozen=True, slots=True)
class Facts:
    """``extends``: the kind of the record it goes on from. ``main_tools``: tools of the session's main line, None
    without one."""

    subagent: bool
    extends: Kind | None
    tools: int
    main_tools: int | None
    chore: bool
    #: Its headers or its last words say that it is no turn, whatever it goes on from.
    aside: bool = False


def classify(facts: Facts) -> Kind:
    """The first that holds: subagent, side, main. What is tried again is told by `daemon.store.placing` alone."""
    if facts.subagent:
        return Kind.SUBAGENT
    if facts.aside:
        return Kind.SIDE
    if facts.extends is not None:
        return Kind.SIDE if facts.extends is Kind.SIDE else Kind.MAIN
    if facts.chore or (facts.main_tools and not facts.tools):
        return Kind.SIDE
    return Kind.MAIN


def is_chore(messages: Sequence[StoredMessage]) -> bool:
    """Whether a request is one of the known chores: a title, a memory extraction, a commit message. A long one is known
    by its system prompt: it may repeat a whole conversation, as Qwen Code does before its last message."""
    looked = messages if len(messages) <= _SHORT else [message for message in messages[:1] if message.role == "system"]
    if messages and messages[-1].role == "user" and messages[-1].text.startswith(_MEMORY):
        return True
    for message in looked:
        text = message.text
        for form in _CHORES:
            if form in text:
                return True
    return False


def titled(messages: Sequence[StoredMessage]) -> str:
    """What the person typed, where this asks for a title and repeats it whole; else nothing."""
    asked, _, typed = (messages[-1].text if messages else "").partition(_TYPED)
    return typed if asked.startswith(_TITLE) else ""


def is_compaction(messages: Sequence[StoredMessage]) -> bool:
    """Whether a request asks for a summary of all that it repeats, so that the agent can forget it."""
    if not messages or messages[-1].role != "user":
        return False
    if len(messages) <= _SHORT and messages[0].text.startswith(_SUMMARIZERS):
        return True
    beginning = messages[-1].text[:_LOOK]
    return any(form in beginning for form in _COMPACTIONS)


def is_guess(messages: Sequence[StoredMessage]) -> bool:
    """Whether a request asks what the person will say, in their place."""
    return bool(messages) and messages[-1].role == "user" and messages[-1].text.startswith(_GUESS)


def quotes(messages: Sequence[StoredMessage], title: str) -> bool:
    """Whether a short request repeats a conversation's beginning, as title and summary calls do."""
    beginning = title.rstrip("…")
    return (
        len(messages) <= 3
        and len(beginning) >= _QUOTE
        and any(beginning in " ".join(message.text.split()) for message in messages)
    )
