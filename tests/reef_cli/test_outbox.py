"""The outbox against a real daemon: nothing lost, nothing doubled, whoever is killed when."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from daemon.core.client import Client
from daemon.core.errors import NotFound, ReefError, Unreachable
from daemon.core.paths import Home
from reef_cli.outbox import Entry, Outbox, Report, Sent, last_answer
from tests.fakes.daemon import running_daemon, start
from tests.fakes.provider import Turn, running_provider
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)


@pytest.fixture
def outbox(served: Served) -> Iterator[Outbox]:  # noqa: F811
    found = Outbox(served.home)
    yield found
    assert found.waiting() == []


def about(served: Served, receipt: str, **said: Any) -> Report:  # noqa: F811
    record = served.daemon.get(f"/reef/records/{receipt}")
    return Report(record["scenario"], record["session"], receipt, **said)


def reports(served: Served, receipt: str) -> list[tuple[Any, Any, bool]]:  # noqa: F811
    rows = served.daemon.get(f"/reef/records/{receipt}")["reports"]
    return [(row["score"], row["feedback"], row["undone_ns"] is not None) for row in rows]


def flushed(served: Served, outbox: Outbox) -> list[Sent]:  # noqa: F811
    sent: list[Sent] = []
    outbox.flush(Client(served.home.socket), sent.append)
    return sent


def test_what_was_put_is_private_and_sent_in_order(served: Served, outbox: Outbox) -> None:  # noqa: F811
    receipt = served.ask("put and sent")
    bad, note = about(served, receipt, score=0.0), about(served, receipt, feedback="use\nuv \x1b[31m")
    outbox.put(Entry((bad, note)))
    outbox.put(Entry(undo=(bad.id,)))
    files = list(served.home.outbox.glob("*.json"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600, 0o600]
    assert stat.S_IMODE(served.home.outbox.stat().st_mode) == 0o700
    first, second = flushed(served, outbox)
    assert [one.id for one in first.stored] == [bad.id, note.id]
    assert [one["id"] for one in second.undone] == [bad.id]
    assert reports(served, receipt) == [(0.0, None, True), (None, "use\nuv \x1b[31m", False)]


def test_sent_twice_is_stored_once(served: Served, outbox: Outbox) -> None:  # noqa: F811
    receipt = served.ask("sent twice")
    entry = Entry((about(served, receipt, score=1.0),))
    for _ in range(3):  # as after an answer that was lost
        outbox.put(entry)
    flushed(served, outbox)
    assert reports(served, receipt) == [(1.0, None, False)]


def test_the_answer_meant_is_the_last_one_when_it_was_said(served: Served, outbox: Outbox) -> None:  # noqa: F811
    question: dict[str, object] = {"role": "user", "content": "asked, rated, and asked on"}
    first = served.converse(question)
    meant = replace(about(served, first, score=0.0), receipt=None)
    outbox.put(Entry((meant,)))
    said = served.daemon.get(f"/reef/traces/{first}")["records"][0]["answer"]["parts"][0]["text"]
    second = served.converse(question, {"role": "assistant", "content": said}, {"role": "user", "content": "more"})
    assert last_answer(Client(served.home.socket), meant.session)["receipt"] == second
    (sent,) = flushed(served, outbox)
    assert [one.receipt for one in sent.stored] == [first]
    assert reports(served, first) == [(0.0, None, False)]
    assert reports(served, second) == []


def test_pins_are_sent_in_order_and_again_where_nobody_answered(served: Served, outbox: Outbox) -> None:  # noqa: F811
    asked = [served.daemon.get(f"/reef/records/{served.ask(f'golden {n}')}")["session"] for n in range(2)]
    kept = Entry(pins=tuple(asked))
    for entry in (kept, kept, Entry(pins=(asked[0],), pinned=False), Entry(pins=("ses_0",))):
        outbox.put(entry)
    sent = flushed(served, outbox)
    assert [one.pins for one in sent] == [kept.pins, kept.pins, (asked[0],), ()]
    assert isinstance(sent[3].refused[0][1], NotFound)
    assert [one["id"] for one in served.daemon.get("/reef/sessions?q=is:pinned")["items"]] == [asked[1]]
    logged = [one["event"] for one in served.daemon.get("/reef/audit")["items"] if one["event"] in ("pin", "unpin")]
    assert logged == ["unpin", "pin"]  # what was so already is not done again


def test_what_is_about_nothing_any_more_goes(served: Served, outbox: Outbox) -> None:  # noqa: F811
    receipt = served.ask("beside what is gone")
    gone = Report("default", "ses_00000000000000000000000000", None, score=1.0)
    other = Report("default", gone.session, "rec_00000000000000000000000000", score=1.0)
    outbox.put(Entry((gone, about(served, receipt, score=1.0), other), undo=("rep_unknown",)))
    (sent,) = flushed(served, outbox)
    assert [id for id, _ in sent.refused] == [gone.id, other.id]
    assert all(isinstance(error, ReefError) and error.message for _, error in sent.refused)
    assert reports(served, receipt) == [(1.0, None, False)]


def test_a_session_without_answers(served: Served) -> None:  # noqa: F811
    with pytest.raises(NotFound, match="has no answer to rate"):
        last_answer(Client(served.home.socket), "ses_00000000000000000000000000")


def test_what_another_version_wrote_stays(served: Served) -> None:  # noqa: F811
    outbox, path = Outbox(served.home), served.home.outbox / "00000000000000000001-1.json"
    outbox.put(Entry())
    path.write_text(json.dumps({"reports": [{"unheard": "of"}], "undo": [], "at_ns": 1}))
    assert flushed(served, outbox) == [Sent()]
    assert path.exists()
    path.unlink()


def test_a_full_disk_is_told(reef_home: Home) -> None:
    reef_home.outbox.write_text("in the way")
    with pytest.raises(ReefError, match=r"outbox"):
        Outbox(reef_home).put(Entry())


def test_a_command_goes_on_where_the_outbox_cannot_be_changed(
    served: Served,  # noqa: F811
    outbox: Outbox,
    capsys: pytest.CaptureFixture[str],
) -> None:
    receipt = served.ask("in an outbox that is broken")
    outbox.put(Entry((about(served, receipt, score=1.0),)))
    lock = served.home.outbox / "lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    assert outbox.deliver(Client(served.home.socket)) == []
    assert "which cannot be changed" in capsys.readouterr().err
    lock.rmdir()
    assert len(outbox.deliver(Client(served.home.socket))) == 1


def test_many_at_once_send_each_once(served: Served, outbox: Outbox) -> None:  # noqa: F811
    receipts = [served.ask(f"many at once {n}") for n in range(4)]
    for receipt in receipts:
        outbox.put(Entry((about(served, receipt, score=1.0),)))
    sent: list[Sent] = []
    threads = [
        threading.Thread(target=Outbox(served.home).flush, args=(Client(served.home.socket), sent.append))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.receipt or "" for each in sent for one in each.stored) == sorted(receipts)
    assert [reports(served, receipt) for receipt in receipts] == [[(1.0, None, False)]] * 4


def test_it_waits_for_a_daemon_and_the_next_command_sends_it(reef_home: Home, run_reef: Any) -> None:
    with running_provider() as provider:
        config = provider.config()
        daemon = start(reef_home, config)
        try:
            provider.turns = (Turn("an answer"),)
            body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            receipt = daemon.post("/v1/chat/completions", body)[1]["x-reef-agent-record-id"]
            record = daemon.get(f"/reef/records/{receipt}")
        finally:
            daemon.stop()
        outbox, said = Outbox(reef_home), Report("default", record["session"], None, feedback="kept")
        outbox.put(Entry((said,)))
        with pytest.raises(Unreachable):
            outbox.flush(Client(reef_home.socket), lambda sent: None)
        assert [one.reports[0].feedback for one in outbox.waiting()] == ["kept"]
        assert run_reef(reef_home, "status", "--json").json()["feedback_waits"] == 1
        assert (
            "feedback   1 said while no daemon ran; kept, sent to the next one\n" in run_reef(reef_home, "status").out
        )
        with running_daemon(reef_home, config) as daemon:
            result = run_reef(reef_home, "status", "--json")
            assert "sent what waited for the daemon: 1 piece of feedback" in result.err
            assert [one["feedback"] for one in daemon.get(f"/reef/records/{receipt}")["reports"]] == ["kept"]
            assert "waited" not in run_reef(reef_home, "traces", "list").err
            outbox.put(Entry((replace(said, id="rep_other"),)))
            assert "sent what waited" in run_reef(reef_home, "traces", "list").err


_OPENED = """
import sys
from pathlib import Path
from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.outbox import Entry, Outbox, Report
home = Home(Path(sys.argv[1]))
outbox = Outbox(home)
"""
_WRITER = """
for n in range(100000):
    outbox.put(Entry((Report("default", sys.argv[2], sys.argv[3], feedback=f"note {n}"),)))
    print(n, flush=True)
"""
_SENDER = "outbox.flush(Client(home.socket), lambda sent: print(len(sent.stored), flush=True))"


def killed_after(lines: int, program: str, *arguments: str) -> int:
    """Run a program until it has printed so many lines, and kill it; how many lines came."""
    command = [sys.executable, "-c", _OPENED + program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        count = 0
        for count, _ in enumerate(process.stdout, 1):
            if count == lines:
                os.kill(process.pid, signal.SIGKILL)
    return count


def test_whoever_is_killed_nothing_is_lost_and_nothing_doubled(served: Served) -> None:  # noqa: F811
    """A writer that is killed while it writes, a sender that is killed while it sends."""
    receipt = served.ask("killed at any time")
    session = served.daemon.get(f"/reef/records/{receipt}")["session"]
    kept = killed_after(40, _WRITER, str(served.home.root), session, receipt)
    assert killed_after(5, _SENDER, str(served.home.root)) < kept
    assert len(Outbox(served.home).waiting()) > 0
    flushed(served, Outbox(served.home))
    said = [feedback for _, feedback, _ in reports(served, receipt)]
    assert said[:kept] == [f"note {n}" for n in range(kept)]
    assert len(said) - kept <= 1  # one that was on disk and not acknowledged yet
