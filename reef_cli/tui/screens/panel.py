"""What every screen is: a bar, a list, a line for what was said, the keys. Keys come from the table.

A key's ``id`` names the method ``do_<id>`` that acts; `blocked` says why it cannot act now. Requests run off the loop
and come back as changes of the list; nothing here waits for the daemon.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from daemon.core.errors import NotFound, ReefError, Unreachable
from reef_cli.tui import keys
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import LISTS, Place
from reef_cli.tui.messages import Event
from reef_cli.tui.replay import FIXED, NOT_RECORDED
from reef_cli.tui.screens import everywhere
from reef_cli.tui.screens.work import Repeating, begin, edge, off_loop
from reef_cli.tui.widgets.lines import Banner, Hint, Keys, Line, Tabs, Titles
from reef_cli.tui.widgets.rows import Column, RowList
from reef_cli.tui.window import Row

#: What works without the daemon.
_ALONE = {
    *("down", "up", "top", "bottom", "page_down", "page_up", "back", "fold", "all", "find", "next_hit", "previous_hit"),
    *("help", "quit", "start", "suspend", "palette", "hints", "copy", "filter", "level", "source", "file", *LISTS),
    *("good", "bad", "note", "score", "pin", "undo", "mark", "range"),  # kept in the outbox
}


class Panel(Screen[None]):
    place: ClassVar[Place]
    columns: ClassVar[Sequence[Column]] = (Column(""),)
    titled: ClassVar[bool] = True
    follow: ClassVar[bool] = False
    empty: ClassVar[str] = ""
    #: Whether it has something to show without the daemon, too.
    alone: ClassVar[bool] = False
    AUTO_FOCUS = "RowList"

    def __init_subclass__(cls, **options: bool) -> None:
        """The table's keys for a screen's place, in Textual's form; rebound by their id."""
        if "place" in cls.__dict__:
            cls.BINDINGS = [
                Binding(",".join(key.keys), f"press('{key.id}')", key.label, id=key.id, show=False)
                for key in keys.at(cls.place)
            ]
        super().__init_subclass__(**options)

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.list = RowList(self.columns, follow=self.follow, empty=self.empty)
        self.bar = Tabs(LISTS, self.place, id="bar")
        self.banner = Banner()
        self.news = Banner(style="bold")
        self.hint = Hint()
        self.said = Line(wraps=True)
        self.foot = Keys(keys.at(self.place, desk.keys), self.blocked)
        self.reload = Repeating(self, self.load, lambda: self.shown)
        self._unknown = ""
        #: A screen's own, around its list and before what was said.
        self.above: Sequence[Widget] = ()
        self.below: Sequence[Widget] = ()
        self.last: Sequence[Widget] = ()

    def compose(self) -> ComposeResult:
        yield from (self.bar, self.banner, self.news, *self.above)
        if self.titled:
            yield Titles(self.columns)
        yield from (self.list, *self.below, self.hint, *self.last, self.said, self.foot)

    def on_screen_resume(self) -> None:
        self.daemon_changed()
        if self.alone or self.desk.lost is None:
            self.reload.ask()

    @property
    def shown(self) -> bool:
        """Whether any of it is in view. What is not loads and draws nothing: it does when it comes back."""
        stack = self.app.screen_stack
        above = stack[stack.index(self) + 1 :] if self in stack else stack
        return not any(isinstance(screen, Panel) or screen.has_class("full") for screen in above)

    # -- for the screens ----------------------------------------------------------------------------

    @property
    def about(self) -> Any:
        """What is known of what a key acts on: the selected row's; None where there is none."""
        row = self.list.selected
        return None if row is None else row.data

    async def load(self) -> None:
        """Fetch what is shown. Raises ReefError."""
        raise NotImplementedError

    def heard(self, events: Sequence[Event]) -> None:
        """Events came, at most ten times a second."""

    def rated(self) -> None:
        """Something became of feedback."""
        if self.desk.lost is None:
            self.reload.ask()

    def blocked(self, id: str) -> str | None:
        """Why that key cannot act now; None: it can."""
        if self.desk.replay and id in keys.CHANGES:
            return FIXED
        if id == "start":
            return None if self.desk.lost and not self.desk.running else "the daemon is running"
        if self.desk.lost is not None and id not in _ALONE:
            way = "" if self.desk.running else f": {self.desk.key('start')} starts it"
            return f"{self.desk.lost or 'connecting'}{way}"
        return None

    def failed(self, error: ReefError) -> None:
        """A request failed. That nothing answers is the banner's to say."""
        if isinstance(error, Unreachable):
            self.desk.doubt()
            return
        if isinstance(error, NotFound) and error.message.startswith("no GET /reef/"):
            self._unknown = f"this daemon does not know {self.place} yet: reef restart"
            self.daemon_changed()
            return
        if error.message.startswith(NOT_RECORDED) and not self.list.window.rows:
            self._unknown = NOT_RECORDED
            self.daemon_changed()
            return
        self.say(f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    def say(self, text: str) -> None:
        self.said.show(left=text)

    def daemon_changed(self) -> None:
        """The daemon came, went, or its engine's state changed."""
        self.bar.show(right=self.desk.engine)
        way = "trying again; reef logs" if self.desk.running else f"{self.desk.key('start')} starts it, or: reef start"
        self.banner.show(left=f"! {self.desk.lost}; {way}" if self.desk.lost else self.desk.note)
        self.news.show(left=self.desk.news)
        self.hint.show(left=everywhere.hint(self))
        self.list.empty = self.nothing()
        self.list.refresh()
        self.foot.refresh()

    def nothing(self) -> str:
        """What stands where there are no rows."""
        if self.desk.lost is not None:
            first = "the recording begins …" if self.desk.replay else "connecting to the daemon …"
            return "shown as soon as the daemon answers" if self.desk.lost else first
        return self._unknown or self.empty

    def act(self, work: Callable[[], str]) -> None:
        """Run an action off the loop and say what it says."""

        def failed(error: ReefError) -> None:
            self.failed(error)
            if isinstance(error, Unreachable):
                self.say(f"{error.message} ({error.hint})")

        async def run() -> None:
            with edge(failed):
                self.say(await off_loop(work))
            self.reload.ask()

        begin(self, run())

    def confirm(self, question: str, work: Callable[[], str]) -> None:
        """The same, once the person has said yes."""
        from reef_cli.tui.screens.dialogs import Confirm

        self.affirmed(Confirm(question), work)

    def affirmed(self, dialog: ModalScreen[bool], work: Callable[[], str]) -> None:
        """The same, once the dialog's answer is yes."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.act(work)
            else:
                self.say("nothing was changed")

        self.app.push_screen(dialog, answered)

    # -- keys that mean the same everywhere -----------------------------------------------------------

    def action_press(self, id: str) -> None:
        why = self.blocked(id)
        self.say(why or "")
        if why is None and id in LISTS:
            self.app.switch_mode(id)
        elif why is None:
            act: Callable[[], Any] = getattr(self, f"do_{id}")
            act()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self.foot.refresh()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        opens = next((key.id for key in keys.at(self.place) if "enter" in key.keys), None)
        if opens is not None:
            self.action_press(opens)

    def do_down(self) -> None:
        self.list.move(1)

    def do_up(self) -> None:
        self.list.move(-1)

    def do_page_down(self) -> None:
        self.list.move(self.list.half())

    def do_page_up(self) -> None:
        self.list.move(-self.list.half())

    def do_top(self) -> None:
        self.list.to(0)

    def do_bottom(self) -> None:
        self.list.to_end()

    def do_follow(self) -> None:
        if self.list.follow:
            self.list.follow = False
            self.say("not following")
        else:
            self.list.to_end()
            self.say("following")

    def do_back(self) -> None:
        if self.is_active:
            self.app.pop_screen()

    def do_quit(self) -> None:
        self.app.exit()

    def do_help(self) -> None:
        from reef_cli.tui.screens.help import Help

        self.app.push_screen(Help(self.place, self.desk.keys, self.blocked))

    do_suspend = everywhere.suspend
    do_palette = everywhere.palette
    do_hints = everywhere.switch_hints
    do_start = everywhere.start
    sent = everywhere.send

    def do_copy(self) -> None:
        row = self.list.selected
        if row is None:
            self.say("nothing is selected")
        else:
            self.sent(self.copied(row), self.copied(row))

    def copied(self, row: Row) -> str:
        """What is copied of the selected row."""
        return row.id
