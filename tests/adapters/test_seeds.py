"""Seeds are harnesses: valid, readable, and nothing in them can act."""

import re
from pathlib import Path

import pytest
import yaml

from adapters import agent, rendering, seeds
from daemon.core import harness
from daemon.core.errors import NotFound
from daemon.core.harness import Kind
from daemon.core.paths import Home
from daemon.store.releases import texts
from tests.adapters.test_shelf import base

NAMES = tuple(seeds.names())
NOWHERE = Home(Path("/nowhere"))
MODES = [(name, mode) for name in agent.names(NOWHERE) for mode in agent.load(NOWHERE, name).modes]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_may_be_proposed_by_anybody(name: str) -> None:
    files = seeds.files(name)
    assert "rules.md" in files
    for path, text in files.items():
        texts.check(path, text)
        assert not harness.executable(path)
        assert text.endswith("\n")
        assert max(len(line) for line in text.splitlines() if not line.startswith("description:")) <= 120
    texts.check_tree(f"{harness.BELOW}{path}" for path in files)
    assert sum(len(text) for text in files.values()) < 12_000, "it is told with every request, or nearly"


@pytest.mark.parametrize("name", NAMES)
def test_no_skill_and_prompt_have_one_name(name: str) -> None:
    """Agents without prompts get them as skills, and some take both for one command."""
    entries = [entry for path in seeds.files(name) if (entry := harness.entry(path))]
    skills = [entry.name for entry in entries if entry.kind is Kind.SKILL]
    prompts = [entry.name for entry in entries if entry.kind is Kind.PROMPT]
    assert not set(skills) & set(prompts)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_names_only_skills_that_are_there(name: str) -> None:
    files = seeds.files(name)
    for path, text in files.items():
        for skill in re.findall(r"the ([a-z-]+) skill", text):
            assert f"skills/{skill}/SKILL.md" in files, path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("adapter", "mode"), MODES)
def test_every_agent_gets_all_of_it(name: str, adapter: str, mode: str) -> None:
    """Rules in what it is told; a skill as a skill; a prompt as a command, or as a skill where it has none."""
    chosen = agent.load(NOWHERE, adapter)
    files, told = seeds.files(name), base()._replace(files=seeds.files(name))
    assert files["rules.md"].strip() in rendering.values(told, chosen)["REEF_RULES"]
    how = chosen.mode(mode)
    laid = rendering.rendered(told, chosen, how)
    for entry in (entry for path in files if (entry := harness.entry(path))):
        if entry.kind is Kind.SKILL and how.skills is not None:
            assert laid[f"{how.skills}/{entry.name}/SKILL.md"] == files[entry.path]
        if entry.kind is Kind.PROMPT and (how.skills, how.prompts) != (None, None):
            places = (f"{how.prompts}/{entry.name}.md", f"{how.skills}/{entry.name}/SKILL.md")
            (text,) = (laid[place] for place in places if place in laid)
            assert files[entry.path].partition("\n---\n")[2] in text
    for path, text in laid.items():
        if path.endswith("/SKILL.md"):
            head = yaml.safe_load(text[4:].partition("\n---\n")[0])
            assert head["name"] == path.split("/")[-2]
            assert head["description"]


def test_an_unknown_one() -> None:
    with pytest.raises(NotFound, match=r"'\.\./pi'"):
        seeds.files("../pi")
