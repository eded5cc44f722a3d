"""Headers as real agents send them → who is calling."""

import json
from urllib.parse import quote

import pytest

from daemon.core.errors import UsageError
from daemon.server.identity import identify, scenario_name


def test_pi_is_known_by_its_user_agent_and_session_header() -> None:
    who = identify(
        {"user-agent": "pi/1.6.0 (linux; node/v26.12.1; x64)", "session_id": "01a2", "x-session-affinity": "01a2"}
    )
    assert (who.agent, who.session_keys, who.scenario) == ("pi", ("01a2",), "default")


def test_claude_code_subagents_share_the_session_and_are_told_apart() -> None:
    who = identify(
        {
            "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
            "x-claude-code-session-id": "6fbe",
            "x-claude-code-agent-id": "agent-2",
            "x-claude-code-parent-agent-id": "agent-1",
        }
    )
    assert (who.agent, who.session_keys) == ("claude-code", ("6fbe",))
    assert (who.subagent, who.spawner) == ("agent-2", "agent-1")


def test_the_wrappers_own_session_comes_first() -> None:
    assert identify({"x-session-id": "theirs", "x-reef-session-id": "ours"}).session_keys == ("ours", "theirs")


def test_tags_place_and_adapter_are_taken_from_reef_headers() -> None:
    who = identify(
        {"x-reef-tag-run": "7", "x-reef-cwd": "/home/dev/app", "x-reef-commit": "abc", "x-reef-adapter": "pi"}
    )
    assert (dict(who.tags), who.cwd, who.commit, who.agent) == ({"run": "7"}, "/home/dev/app", "abc", "pi")


def test_an_unknown_program_is_named_by_the_first_word_of_its_user_agent() -> None:
    assert identify({"user-agent": "OpenAI/Python 3.57.0"}).agent == "OpenAI"
    assert identify({}).agent is None


def test_a_header_of_any_length_is_cut() -> None:
    assert len(identify({"x-session-id": "x" * 100_000}).session_keys[0]) == 512


@pytest.mark.parametrize("name", ["pi", "work/api", "claude-code", "a.b_c", "7"])
def test_scenario_names_that_hold(name: str) -> None:
    assert scenario_name(name) == name


@pytest.mark.parametrize("name", ["../x", "a//b", "-a", "a/", "a b", "ü", "a" * 129, "' OR 1=1--", "a\x00b"])
def test_scenario_names_that_could_not_be_a_ref_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a scenario name"):
        scenario_name(name)


def test_a_directory_may_have_any_name() -> None:
    """A header is ASCII; the wrapper percent-encodes."""
    assert identify({"x-reef-cwd": "/home/zo%C3%AB/a%20b%25"}).cwd == "/home/zoë/a b%"
    assert identify({"x-reef-cwd": "/plain/path"}).cwd == "/plain/path"
    assert identify({}).cwd is None


def test_codex_tells_its_workspace_and_what_is_no_turn() -> None:
    turn = {
        "session_id": "s", "thread_id": "s", "request_kind": "turn",
        "workspaces": {"/home/dev/app": {"latest_git_commit_hash": "e2b1", "has_changes": False}},
    }  # fmt: skip
    headers = {"session-id": "s", "thread-id": "s", "x-codex-turn-metadata": json.dumps(turn)}
    who = identify(headers)
    assert (who.cwd, who.commit, who.side, who.subagent) == ("/home/dev/app", "e2b1", False, None)
    assert who.dirty is False
    assert identify(headers | {"x-reef-commit": "abc"}).dirty is None  # it is about another commit
    assert identify(headers | {"x-codex-turn-metadata": json.dumps(turn | {"request_kind": "memory"})}).side
    assert identify(headers | {"x-codex-turn-metadata": json.dumps(turn | {"thread_source": "thread_title"})}).side
    assert not identify(headers | {"x-codex-turn-metadata": json.dumps(turn | {"thread_source": "user"})}).side
    child = identify(headers | {"thread-id": "t2", "x-codex-parent-thread-id": "s"})
    assert (child.session_keys, child.subagent, child.spawner) == (("s",), "t2", None)
    nested = identify(headers | {"thread-id": "t3", "x-codex-parent-thread-id": "t2"})
    assert (nested.subagent, nested.spawner) == ("t3", "t2")
    assert identify(headers | {"x-openai-memgen-request": "true"}).side
    assert identify(headers | {"x-reef-cwd": "/wrapper"}).cwd == "/wrapper"


@pytest.mark.parametrize(
    "turn",
    ["", "{", "[]", "[" * 50_000, '{"workspaces": 7}', '{"workspaces": {"/x": null}}', '{"workspaces":{"\\ud800":{}}}'],
)
def test_broken_turn_metadata_is_no_trouble(turn: str) -> None:
    who = identify({"x-codex-turn-metadata": turn})
    assert who.side is False
    (who.cwd or "").encode()  # half an emoji could not be stored


def test_tags_may_tell_session_place_and_commit() -> None:
    who = identify({"x-reef-tag-session": "s", "x-reef-tag-cwd": "/app", "x-reef-tag-commit": "abc"})
    assert (who.session_keys, who.cwd, who.commit) == (("s",), "/app", "abc")


def test_a_long_path_of_many_scripts_is_whole() -> None:
    """Cut, it would be another folder, and a denied one would be recorded."""
    path = "/home/林博仁/" + "軟體/" * 200 + "repo"
    assert identify({"x-reef-cwd": quote(path)}).cwd == path
