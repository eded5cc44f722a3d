"""THE table of keys, and that the program does what it says."""

import re

import pytest

from daemon.core.paths import Home
from reef_cli.commands import COMMANDS, Group
from reef_cli.tui.keys import EATEN, EATEN_BY_EDITORS, EVERYWHERE, KEYS, LISTS, Key, Place, at
from reef_cli.tui.screens.exchange import Changes, Raw
from reef_cli.tui.screens.jobs import Jobs, Log
from reef_cli.tui.screens.logs import Logs
from reef_cli.tui.screens.models import Facts, Models
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.release import Blame, Card, Diff
from reef_cli.tui.screens.releases import Releases
from reef_cli.tui.screens.status import Status
from reef_cli.tui.screens.trace import Trace
from reef_cli.tui.screens.traces import Traces
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.tui.seen import dashboard

COVERS = (
    "reef_cli/tui/screens/panel.py",
    "reef_cli/tui/screens/dialogs.py",
    "reef_cli/tui/screens/help.py",
    "reef_cli/tui/desk.py",
)
SCREENS: dict[Place, type[Panel]] = {
    Place.TRACES: Traces, Place.TRACE: Trace, Place.RELEASES: Releases, Place.RELEASE: Card, Place.JOBS: Jobs,
    Place.JOB: Log, Place.RAW: Raw, Place.CHANGES: Changes, Place.MODELS: Models, Place.MODEL: Facts, Place.LOGS: Logs,
    Place.STATUS: Status, Place.DIFF: Diff, Place.BLAME: Blame,
}  # fmt: skip

#: What only a terminal has.
WITHOUT_COMMAND = ("back", "quit", "suspend", "copy", "hints")


def test_ids_are_unique_and_no_key_is_eaten() -> None:
    assert len({key.id for key in KEYS}) == len(KEYS)
    assert not set(EATEN) & {name for key in KEYS for name in key.keys}
    assert [key.id for key in KEYS if set(key.keys) <= set(EATEN_BY_EDITORS)] == []


@pytest.mark.parametrize("place", list(Place))
def test_no_key_means_two_things_in_one_place(place: Place) -> None:
    names = [name for key in at(place) for name in key.keys]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("place", list(Place))
def test_every_key_has_its_method_and_binding(place: Place) -> None:
    screen = SCREENS[place]
    bound = {binding.id for binding in screen.BINDINGS if not isinstance(binding, tuple)}
    assert [key.id for key in at(place) if not hasattr(screen, f"do_{key.id}")] == list(LISTS)
    assert bound == {key.id for key in at(place)}


@pytest.mark.parametrize("key", [key for key in KEYS if key.id not in WITHOUT_COMMAND], ids=lambda key: key.id)
def test_every_action_has_a_command(key: Key) -> None:
    """Moving about has none; a command that is there has the verb that is named."""
    if key.id in ("down", "up", "top", "bottom", "page_down", "page_up"):
        assert not key.twin
        return
    assert key.twin
    for twin in key.twins:
        _, noun, *rest = twin.split()
        entry = COMMANDS.get(noun)
        if isinstance(entry, Group):
            assert rest[0] in entry.verbs
        else:
            assert entry is not None or noun == "--help"


@pytest.mark.parametrize("place", list(LISTS))
async def test_help_tells_every_key_of_the_place(reef_home: Home, fake: FakeDaemon, place: Place) -> None:
    async with dashboard(reef_home, (80, 90)) as seen:
        await seen.shows("nothing yet")
        await seen.press(str(LISTS.index(place) + 1))
        await seen.shows(f"{place}]")
        await seen.press("question_mark")
        await seen.shows(f"Keys in {place}, and the command that does the same")
        for key in at(place):
            assert re.search(rf"{re.escape(key.shown)} +{re.escape(key.text)}", seen.screen), key.id
            assert all(twin in seen.screen for twin in key.twins)
        assert "not now: the daemon is running" in seen.screen
        await seen.press("question_mark")
        await seen.shows(f"{place}]")


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24), (120, 36)])
async def test_help_is_whole_in_any_terminal(reef_home: Home, fake: FakeDaemon, width: int, height: int) -> None:
    """Every word of it can be scrolled to; nothing is cut."""
    async with dashboard(reef_home, (width, height)) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        await seen.press("f1")
        await seen.shows("Keys in traces")
        seen.golden(f"help-{width}x{height}")
        read = seen.screen
        for _ in range(len(at(Place.TRACES))):
            await seen.press("pagedown")
            read += seen.screen
        assert "…" not in read
        assert "twice)" in read
        words = set(read.split())
        assert [key.id for key in at(Place.TRACES) if not set(" ".join((key.text, *key.twins)).split()) <= words] == []
        await seen.press("g")
        await seen.until(lambda: "> j" in seen.screen)
        await seen.press("q")  # the help, not the dashboard
        await seen.shows("[1 traces]")


async def test_help_is_wrapped_again_when_the_terminal_changes(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home, (80, 24)) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        await seen.press("question_mark")
        await seen.shows("read the trace                       reef traces show ID")
        await seen.pilot.resize_terminal(40, 20)
        await seen.shows("│               reef traces show ID")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 240])
async def test_the_footer_keeps_help_and_quit(reef_home: Home, fake: FakeDaemon, width: int) -> None:
    async with dashboard(reef_home, (width, 10)) as seen:
        await seen.until(lambda: "quit" in seen.screen)
        assert "? help  q quit" in seen.screen.splitlines()[-1]


async def test_in_what_is_opened_q_goes_back(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(1)]
    fake.traces = {fake.sessions[0]["id"]: {"session": fake.sessions[0], "records": []}}
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press("enter")
        await seen.shows("Esc back")
        assert "quit" not in seen.screen.splitlines()[-1]
        await seen.press("q")
        await seen.shows("q quit")


async def test_in_a_wide_terminal_a_command_stands_beside_its_key(reef_home: Home, fake: FakeDaemon) -> None:
    async with dashboard(reef_home, (200, 60)) as seen:
        await seen.until(lambda: seen.app.desk.lost is None)
        await seen.press("question_mark")
        await seen.shows("Keys in traces")
        assert next(line for line in seen.screen.splitlines() if "reef good" in line).index("reef good") < 80


def test_everywhere_means_every_place() -> None:
    assert set(EVERYWHERE) == set(Place)
