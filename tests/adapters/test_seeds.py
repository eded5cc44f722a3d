"""Seeds are harnesses: valid, readable, and nothing in them can act."""

import pytest

from adapters import seeds
from daemon.core import harness
from daemon.core.errors import NotFound
from daemon.core.harness import Kind
from daemon.store.releases import texts

NAMES = tuple(seeds.names())


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
    import re

    files = seeds.files(name)
    for path, text in files.items():
        for skill in re.findall(r"the ([a-z-]+) skill", text):
            assert f"skills/{skill}/SKILL.md" in files, path


def test_an_unknown_one() -> None:
    with pytest.raises(NotFound, match=r"'\.\./pi'"):
        seeds.files("../pi")
