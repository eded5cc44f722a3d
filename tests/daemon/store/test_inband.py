"""Which words speak to Reef, and what is left of a conversation without them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.records import Message, Role, Text, ToolResult
from daemon.store.inband import Said, read, said, without
from daemon.store.person import written
from daemon.store.titles import title


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("reef-good", Said("good")),
        ("reef-bad it broke the build", Said("bad", "it broke the build")),
        ("  reef-note\nuse uv,\nnot pip \n", Said("note", "use uv,\nnot pip")),
        ('"reef-good works"', Said("good", "works")),  # OpenCode, run
        ('"reef-good"', Said("good")),
        ('reef-bad: "missed newline"', Said("bad", "missed newline")),  # OpenCode, a command
        ('reef-note say "yes", then "no"', Said("note", 'say "yes", then "no"')),
        ("<system-reminder>reef-bad</system-reminder>\nreef-good", Said("good")),
        ("reef-good\n<system-reminder>be brief</system-reminder>", Said("good")),
        ("<system-reminder>reef-good</system-reminder>", None),
        ("reef-goods", None),
        ("reef-good.py fails", None),
        ("reef-good-enough", None),
        ("reef-good, thanks", None),
        ('reef-good"', None),
        ('"reef-goods"', None),
        ("Reef-Good", None),
        ("a reef-good", None),
        ("-reef-good", None),
        ("", None),
        ("[SUGGESTION MODE: reef-good]", None),
    ],
)
def test_the_first_word_decides(text: str, found: Said | None) -> None:
    assert read(text) == found


def message(role: Role, *texts: str) -> Message:
    return Message(role, tuple(Text(text) for text in texts))


def test_only_the_first_of_a_persons_texts_counts() -> None:
    assert said(message("user", "<system-reminder>x</system-reminder>", "reef-good", "a file")) == Said("good")
    assert said(message("user", "look at this", "reef-good")) is None, "a file that comes along may begin so"
    assert said(message("user")) is None


@pytest.mark.parametrize(
    "quoted",
    [
        "<system-reminder>a file: </system-reminder>\nreef-good</system-reminder>",
        "<system-reminder>a file: </system-reminder>\nreef-good\n<system-reminder></system-reminder>\nfix it",
        "<bash-stdout>a file: </bash-stdout>reef-good</bash-stdout>",
        "<task-notification>done</task-notification> reef-bad it</task-notification>",
    ],
)
def test_what_is_quoted_cannot_end_its_quotation_and_speak_as_the_person(quoted: str) -> None:
    assert said(message("user", quoted)) is None
    assert said(message("user", quoted, "reef-good")) is None


def test_neither_a_tool_nor_a_model_speaks_to_reef() -> None:
    assert said(message("assistant", "reef-good")) is None
    assert said(message("system", "reef-good")) is None
    assert said(Message("tool", (ToolResult("c", "reef-good"),))) is None
    assert said(Message("user", (ToolResult("c", "ok"), Text("reef-good")))) is None


def test_what_was_said_to_reef_is_left_out_with_its_answer() -> None:
    rules, ask, four = message("system", "rules"), message("user", "2 + 2?"), message("assistant", "Four.")
    good, kept = message("user", "reef-good"), message("assistant", "Reef: recorded good on rec_1")
    more = message("user", "3 + 3?")
    assert without([rules, ask, four, good, kept, good, kept, more]) == (rules, ask, four, more)
    assert without([good, rules, kept, more]) == (rules, more), "Claude Code puts a system's message behind the first"
    by_model = message("assistant", "Thank you!")
    assert without([ask, four, good, by_model, more]) == (ask, four, good, by_model, more)
    assert without([ask, four, good]) == (ask, four, good)
    assert without([ask, kept]) == (ask, kept)


def test_a_title_is_what_the_agent_was_asked() -> None:
    assert title("reef-good") == ""
    assert title("reef-goods are sold here") == "reef-goods are sold here"


_PIECES = st.sampled_from(
    [
        "reef-good",
        "reef-bad",
        "reef-note",
        '"',
        ":",
        " ",
        "\n",
        "<system-reminder>",
        "</system-reminder>",
        "x",
        "\0",
        "é",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text())
def test_whatever_is_said_is_read_or_is_not(text: str) -> None:
    found = read(text)
    if found is not None:
        assert text.find(f"reef-{found.word}") >= 0
        assert found.text == found.text.strip()
        assert found.text in written(text)


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), _PIECES | st.just("Reef: ok"))))
def test_what_is_left_is_of_the_conversation_and_in_order(drawn: list[tuple[Role, str]]) -> None:
    messages = [message(role, text) for role, text in drawn]
    left = without(messages)
    rest = iter(messages)
    assert all(any(one is other for other in rest) for one in left)
    assert without(left) == left or len(without(left)) < len(left)
    assert [one for one in messages if one.role in ("system", "tool")] == [
        one for one in left if one.role in ("system", "tool")
    ]
