"""What means the same on every screen, apart from moving about: palette, hints, copying, themes, suspending,
starting the daemon."""

import os
import shlex
from typing import TYPE_CHECKING, Final, cast

from reef_cli.tui import clipboard
from reef_cli.tui.keys import Place
from reef_cli.tui.screens.work import begin, edge, off_loop
from reef_cli.tui.settings import keep
from reef_cli.tui.text import one_line
from reef_cli.tui.themes import Theme

if TYPE_CHECKING:
    from reef_cli.tui.choices import Choice
    from reef_cli.tui.screens.panel import Panel

#: For a newcomer, in one line of 80 columns. What is in braces is an action's id, and becomes its key.
_HINTS: Final = {
    Place.TRACES: "{open} opens one, {good} {bad} rate its last answer, {note} says why",
    Place.TRACE: "{down} {up} to an answer, {good} {bad} rate it, {fold} unfolds, {back} back",
    Place.RELEASES: "{card} reads why, {diff} what changes, {rollback} goes back to it",
    Place.JOBS: "{log} reads what a job says, and shows its curves",
    Place.MODELS: "{facts} tells all, {use} answers with it; reef models add: more",
    Place.LOGS: "{filter} {level} say which lines, {source}: the engine's log, the jobs'",
    Place.STATUS: "{record} pauses recording, {check} checks again, {copy} copies a fix",
}
_ALWAYS: Final = "{help} all keys, {hints} no hints"


def hint(panel: "Panel") -> str:
    """The line for who has not switched hints off; "" for who has."""
    if not panel.desk.hints:
        return ""
    words = [text for text in (_HINTS.get(panel.place), _ALWAYS) if text]
    return "; ".join(words).format_map({key.id: key.shown.split()[0] for key in panel.desk.keys})


def switch_hints(panel: "Panel") -> None:
    """Off, or on again; kept for the next time."""
    desk = panel.desk
    desk.hints = not desk.hints
    panel.daemon_changed()
    word = "true" if desk.hints else "false"

    def work() -> str:
        keep(desk.home, "hints", word)
        return "hints are on" if desk.hints else f"no more hints; {desk.key('hints')} brings them back"

    panel.act(work)


def palette(panel: "Panel") -> None:
    """Imported here, as are the key's help and the dialogs where they open: the first paint does without them."""
    from reef_cli.tui.choices import choices
    from reef_cli.tui.screens.command import CommandRun
    from reef_cli.tui.screens.palette import Palette

    def chosen(choice: "Choice | None") -> None:
        if choice is None:
            return
        match choice.kind:
            case "key":
                panel.action_press(choice.value)
            case "theme":
                wear(panel, cast(Theme, choice.value))
            case "command":
                panel.app.push_screen(CommandRun(panel.desk.home, shlex.split(choice.value)))

    panel.app.push_screen(Palette(choices(panel.place, panel.desk.keys, panel.blocked)), chosen)


def wear(panel: "Panel", theme: Theme) -> None:
    """Change the theme, and keep it."""
    if panel.app.no_color:
        panel.say("NO_COLOR is set: the terminal's own colours stay")
        return
    panel.app.ansi_color = theme == "ansi"
    panel.app.theme = theme
    home = panel.desk.home

    def work() -> str:
        keep(home, "theme", theme)
        return f"theme {theme}, from now on"

    panel.act(work)


def send(panel: "Panel", text: str, what: str) -> None:
    """To the terminal's clipboard; into a file where it is known that no terminal gets it."""

    async def run() -> None:
        why = await off_loop(clipboard.obstacle, text, os.environ, clipboard.tmux_option)
        if why is None:
            panel.app.copy_to_clipboard(text)
            panel.say(f"sent to the terminal: {one_line(what, 60)}")
            return
        path = await off_loop(clipboard.write, panel.desk.home, text)
        panel.say(f"{one_line(what, 40)}: in {path}, not in the clipboard ({why})")

    begin(panel, run())


def suspend(panel: "Panel") -> None:
    driver = panel.app._driver
    if driver is None or not driver.can_suspend:
        panel.say("this terminal has no shell to go back to")
    else:
        panel.app.action_suspend_process()


def start(panel: "Panel") -> None:
    """The daemon, in the background."""
    from reef_cli.lifecycle import ensure_daemon

    async def run() -> None:
        with edge(lambda error: panel.say(f"{error.message} ({error.hint or 'reef doctor'})")):
            await off_loop(ensure_daemon, panel.desk.home)
            panel.say("the daemon runs")

    panel.say("starting the daemon …")
    begin(panel, run())
