"""What all screens share: the connection, the clock, what was rated, how the daemon is, how the person wants it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daemon.core.client import Client
from daemon.core.paths import Home
from daemon.core.version import __version__
from reef_cli.scoring import Scale, marked, scales
from reef_cli.tui.keys import Key
from reef_cli.tui.rating import Ratings
from reef_cli.tui.replay import Replay
from reef_cli.tui.settings import DEFAULTS, Settings, rebound
from reef_cli.tui.text import moment, one_line

Clock = Callable[[], int]


@dataclass(slots=True)
class Desk:
    """``lost`` says why the daemon does not answer ("" before the first try), None while it does; ``running`` is False
    where none is there. ``doubt`` is to be called when a request found no daemon; ``tell`` takes a sentence about
    what became of feedback, from any thread.

    ``unrecorded`` says why what the agents do now is not recorded, ``other`` which other version answers, ``scales``
    which scenarios score, ``news`` which release became a head, or waits for a yes, and nobody looked at yet.
    """

    home: Home
    now: Clock
    client: Client
    doubt: Callable[[], None]
    tell: Callable[[str], object]
    settings: Settings = DEFAULTS
    ratings: Ratings = field(init=False)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    lost: str | None = ""
    running: bool = True
    engine: str = ""
    unrecorded: str = ""
    other: str = ""
    news: str = ""
    hints: bool = field(init=False)
    keys: tuple[Key, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.hints = self.settings.hints
        self.keys = rebound(self.settings.keys)
        self.ratings = Ratings(self.home, self.client, self.tell, self.key("undo"))

    def key(self, id: str) -> str:
        """What a person presses for that action: its first key."""
        return next(key.shown.split()[0] for key in self.keys if key.id == id)

    @property
    def replay(self) -> Replay | None:
        return self.client if isinstance(self.client, Replay) else None

    @property
    def note(self) -> str:
        """What stands above every screen though nothing is wrong with the connection."""
        words = [self.replay.title() if self.replay else "", self.unrecorded, self.other]
        return "; ".join(word for word in words if word)

    def waits(self, session: Mapping[str, Any]) -> str:
        """What is told before a session's rating: what is on its way to the daemon, a mark on its scenario's scale."""
        return self.ratings.pending(session["id"]) or marked(session["score"], self.scales.get(session["scenario"]))

    def look(self, status: Mapping[str, Any]) -> int | None:
        """Take what ``GET /reef/status`` told; until when recording is paused."""
        version = one_line(str(status["version"]), 20)
        ours = version == __version__ or self.replay is not None
        self.other = (
            ""
            if ours
            else f"the daemon is now Reef {version}, this dashboard {__version__}: {self.key('quit')}, then reef"
        )
        self._hear(status["recording"])
        self.scales = scales(status)
        until: int | None = status["recording"]["until_ns"]
        return until

    def hear(self, engines: Sequence[Mapping[str, Any]]) -> None:
        """Take what an event told of the engines."""
        if engines:
            state = engines[0]["state"]
            self.engine = f"{engines[0]['name']}: {'asleep' if state == 'off' else state}"

    def hear_release(self, release: Mapping[str, Any]) -> None:
        """Take what an event told of a release or candidate."""
        name, scenario = one_line(release["id"], 40), one_line(release["scenario"], 40)
        if release["head"]:
            self.news = f"{name} is the new head of {scenario}: {self.key('releases')} shows it"
        elif release["state"] == "pending":
            self.news = f"{name} of {scenario} waits for your yes: {self.key('releases')} shows it"
        elif self.news.startswith(f"{name} "):  # decided elsewhere
            self.news = ""

    def _hear(self, state: Mapping[str, Any]) -> None:
        """Take how recording is."""
        until, detail = state["until_ns"], state["detail"]
        match state["state"]:
            case "paused":
                when = f" until {moment(until, self.now())}" if until else ""
                self.unrecorded = f"recording is paused{when}: reef resume"
            case "degraded":
                self.unrecorded = f"nothing is recorded now ({one_line(detail or '', 60)}): reef doctor"
            case _:
                self.unrecorded = ""
