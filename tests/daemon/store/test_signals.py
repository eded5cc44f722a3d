"""What happened after an answer, in the forms of real agents."""

import pytest

from daemon.core.records import Dialect, End, Kind, Message, Text, ToolResult
from daemon.core.rows import SignalName
from daemon.store.signals import Shown, Signal, exit_status, of


def shown(**changes: object) -> Shown:
    facts = {"seq": 2, "dialect": Dialect.CHAT, "kind": Kind.MAIN, "end": End.OK, "parent": 1, "retry_of": None}
    return Shown(**{**facts, **changes})  # type: ignore[arg-type]


def user(text: str) -> Message:
    return Message("user", (Text(text),))


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("Exit code 3\n11 hello.txt", 3),
        ("11 hello.txt\n\n\nCommand exited with code 3", 3),
        ("(no output)\n\n(Command exited with code 1)", 1),
        ("Chunk ID: f4\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nx", 0),
        ("Command: wc -c x\nDirectory: (root)\nOutput: 11\nError: (none)\nExit Code: 3\nSignal: (none)", 3),
        ("<returncode>-9</returncode>\n<output>\nx</output>", -9),
        (
            '{\n  "returncode": 3,\n  "output": "11 hello.txt\\n"\n}',
            3,
        ),
        ('{"command":"wc -c x","returncode":3,"stderr":"","stdout":"11\\n"}', 3),
        ('{"output": "11 hello.txt", "exit_code": 3, "error": null}', 3),
        ('{"output": "' + "x" * 9000 + '", "exit_code": 2, "error": null}', 2),
        ("x" * 9000 + "\n\nCommand exited with code 4", 4),
        ("hello-reef\n", None),
        ("the docs say: Exit code 3\nmeans that", None),
        ("", None),
    ],
)
def test_exit_status_in_each_agents_form(content: str, status: int | None) -> None:
    assert exit_status(content) == status


def test_each_tool_result_is_a_signal_about_the_answer_that_called_it() -> None:
    results = (ToolResult("1", "-rw-r--r--"), ToolResult("2", "Exit code 3\n11 hello.txt", is_error=True))
    found = list(of(shown(dialect=Dialect.MESSAGES), [Message("user", results)]))
    assert found == [
        Signal(1, SignalName.TOOL, 0),
        Signal(1, SignalName.TOOL, 3, "Exit code 3 11 hello.txt"),
    ]


def test_a_chat_result_that_tells_nothing_is_no_success() -> None:
    """OpenCode: the text alone, whatever happened."""
    (found,) = of(shown(), [Message("tool", (ToolResult("1", "11 hello.txt\n"),))])
    assert (found.name, found.value) == (SignalName.TOOL, None)


def test_a_failure_without_a_status_is_1() -> None:
    (found,) = of(shown(), [Message("tool", (ToolResult("1", "no such tool", is_error=True),))])
    assert found.value == 1


def test_the_next_turn_is_the_persons_words_alone() -> None:
    (found,) = of(shown(), [user("<system-reminder>x</system-reminder>no, in the other file")])
    assert found == Signal(1, SignalName.TURN, None, "no, in the other file")
    assert list(of(shown(), [user("<environment_context>x</environment_context>")])) == []


def test_a_stop_that_the_agent_tells_and_one_that_the_connection_tells() -> None:
    (told,) = of(shown(), [user("[Request interrupted by user]")])
    assert told == Signal(1, SignalName.STOPPED)
    (seen,) = of(shown(end=End.CANCELLED), [])
    assert seen == Signal(2, SignalName.STOPPED)


def test_a_refusal_is_no_result() -> None:
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    (found,) = of(shown(dialect=Dialect.MESSAGES), [Message("user", (ToolResult("1", said, is_error=True),))])
    assert found.name is SignalName.REFUSED


def test_a_retry_says_so_of_the_first_attempt_and_repeats_nothing() -> None:
    assert list(of(shown(kind=Kind.RETRY, retry_of=1), [user("q")])) == [Signal(1, SignalName.RETRIED)]


def test_side_calls_and_beginnings_show_nothing() -> None:
    assert list(of(shown(kind=Kind.SIDE), [user("title?")])) == []
    assert list(of(shown(parent=None), [user("q")])) == []


def test_going_back_is_about_what_was_left() -> None:
    found = list(of(shown(seq=5, left=3), [user("do it otherwise")]))
    assert found == [Signal(3, SignalName.LEFT), Signal(1, SignalName.TURN, None, "do it otherwise")]
