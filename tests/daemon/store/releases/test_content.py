"""What a candidate may hold: text of a recipe, more of a person, and what can act only with a yes to it."""

import json
from dataclasses import replace

import pytest

from daemon.core.errors import GateRefused, RecipeError
from daemon.core.releases import PERSON, Candidate, Release, ReleaseKind, ReleaseState
from daemon.store.releases import Releases
from daemon.store.releases.content import acts
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import ACCEPTED, candidate, released

MCP = '{"mcpServers": {"docs": {"command": "docs"}}}'


def persons(job: str, parent: str = "base", **harness: str | None) -> Candidate:
    """``mcp_json``: mcp.json."""
    files = {path.replace("__", "/").replace("_", "."): text for path, text in harness.items()}
    return replace(candidate(job, parent, harness=files), recipe=PERSON)


def test_a_persons_proposal_may_act_and_says_so(releases: Releases) -> None:
    waits = releases.propose(persons("person-1", mcp_json=MCP, rules_md="Use uv.\n"), None)
    assert (waits.state, waits.kind, waits.note) == (
        ReleaseState.PENDING, ReleaseKind.UNPROVEN, "it changes what can act by itself: mcp.json",
    )  # fmt: skip
    with pytest.raises(GateRefused, match=r"waits for a person: it changes .* mcp\.json"):
        releases.publish(waits, "base")
    assert releases.head("default") is None
    release = releases.publish(waits, "base", by_person=True)
    assert (release.kind, releases.files(release)["mcp.json"]) == (ReleaseKind.UNPROVEN, MCP)
    assert releases.acts(release) == waits.note


def test_text_alone_does_not_act(releases: Releases) -> None:
    head = releases.publish(releases.propose(persons("person-1", mcp_json=MCP), None), "base", by_person=True)
    waits = releases.propose(persons("person-2", head.id, rules_md="Use uv.\n", config_json="{}"), None)
    assert (waits.note, releases.acts(waits)) == ("", None)
    assert releases.publish(waits, head.id).number == 2


def test_to_take_away_what_acts_is_a_change_of_it(releases: Releases) -> None:
    head = releases.publish(releases.propose(persons("person-1", mcp_json=MCP), None), "base", by_person=True)
    waits = releases.propose(persons("person-2", head.id, mcp_json=None), None)
    assert waits.note == "it changes what can act by itself: mcp.json"


@pytest.mark.parametrize("harness", [{"mcp.json": MCP}, {"config.json": "{}"}, {"extensions/pi/a.ts": "x"}])
def test_a_recipe_neither_makes_nor_takes_away_what_is_more_than_text(
    releases: Releases, harness: dict[str, str]
) -> None:
    with pytest.raises(RecipeError, match="text only"):
        releases.propose(candidate("job_1", harness=harness), ACCEPTED)
    mine = replace(candidate("person-1", harness=harness), recipe=PERSON)
    head = releases.publish(releases.propose(mine, None), "base", by_person=True)
    with pytest.raises(RecipeError, match="text only"):
        releases.propose(candidate("job_2", head.id, harness=dict.fromkeys(harness)), ACCEPTED)
    after = released(releases, "job_3", head.id)
    assert releases.files(after) == {**harness, "rules.md": "- rule of job_3\n"}


def test_a_person_may_change_which_model_answers(releases: Releases, git: Git) -> None:
    models = {"gpt-5": "openrouter/grok"}
    head = releases.publish(releases.propose(replace(persons("person-1"), routing=models), None), "base")
    assert (releases.routing(head), set(head.files)) == (models, {"routing.json"})
    assert json.loads(git("show", "refs/reef/default:routing.json")) == {"models": models}
    assert '+    "gpt-5": "openrouter/grok"' in releases.diff("default", head.id)
    after = released(releases, "job_1", head.id)
    assert releases.routing(after) == models
    bare = releases.publish(releases.propose(replace(persons("person-2", after.id), routing={}), None), after.id)
    assert (releases.routing(bare), "routing.json" in bare.files) == ({}, False)
    assert releases.routing(releases.rollback("default", head.id)) == models
    for routing, recipe, what in (({"a b": "c"}, PERSON, "no model's name"), (models, "playbook", "person's own")):
        with pytest.raises(RecipeError, match=what):
            releases.propose(replace(candidate("job_9"), routing=routing, recipe=recipe), None)


def test_files_that_do_not_fit_together_are_refused(releases: Releases) -> None:
    with pytest.raises(RecipeError, match=r"has no SKILL\.md"):
        releases.propose(candidate("job_1", harness={"skills/a/MORE.md": "x"}), ACCEPTED)


def test_many_are_counted(releases: Releases) -> None:
    def release(*paths: str) -> Release:
        files = {f"harness/extensions/pi/{path}": "1" for path in paths}
        return Release("r1-00000000", "default", 1, ReleaseKind.UNPROVEN, "base", 0, "", files=files)

    assert acts(release("a"), release("a")) is None
    assert acts(None, release("a", "b", "c", "d", "e")) == (
        "it changes what can act by itself: extensions/pi/a, extensions/pi/b, extensions/pi/c and 2 more"
    )
