"""The line of screens: on any width each digit is there, and the name of where one is."""

import pytest

from daemon.core.paths import Home
from reef_cli.tui.keys import LISTS
from tests.fakes.dashboard import FakeDaemon
from tests.reef_cli.tui.seen import dashboard


@pytest.mark.parametrize(
    ("width", "last"),
    [
        (120, f"Reef  1 traces  2 releases  3 jobs  4 models  5 logs [6 status]{'embedded: ready':>57}"),
        (80, "Reef  1 traces  2 releases  3 jobs  4 models  5 logs [6 status]  embedded: ready"),
        (60, "Reef  1 traces  2  3  4  5 [6 status]        embedded: ready"),
        (40, "Reef  1 traces  2  3  4  5 [6 status]"),
    ],
)
async def test_names_go_from_the_last_screen_on(reef_home: Home, fake: FakeDaemon, width: int, last: str) -> None:
    async with dashboard(reef_home, (width, 12)) as seen:
        await seen.until(lambda: seen.app.desk.engine)
        for digit, name in enumerate(LISTS, 1):
            await seen.press(str(digit))
            await seen.shows(f"[{digit} {name}]")
            assert all(str(n) in seen.screen.splitlines()[0] for n in range(1, len(LISTS) + 1))
        assert seen.screen.splitlines()[0] == last
