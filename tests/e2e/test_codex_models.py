"""What real Codex knows of Reef's models: it has a prompt and its tools for them, and lists them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.agent import MODES, ModeName
from daemon.core.paths import Home
from tests.e2e.terminal import Terminal
from tests.e2e.test_adapters import Case, installed
from tests.e2e.test_codex import DIALECTS, SHAPES
from tests.e2e.test_upgrade import on_a_screen
from tests.e2e.test_wrapped_agents import AGENTS, listening
from tests.fakes import chain
from tests.fakes.provider import TASK, Call, Turn

pytestmark = pytest.mark.slow

CODEX: Final = AGENTS["codex"]
_FREE: Final = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_PATCH: Final = "*** Begin Patch\n*** Add File: hello.txt\n+hello-reef\n*** End Patch\n"


def _patches(asked: Any) -> Turn:
    answered = next(count(asked) for field, count in SHAPES.items() if field in asked)
    return Turn("It is there.") if answered else Turn("", (Call("apply_patch", {"input": _PATCH}),))


TMUX: Final = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not on this machine")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spoken", DIALECTS)
def test_it_has_a_prompt_and_patches_files(reef_home: Home, tmp_path: Path, spoken: str, mode: ModeName) -> None:
    with installed(reef_home, tmp_path / "user", "codex", mode, dialects=spoken) as case:
        case.provider.reply = _patches
        done = case.run(*_FREE, "create hello.txt")
        assert done.returncode == 0, done
        assert "metadata" not in done.stderr
        assert (case.user / "project" / "hello.txt").read_text() == "hello-reef\n"
        assert "You are a coding agent in a person's terminal." in str(case.asked()[0])


@contextmanager
def _on_a_screen(case: Case) -> Iterator[Terminal]:
    """Its release names a model."""
    chain.approved(case.daemon.home, {"rules.md": "Be brief.\n", "config.json": '{"model": "named"}'})
    with on_a_screen(case, CODEX) as terminal:
        listening(terminal, CODEX)
        terminal.see("named default")
        yield terminal


@TMUX
def test_the_person_chooses_among_what_is_served(reef_home: Home, tmp_path: Path) -> None:
    """BUGS B096: a catalogue of Reef's models, and of none that only its vendor has."""
    with (
        installed(reef_home, tmp_path / "user", "codex", "isolated", dialects="responses") as case,
        _on_a_screen(case) as terminal,
    ):
        terminal.enter("/model", lambda: "Select Model and Effort" in terminal.screen())
        shown = terminal.screen()
        assert "2. named (current)" in shown
        assert "gpt" not in shown
        terminal("send-keys", "1")
        terminal.see("Select Reasoning Level for")
        terminal("send-keys", "s")
        terminal.see("Model changed to default low")
        terminal.enter("create hello.txt", case.asked)
        terminal.see(TASK[-1].text)
        assert {one["model"] for one in case.asked()} == {"default"}
        assert "low" in [one["reasoning"].get("effort") for one in case.asked()]  # not where it asks for a title


@TMUX
def test_a_choice_cannot_end_up_in_the_persons_own_configuration(reef_home: Home, tmp_path: Path) -> None:
    """Codex keeps a choice in its config.toml: with one of Reef's names there, Codex without Reef would ask for it."""
    with installed(reef_home, tmp_path / "user", "codex", "overlay") as case, _on_a_screen(case) as terminal:
        terminal.enter("/model", lambda: "No additional models are available right now." in terminal.screen())
        assert "model =" not in (case.user / ".codex" / "config.toml").read_text()
