"""A train step is heard line by line, and its end is never mistaken; the rest of the link is tested with a daemon."""

import sys
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadWeights, EngineError, RecipeError, ReefError
from daemon.core.learning import Progress
from recipes.base import Answer
from recipes.link import Link, trained


class Heard:
    def __init__(self) -> None:
        self.progressed: list[Progress] = []
        self.said: list[str] = []
        self.kept: list[tuple[str, int, float]] = []

    def progress(self, at: Progress) -> None:
        self.progressed.append(at)

    def say(self, text: str) -> None:
        self.said.append(text)

    def keep(self, name: str, at: int, value: float) -> None:
        self.kept.append((name, at, value))


def train(folder: Path, code: str, heard: Heard, spec: dict[str, Any] | None = None) -> Any:
    script = (
        f"import json, os, sys\nspec = json.load(sys.stdin)\ndef tell(**e): print(json.dumps(e), flush=True)\n{code}"
    )
    return trained([sys.executable, "-c", script], spec or {}, heard, folder, keep=heard.keep)


def test_progress_words_and_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    code = """
print("a library's own words")
tell(event="progress", step="train", done=1, total=spec["steps"], note="loss 1.0", values={"loss": 1})
tell(event="say", text="warming up")
tell(event="result", loss=0.5, folder=os.getcwd())
"""
    assert train(tmp_path, code, heard, {"steps": 3}) == {"loss": 0.5, "folder": str(tmp_path)}
    assert heard.progressed == [Progress("train", 1, 3, "loss 1.0")]
    assert heard.said == ["warming up"]
    assert heard.kept == [("loss", 1, 1.0)]
    assert "a library's own words" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("tell(event='error', kind='recipe', message='no memory left', hint='rank 4'); sys.exit(1)", "no memory left"),
        ("raise SystemExit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", "signal 9, 3 times"),
        ("tell(event='say', text='bye')", "without a result: exit code 0"),
        ("tell(event='result', loss=1); sys.exit(1)", "exit code 1"),
    ],
)
def test_what_went_wrong_is_told(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        train(tmp_path, code, Heard())


def test_one_that_was_killed_goes_on_from_what_it_kept(tmp_path: Path) -> None:
    heard = Heard()
    code = """
done = os.path.exists("kept")
open("kept", "w").close()
if not done: os.kill(os.getpid(), 9)
tell(event="result", loss=1)
"""
    assert train(tmp_path, code, heard) == {"loss": 1}
    assert heard.said == ["the train step was ended by signal 9: once more"]


def test_one_that_is_killed_before_it_has_read_its_spec_is_told(tmp_path: Path) -> None:
    spec = {"examples": "x" * 1_000_000}
    heard = Heard()
    with pytest.raises(RecipeError, match="signal 9"):
        trained([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], spec, heard, tmp_path, keep=heard.keep)


def test_a_line_that_is_json_but_no_event_is_a_librarys(tmp_path: Path) -> None:
    assert train(tmp_path, "tell(event='result', loss=1)\nprint(5)", Heard()) == {"loss": 1}


class Flaky(Link):
    """A daemon whose engine fails ``times``."""

    def __init__(self, error: ReefError, times: int) -> None:
        self.error, self.left, self.asked = error, times, 0

    def _answer(self, body: Any) -> Answer:
        self.asked += 1
        if self.asked <= self.left:
            raise self.error
        return Answer("yes", True, 1, None)


def test_an_engine_that_died_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recipes.link._PAUSE_SECONDS", 0.0)
    assert Flaky(EngineError("its process ended"), 2).answer({}).text == "yes"
    gone, refused = Flaky(EngineError("its process ended"), 3), Flaky(BadWeights("NaN"), 1)
    with pytest.raises(EngineError):
        gone.answer({})
    with pytest.raises(BadWeights):
        refused.answer({})
    assert (gone.asked, refused.asked) == (3, 1)
