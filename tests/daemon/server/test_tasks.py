"""Tasks over HTTP: what is refused and how, all or none, who may."""

from typing import Any

import pytest

from daemon.core.errors import UsageError
from daemon.core.learning import Check, TaskSet
from daemon.server.tasks import parse
from tests.fakes.daemon import RunningDaemon

FORM = {"form": "one_sentence"}


CONFIG = "server: {port: 0}"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("What is rain?", "a task is an object"),
        ({"check": FORM}, "a task needs a prompt"),
        ({"prompt": " \n", "check": FORM}, "says nothing"),
        ({"prompt": 3, "check": FORM}, "the prompt 3"),
        ({"prompt": "x" * 32_001, "check": FORM}, "32001 characters"),
        ({"prompt": "x"}, "needs a check"),
        ({"prompt": "x", "check": {}}, "the check says nothing"),
        ({"prompt": "x", "check": {"form": "one_sentense"}}, "'one_sentense'"),
        ({"prompt": "x", "check": {"form": None}}, "the check says nothing"),
        ({"prompt": "x", "check": {"expression": "("}}, "'\\(' is not a regular expression"),
        ({"prompt": "x", "check": {"command": "'"}}, "cannot be split"),
        ({"prompt": "x", "check": {"form": "json", "command": "true"}}, "form and command"),
        ({"prompt": "x", "check": {"form": 3}}, "form 3 is not text"),
        ({"prompt": "x", "check": {"regex": "a"}}, "unknown field 'regex'"),
        ({"prompt": "x", "check": FORM, "sett": "gate"}, "unknown field 'sett'"),
        ({"prompt": "x", "check": FORM, "set": "golden"}, "'golden' is not one of gate, regression, search"),
        ({"prompt": "x", "check": FORM, "set": 3}, "set 3"),
        ({"prompt": "x", "check": FORM, "critical": "yes"}, "critical 'yes'"),
        ({"prompt": "x", "check": FORM, "critical": True}, "critical is for regression"),
        ({"prompt": "x", "check": FORM, "max_tokens": 0}, "max_tokens 0"),
        ({"prompt": "x", "check": FORM, "max_tokens": True}, "max_tokens True"),
        ({"prompt": "x", "check": FORM, "max_tokens": 1e3}, "max_tokens 1000.0"),
        ({"prompt": "x", "check": FORM, "max_tokens": 10**6}, "8192"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused_by_field_and_value(data: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(data, "default")


def test_the_nearest_form_and_field_are_named() -> None:
    for data, near in (
        ({"prompt": "x", "check": {"form": "numbered"}}, "numbered_list"),
        ({"prompt": "x", "check": FORM, "max_token": 3}, "max_tokens"),
    ):
        with pytest.raises(UsageError) as caught:
            parse(data, "default")
        assert caught.value.hint is not None
        assert near in caught.value.hint


def test_what_is_not_said_has_a_default() -> None:
    task = parse({"prompt": " What is rain? ", "check": {"expression": "water"}}, "work")
    assert (task.prompt, task.scenario, task.set, task.critical, task.max_tokens) == (
        "What is rain?", "work", TaskSet.GATE, False, 256
    )  # fmt: skip
    assert task.check == Check(expression="water")


def test_one_is_added_listed_and_removed(daemon: RunningDaemon) -> None:
    status, task = daemon.control("POST", "/reef/tasks?scenario=one", {"prompt": "What is rain?", "check": FORM})
    assert (status, task["created"], task["scenario"]) == (200, True, "one")
    again = daemon.control("POST", "/reef/tasks?scenario=one", {"prompt": "What is rain?", "check": FORM})[1]
    assert (again["id"], again["created"]) == (task["id"], False)
    listed = daemon.get("/reef/tasks?scenario=one")
    assert [(row["id"], row["check"]["form"]) for row in listed["items"]] == [(task["id"], "one_sentence")]
    assert daemon.get("/reef/tasks")["items"] == []
    assert daemon.control("DELETE", f"/reef/tasks/{task['id']}", {})[1]["prompt"] == "What is rain?"
    assert daemon.control("DELETE", f"/reef/tasks/{task['id']}", {})[0] == 404


def test_many_are_added_or_none(daemon: RunningDaemon) -> None:
    good = [{"prompt": f"prompt {n}", "check": FORM} for n in range(60)]
    status, data = daemon.control(
        "POST", "/reef/tasks?scenario=many", {"tasks": [*good, {"prompt": "", "check": FORM}]}
    )
    assert status == 400
    assert data["error"]["message"] == "task 61: the prompt '' says nothing; none was added"
    assert daemon.get("/reef/tasks?scenario=many")["items"] == []
    status, data = daemon.control("POST", "/reef/tasks?scenario=many", {"tasks": good})
    assert (status, len(data["items"])) == (200, 60)
    page = daemon.get("/reef/tasks?scenario=many&set=gate&limit=50")
    rest = daemon.get(f"/reef/tasks?scenario=many&set=gate&before={page['next']}")
    assert [row["prompt"] for row in (page["items"] + rest["items"])[::-1]] == [task["prompt"] for task in good]
    assert rest["next"] is None
    assert daemon.get("/reef/tasks?scenario=many&set=search")["items"] == []


@pytest.mark.parametrize("tasks", [[], {}, "x", [{}] * 1001])
def test_a_list_that_is_none_is_refused(daemon: RunningDaemon, tasks: Any) -> None:
    assert daemon.control("POST", "/reef/tasks", {"tasks": tasks})[0] == 400


def test_a_prompt_that_judges_cannot_guide(daemon: RunningDaemon) -> None:
    daemon.control("POST", "/reef/tasks?scenario=held", {"prompt": "p", "check": FORM})
    task = {"prompt": "p", "check": FORM, "set": "search"}
    status, data = daemon.control("POST", "/reef/tasks?scenario=held", task)
    assert (status, data["error"]["kind"]) == (409, "conflict")


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=%C2%B2", "set=golden", "before=x", "scenario=../x"])
def test_a_bad_query_is_the_callers_mistake(daemon: RunningDaemon, query: str) -> None:
    assert daemon.control("GET", f"/reef/tasks?{query}")[0] == 400


def test_an_agent_may_not_change_what_judges_it(daemon: RunningDaemon) -> None:
    status, _, _ = daemon.post("/reef/tasks", {"prompt": "p", "check": {"command": "true"}})
    assert status in (401, 403)
