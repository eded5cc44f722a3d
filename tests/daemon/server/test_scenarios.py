"""A scenario that is probably a slip of the pen is told in the log, once, and is served all the same."""

import logging

import pytest

from daemon.core.records import Appended, Kind
from daemon.server.scenarios import Scenarios, is_slip
from tests.fakes.exchanges import exchange, transcript, user

APPENDED = Appended("rec_1", "ses_1", Kind.MAIN, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("claude-code", "cluade-code"),
        ("work/api", "work/apis"),
        ("default", "defualt"),
        ("codex", "codec"),
        ("pirate", "irate"),
    ],
)
def test_names_a_letter_apart(one: str, other: str) -> None:
    assert is_slip(one, other)
    assert is_slip(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("run-1", "run-2"), ("run-1", "run-12"), ("pi", "po"), ("work", "work"), ("codex", "claude"), ("work", "works/x")],
)
def test_names_that_are_meant(one: str, other: str) -> None:
    assert not is_slip(one, other)
    assert not is_slip(other, one)


def test_it_is_told_once_and_only_of_what_was_recorded(caplog: pytest.LogCaptureFixture) -> None:
    scenarios = Scenarios(["claude-code"])
    typo = exchange(transcript([user("q")]), scenario="claude-cod", agent="claude-code")
    with caplog.at_level(logging.WARNING):
        scenarios.ended(typo, None)
        assert caplog.text == ""
        for _ in range(2):
            scenarios.ended(typo, APPENDED)
    assert caplog.text.count("one letter from 'claude-code'") == 1
