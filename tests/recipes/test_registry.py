"""Names become recipes, settings become typed, and what cannot be is said with its name."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from daemon.core.errors import RecipeError
from recipes.base import Recipe, Signal, Target
from recipes.registry import Entry, Shared, configured, described, entries, find, load
from tests.conftest import ROOT
from tests.fakes.recipes import GOOD


@dataclass(frozen=True, slots=True)
class Settings:
    rank: int = 8
    rate: float = 1e-4
    batch_size: int = 36


class Plain(Recipe):
    name: ClassVar[str] = "plain"
    summary: ClassVar[str] = "Does nothing."
    signals: ClassVar[tuple[Signal, ...]] = (Signal.MARK,)
    target: ClassVar[Target] = Target.WEIGHTS
    Config = Settings


class Lacking(Recipe):
    """No Config, no signals."""


PLAIN = Entry("plain", f"{__name__}:Plain")


def test_ours_are_listed_without_being_imported() -> None:
    code = """
import json, sys
from recipes.registry import entries
print(json.dumps([entry.name for entry in entries()]))
print("recipes.sft.recipe" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    names, imported = done.stdout.splitlines()
    assert {"playbook", "sft"} <= set(json.loads(names))
    assert imported == "False"


def test_a_name_and_its_target_are_the_same_recipe() -> None:
    entry = next(entry for entry in entries() if entry.name == "playbook")
    assert find("playbook") == find(entry.target) == entry
    assert find("my.own:Recipe") == Entry("my.own:Recipe", "my.own:Recipe")


@pytest.mark.parametrize("name", ["nobody", "a b:C", "mod:", ":C", "mod:C.D", "../x:C", ""])
def test_what_names_no_recipe_is_refused(name: str) -> None:
    with pytest.raises(RecipeError, match="no recipe is called") as caught:
        find(name)
    assert "playbook" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("recipes.sao.recipe:SAORecipe", "there is no module 'recipes.sao"),
        ("tests.recipes.test_registry:Nobody", "has no attribute 'Nobody'"),
        ("tests.recipes.test_registry:Settings", "which is no recipe|without"),
        ("tests.recipes.test_registry:Lacking", "without signals, target, Config"),
        ("json:dumps", "function"),
    ],
)
def test_what_cannot_be_loaded_says_why(target: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        load(find(target))


def test_a_module_that_raises_or_lacks_a_package_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "reef_test_broken.py").write_text("raise ValueError('half written')")
    (tmp_path / "reef_test_needy.py").write_text("import no_such_package_here")
    with pytest.raises(RecipeError, match="ValueError: half written"):
        load(find("reef_test_broken:X"))
    with pytest.raises(RecipeError, match="needs 'no_such_package_here'"):
        load(find("reef_test_needy:X"))


def test_settings_are_typed_and_shared_ones_known_to_all() -> None:
    config, shared = configured(Plain, {"rank": 4, "rate": 1, "max_staleness": 18})
    assert config == Settings(rank=4, rate=1.0)
    assert shared == Shared(batch_size=36, max_staleness=18)
    assert configured(Plain, {"batch_size": 2}) == (Settings(batch_size=2), Shared(2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rnk": 4}, "unknown key 'rnk'"),
        ({"rank": "four"}, "rank: expected int, got 'four'"),
        ({"batch_size": 0}, "at least 1"),
        ({"max_staleness": -1}, "negative"),
        ({"batch_size": "two"}, "batch_size"),
    ],
)
def test_wrong_settings_are_refused_by_name(given: dict[str, object], words: str) -> None:
    with pytest.raises(RecipeError, match=words) as caught:
        configured(Plain, given)
    if "rnk" in given:
        assert caught.value.hint == "did you mean 'rank'?"


def test_a_description_says_what_people_need_to_know() -> None:
    told = described(PLAIN, {})
    assert (told["signals"], told["changes"], told["acquisition"]) == (["mark"], "weights", "reactive")
    assert told["config"] == {"batch_size": 36, "max_staleness": None, "rank": 8, "rate": 1e-4}


def test_asked_as_a_process_each_gets_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('noise at import')\n" + GOOD)
    asked = [["mine:MyRecipe", {"at_most": 2}], ["recipes.sao.recipe:SAORecipe", {}], ["mine:MyRecipe", {"nope": 1}]]
    done = subprocess.run(
        [sys.executable, "-m", "recipes.registry"], input=json.dumps(asked), cwd=tmp_path, capture_output=True,
        text=True, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, check=True,
    )  # fmt: skip
    good, missing, wrong = (json.loads(line) for line in done.stdout.splitlines())
    assert good["config"]["at_most"] == 2
    assert missing["error"]["kind"] == wrong["error"]["kind"] == "recipe"
    assert "noise" in done.stderr
