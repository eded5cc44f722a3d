"""What agents' own hooks are answered, in the bodies that Claude Code 2.1.332 was seen to send."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.core.releases import Release
from daemon.server.hooks import line, typed
from daemon.store.inband import Said
from tests.fakes import chain
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Turn, running_provider

SESSION = "b4c6dfb7-e479-4187-bdb1-dd046ae5f0ef"
COMMON = {
    "session_id": SESSION,
    "transcript_path": f"/home/dev/.claude/projects/-home-dev-project/{SESSION}.jsonl",
    "cwd": "/home/dev/project",
}
HOOK = "/reef/hook/claude-code"


@pytest.fixture(scope="module")
def releases(module_home: Home) -> list[Release]:
    """Two in the scenario ``work``."""
    return [
        chain.publish(module_home, f"job_{n}", {"rules.md": f"Rule {n}.\n"}, scenario="work", reason=f"rule {n}")
        for n in (1, 2)
    ]


@pytest.fixture(scope="module")
def daemon(module_home: Home, releases: list[Release]) -> Iterator[RunningDaemon]:
    with (
        running_provider([Turn("Done.")]) as provider,
        running_daemon(module_home, provider.config(api="anthropic")) as running,
    ):
        yield running


def ask(daemon: RunningDaemon, session: str, text: str = "hello", scenario: str = "default") -> str:
    """One turn of Claude Code's; its receipt."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    headers = {"x-claude-code-session-id": session, "x-reef-scenario": scenario}
    response = daemon.open("/v1/messages", body, headers=headers)
    assert response.read()
    return str(response.getheader("x-reef-agent-record-id"))


def hook(daemon: RunningDaemon, query: str = "", **event: Any) -> Any:
    response = daemon.open(f"{HOOK}?{query}", COMMON | event)
    assert response.status == 200
    return json.loads(response.read())


def prompt(text: str, **changes: Any) -> dict[str, Any]:
    sent = {"prompt_id": "1c440cda-6aff-48e8-87d7-46c64a0fc197", "permission_mode": "default", "prompt": text}
    return {"hook_event_name": "UserPromptSubmit", **sent, **changes}


def reports(daemon: RunningDaemon, receipt: str) -> list[tuple[float | None, str | None]]:
    return [(one["score"], one["feedback"]) for one in daemon.get(f"/reef/records/{receipt}")["reports"]]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/good", (1.0, None)),
        ("/reef:bad no tests\nwere run", (0.0, "no tests\nwere run")),
        ("/note use uv", (None, "use uv")),
        ("reef-good works", (1.0, "works")),
        ("/reef-bad ", (0.0, None)),
    ],
)
def test_feedback_is_on_record_and_the_prompt_goes_no_further(
    daemon: RunningDaemon, text: str, kept: tuple[float | None, str | None]
) -> None:
    session = f"s-{text}".replace("\n", " ")
    receipt = ask(daemon, session)
    told = hook(daemon, **prompt(text, session_id=session))
    word = "good" if kept[0] else "note" if kept[0] is None else "bad"
    assert told == {"decision": "block", "reason": f"Reef: recorded {word} on {receipt}"}
    assert reports(daemon, receipt) == [kept]
    hook(daemon, **prompt(text, session_id=session))
    assert len(reports(daemon, receipt)) == 1, "the same prompt is one report"
    hook(daemon, **prompt(text, session_id=session, prompt_id="another"))
    assert len(reports(daemon, receipt)) == 2


def test_feedback_is_about_the_sessions_last_answer_in_its_scenario(daemon: RunningDaemon) -> None:
    ask(daemon, SESSION, "one", "work")
    last = ask(daemon, SESSION, "two", "work")
    ask(daemon, "another", "three", "work")
    assert hook(daemon, "scenario=work", **prompt("/good"))["reason"].endswith(last)
    response = daemon.open(HOOK, COMMON | prompt("/bad"), headers={"x-reef-scenario": "work"})
    assert json.loads(response.read())["reason"].endswith(last), "as a wrapper's address says it"


def test_a_session_without_an_answer_says_so(daemon: RunningDaemon) -> None:
    told = hook(daemon, **prompt("/bad", session_id="new"))
    assert told["decision"] == "block"
    assert told["reason"].startswith("Reef: not recorded: this conversation has no recorded answer yet")
    assert hook(daemon, "scenario=never-seen", **prompt("/bad"))["reason"].startswith("Reef: not recorded")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/good", Said("good")),
        ("  /note  a b \n", Said("note", "a b")),
        ("/reef:note x", Said("note", "x")),
        ("/goodness", None),
        ("good", None),
        ("/reef good", None),
        ("say /good", None),
        ("", None),
    ],
)
def test_what_is_typed(text: str, said: Said | None) -> None:
    assert typed(text) == said


@pytest.mark.parametrize(
    "event",
    [
        prompt("create hello.txt"),
        prompt("/good", agent_id="a1"),
        prompt("/good", session_id=None),
        prompt("/good", prompt=["/good"]),
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {"stdout": "/good"}},
        {"hook_event_name": "Stop", "session_id": None},
        {"hook_event_name": "SubagentStop", "last_assistant_message": "/good"},
        {"hook_event_name": "SessionEnd", "reason": "other"},
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": ["SessionStart"]},
        {"hook_event_name": "SessionStart", "source": {}},
        {},
    ],
)
def test_nothing_else_is_held_up(daemon: RunningDaemon, event: dict[str, Any]) -> None:
    assert hook(daemon, **event) == {}


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff\x00", b'"x"', b"[" * 5000, b"{}" * 3_000_000])
def test_what_is_no_event_is_answered_at_once(daemon: RunningDaemon, raw: bytes) -> None:
    assert daemon.post(HOOK, raw)[::2] == (200, b"{}")
    assert daemon.post(f"{HOOK}?scenario=../x", prompt("/good"))[::2] == (200, b"{}")


def test_a_turn_of_which_nothing_came_here_is_told(daemon: RunningDaemon) -> None:
    """B101 and B102: an address in the agent's own settings wins over the one that it was started with; B106: or it is
    one that the agent has put back.
    """
    stop: dict[str, Any] = {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."}
    told = hook(daemon, **stop | {"session_id": "elsewhere"})
    assert told["systemMessage"].startswith("Reef: nothing of this session reaches Reef: ANTHROPIC_BASE_URL")
    ask(daemon, "here")
    assert hook(daemon, **stop | {"session_id": "here"}) == {}
    assert hook(daemon, "scenario=work", **stop | {"session_id": "here"}) != {}
    daemon.control("POST", "/reef/pause", {})
    try:
        assert hook(daemon, **stop | {"session_id": "elsewhere"}) == {}, "what is not to be recorded may well come here"
    finally:
        daemon.control("POST", "/reef/resume", {})


def test_a_session_start_tells_of_a_newer_release(daemon: RunningDaemon, releases: list[Release]) -> None:
    first, head = releases
    start = {"hook_event_name": "SessionStart", "source": "startup"}
    told = f"Reef: release {head.id.partition('-')[0]} · rule 2 · accepted 9\u20130"
    older = {"systemMessage": f"{told} · this session runs r1"}
    assert hook(daemon, f"scenario=work&release={first.id}&activated=1", **start) == older
    assert hook(daemon, f"scenario=work&release={first.id}", **start | {"source": "compact"}) == {}
    assert hook(daemon, f"scenario=work&release={head.id}&activated=1", **start) == {"systemMessage": told}
    assert hook(daemon, f"scenario=work&release={head.id}", **start) == {}
    assert hook(daemon, "scenario=work&release=base", **start) == {"systemMessage": f"{told} · this session runs base"}
    assert hook(daemon, "scenario=work", **start) == {}


def test_the_same_as_a_line_for_who_has_no_hooks(daemon: RunningDaemon, releases: list[Release]) -> None:
    def notice(query: str) -> tuple[int, str]:
        response = daemon.open(f"/reef/notice?scenario=work&{query}", b"", method="GET")
        return response.status, response.read().decode()

    assert notice(f"release={releases[0].id}") == (
        200,
        "Reef: release r2 · rule 2 · accepted 9\u20130 · this session runs r1\n",
    )
    assert notice(f"release={releases[1].id}") == (200, "")
    assert json.loads(notice(f"release={releases[0].id}&form=hook")[1]).keys() == {"systemMessage"}
    assert notice(f"release={releases[1].id}&form=hook") == (200, "{}")
    assert daemon.open("/reef/notice?scenario=..%2Fx", b"", method="GET").status == 400


def test_a_notice_is_one_line_whatever_the_release_says(releases: list[Release]) -> None:
    odd = replace(releases[0], reason="a\nb\x1b[31m\u202ec" + "x" * 5000)
    told = line(odd, "base\x1b")
    assert told.isprintable()
    assert len(told) <= 310


def test_both_need_a_token(daemon: RunningDaemon) -> None:
    nobody = {"authorization": "Bearer nobody"}
    assert daemon.open(HOOK, prompt("/good"), headers=nobody).status == 401
    assert daemon.open("/reef/notice", b"", headers=nobody, method="GET").status == 401
