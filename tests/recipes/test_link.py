"""A train step is heard line by line, and its end is never mistaken; the rest of the link is tested with a daemon."""

import sys
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import RecipeError
from daemon.core.learning import Progress
from recipes.link import trained


class Heard:
    def __init__(self) -> None:
        self.progressed: list[Progress] = []
        self.said: list[str] = []

    def progress(self, at: Progress) -> None:
        self.progressed.append(at)

    def say(self, text: str) -> None:
        self.said.append(text)


def train(folder: Path, code: str, heard: Heard, spec: dict[str, Any] | None = None) -> Any:
    script = (
        f"import json, os, sys\nspec = json.load(sys.stdin)\ndef tell(**e): print(json.dumps(e), flush=True)\n{code}"
    )
    return trained([sys.executable, "-c", script], spec or {}, heard, folder)


def test_progress_words_and_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    code = """
print("a library's own words")
tell(event="progress", step="train", done=1, total=spec["steps"], note="loss 1.0")
tell(event="say", text="warming up")
tell(event="result", loss=0.5, folder=os.getcwd())
"""
    assert train(tmp_path, code, heard, {"steps": 3}) == {"loss": 0.5, "folder": str(tmp_path)}
    assert heard.progressed == [Progress("train", 1, 3, "loss 1.0")]
    assert heard.said == ["warming up"]
    assert "a library's own words" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("tell(event='error', kind='recipe', message='no memory left', hint='rank 4'); sys.exit(1)", "no memory left"),
        ("raise SystemExit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("tell(event='say', text='bye')", "without a result: exit code 0"),
        ("tell(event='result', loss=1); sys.exit(1)", "exit code 1"),
    ],
)
def test_what_went_wrong_is_told(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        train(tmp_path, code, Heard())
