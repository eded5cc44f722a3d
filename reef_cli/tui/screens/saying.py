"""Dialogs in which a person says something: a note, a mark on a scenario's scale, a task made of a question."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from reef_cli.scoring import Scale
from reef_cli.tui.screens.dialogs import Dialog
from reef_cli.tui.screens.work import edge, off_loop
from reef_cli.tui.text import fit, inert, one_line
from reef_cli.tui.widgets.writing import Writing

#: Earlier notes that are shown.
_SHOWN: Final = 4
#: Characters of a note; the daemon's limit.
NOTE_MOST: Final = 100_000
CHECKS: Final = ("form", "expression", "command")


class _Dialog(Dialog[Any]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def wrong(self, text: str) -> None:
        """Why it is not done; what was typed stays."""
        self.query_one("#wrong", Static).update(inert(text))

    def action_cancel(self) -> None:
        self.dismiss(None)


class Note(_Dialog):
    """A few lines; Enter sends them, Esc does not. ``earlier`` fetches the notes on this answer, the oldest first;
    ``written`` is what was written before, and keeps what is left unsent."""

    AUTO_FOCUS = "Writing"

    def __init__(self, about: str, earlier: Callable[[], Sequence[str]], written: list[str]) -> None:
        super().__init__()
        self._about = inert(about)
        self._earlier = earlier
        self._written = written
        self._box = Writing(placeholder="what to say about it")
        self._box.recalls = tuple(written)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(f"Note on {self._about}", markup=False)
            yield Static("", id="earlier", markup=False)
            yield self._box
            yield Static("", id="wrong", markup=False)
            yield Static("Enter: send   ctrl+j: new line   ↑: earlier notes   Esc: cancel", markup=False)

    def on_mount(self) -> None:
        self.query_one("#earlier").display = False
        self.run_worker(self._load())

    async def _load(self) -> None:
        notes: Sequence[str] = ()
        with edge(lambda _: None):  # gone: what was written here is still at hand
            notes = await off_loop(self._earlier)
        if not notes:
            return
        shown, width = self.query_one("#earlier", Static), self.query_one("#box").content_size.width
        more = [f"  … {len(notes) - _SHOWN} more before these"] if len(notes) > _SHOWN else []
        shown.update("\n".join([*more, *(fit(f"  * {one_line(note)}", width).rstrip() for note in notes[-_SHOWN:])]))
        shown.display = True
        self._box.recalls = (*(note for note in self._written if note not in notes), *notes)

    def on_writing_done(self, message: Writing.Done) -> None:
        text = self._box.text.strip()
        if len(text) > NOTE_MOST:
            self.wrong(f"a note has at most {NOTE_MOST} characters, this one has {len(text)}")
            return
        self._keep(text)
        self.dismiss(text or None)

    def action_cancel(self) -> None:
        self._keep(self._box.text.strip())
        self.dismiss(None)

    def _keep(self, text: str) -> None:
        if text:
            self._written[:] = [*(one for one in self._written if one != text), text]


class Mark(_Dialog):
    """One digit on a scenario's scale."""

    def __init__(self, about: str, scale: Scale) -> None:
        super().__init__()
        self._about = inert(about)
        self._scale = scale

    def compose(self) -> ComposeResult:
        low, high = self._scale
        with Vertical(id="box"):
            yield Static(f"Score {self._about}", markup=False)
            yield Static("  ".join(map(str, range(low, high + 1))), markup=False)
            yield Static(f"{low}: worst   {high}: best   Esc: cancel", markup=False)

    def on_key(self, event: events.Key) -> None:
        low, high = self._scale
        if event.character and event.character in map(str, range(low, high + 1)):
            event.stop()
            self.dismiss(int(event.character))


class Task(_Dialog):
    """A task from a recorded question: its prompt, which may be changed, and a check. ``add`` asks the daemon to keep
    it; what that refuses is said here, and what was typed stays."""

    def __init__(self, prompt: str, add: Callable[[Mapping[str, object]], str]) -> None:
        super().__init__()
        self._asked = prompt
        self._add = add
        self._prompt = Writing(prompt, id="prompt")
        self._shown = self._prompt.text
        self._check = Writing(id="check", placeholder="for example form:one_sentence")
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("A task: what is asked", markup=False)
            yield self._prompt
            yield Static("and how an answer is checked: form:…, expression:… or command:…", markup=False)
            yield self._check
            yield Static("", id="wrong", markup=False)
            yield Static("Enter: add   Tab: the other box   ctrl+j: new line   Esc: cancel", markup=False)

    def on_mount(self) -> None:
        self._check.focus()

    def on_writing_done(self, message: Writing.Done) -> None:
        kind, _, value = self._check.text.strip().partition(":")
        if kind not in CHECKS or not value.strip():
            self.wrong("a check is form:one_sentence, expression:REGULAR EXPRESSION or command:COMMAND")
            self._check.focus()
        elif not self._busy:
            self._busy = True
            same = self._prompt.text == self._shown  # then as it was asked, not as it is shown
            prompt = self._asked if same else self._prompt.text
            self.run_worker(self._adding({"prompt": prompt, "check": {kind: value.strip()}}))

    async def _adding(self, task: Mapping[str, object]) -> None:
        with edge(lambda error: self.wrong(f"{error.message}{f' ({error.hint})' if error.hint else ''}")):
            self.dismiss(await off_loop(self._add, task))
        self._busy = False
