"""Notes, marks, pins and tasks from the dashboard, on a real daemon; their dialogs as text."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import running_daemon, start
from tests.fakes.dashboard import FakeDaemon, session
from tests.fakes.provider import running_provider
from tests.reef_cli.commands.conftest import Served, cli  # noqa: F401  (a fixture)
from tests.reef_cli.conftest import Reef, run_reef  # noqa: F401  (a fixture)
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/saying.py",)
SIZES = [(80, 24), (120, 36)]
_SCORES = "scenarios: {default: {scores: [1, 5]}}\n"
HOSTILE = "\x1b]0;owned\x07\x1b[2J \u202egnp.exe [bold red]markup[/]"


@pytest.fixture(scope="module")
def served(module_home: Home) -> Iterator[Served]:
    with _served(module_home) as served:
        yield served


@pytest.fixture
def served_alone(reef_home: Home) -> Iterator[Served]:
    """Without the other tests' rows behind a dialog."""
    with _served(reef_home) as served:
        yield served


@contextmanager
def _served(home: Home) -> Iterator[Served]:
    scores = _SCORES.replace("default", "work")
    with running_provider() as provider, running_daemon(home, provider.config() + scores) as daemon:
        yield Served(daemon, provider)


def reports(served: Served, receipt: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = served.daemon.get(f"/reef/records/{receipt}")["reports"]
    return [one for one in told if not one["undone_ns"]]


def note(served: Served, receipt: str, text: str) -> None:
    status, told = served.daemon.control("POST", "/reef/report", {"feedback": text, "references": [receipt]})
    assert status == 200, told


async def at(seen: Seen, title: str) -> None:
    await seen.until(lambda: title in seen.marked and seen.app.desk.engine)


@pytest.mark.parametrize("size", SIZES)
async def test_a_note_stands_below_the_earlier_ones(served: Served, size: tuple[int, int]) -> None:
    receipt = await asyncio.to_thread(served.ask, f"noted at {size}")
    for text in ("the oldest one", f"hostile {HOSTILE}", "two\nlines of it", "a long one " * 20, "the newest one"):
        note(served, receipt, text)
    async with dashboard(served.home, size) as seen:
        await at(seen, f"noted at {size}")
        await seen.press("c")
        await seen.shows("1 more before these", "  * the newest one")
        assert "\x1b" not in seen.screen
        assert "[bold red]" in seen.screen  # as text
        await seen.press("up", "up", "up", "up", "up")
        await seen.press("ctrl+e", *" again", "ctrl+j", *"+ and more")
        await seen.shows("+ and more")
        seen.golden(f"note-{size[0]}x{size[1]}", real=True)
        await seen.press("enter")
        await seen.shows("noted:")
    assert reports(served, receipt)[-1]["feedback"].endswith(" again\n+ and more")


async def test_what_is_left_unsent_is_at_hand_again(served: Served) -> None:
    receipt = await asyncio.to_thread(served.ask, "a note that was left")
    async with dashboard(served.home) as seen:
        await at(seen, "a note that was left")
        await seen.press("c", *"half a thought", "escape")
        await at(seen, "a note that was left")
        assert reports(served, receipt) == []
        await seen.press("c", "up")
        await seen.shows("half a thought")
        await seen.press("enter")
        await seen.shows("noted:")
    assert [one["feedback"] for one in reports(served, receipt)] == ["half a thought"]


async def test_a_note_that_is_too_long_stays_in_the_box(served: Served) -> None:
    receipt = await asyncio.to_thread(served.ask, "noted at length")
    async with dashboard(served.home) as seen:
        await at(seen, "noted at length")
        seen.app.desk.ratings.written.append("x" * 100_001)
        await seen.press("c", "up", "enter")
        await seen.shows("a note has at most 100000 characters, this one has 100001")
        await seen.press("escape")
        await at(seen, "noted at length")
    assert reports(served, receipt) == []


@pytest.mark.parametrize("size", SIZES)
async def test_a_mark_where_the_scenario_scores(served: Served, size: tuple[int, int]) -> None:
    title = f"scored at {size}"
    receipt = await asyncio.to_thread(served.ask, title, scenario="work")
    async with dashboard(served.home, size) as seen:
        await at(seen, title)
        await seen.until(lambda: seen.app.desk.scales)
        await seen.press("v")
        await seen.shows("1: worst   5: best   Esc: cancel")
        seen.golden(f"score-{size[0]}x{size[1]}", real=True)
        await seen.press("7", "4")
        await seen.shows(f"4 of 5: {receipt}; z takes it back")
        (report,) = reports(served, receipt)
        assert (report["score"], report["metadata"]) == (0.75, {"scored": 4, "scale": [1, 5]})
        await seen.press("enter")
        await seen.shows("  * 4 of 5")
        await seen.press("escape")
        await seen.until(lambda: "4 of 5" in seen.marked)
        await seen.press("z")
        await seen.shows(f"undone: 4 of 5 on {receipt}")
        await seen.press("v", "escape")
        await at(seen, title)
    assert reports(served, receipt) == []


async def test_what_a_note_is_about_can_be_read(served: Served) -> None:
    """Whether the selected line is in the upper half of the screen or in the lower one."""
    await asyncio.to_thread(served.ask, "to be read meanwhile")
    for height in (24, 12):
        async with dashboard(served.home, (80, height)) as seen:
            await at(seen, "to be read meanwhile")
            await seen.press("c")
            await seen.shows("what to say about it")
            assert "to be read meanwhile" in seen.marked


async def test_no_mark_where_it_does_not(served: Served) -> None:
    await asyncio.to_thread(served.ask, "a question that is not scored")
    async with dashboard(served.home, (160, 24)) as seen:
        await at(seen, "a question that is not scored")
        await seen.press("v")
        await seen.shows("scenario 'default' knows good and bad, no scores (in config.yaml: scenarios:")


def test_reef_score(served: Served, cli: Reef) -> None:  # noqa: F811
    receipt = served.ask("scored from a shell", scenario="work")
    assert cli("score", "2", receipt).out.startswith(f"2 of 5  {receipt}  ")
    assert reports(served, receipt)[0]["score"] == 0.25
    assert "  * 2 of 5\n" in cli("traces", "show", receipt).out
    assert cli("score", "6", receipt, "--json").error()["message"] == "score 6 is not from 1 to 5"
    assert cli("score", "two", receipt).code == 2
    other = served.ask("not scored from a shell")
    assert "knows good and bad" in cli("score", "2", other, "--json").error()["message"]


async def test_pinning(served: Served, cli: Reef) -> None:  # noqa: F811
    await asyncio.to_thread(served.ask, "a golden trace")
    async with dashboard(served.home) as seen:
        await at(seen, "a golden trace")
        await seen.press("asterisk")
        await seen.shows("pinned as golden: 1 trace; z takes it back")
        await at(seen, "* a golden trace")
        await seen.press("enter")
        await seen.shows("* pinned")
        await seen.press("asterisk")
        await seen.shows("no longer pinned: 1 trace; z takes it back")
        await seen.until(lambda: "* pinned" not in seen.screen)
        await seen.press("z")
        await seen.shows("undone, pinned again: 1 trace")
        await seen.shows("* pinned")
    told = await asyncio.to_thread(cli, "traces", "list", "is:pinned")
    assert "a golden trace" in told.out


async def test_many_are_pinned_and_scored_at_once(served: Served) -> None:
    receipts = [await asyncio.to_thread(served.ask, f"one of two {n}", scenario="work") for n in range(2)]
    async with dashboard(served.home) as seen:
        await at(seen, "one of two 1")
        await seen.until(lambda: seen.app.desk.scales)
        await seen.press("space", "k", "space", "asterisk")
        await seen.shows("pinned as golden: 2 traces; z takes them back", "* one of two 0", "* one of two 1")
        await seen.press("v", "2")
        await seen.shows("2 of 5: 2 answers; z takes them back")
        await seen.press("t")
        await seen.shows("a task is made of one question")
        await seen.press("z")
        await seen.shows("undone: 2 of 5 on 2 answers")
        await seen.press("z")
        await seen.shows("undone, no longer pinned: 2 traces")
    assert [reports(served, receipt) for receipt in receipts] == [[], []]


@pytest.mark.parametrize("size", SIZES)
async def test_a_task_is_made_of_a_question(served_alone: Served, size: tuple[int, int]) -> None:
    asked = f"what is rain, at {size}? {HOSTILE} 👩\u200d💻"
    await asyncio.to_thread(served_alone.ask, asked)
    async with dashboard(served_alone.home, size) as seen:
        await at(seen, f"what is rain, at {size}?")
        await seen.press("t")
        await seen.shows("A task: what is asked")
        assert "\x1b" not in seen.screen
        await seen.press("enter")
        await seen.shows("a check is form:one_sentence, expression:")
        await seen.press(*"form:one_word", "enter")
        await seen.shows("no form is called 'one_word'")
        seen.golden(f"task-{size[0]}x{size[1]}", real=True)
        await seen.press("ctrl+u", *"form:one_sentence", "enter")
        await seen.shows("task added: tsk_", "in the gate set")
        await seen.press("z")
        await seen.shows("is removed again")
        await seen.press("t")
        await seen.shows("A task: what is asked")
        await seen.press(*"form:one_sentence", "enter")
        await seen.shows("task added: tsk_")
        await seen.press("t")
        await seen.shows("A task: what is asked")
        await seen.press(*"form:one_sentence", "shift+tab", "end", *" now", "enter")
        await seen.shows("task added: tsk_")
        await seen.press("t")
        await seen.shows("A task: what is asked")
        await seen.press("escape")
        await at(seen, f"what is rain, at {size}?")
    tasks = served_alone.daemon.get("/reef/tasks")["items"][:2]
    assert tasks[1]["prompt"] == asked  # as it was asked, not as it was shown
    assert tasks[1]["check"]["form"] == "one_sentence"
    assert " now" in tasks[0]["prompt"]


async def test_a_question_of_megabytes_is_no_task_to_be_typed(served: Served) -> None:
    receipt = await asyncio.to_thread(served.ask, "long " * 30_000)
    async with dashboard(served.home) as seen:
        await at(seen, "long long")
        await seen.press("t")
        await seen.shows("the question has 149999 characters, too many to be changed here")
        await seen.press("enter")
        await seen.until(lambda: seen.panel.place == "trace" and receipt in seen.screen)
        await seen.press("t")
        await seen.until(lambda: f"reef tasks add --from {receipt}" in " ".join(seen.screen.split()))


def test_reef_tasks_add_from(served: Served, cli: Reef) -> None:  # noqa: F811
    receipt = served.ask("what is snow?", scenario="work")
    told = cli("tasks", "add", "--from", receipt, "--form", "one_sentence", "--json").json()
    assert (told["prompt"], told["scenario"]) == ("what is snow?", "work")
    assert cli("tasks", "add", "--from", receipt, "--form", "one_sentence").out.startswith("merged")
    assert cli("tasks", "add", "and this", "--from", receipt, "--form", "json").code == 2
    assert cli("tasks", "add", "--from", "rec_0000000000", "--form", "json").code == 5


async def test_without_a_daemon_tasks_say_why(reef_home: Home) -> None:
    fake = FakeDaemon(reef_home.socket)
    with fake.running():
        fake.sessions = [session(1)]
        async with dashboard(reef_home) as seen:
            await at(seen, "session 1")
            await asyncio.to_thread(fake.stop)
            await seen.shows("! the daemon")
            seen.app.desk.ratings.made("tsk_1")
            for _ in range(2):  # it can be tried again
                await seen.press("k", "z")
                await seen.rated()
                await seen.shows("the daemon is not running (reef start)")
            await seen.press("k", "t")
            await seen.shows(": s starts it")
            fake.start()


async def test_a_mark_and_a_pin_outlive_a_daemon_that_is_killed_over_them(reef_home: Home) -> None:
    """It takes the requests, and never answers; another dashboard than the one that asked may see them stored."""
    with running_provider() as provider:
        daemon = await asyncio.to_thread(start, reef_home, provider.config() + _SCORES)
        served = Served(daemon, provider)
        receipts = [await asyncio.to_thread(served.ask, f"asked before the kill {n}") for n in range(2)]
        async with dashboard(reef_home) as seen:
            await at(seen, "asked before the kill 1")
            await seen.until(lambda: seen.app.desk.scales)
            daemon.process.send_signal(signal.SIGSTOP)
            await seen.press("v", "4")
            await seen.until(lambda: "4 of 5 …" in seen.marked)
            await seen.press("k", "asterisk")
            await seen.until(lambda: "pin …" in seen.marked)
            await seen.press("asterisk")
            await seen.until(lambda: "unpin …" in seen.marked)
            await seen.press("asterisk")
            await seen.until(lambda: "  pin …" in seen.marked.replace("un", "  "))
            await asyncio.to_thread(daemon.kill)
            await seen.shows("! the daemon")
        async with dashboard(reef_home) as seen:
            await seen.shows("4 pieces of feedback from before wait for the daemon")
            daemon = await asyncio.to_thread(start, reef_home, provider.config() + _SCORES)
            served = Served(daemon, provider)
            try:
                await seen.until(lambda: not list(reef_home.outbox.glob("*.json")))
                await seen.shows("* asked before the kill 0")
                await seen.until(lambda: "4 of 5" in seen.screen and "…" not in seen.screen)
                assert [len(reports(served, one)) for one in receipts] == [0, 1]
                assert reports(served, receipts[1])[0]["score"] == 0.75
            finally:
                await asyncio.to_thread(daemon.stop)


async def test_a_task_outlives_a_daemon_that_is_killed_over_it(reef_home: Home) -> None:
    """What was typed stays until a daemon has it, and that is told once where the first one had stored it."""
    with running_provider() as provider:
        daemon = await asyncio.to_thread(start, reef_home, provider.config())
        await asyncio.to_thread(Served(daemon, provider).ask, "asked before the kill")
        async with dashboard(reef_home) as seen:
            await at(seen, "asked before the kill")
            await seen.press("t")
            await seen.shows("A task: what is asked")
            await seen.press(*"form:one_sentence")
            for word in ("task added: tsk_", "that task is there already: tsk_"):
                daemon.process.send_signal(signal.SIGSTOP)
                await seen.press("enter")
                await asyncio.to_thread(daemon.kill)
                await seen.shows("reef start", "form:one_sentence")
                daemon = await asyncio.to_thread(start, reef_home, provider.config())
                await seen.press("enter")
                await seen.shows(word)
                if word.startswith("task added"):  # and once more, as if its answer had been lost
                    await seen.until(lambda: seen.app.desk.lost is None)
                    await seen.press("t")
                    await seen.shows("A task: what is asked")
                    await seen.press(*"form:one_sentence")
        assert len(daemon.get("/reef/tasks")["items"]) == 1
        await asyncio.to_thread(daemon.stop)
