"""What is Pi's alone, with the real one: used in a terminal, taught by a note, rolled back. Its life is in
test_wrapped_agents.

Also covers the extension: ``harness_templates/pi/extensions/reef.ts``.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters import delivery
from adapters.plan import Choice
from daemon.core.paths import Home
from reef_cli import wrapped
from tests.e2e.agents import AGENTS
from tests.e2e.wrapping import SCENARIO, Installed, digests, project, put
from tests.fakes import chain
from tests.fakes.daemon import running_daemon, until
from tests.fakes.obedient import follows_rules
from tests.fakes.provider import TASK, running_provider

pytestmark = pytest.mark.slow

RULE = "Answer in one short sentence."
LEARNED = f'release r2 · rule added: "{RULE}" · accepted 5\u20130'


@pytest.fixture(scope="module")
def installed(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    if shutil.which("npm") is None or shutil.which("tmux") is None:
        pytest.skip("npm, or tmux, is not on this machine")
    put(module_home, "pi", Choice(scenario=SCENARIO), AGENTS["pi"])
    with running_provider(TASK) as provider:
        config = provider.config(key="env:REEF_TEST_KEY") + "models: {scripted: p}\n"
        with running_daemon(module_home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield Installed(daemon, provider, tmp_path_factory.mktemp("user"), adapter="pi")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return project(tmp_path / "a project ü")


def test_a_conversation_goes_on_in_its_session(installed: Installed, work: Path) -> None:
    before = len(installed.sessions())
    assert installed.run(work, "-p", "one").returncode == 0
    assert installed.run(work, "-c", "-p", "two").returncode == 0
    assert installed.run(work, "--model", "reef/scripted", "-p", "three").returncode == 0
    assert len(installed.sessions()) == before + 2
    token = installed.daemon.agent_token
    assert not any(token in value for request in installed.provider.requests for _, value in request.headers)


def test_exit_codes_and_arguments_are_pis(installed: Installed, work: Path) -> None:
    assert installed.run(work, "--version").stdout.strip() == "1.6.0"
    refused = installed.run(work, "--model", "nobody/knows", "-p", "x")
    assert refused.returncode != 0


def reports(installed: Installed) -> list[dict[str, Any]]:
    last = installed.daemon.get(f"/reef/last?scenario={SCENARIO}")
    found: list[dict[str, Any]] = installed.daemon.get(f"/reef/records/{last['receipt']}")["reports"]
    return found


def test_a_note_in_the_terminal_teaches_the_next_session(installed: Installed, work: Path) -> None:
    """A note becomes a rule, judged on the person's tasks; what runs stays as it is; the next run obeys; then back."""
    first = chain.publish(installed.home, scenario=SCENARIO)
    before = len(installed.sessions())
    with installed.terminal(work) as terminal:
        terminal.see("Reef r1")
        terminal.type("/good")
        terminal.see("there is no answer to rate yet")
        terminal.type("create hello.txt")
        terminal.see("Done: I created hello.txt")
        assert "- Use uv, not pip." in installed.asked()
        assert "greet" in installed.asked()  # the skill's description
        terminal.type(f"/note {RULE}")
        terminal.see("Reef: noted on rec_")
        said = until(lambda: reports(installed), "the note is in the store")
        assert (said[0]["feedback"], said[0]["score"]) == (RULE, None)
        terminal.type("/good nice")
        terminal.see("Reef: good on rec_")
        until(lambda: len(reports(installed)) == 2, "the mark is in the store")
        assert {(one["feedback"], one["score"]) for one in reports(installed)} == {(RULE, None), ("nice", 1.0)}
        terminal.type("/new")
        terminal.see("New session started")
        terminal.type("once more")
        until(lambda: len(installed.sessions()) == before + 2, "a session for each conversation")
        (directory,) = installed.place.sessions.iterdir()
        running = digests((directory / "release").resolve())
        assert {"AGENTS.md", "skills/greet/SKILL.md"} < running.keys()

        learned = learn(installed)
        terminal.see(f"{LEARNED} · available from your next session")
        terminal.see("Reef r1 · r2 from your next session")
        terminal.type("tell me about rain")
        terminal.see("Well. Let me tell you about")
        assert RULE not in installed.asked()
        assert "- Use uv, not pip." in installed.asked()
        assert installed.requests()[-1][2]["release"] == first.id

        done = installed.run(work, "-p", "and about snow")
        assert (done.returncode, done.stderr) == (0, f"Reef: {LEARNED}\n")
        assert done.stdout.startswith("It is about")  # the model obeys
        assert f"- Use uv, not pip.\\n- {RULE}" in installed.asked()
        assert installed.requests()[-1][2]["release"] == learned
        assert digests((directory / "release").resolve()) == running  # to the byte
        terminal.type("/quit")
        until(terminal.ended, "Pi ends")

    with installed.terminal(work) as terminal:
        terminal.see("Reef r2")
        terminal.type("/reef")
        terminal.see(f"scenario {SCENARIO}")
        why = ("--reason", "it was better before")
        back = installed.answered("releases", "rollback", *why, "--scenario", SCENARIO, "--yes")
        assert (back["number"], back["restores"]) == (3, first.id)
        terminal.see("release r3 · it was better before · rolled back to r1")
        terminal.type("hail?")
        terminal.see("It is about")
        assert RULE in installed.asked()  # a session that runs stays on its release
        terminal("kill-server")

    with installed.terminal(work, "-c") as terminal:
        terminal.see("Reef r3")
        terminal.type("/bad not this")
        terminal.see("Reef: bad on rec_")
        until(lambda: reports(installed), "an answer is rated after its session was opened again")
        assert (reports(installed)[-1]["feedback"], reports(installed)[-1]["score"]) == ("not this", 0.0)

    done = installed.run(work, "-p", "after the rollback")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Well. Let me tell you about")
    assert RULE not in installed.asked()
    assert "- Use uv, not pip." in installed.asked()
    assert installed.requests()[-1][2]["release"] == back["id"]


def learn(installed: Installed) -> str:
    """The person's tasks, the recipe and the gate, with a model that follows rules: the id of the release."""
    mine = ("--scenario", SCENARIO)
    installed.answered("tasks", "add", "What is rain?", "--form", "one_sentence", *mine)
    lines = [json.dumps({"prompt": f"What is thing {n}?", "form": "one_sentence"}) for n in range(6)]
    lines += [json.dumps({"prompt": f"Why {n}?", "form": "max_words:40", "set": "regression"}) for n in range(2)]
    kept = installed.daemon.home.root / "tasks.jsonl"
    kept.write_text("\n".join(lines))
    assert len(installed.answered("tasks", "add", "--file", str(kept), *mine)["items"]) == 8
    installed.provider.reply = follows_rules
    job = installed.answered("recipes", "run", "playbook", *mine, "--wait")
    assert (job["state"], job["outcome"]) == ("done", "released"), job
    release: dict[str, Any] = installed.daemon.get(f"/reef/releases/{job['release_id']}?scenario={SCENARIO}")
    gate = release["gate"]
    assert (release["kind"], release["head"], release["number"]) == ("learned", True, 2)
    assert (gate["verdict"], gate["wins"], gate["losses"], gate["guard"]["held"]) == ("accept", 5, 0, 2)
    told = chain.delivered(installed.home, scenario=SCENARIO)
    assert delivery.checked(told, wrapped.key_of(installed.home)).release_id == release["id"]  # it is signed
    return str(release["id"])
