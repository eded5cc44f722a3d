"""The demo's story: for a person in words, for a program in lines, and never past a failure unsaid."""

import json

import pytest

from daemon.core.errors import EngineError
from reef_cli.demo.story import Facts, Story


def failing() -> Facts:
    raise EngineError("no \x1b[31mmodel", hint="reef doctor")


def test_steps_are_numbered_and_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(as_json=False)
    assert story.step("ask", "Ask", lambda: {"asked": 36}) == {"asked": 36}
    story.table(("", "before"), (("weights", "0/40"),))
    assert capsys.readouterr().out == "1  Ask\n\n            before\n   weights  0/40\n"


def test_a_failure_is_told_with_its_hint_and_without_its_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert Story(as_json=False).step("model", "Model", failing) is None
    assert capsys.readouterr().out == "1  Model\n   failed: no \\x1b[31mmodel\n   hint: reef doctor\n\n"


def test_json_is_a_line_a_step_and_the_result_last(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(as_json=True)
    story.step("ask", "Ask", lambda: {"asked": 36})
    story.say("not in JSON")
    story.step("model", "Model", failing)
    story.end({"weights": {"verdict": "accept"}})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0].pop("seconds") >= 0
    assert lines == [
        {"step": "ask", "ok": True, "asked": 36},
        {
            "step": "model",
            "ok": False,
            "error": {"kind": "engine_error", "message": "no \x1b[31mmodel", "hint": "reef doctor"},
        },
        {"weights": {"verdict": "accept"}},
    ]


def test_what_others_said_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    Story(as_json=False).quote(">", "two\nlines \x1b]0;title\x07" + "x" * 200, 40)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert out.endswith("…\n")
