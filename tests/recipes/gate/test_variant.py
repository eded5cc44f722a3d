"""What the gate tells a model is what agents tell it, in the same order."""

from adapters import agent, delivery, rendering
from daemon.core import harness
from daemon.core.learning import Check, Task, TaskSet
from daemon.core.paths import Home
from recipes.gate.variant import Variant

FILES = {
    "rules.md": "Be brief.\n",
    "memory/b.md": "We use uv.\n",
    "memory/a.md": "The team is small.\n",
    "playbook.md": "# Playbook\n\n- [r-00001] helpful=2 harmful=0 :: Cite sources.\n",
    "skills/x/SKILL.md": "---\nname: x\ndescription: x\n---\nx\n",
    "prompts/y.md": "y\n",
}
TOLD = "Be brief.\n\nThe team is small.\n\nWe use uv.\n\n- Cite sources."


def test_rules_then_facts_then_counted_rules_as_an_agent_has_them(reef_home: Home) -> None:
    assert Variant(FILES).told() == TOLD
    given = delivery.parse({"release_id": "r1-00000000", "number": 1, "scenario": "default", "files": FILES})
    assert (
        rendering.values(given, agent.load(reef_home, "pi"))["REEF_RULES"] == f"{TOLD}\n\n{harness.mark('r1-00000000')}"
    )


def test_without_any_the_model_is_asked_alone() -> None:
    task = Task("tsk_1", "default", TaskSet.GATE, "What is rain?", Check(form="one_sentence"))
    assert Variant().told() == ""
    assert [message.role for message in Variant().conversation(task)] == ["user"]
    assert [message.role for message in Variant(FILES).conversation(task)] == ["system", "user"]
