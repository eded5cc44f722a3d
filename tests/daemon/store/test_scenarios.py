"""What was chosen for scenarios is on disk, and a file that holds none is named."""

import stat
from pathlib import Path

import pytest

from daemon.core.config import ScenarioConfig
from daemon.core.errors import ConfigError
from daemon.core.releases import Policy
from daemon.store.scenarios import Choice, Choices, Chosen, Training


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scenarios.json"


def test_what_was_chosen_is_there_after_a_restart(path: Path) -> None:
    choices = Choices.load(path)
    assert choices.get("work") == Choice()
    made = choices.made("work")
    assert choices.made("work") == made
    choices.change("work", policy=Policy.REVIEW, training=Training.MANUAL)
    again = Choices.load(path)
    assert again.get("work") == Choice(made.created_ns, None, Policy.REVIEW, Training.MANUAL)
    assert again.names() == ["work"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_removed_one_is_as_if_it_had_never_been(path: Path) -> None:
    choices = Choices.load(path)
    choices.change("work", policy=Policy.REVIEW)
    choices.removed("work")
    assert choices.names() == []
    assert choices.get("work").policy is None
    assert Choices.load(path).get("work").removed_ns
    choices.made("work")
    assert Choices.load(path).names() == ["work"]


def test_the_choice_goes_before_the_configuration(path: Path) -> None:
    choices = Choices.load(path)
    chosen = Chosen({"work": ScenarioConfig(policy="review", scores=(1, 5))}, choices)
    assert chosen.get("work") == ScenarioConfig(policy="review", scores=(1, 5))
    choices.change("work", policy=Policy.AUTO)
    assert chosen.get("work") == ScenarioConfig(policy="auto", scores=(1, 5))
    choices.change("other", policy=Policy.REVIEW)
    assert chosen["other"].policy == "review"
    assert chosen.by_itself("work")
    choices.change("work", training=Training.MANUAL)
    assert not chosen.by_itself("work")
    assert (list(chosen), len(chosen)) == (["work"], 1)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"a": 1}', '{"a": {"policy": "odd"}}', '{"a": {"training": "odd"}}', '{"a": {"created_ns": "x"}}'],
)
def test_a_damaged_file_is_named_and_kept(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"scenarios\.json") as caught:
        Choices.load(path)
    assert f"mv {path}" in str(caught.value.hint)
    assert path.read_text() == text
