"""Kinds from plain facts."""

import dataclasses

import pytest

from daemon.core.records import Kind
from daemon.store.kinds import Facts, classify, is_chore, is_compaction, quotes
from tests.fakes.exchanges import assistant, system, user

PLAIN = Facts(subagent=False, extends=None, tools=0, main_tools=None, chore=False)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, Kind.MAIN),
        ({"tools": 3}, Kind.MAIN),
        ({"subagent": True, "chore": True}, Kind.SUBAGENT),
        ({"subagent": True, "aside": True}, Kind.SUBAGENT),
        ({"aside": True, "extends": Kind.MAIN}, Kind.SIDE),
        ({"chore": True, "tools": 6}, Kind.SIDE),
        ({"main_tools": 5}, Kind.SIDE),
        ({"main_tools": 5, "tools": 5}, Kind.MAIN),
        ({"main_tools": 0}, Kind.MAIN),
        ({"main_tools": 5, "extends": Kind.MAIN}, Kind.MAIN),
        ({"main_tools": 5, "extends": Kind.RETRY}, Kind.MAIN),
        ({"main_tools": 5, "extends": Kind.SIDE, "tools": 5}, Kind.SIDE),
        ({"chore": True, "extends": Kind.MAIN}, Kind.MAIN),
    ],
)
def test_the_first_fact_that_holds_decides(changes: dict[str, object], kind: Kind) -> None:
    assert classify(dataclasses.replace(PLAIN, **changes)) is kind  # type: ignore[arg-type]


def test_a_long_conversation_that_quotes_a_chore_is_none() -> None:
    asked = user("Generate a title for this conversation:")
    assert is_chore([system("s"), asked])
    assert not is_chore([system("s"), *[user("x")] * 6, asked])


def test_a_title_for_a_later_exchange_is_a_chore() -> None:
    asked = system(
        "Generate a short, descriptive title (3-7 words) for a conversation that starts with the following …"
    )
    assert is_chore([asked, user("User: once more\n\nAssistant: Done: I created hello.txt")])


def test_codexs_title_is_a_chore() -> None:
    title = "Generate a concise, single-line task title of at most 36 characters and under five words wherever possible"
    assert is_chore([system("You are a coding agent"), user("<environment_context>"), user(title)])


def test_only_a_real_beginning_is_a_quote() -> None:
    asked = [system("s"), user("User: Create  hello.txt\nnow\n\nAssistant: done")]
    assert quotes(asked, "Create hello.txt now")
    assert quotes(asked, "Create hello.txt…")
    assert not quotes(asked, "Delete hello.txt")
    assert not quotes(asked, "Create")
    assert not quotes([*asked, user("a"), user("b")], "Create hello.txt now")


@pytest.mark.parametrize(
    "text",
    [
        "Your task is to create a detailed summary of the conversation so far, paying close attention to …",
        "CRITICAL: plain text only.\n\nYour task is to create a detailed summary of the conversation so far, …",
        "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM",
        "Provide a detailed prompt for continuing our conversation above.",
    ],
)
def test_a_request_for_a_summary_of_everything_is_known_by_its_last_message(text: str) -> None:
    talk = [system("s"), *[user("x"), assistant("y")] * 20]
    assert is_compaction([*talk, user(text)])
    assert not is_compaction([*talk, user(text), assistant("summary"), user("go on")])
    assert not is_compaction([*talk, assistant(text)])


def test_a_summary_of_a_conversation_that_stands_in_one_message_is_a_chore() -> None:
    """Pi's prompt is the system's, Hermes' the beginning of the only message."""
    of_pi = [system("You are a context summarization assistant. Your task is to read …"), user("<conversation>…")]
    of_hermes = [user("You are a summarization agent creating a context checkpoint. Treat the conversation turns …")]
    for asked in (of_pi, of_hermes):
        assert is_chore(asked)
        assert is_compaction(asked)
