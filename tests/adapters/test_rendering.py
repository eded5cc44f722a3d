"""A release's tree as agents read it: each kind in its place, refused where it is none."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adapters import agent, rendering, template
from adapters.agent import Adapter, Mode
from daemon.core import harness
from daemon.core.errors import Untrusted
from daemon.core.paths import Home
from tests.adapters.test_shelf import base
from tests.fakes import chain

PI = agent.load(Home(Path("/nowhere")), "pi")
MODE = PI.mode("isolated")
LISTED = agent.load(Home(Path("/nowhere")), "codex").mode("overlay")
MARK = harness.mark("base")


def rendered(files: dict[str, str], adapter: Adapter = PI, mode: Mode = MODE) -> dict[str, str]:
    return rendering.rendered(base()._replace(files=files), adapter, mode)


def values(files: dict[str, str], adapter: Adapter = PI) -> dict[str, Any]:
    return rendering.values(base()._replace(files=files), adapter)


def test_an_agent_gets_rules_skills_and_prompts(reef_home: Home) -> None:
    release = chain.publish(reef_home)
    files = rendering.rendered(chain.delivered(reef_home), PI, MODE)
    assert sorted(files) == ["AGENTS.md", "extensions/reef.ts", "prompts/sum.md", "skills/greet/SKILL.md"]
    assert files["AGENTS.md"] == f"Answer briefly.\n\n- Use uv, not pip.\n\n[reef release {release.id}]\n"
    assert files["skills/greet/SKILL.md"] == chain.SKILL
    assert "helpful" not in files["AGENTS.md"]


def test_the_base_tells_no_rules() -> None:
    assert sorted(rendered({})) == ["extensions/reef.ts"]


def test_facts_stand_between_the_rules_and_what_was_learned() -> None:
    told = {
        "memory/b.md": "Fact b.\n",
        "rules.md": "A rule.\n",
        "memory/a.md": "Fact a.\n",
        "playbook.md": chain.PLAYBOOK,
    }
    assert rendered(told)["AGENTS.md"] == f"A rule.\n\nFact a.\n\nFact b.\n\n- Use uv, not pip.\n\n{MARK}\n"


def test_values_are_not_read_as_templates_again() -> None:
    said = "Say $REEF_TOKEN_FILE and $HOME\n"
    assert rendered({"rules.md": said})["AGENTS.md"] == f"{said}\n{MARK}\n"


def test_what_brings_no_rules_is_not_marked() -> None:
    assert "AGENTS.md" not in rendered({"prompts/sum.md": chain.PROMPT, "rules.md": " \n"})


@pytest.mark.parametrize("path", ["skills/../../../bin/reef-pi", "prompts//x.md", "skills/.x/SKILL.md", "models.json"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(Untrusted, match="not a path for a harness"):
        rendered({path: "x"})


def test_extensions_are_for_their_agent_and_never_in_the_place_of_ours() -> None:
    told = {"extensions/pi/more.ts": "mine", "extensions/pi/reef.ts": "evil", "extensions/codex/x.toml": "theirs"}
    files = rendered(told)
    assert sorted(files) == ["extensions/more.ts", "extensions/reef.ts"]
    assert files["extensions/more.ts"] == "mine"
    assert files["extensions/reef.ts"] == rendered({})["extensions/reef.ts"]
    assert rendered(told, mode=MODE._replace(extensions="", release={})) == {"more.ts": "mine", "reef.ts": "evil"}
    assert rendered(told, mode=MODE._replace(extensions=None, release={})) == {}


@pytest.mark.parametrize(
    ("text", "skill"),
    [
        (chain.PROMPT, "---\nname: sum\ndescription: A summary.\n---\nSummarise $1\n"),
        ("Summarise $1\n", '---\nname: sum\ndescription: "sum"\n---\nSummarise $1\n'),
        ("---\nname: other\n---\nDo.\n", '---\nname: sum\ndescription: "sum"\n---\nDo.\n'),
    ],
)
def test_without_prompts_one_is_a_skill(text: str, skill: str) -> None:
    assert rendered({"prompts/sum.md": text}, mode=Mode(skills="skills")) == {"skills/sum/SKILL.md": skill}
    assert rendered({"prompts/sum.md": text}, mode=Mode()) == {}


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("playbook.md", "do it\n", "line 1 is not a rule"),
        ("config.json", "[]", "is not an object"),
        ("config.json", '{"thinking": "hard"}', "thinking"),
        ("mcp.json", '{"mcpServers": {"x": {}}}', "server x"),
    ],
)
def test_a_file_that_says_nothing_sensible_is_refused(path: str, text: str, said: str) -> None:
    with pytest.raises(Untrusted, match=said):
        rendered({path: text})


def test_model_and_thinking_in_the_agents_words() -> None:
    told = values({"config.json": '{"model": "big", "thinking": "high"}'}, PI._replace(thinking={"high": "hard"}))
    assert (told["REEF_MODEL"], told["REEF_THINKING"]) == ("big", "hard")
    unsaid = values({"config.json": "{}"})
    assert (unsaid["REEF_MODEL"], unsaid["REEF_THINKING"], unsaid["REEF_MCP"]) == (None, None, None)


def test_servers_in_the_agents_words() -> None:
    forms = {
        "local": {"type": "local", "command": "$REEF_MCP_WORDS", "environment": "$REEF_MCP_ENV"},
        "remote": {"type": "remote", "url": "$REEF_MCP_URL", "headers": "$REEF_MCP_HEADERS"},
    }
    told = (
        '{"mcpServers": {"a": {"command": "uvx", "args": ["x"], "env": {"K": "v"}}, "b": {"url": "https://b.example"},'
        ' "c": {"command": "c"}}}'
    )
    assert values({"mcp.json": told}, PI._replace(mcp=forms))["REEF_MCP"] == {
        "a": {"type": "local", "command": ["uvx", "x"], "environment": {"K": "v"}},
        "b": {"type": "remote", "url": "https://b.example"},
        "c": {"type": "local", "command": ["c"]},
    }
    assert values({"mcp.json": told}, PI._replace(mcp={}))["REEF_MCP"] is None


def test_models_are_listed_with_their_window() -> None:
    told = rendering.models(PI.model, ["default", "scripted"], 4096, values({}))
    listed = [("default", 4096), ("scripted", 4096)]
    assert [(model["id"], model["contextWindow"]) for model in told["REEF_MODELS"]] == listed
    assert told["REEF_MODEL_MAP"]["scripted"] == told["REEF_MODELS"][1]
    assert rendering.models("$REEF_MODEL_ID", ["a"], 1, values({}))["REEF_MODELS"] == ["a"]


def test_the_model_that_a_release_names_is_listed_too() -> None:
    said = values({"config.json": '{"model": "big", "thinking": "low"}'})
    told = rendering.models(PI.model, ["default", "other"], 1, said)["REEF_MODELS"]
    assert [(model["id"], model["reasoning"]) for model in told] == [("default", True), ("other", True), ("big", True)]
    assert len(rendering.models(PI.model, ["default", "big"], 1, said)["REEF_MODELS"]) == 2


EVERYTHING = {
    "rules.md": "A rule.\n",
    "skills/greet/SKILL.md": chain.SKILL,
    "prompts/sum.md": chain.PROMPT,
    "config.json": '{"model": "big", "thinking": "low"}',
    "mcp.json": '{"mcpServers": {"docs": {"command": "docs"}}}',
    "extensions/pi/more.ts": "x",
    "extensions/aider/more.py": "x",
}
LACKS = "does not take this of release base"


@pytest.mark.parametrize(
    ("name", "mode", "version", "left"),
    [
        ("pi", "isolated", "1.6.0", ""),
        ("pi", "overlay", "1.6.0", ""),
        ("pi", "overlay", "0.74.2", f"Pi {LACKS}: mcp.json"),
        ("claude-code", "overlay", "2.1.332", ""),
        ("codex", "isolated", "0.171.0", ""),
        ("codex", "overlay", "0.171.0", ""),
        ("mini-swe-agent", "isolated", "2.4.6", f"mini-swe-agent {LACKS}: mcp.json, thinking low"),
        ("qwen-code", "overlay", "0.24.4", f"Qwen Code {LACKS}: thinking low"),
        ("opencode", "isolated", "1.18.33", ""),
        ("vibe", "isolated", "3.0.2", ""),
        ("aider", "overlay", "0.86.2", f"aider {LACKS}: extensions/aider/more.py, mcp.json, thinking low"),
    ],
)
def test_what_does_not_reach_an_agent_is_said(name: str, mode: str, version: str, left: str) -> None:
    adapter = agent.load(Home(Path("/nowhere")), name).at(version)
    told = base()._replace(files=EVERYTHING)
    assert rendering.left_out(told, adapter, adapter.mode(mode)) == left
    assert rendering.left_out(base(), adapter, adapter.mode(mode)) == ""


def test_an_agent_that_looks_for_no_skills_is_told_where_they_lie() -> None:
    codex = agent.load(Home(Path("/nowhere")), "codex")
    more = {"skills/greet/more.md": "More.\n", "rules.md": "A rule.\n"}
    files = rendered({"skills/greet/SKILL.md": chain.SKILL, "prompts/sum.md": chain.PROMPT, **more}, codex, LISTED)
    assert sorted(files) == ["skills/greet/SKILL.md", "skills/greet/more.md", "skills/sum/SKILL.md"]
    skills = rendering.listed(files, Path("/shelf/r1"))
    assert skills.splitlines()[1:] == [
        "- greet: How to greet. (/shelf/r1/skills/greet/SKILL.md)",
        "- sum: A summary. (/shelf/r1/skills/sum/SKILL.md)",
    ]
    told = rendering.values(base()._replace(files=more), codex, skills)["REEF_RULES"]
    assert told == f"A rule.\n\n{skills}\n\n{MARK}"
    assert rendering.listed({"AGENTS.md": "x"}, Path("/shelf/r1")) == ""


def test_of_too_many_skills_it_is_told_where_they_lie() -> None:
    head = f"description: {'word ' * 200}"
    files = {f"skills/skill-{n}/SKILL.md": f"---\nname: skill-{n}\n{head}\n---\n" for n in range(150)}
    told = rendering.listed(files, Path("/x"))
    assert told.splitlines()[1:] == ["There are 150, each with what it is for in its head: /x/skills/*/SKILL.md"]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("codex", "overlay"), ("hermes", "isolated"), ("mini-swe-agent", "isolated"), ("qwen-code", "overlay")],
)
def test_rules_that_no_command_takes_are_refused(name: str, mode: str) -> None:
    """Of both at their longest a system makes a command and a variable."""
    adapter = agent.load(Home(Path("/nowhere")), name)
    facts = {f"memory/f{n}.md": "é\n" * 4_600 for n in range(5)}
    rendered(facts, adapter, adapter.mode(mode))
    rules = rendering.values(base()._replace(files=facts), adapter, "\n" * (31 << 10) + ".")["REEF_RULES"]
    words = ["true", f"developer_instructions={template.toml(rules)}"]
    subprocess.run(words, env={**os.environ, "HERMES_EPHEMERAL_SYSTEM_PROMPT": rules}, check=True)
    with pytest.raises(
        Untrusted, match=rf"its rules and facts have \d+ KB, and {adapter.title} can be told 95 KB here"
    ):
        rendered({**facts, "rules.md": "More.\n" * 2_000}, adapter, adapter.mode(mode))
    assert rendered({**facts, "rules.md": "More.\n" * 2_000})["AGENTS.md"].startswith("More.")


def test_a_prompt_leaves_a_skill_of_its_name_alone() -> None:
    codex = agent.load(Home(Path("/nowhere")), "codex")
    told = {"skills/sum/SKILL.md": "---\nname: sum\ndescription: a skill\n---\nOne.\n", "prompts/sum.md": "Two.\n"}
    files = rendered(told, codex, codex.mode("isolated"))
    assert files["skills/sum/SKILL.md"] == told["skills/sum/SKILL.md"]
    assert files["skills/sum-prompt/SKILL.md"] == '---\nname: sum-prompt\ndescription: "sum-prompt"\n---\nTwo.\n'


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vibe", "lock"),
        ("qwen-code", "release/x"),
        ("opencode", "command"),
        ("pi", "reef.ts/x"),
    ],
)
def test_what_has_no_room_is_refused_before_anything_is_laid_out(name: str, path: str) -> None:
    adapter = agent.load(Home(Path("/nowhere")), name)
    with pytest.raises(Untrusted, match="lies where there is something else"):
        rendered({f"extensions/{name}/{path}": "x"}, adapter, adapter.mode("isolated"))
