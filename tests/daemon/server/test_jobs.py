"""Jobs over HTTP, with a real daemon, a recipe that waits, and providers that answer it."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Fault, Provider, Turn
from tests.fakes.recipes import hostile

COVERS = ("daemon/server/learning.py", "daemon/server/answers.py")
CHAT = "/v1/chat/completions"


TURNS = (Turn("One sentence."),)


@pytest.fixture(scope="module")
def daemon(module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    go = module_home.root / "go"
    hostile(module_home.root, "waits", f"while not os.path.exists({str(go)!r}): time.sleep(0.05)")
    config = f"""
server: {{port: 0}}
engine: p
engines:
  p: {{base_url: "{one_provider.url}/v1", key: "env:REEF_TEST_KEY"}}
  theirs: {{base_url: "{one_provider.url}/v1"}}
  claude: {{base_url: "{one_provider.url}/v1", api: anthropic, key: "env:REEF_TEST_KEY"}}
models: {{theirs: theirs, claude: claude}}
"""
    with running_daemon(module_home, config, environment={"REEF_TEST_KEY": "provider-key"}) as running:
        yield running


def say(daemon: RunningDaemon, text: str, scenario: str, model: str = "m") -> str:
    path = "/v1/messages" if model == "claude" else CHAT
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    status, headers, raw = daemon.post(path, body, x_reef_scenario=scenario)
    assert status == 200, raw
    return headers["x-reef-agent-record-id"]


@pytest.fixture
def waiting(daemon: RunningDaemon, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A job that runs until the test is over, in a scenario of the test's own."""
    status, row = daemon.control("POST", "/reef/jobs", {"recipe": "waits:Hostile", "scenario": scenario_of(request)})
    assert status == 202, row
    yield until(lambda: running(daemon, row["id"]), "the job runs")
    daemon.control("POST", f"/reef/jobs/{row['id']}/cancel", {})


def scenario_of(request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    return "s-" + name.replace("[", "-").replace("]", "").replace("_", "-")[:60].strip("-")


def running(daemon: RunningDaemon, id: str) -> dict[str, Any] | None:
    row: dict[str, Any] = daemon.get(f"/reef/jobs/{id}")
    return row if row["state"] == "running" else None


def path_of(job: dict[str, Any], what: str) -> str:
    return f"/reef/jobs/{job['id']}/{what}"


def ask(daemon: RunningDaemon, job: dict[str, Any], **changes: object) -> tuple[int, Any]:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    return daemon.control("POST", path_of(job, "answer"), {"messages": messages, **changes})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"recipe": "nobody"}, "no recipe is called 'nobody'"),
        ({"recipe": "recipes.sao.recipe:SAORecipe"}, "there is no module 'recipes.sao"),
        ({"recipe": "waits:Hostile", "config": {"batchsize": 1}}, "unknown key 'batchsize'"),
        ({"recipe": 5}, "is not a recipe's name"),
        ({"recipe": "waits:Hostile", "scenario": "../x"}, "is not a scenario name"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_name(daemon: RunningDaemon, body: dict[str, Any], words: str) -> None:
    status, told = daemon.control("POST", "/reef/jobs", body)
    assert status in (400, 422)
    assert words in told["error"]["message"]


def test_a_job_is_listed_shown_and_cancelled(daemon: RunningDaemon, waiting: dict[str, Any]) -> None:
    assert waiting["directory"] == str(daemon.home.jobs / waiting["id"])
    assert (waiting["log"], waiting["curves"]) == ([], [])
    listed = daemon.get(f"/reef/jobs?scenario={waiting['scenario']}")
    assert [row["id"] for row in listed["items"]] == [waiting["id"]]
    assert daemon.get("/reef/jobs?limit=1")["next"] is not None or len(daemon.get("/reef/jobs")["items"]) == 1
    status, row = daemon.control("POST", path_of(waiting, "cancel"), {})
    assert (status, row["state"]) == (200, "cancelled")
    status, told = daemon.control("POST", path_of(waiting, "cancel"), {})
    assert (status, told["error"]["kind"]) == (409, "conflict")


def test_what_is_not_there_is_404(daemon: RunningDaemon) -> None:
    assert daemon.control("GET", "/reef/jobs/job_x")[0] == 404
    assert daemon.control("POST", "/reef/jobs/job_x/cancel", {})[0] == 404


def test_a_job_gets_what_the_stream_offers(daemon: RunningDaemon, waiting: dict[str, Any]) -> None:
    receipt = say(daemon, "an offer", waiting["scenario"])
    daemon.post("/reef/report", {"feedback": "be brief", "references": [receipt]}, x_reef_scenario=waiting["scenario"])
    told = daemon.get(path_of(waiting, "stream"))
    assert [note["text"] for note in told["notes"]] == ["be brief"]
    assert told["instructions"] == []
    status, refused = daemon.control("GET", path_of(waiting, "stream?split=gate"))
    assert (status, refused["error"]["kind"]) == (400, "usage")
    assert daemon.control("GET", path_of(waiting, "stream?split=mine"))[0] == 400


def test_claims_are_checked_and_may_be_repeated(daemon: RunningDaemon, waiting: dict[str, Any]) -> None:
    receipt = say(daemon, "claim me", waiting["scenario"])
    report = {"feedback": "be brief", "references": [receipt], "agent_record_id": "rep_claimed"}
    daemon.post("/reef/report", report, x_reef_scenario=waiting["scenario"])
    for _ in range(2):
        status, row = daemon.control("POST", path_of(waiting, "claim"), {"reports": ["rep_claimed"]})
        assert status == 200, row
    assert daemon.control("POST", path_of(waiting, "claim"), {"records": ["rec_x"]})[0] == 404
    assert daemon.control("POST", path_of(waiting, "claim"), {"records": "rec_x"})[0] == 400


def test_an_answer_comes_from_the_engine_that_serves_and_is_not_recorded(
    daemon: RunningDaemon, provider: Provider, waiting: dict[str, Any]
) -> None:
    say(daemon, "first", waiting["scenario"], model="gpt-x")
    before = daemon.get("/reef/status")["counts"]["records"]
    status, told = ask(daemon, waiting, max_tokens=7, temperature=0.5, seed=3)
    assert (status, told["text"], told["ended"], told["weights"]) == (200, "One sentence.", True, None)
    asked = provider.requests[-1]
    assert asked.header("authorization") == "Bearer provider-key"
    assert {key: asked.json()[key] for key in ("model", "max_completion_tokens", "temperature", "seed")} == {
        "model": "gpt-x", "max_completion_tokens": 7, "temperature": 0.5, "seed": 3,
    }  # fmt: skip
    assert daemon.get("/reef/status")["counts"]["records"] == before
    say(daemon, "by another model", waiting["scenario"], model="claude")
    ask(daemon, waiting)
    assert provider.requests[-1].json()["model"] == "gpt-x", "the same for the whole job"


def test_an_answer_that_nobody_waits_for_any_more_is_given_up(
    daemon: RunningDaemon, provider: Provider, waiting: dict[str, Any]
) -> None:
    def asked() -> int:
        engines: list[dict[str, Any]] = daemon.get("/reef/status")["engines"]
        return next(int(engine["running"]) for engine in engines if engine["name"] == "p")

    provider.faults.append(Fault(hang=True))
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
    head = f"POST {path_of(waiting, 'answer')} HTTP/1.1\r\nhost: reef\r\ncontent-type: application/json\r\n"
    with socket.socket(socket.AF_UNIX) as job:
        job.connect(str(daemon.home.socket))
        job.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        until(lambda: asked() == 1, "the engine is asked")
    until(lambda: asked() == 0, "it is left alone")


def test_an_anthropic_provider_is_asked_in_its_own_words(
    daemon: RunningDaemon, provider: Provider, waiting: dict[str, Any]
) -> None:
    say(daemon, "first", waiting["scenario"], model="claude")
    status, told = ask(daemon, waiting)
    assert (status, told["text"]) == (200, "One sentence.")
    asked = provider.requests[-1]
    assert (asked.path, asked.header("x-api-key"), asked.json()["system"][0]["text"]) == (
        "/v1/messages", "provider-key", "Be brief.",
    )  # fmt: skip


def test_an_engine_that_answers_with_the_agent_s_key_cannot_be_asked(
    daemon: RunningDaemon, waiting: dict[str, Any]
) -> None:
    say(daemon, "first", waiting["scenario"], model="theirs")
    status, told = ask(daemon, waiting)
    assert status == 400
    assert "a job has no agent" in told["error"]["message"]
    assert told["error"]["hint"] == "set engines.theirs.key to keyring:NAME, file:PATH or env:NAME"


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": []}, {"messages": [{"role": "robot", "content": "x"}]}, {"which": "best"}, {"max_tokens": 0},
        {"max_tokens": True}, {"temperature": -1}, {"seed": 1.5},
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(daemon: RunningDaemon, changes: dict[str, Any]) -> None:
    _, row = daemon.control("POST", "/reef/jobs", {"recipe": "waits:Hostile", "scenario": "questions"})
    job = until(lambda: running(daemon, row["id"]), "the job runs")
    assert ask(daemon, job, **changes)[0] == 400
    daemon.control("POST", path_of(job, "cancel"), {})


def test_a_candidate_without_weights_and_a_model_that_is_not_there(
    daemon: RunningDaemon, waiting: dict[str, Any]
) -> None:
    status, told = ask(daemon, waiting, which="candidate")
    assert (status, told["error"]["kind"]) == (409, "bad_weights")
    status, told = daemon.control("GET", path_of(waiting, "model"))
    assert (status, told["error"]["hint"]) == (404, "reef models add default")


@pytest.mark.parametrize(
    ("method", "what"), [("GET", "stream"), ("POST", "claim"), ("POST", "answer"), ("GET", "model")]
)
def test_a_job_that_is_over_gets_nothing(daemon: RunningDaemon, method: str, what: str) -> None:
    _, row = daemon.control("POST", "/reef/jobs", {"recipe": "waits:Hostile", "scenario": "over"})
    daemon.control("POST", path_of(row, "cancel"), {})
    assert daemon.control(method, path_of(row, what), {} if method == "POST" else None)[0] == 409


def test_an_instruction_is_kept_and_the_same_id_is_one(daemon: RunningDaemon) -> None:
    body = {"text": "be brief", "recipe": "waits:Hostile", "agent_record_id": "mine-1", "requires": ["uv"]}
    body["scenario"] = "trains"
    status, told = daemon.control("POST", "/reef/train", body)
    assert (status, told["instruction"], told["job"]["recipe"]) == (200, "mine-1", "waits:Hostile")
    job = until(lambda: running(daemon, told["job"]["id"]), "the job runs")
    offered = daemon.get(path_of(job, "stream"))["instructions"]
    assert [(one["id"], one["text"], one["requires"]) for one in offered] == [("mine-1", "be brief", ["uv"])]
    daemon.control("POST", path_of(job, "claim"), {"instructions": ["mine-1"]})
    assert daemon.control("POST", "/reef/train", body)[1]["job"]["id"] == job["id"]
    assert daemon.control("POST", "/reef/train", body | {"text": "be long"})[0] == 409
    daemon.control("POST", path_of(job, "cancel"), {})


def test_an_agent_may_instruct_a_recipe_with_a_name_but_have_no_module_imported(
    daemon: RunningDaemon, module_home: Home
) -> None:
    (module_home.root / "planted.py").write_text(f"open({str(module_home.root / 'ran')!r}, 'w')")
    for recipe in ("planted:X", "waits:Hostile", "antigravity:X"):
        status, _, raw = daemon.post("/reef/train", {"text": "be brief", "recipe": recipe}, x_reef_scenario="agents")
        assert (status, "needs the control token" in json.loads(raw)["error"]["message"]) == (401, True)
    assert not (module_home.root / "ran").exists()
    status, _, raw = daemon.post("/reef/train", {"text": "be brief", "recipe": "playbook"}, x_reef_scenario="agents")
    told = json.loads(raw)
    assert (status, told["job"]["recipe"]) == (200, "playbook")
    daemon.control("POST", path_of(told["job"], "cancel"), {})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": " "},
        {"text": "x" * 4001},
        {"text": 5},
        {"text": "x", "requires": "uv"},
        {"text": "x", "session": ""},
    ],
)
def test_an_instruction_that_is_none_is_refused(daemon: RunningDaemon, body: dict[str, Any]) -> None:
    assert daemon.control("POST", "/reef/train", body)[0] == 400


def test_agents_may_not_see_or_start_jobs(daemon: RunningDaemon) -> None:
    assert daemon.open("/reef/jobs", b"", method="GET").status == 401
    assert daemon.post("/reef/jobs", {"recipe": "waits:Hostile"})[0] == 401


def test_recipes_are_listed_with_their_settings_or_their_trouble(daemon: RunningDaemon) -> None:
    items = {item["name"]: item for item in daemon.get("/reef/recipes")["items"]}
    assert {"playbook", "sft"} <= items.keys()
    for item in items.values():
        assert "error" in item or {"batch_size", "max_staleness"} <= item["config"].keys()


def test_an_edit_needs_no_score(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "edit me", "edits")
    report: dict[str, Any] = {"references": [receipt], "metadata": {"edited": "the better answer"}}
    assert daemon.post("/reef/report", report, x_reef_scenario="edits")[0] == 200
    for wrong in ("", 5, "x" * 100_001):
        report["metadata"] = {"edited": wrong}
        assert daemon.post("/reef/report", report, x_reef_scenario="edits")[0] == 400
