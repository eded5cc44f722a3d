"""What is asked again, and what is learned from it."""

from dataclasses import replace

from daemon.core.records import Message, Text, Thinking, ToolResult, ToolUse
from recipes.sft.conversations import example, hinted, plain
from tests.recipes.sft.one_sentence import NOTE, experience, question


def said(*turns: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return turns


def told(messages: tuple[Message, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((message.role, message.text) for message in messages)


def test_a_note_stands_at_the_end_of_the_question() -> None:
    prompt = (Message("system", (Text("Be kind."),)), *question("What is tea?"))
    assert told(hinted(prompt, NOTE)) == said(("system", "Be kind."), ("user", f"What is tea?\n\n{NOTE}"))
    assert told(prompt)[1] == ("user", "What is tea?")


def test_edited_answers_are_shown_as_earlier_turns() -> None:
    edited = experience(1, "What is rain?", answer="Water.")
    assert told(hinted(question("What is tea?"), NOTE, [edited])) == said(
        ("user", "What is rain?"), ("assistant", "Water."), ("user", f"What is tea?\n\n{NOTE}")
    )


def test_an_example_holds_the_question_without_the_note() -> None:
    assert example(question("What is tea?"), "Leaves.") == {
        "messages": [{"role": "user", "content": "What is tea?"}],
        "answer": "Leaves.",
    }


def test_conversations_with_tools_are_left_out() -> None:
    one = experience(1, "What is tea?")
    call = Message("assistant", (ToolUse("1", "look", "{}"),))
    result = Message("tool", (ToolResult("1", "leaves"),))
    assert plain(one)
    assert not plain(replace(one, prompt=(*one.prompt, call, result)))
    assert not plain(replace(one, prompt=(*one.prompt, Message("assistant", (Text("It"),)))))
    thought = Message("assistant", (Thinking("Hm.", seal="anthropic:EqQBCkYIBRgCKkA"), Text("It rains.")))
    assert not plain(replace(one, prompt=(thought, *one.prompt))), "a signature is nothing to learn from"
