"""The dashboard's application: one screen a noun, the feed that keeps them true, at most ten updates a second.

It owns no facts. Nothing animates: an idle dashboard writes nothing to the terminal.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import ClassVar, Final

from rich.cells import cached_cell_len
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.theme import BUILTIN_THEMES
from textual.theme import Theme as TextualTheme
from textual.timer import Timer

from daemon.core.client import TIMEOUT, Client
from daemon.core.errors import ReefError
from daemon.core.paths import Home
from reef_cli.tui import clipboard
from reef_cli.tui.desk import Clock, Desk
from reef_cli.tui.feed import Feed
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Connected, Heard, Lost, Told
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.work import edge
from reef_cli.tui.settings import DEFAULTS, Settings, name_of
from reef_cli.tui.terminal import Terminal
from reef_cli.tui.themes import Theme

_UPDATE_SECONDS: Final = 0.1
#: A daemon that lives takes a reader of its events in a millisecond.
_FEED_SECONDS: Final = 5.0
#: Texts whose width is remembered; Rich remembers four times as many, a megabyte of lines that no list shows any more.
_MEASURED: Final = 1024

#: Imported when they are first shown: half of the start would be theirs.
_SCREENS: Final = {
    Place.TRACES: "traces:Traces",
    Place.RELEASES: "releases:Releases",
    Place.JOBS: "jobs:Jobs",
    Place.MODELS: "models:Models",
    Place.LOGS: "logs:Logs",
    Place.STATUS: "status:Status",
}
#: A client that waits so many seconds for an answer.
Connect = Callable[[float], Client]


def textual_themes() -> dict[Theme, TextualTheme]:
    """What Textual's own parts look like in our themes (`reef_cli.tui.themes` has the rest)."""
    dark, light, ansi = (BUILTIN_THEMES[name] for name in ("textual-dark", "textual-light", "ansi-dark"))
    dark = replace(dark, primary="#4FA8F0")  # Textual's own blue is too dark for text
    safe = replace(dark, primary="#56B4E9", secondary="#0072B2", warning="#F0E442", error="#D55E00",
                   success="#56B4E9", accent="#E69F00")  # fmt: skip
    found: dict[Theme, TextualTheme] = {"dark": dark, "light": light, "ansi": ansi, "safe": safe}
    return {name: replace(theme, name=name) for name, theme in found.items()}


class Dashboard(App[None], inherit_bindings=False):
    CSS_PATH = "reef.tcss"
    TITLE = "Reef"
    DEFAULT_MODE = Place.TRACES  # a mode switched to is painted 50 ms later: `textual.app.App.delay_update`
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", show=False, priority=True)]

    def __init__(
        self, home: Home, *, now: Clock, settings: Settings = DEFAULTS, connect: Connect | None = None
    ) -> None:
        """``connect`` makes the clients: by default of the home's daemon."""
        super().__init__(driver_class=Terminal, ansi_color=settings.theme == "ansi")
        for known in textual_themes().values():
            self.register_theme(known)
        self.theme = settings.theme
        self.animation_level = "none"
        self.set_keymap({id: ",".join(map(name_of, names)) for id, names in settings.keys.items()})
        connect = connect or (lambda timeout: Client(home.socket, timeout=timeout))
        self.feed = Feed(connect(_FEED_SECONDS), self.post_message)
        self.desk = Desk(home, now, connect(TIMEOUT), self.feed.doubt, self._tell, settings=settings)
        self._timer: Timer | None = None
        self._interrupted = False
        for place in _SCREENS:
            self.add_mode(place, partial(self._screen, place))

    def _screen(self, place: Place) -> Panel:
        module, _, name = _SCREENS[place].partition(":")
        screen: Panel = getattr(import_module(f"reef_cli.tui.screens.{module}"), name)(self.desk)
        return screen

    def on_mount(self) -> None:
        self.feed.start()
        if self.desk.replay is not None:
            self.set_timer(self.desk.replay.left() + 0.1, self._changed)
        else:
            self.desk.ratings.resume()

    def on_ready(self) -> None:
        if not self.is_headless:  # where tests run, garbage has to go, and signals are for others
            self._hear_signals()
            gc.freeze()  # else each full collection walks what the imports made: 75 ms that a key waits
            gc.enable()

    def _hear_signals(self) -> None:
        """Leave as `q` does: the terminal as it was, what was said on disk."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.exit, None, 128 + number)

    def on_unmount(self) -> None:
        self.feed.stop()
        self.desk.ratings.close()

    # -- the feed -----------------------------------------------------------------------------------

    def on_connected(self, message: Connected) -> None:
        self.desk.lost, self.desk.running = None, True
        if self.desk.replay is None:
            self.desk.ratings.wake()
        self._look_again()
        for panel in self._panels():
            panel.daemon_changed()
            panel.reload.ask()

    def on_lost(self, message: Lost) -> None:
        self.desk.lost, self.desk.running = message.reason, message.running
        self._changed()

    async def _look(self) -> None:
        """What no event tells to one who connects: whether recording is paused, which version answers."""
        until = None
        try:
            until = self.desk.look(await asyncio.to_thread(self.desk.client.get, "/reef/status"))
        except ReefError:  # gone again: that is told elsewhere
            return
        except (LookupError, TypeError, ValueError, AttributeError):
            self.desk.other = self.desk.other or "what answers is no daemon that this dashboard knows: reef restart"
        self._changed()
        if until:  # no event tells that a pause is over
            self.set_timer(max(until - self.desk.now(), 0) / 1e9 + 1, self._look_again)

    def _look_again(self) -> None:
        self.run_worker(self._look(), group="look", exclusive=True)

    def _changed(self) -> None:
        for panel in self._panels():
            panel.daemon_changed()
            if panel.alone:
                panel.reload.ask()

    def on_heard(self, message: Heard) -> None:
        if self._timer is None:
            self._timer = self.set_timer(_UPDATE_SECONDS, self._update)

    def _tell(self, text: str) -> None:
        self.post_message(Told(text))

    def on_told(self, message: Told) -> None:
        for panel in self._panels():
            panel.say(message.text)
            panel.rated()

    def _update(self) -> None:
        self._timer = None
        if cached_cell_len.cache_info().currsize > _MEASURED:
            cached_cell_len.cache_clear()
        events = self.feed.take()
        engines = [event.data for event in events if event.name == "engine"]
        released = [event.data for event in events if event.name == "release" and self.current_mode != Place.RELEASES]
        if any(event.name == "recording" for event in events):
            self._look_again()
        for panel in self._panels():
            with edge(panel.failed):
                if engines:
                    self.desk.hear(engines[-1])
                for release in released:
                    self.desk.hear_release(release)
                if engines or released:
                    panel.daemon_changed()
                if events:
                    panel.heard(events)

    def _panels(self) -> list[Panel]:
        """The panels of the current mode, the one in front of the others last; those of other modes load when shown."""
        return [screen for screen in self.screen_stack if isinstance(screen, Panel)]

    def pop_screen(self) -> AwaitComplete:
        """Textual remembers the backgrounds of the last 1,024 widgets by the widgets' lines, which would stay: 40 kB a
        screen, and each full collection longer."""
        StylesCache.get_inner_outer.cache_clear()
        return super().pop_screen()

    def copy_to_clipboard(self, text: str) -> None:
        """Textual's own is not wrapped for tmux."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(clipboard.sequence(text, os.environ))

    # -- leaving ------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and event.key != "ctrl+c":
            self._interrupted = False
        await super().on_event(event)

    def action_interrupt(self) -> None:
        if self._interrupted:
            self.exit()
            return
        self._interrupted = True
        for panel in self._panels():
            panel.say("ctrl+c again leaves")
