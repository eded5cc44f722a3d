"""Answers that are read while they come."""

import threading

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.live import Calls, Live
from tests.fakes.closeup import live_call
from tests.fakes.daemon import until
from tests.fakes.dashboard import FakeDaemon

ONE = live_call("rec_1", "ses_1")


def parts(calls: Calls) -> list[list[tuple[str, str]]]:
    return [live.take() for live in calls.running]


def test_neighbouring_pieces_of_a_kind_are_one_part(reef_home: Home, fake: FakeDaemon) -> None:
    told = threading.Event()
    fake.closeup.call(ONE, told=False)
    for kind, text in (("thinking", "a"), ("thinking", "b"), ("text", "c"), ("tool", "d"), ("text", "e")):
        fake.closeup.say("rec_1", kind, text)
    calls = Calls(Client(reef_home.socket), told.set)
    calls.begin(ONE)
    calls.begin(ONE)
    assert told.wait(60)
    until(lambda: parts(calls) == [[("thinking", "ab"), ("text", "c"), ("tool", "d"), ("text", "e")]], "all parts")
    calls.drop(["rec_1", "rec_unknown"])
    assert calls.running == []


def test_of_a_long_answer_the_end_is_shown(reef_home: Home, fake: FakeDaemon) -> None:
    fake.closeup.call(ONE, told=False)
    fake.closeup.say("rec_1", "text", "x" * 100_000 + "end")
    live = Live(Client(reef_home.socket), ONE, lambda: None)
    live.start()
    until(lambda: live.take(), "the text")
    ((_, text),) = live.take()
    assert (text.endswith("xend"), len(text)) == (True, 4000)
    live.stop()


def test_what_broke_off_is_read_again_from_the_beginning(reef_home: Home, fake: FakeDaemon) -> None:
    fake.closeup.call(ONE, told=False)
    fake.closeup.say("rec_1", "text", "one ")
    live = Live(Client(reef_home.socket, timeout=0.5), ONE, lambda: None)
    live.start()
    until(lambda: live.take() == [("text", "one ")], "the beginning")
    fake.stop()
    fake.closeup.call(ONE, told=False)
    fake.start()
    fake.closeup.say("rec_1", "text", "one two")
    until(lambda: live.take() == [("text", "one two")], "all of it", 20)
    fake.closeup.end("rec_1")
    until(lambda: live.ended, "its end")


def test_what_is_over_ends_and_goes(reef_home: Home, fake: FakeDaemon) -> None:
    calls = Calls(Client(reef_home.socket), lambda: None)
    calls.now([ONE])  # the daemon does not know it any more
    until(lambda: calls.running[0].ended, "its end")
    calls.now([])
    assert calls.running == []
