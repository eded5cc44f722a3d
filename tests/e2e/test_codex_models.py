"""What real Codex knows of Reef's models: it has a prompt and its tools for them, and lists them."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.agent import MODES, ModeName
from daemon.core.paths import Home
from tests.e2e.test_adapters import installed
from tests.e2e.test_codex import DIALECTS, SHAPES
from tests.e2e.test_upgrade import on_a_screen
from tests.e2e.test_wrapped_agents import AGENTS, listening
from tests.fakes import chain
from tests.fakes.daemon import until
from tests.fakes.provider import Call, Turn

pytestmark = pytest.mark.slow

_FREE: Final = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_PATCH: Final = "*** Begin Patch\n*** Add File: hello.txt\n+hello-reef\n*** End Patch\n"


def _patches(asked: Any) -> Turn:
    answered = next(count(asked) for field, count in SHAPES.items() if field in asked)
    return Turn("It is there.") if answered else Turn("", (Call("apply_patch", {"input": _PATCH}),))


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


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not on this machine")
@pytest.mark.parametrize("mode", MODES)
def test_the_person_chooses_among_the_models_that_are_served(reef_home: Home, tmp_path: Path, mode: ModeName) -> None:
    """BUGS B096: /model lists what Reef serves and the release names, not what its vendor does."""
    told = AGENTS["codex" if mode == "isolated" else "codex-overlay"]
    with installed(reef_home, tmp_path / "user", "codex", mode) as case:
        chain.approved(reef_home, {"rules.md": "Be brief.\n", "config.json": '{"model": "named"}'})
        with on_a_screen(case, told) as terminal:
            listening(terminal, told)
            import time
            def show(*keys):
                terminal("send-keys", *keys); time.sleep(2); print("\n".join(l.rstrip() for l in terminal.screen().splitlines() if l.strip())); print("-----", keys)
            show("-l", "/model"); show("Enter"); show("Up"); show("Enter"); show("Enter"); show("-l", "hello there"); show("Enter"); [print(x, x.read_text()) for x in case.user.rglob("config.toml")]; [print(x, x.read_text()) for x in (reef_home.agents).rglob("config.toml")]; print({k: v for k, v in case.asked()[0].items() if k in ("model", "reasoning")}); print([k for k in case.asked()[0]["messages"]][:3])
            assert 0
