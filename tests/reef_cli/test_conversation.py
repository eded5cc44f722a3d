"""How a trace reads: one line for what is folded, all of it on request, everything inert."""

import json
from typing import Any

import pytest

from reef_cli import conversation

RECORD = {
    "receipt": "rec_1",
    "kind": "main",
    "end": "ok",
    "status": 200,
    "started_ns": 0,
    "duration_us": 1_500_000,
    "prompt_tokens": 100,
    "cached_tokens": 0,
    "completion_tokens": 20,
    "model": "tiny",
    "preview": "hello",
    "error": None,
}
SESSION = {
    "id": "ses_1",
    "title": "A title",
    "agent": "pi",
    "scenario": "default",
    "turns": 1,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "cwd": "/work",
    "score": 0.5,
}


def read(*parts: dict[str, Any], role: str = "assistant", full: bool = False) -> list[str]:
    """The lines of one message."""
    message = {"role": role, "parts": list(parts)}
    trace = {
        "session": SESSION,
        "records": [{"record": RECORD, "new_messages": [message], "answer": None, "reports": []}],
    }
    return list(conversation.lines(trace, full=full))[4:]


def test_the_heading_says_who_where_and_how_much() -> None:
    lines = list(conversation.lines({"session": SESSION, "records": []}))
    assert lines == ["A title", "ses_1, pi, scenario default, 1 turn, 100 + 20 tokens, /work, score 0.5"]


@pytest.mark.parametrize(("dirty", "said"), [(True, ", changed"), (False, ", unchanged"), (None, "")])
def test_the_heading_says_at_which_commit(dirty: bool | None, said: str) -> None:
    at = {"commit": "4f2c91d0aa" + "0" * 30, "dirty": dirty}
    lines = list(conversation.lines({"session": SESSION | at, "records": []}))
    assert f"/work, at 4f2c91d0aa{said}, score 0.5" in lines[1]


def test_text_keeps_its_lines() -> None:
    assert read({"type": "text", "text": "one\ntwo"}) == ["assistant", "  one", "  two"]


@pytest.mark.parametrize(
    ("part", "folded"),
    [
        ({"type": "thinking", "text": "hm " * 90}, "  thinking (270 characters) hm hm"),
        (
            {"type": "tool_use", "id": "c", "name": "bash", "arguments": '{"command": "ls"}'},
            "  > bash $ ls",
        ),
        ({"type": "tool_result", "id": "c", "content": "a\nb", "is_error": False}, "  < a b"),
        ({"type": "tool_result", "id": "c", "content": "no", "is_error": True}, "  < error no"),
        ({"type": "image", "media_type": "image/png", "source": "sha256:ab"}, "  [image image/png, sha256:ab]"),
        ({"type": "of a newer daemon"}, "  [of a newer daemon]"),
    ],
)
def test_the_rest_is_folded_to_a_line(part: dict[str, Any], folded: str) -> None:
    lines = read(part)
    assert len(lines) == 2
    assert lines[1].startswith(folded)


def test_full_unfolds() -> None:
    def call(**arguments: object) -> list[str]:
        return read({"type": "tool_use", "id": "c", "name": "t", "arguments": json.dumps(arguments)}, full=True)

    assert call(command="x" * 200) == ["assistant", f"  > t $ {'x' * 200}"]
    assert call(command="x" * 300)[1:] == [f"  > t $ {'x' * 200} …", f"    {'x' * 300}"]
    assert call(path="a.py", oldText="one", newText="two \x1b") == [
        "assistant", "  > t a.py", "    -one", "    +two \\x1b",
    ]  # fmt: skip


def test_how_long_it_took_and_when_it_began() -> None:
    told = {**RECORD, "stream": True, "first_byte_us": 250_000}
    assert "1.5 s (first byte 250 ms, 16 tok/s)," in conversation.record_line(told)
    assert "1.5 s (first byte 1.2 s, 67 tok/s)," in conversation.record_line({**told, "first_byte_us": 1_200_000})


def test_images_are_named_with_their_size() -> None:
    one = {"media_type": "image/png", "source": "sha256:ab", "bytes": 12_345}
    assert read({"type": "image", **one}, role="user")[1] == "  [image image/png, 12 kB, sha256:ab]"
    part = {"type": "tool_result", "id": "c", "content": "shot", "is_error": False, "images": [one]}
    assert read(part, role="tool") == ["  < [image image/png, 12 kB, sha256:ab] shot"]


def test_a_system_prompt_is_folded_with_its_size() -> None:
    (_, line) = read({"type": "text", "text": "rule " * 100}, role="system")
    assert line.endswith("…  [500 characters]")


def test_what_an_agent_added_to_a_persons_words_is_folded() -> None:
    text = "<system-reminder>" + "rules\n" * 50 + "</system-reminder>\nfix it\nnow"
    part = {"type": "text", "text": text, "written": "\nfix it\nnow"}
    *lines, folded = read(part, role="user")
    assert lines == ["user", "  fix it", "  now"]
    assert "added by the agent: <system-reminder>rules rules" in folded
    assert "[346 characters]" in folded
    assert len(read(part, role="user", full=True)) == 54
    assert len(read({**part, "written": ""}, role="user")) == 2


def came_along(*, full: bool = False) -> list[str]:
    said = [
        ("system", "rules"),
        ("user", "an example"),
        ("assistant", "Ok."),
        ("user", "another"),
        ("assistant", "Ok."),
    ]
    added = [
        {"role": role, "parts": [{"type": "text", "text": text}]} | ({"earlier": True} if role != "system" else {})
        for role, text in said
    ]
    added.append({"role": "user", "parts": [{"type": "text", "text": "what was typed"}]})
    trace = {"session": SESSION, "records": [{"record": RECORD, "new_messages": added, "answer": None, "reports": []}]}
    return list(conversation.lines(trace, full=full))[4:]


def test_what_only_came_along_is_a_line() -> None:
    assert came_along() == [
        "system", "  rules", "  4 messages from before: an example Ok. another Ok.", "user", "  what was typed",
    ]  # fmt: skip
    assert came_along(full=True)[2:4] == ["user", "  an example"]


def test_calls_and_pictures_that_came_along_are_named() -> None:
    """B152: a call is its name and its arguments, whoever told of it."""
    shot = {"media_type": "image/png", "source": "sha256:ab", "bytes": 300}
    parts = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c", "name": "shot", "arguments": '{"of": "it"}'},
        {"type": "tool_result", "id": "c", "content": "taken", "is_error": False, "images": [shot]},
        {"type": "image", **shot},
    ]
    entry = {"new_messages": [{"role": "assistant", "parts": parts, "earlier": True}], "answer": None}
    ((part,),) = (message["parts"] for message in conversation.messages(entry))
    named = "[image image/png, 300 bytes, sha256:ab]"
    assert part["text"] == f'I look.\n> shot {{"of": "it"}}\n{named} taken\n{named}'


def test_tool_results_carry_their_own_mark() -> None:
    assert read({"type": "tool_result", "id": "c", "content": "ok", "is_error": False}, role="tool") == ["  < ok"]


def test_a_record_that_did_not_end_well_says_so() -> None:
    line = conversation.record_line({**RECORD, "end": "cancelled", "status": 499, "cached_tokens": 60, "cost_usd": 0.5})
    assert "cancelled (499)" in line
    assert "100 (60 cached) + 20 tokens $0.50" in line


@pytest.mark.parametrize(
    ("report", "line"),
    [
        ({"score": 1.0, "feedback": None}, "good"),
        ({"score": 0.0, "feedback": "wrong file"}, "bad: wrong file"),
        ({"score": 0.3, "feedback": None}, "score 0.3"),
        ({"score": None, "feedback": "note\x1b"}, "note\\x1b"),
        ({"score": 1.0, "feedback": None, "undone_ns": 5}, "good  (undone)"),
    ],
)
def test_reports(report: dict[str, Any], line: str) -> None:
    assert conversation.report_line(report) == line


def test_what_happened_after_an_answer_is_a_line() -> None:
    signals = [
        {"name": "tool", "value": 3, "text": "x"},
        {"name": "tool", "value": None, "text": ""},
        {"name": "turn", "value": None, "text": "no"},
        {"name": "stopped", "value": None, "text": ""},
    ]
    entry = {"record": RECORD, "new_messages": [], "answer": None, "reports": [], "signals": signals}
    lines = list(conversation.lines({"session": SESSION, "records": [entry]}))
    assert lines[-1] == "  then: a tool ended with 3, a tool returned, it was stopped"
    assert conversation.signals_line({"signals": signals[2:3]}) == ""


def test_a_fork_says_so() -> None:
    assert " main fork " in conversation.record_line({**RECORD, "edge": "fork"})
    assert "next" not in conversation.record_line({**RECORD, "edge": "next"})
