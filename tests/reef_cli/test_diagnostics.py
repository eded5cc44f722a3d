"""stderr: errors in both forms, tracebacks only when asked for, progress that a log can bear."""

import json

import pytest

from daemon.core.errors import ExitCode, NotFound
from reef_cli import diagnostics


def test_an_error_is_its_message_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    code = diagnostics.failure(NotFound("no record rec_x", hint="reef traces list"), as_json=False)
    told = capsys.readouterr()
    assert (code, told.out) == (ExitCode.NOT_FOUND, "")
    assert told.err == "error: no record rec_x\n  hint: reef traces list\n"


def test_an_error_in_json_is_the_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    diagnostics.failure(NotFound("no \x1b[31mrecord"), as_json=True)
    error = json.loads(capsys.readouterr().err)["error"]
    assert error == {"kind": "not_found", "message": "no \x1b[31mrecord", "hint": None}


def test_an_error_is_shown_inert(capsys: pytest.CaptureFixture[str]) -> None:
    diagnostics.failure(NotFound("no \x1b[31mrecord"), as_json=False)
    assert "\x1b" not in capsys.readouterr().err


def test_a_bug_is_short_and_says_where_the_log_is(capsys: pytest.CaptureFixture[str]) -> None:
    code = diagnostics.unexpected(ValueError("odd"), as_json=False, log="/home/x/daemon.log")
    err = capsys.readouterr().err
    assert code == ExitCode.FAILED
    assert "unexpected ValueError: odd" in err
    assert "/home/x/daemon.log" in err
    assert "Traceback" not in err


def test_a_bug_shows_its_traceback_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REEF_DEBUG", "1")
    try:
        raise ValueError("odd")
    except ValueError as error:
        diagnostics.unexpected(error, as_json=False, log="log")
    assert "Traceback" in capsys.readouterr().err


def test_progress_without_a_terminal_is_a_line_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    progress = diagnostics.Progress()
    for done in range(0, 1001):
        progress.update("fetching", done, 1000)
    progress.update("checking", 0, None)
    progress.close()
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 12
    assert told.err.splitlines()[5] == "fetching  50 %  500 bytes of 1 kB"
    assert told.err.splitlines()[-1] == "checking"
