"""A box for text: lines, what was written before, nothing that a terminal could act on."""

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from reef_cli.tui.widgets.writing import Writing


class Alone(App[None]):
    def __init__(self, *recalls: str) -> None:
        super().__init__()
        self.box = Writing()
        self.box.recalls = recalls
        self.done: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.box

    def on_writing_done(self, message: Writing.Done) -> None:
        self.done.append(self.box.text)


async def test_enter_is_done_and_ctrl_j_a_new_line() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        await pilot.press(*"one", "ctrl+j", *"two q+-0", "enter")
        await pilot.pause()
        assert app.done == ["one\ntwo q+-0"]


async def test_up_and_down_go_through_what_was_written() -> None:
    app = Alone("older", "new\ner")

    async def after(pilot: Pilot[None], *keys: str) -> str:
        await pilot.press(*keys)
        return app.box.text

    async with app.run_test() as pilot:
        assert await after(pilot, *"draft", "up") == "new\ner"
        assert await after(pilot, "up") == "new\ner"  # to its first line
        assert await after(pilot, "up") == "older"
        assert await after(pilot, "up") == "older"
        assert await after(pilot, "down") == "new\ner"
        assert await after(pilot, "down") == "draft"
        assert await after(pilot, "down") == "draft"


async def test_what_is_pasted_is_inert_and_sends_nothing() -> None:
    app = Alone("\x1b]0;owned\x07")
    async with app.run_test() as pilot:
        app.box.post_message(events.Paste("a\r\nb\x1b[2J\u202e [bold]c[/]\t."))
        await pilot.pause()
        assert app.box.text == "a\nb\\x1b[2J\\u202e [bold]c[/]    ."
        assert app.done == []
        await pilot.press("up", "up")
        assert app.box.text == "\\x1b]0;owned\\x07"
