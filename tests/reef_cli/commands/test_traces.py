"""`reef traces list · show · tail`."""

import json
import os
import subprocess
import sys

from daemon.core.errors import ExitCode
from tests.fakes.daemon import REPOSITORY
from tests.fakes.provider import Turn, bash
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef

HOSTILE = "\x1b]0;owned\x07 \u202egnp.exe \x9b2J"


def session_of(served: Served, receipt: str) -> str:
    return str(served.daemon.get(f"/reef/records/{receipt}")["session"])


def test_list_shows_sessions_newest_first(served: Served, cli: Reef) -> None:
    older = session_of(served, served.ask("list: an older conversation"))
    newer = session_of(served, served.ask("list: a newer conversation"))
    lines = cli("traces", "list", "-n", "2").out.splitlines()
    assert lines[0].split() == ["session", "updated", "agent", "turns", "in", "out", "score", "title"]
    assert [line.split()[0] for line in lines[1:]] == [newer, older]
    assert "list: a newer conversation" in lines[1]


def test_list_pages(served: Served, cli: Reef) -> None:
    for number in range(3):
        served.ask(f"page {number}")
    first = cli("traces", "list", "-n", "2", "--json").json()
    assert len(first["items"]) == 2
    second = cli("traces", "list", "-n", "2", "--before", first["next"], "--json").json()
    assert not {item["id"] for item in first["items"]} & {item["id"] for item in second["items"]}
    assert f"--before {first['next']}" in cli("traces", "list", "-n", "2").err


def test_list_of_one_scenario(served: Served, cli: Reef) -> None:
    served.ask("only here", scenario="work/list")
    items = cli("traces", "list", "--scenario", "work/list", "--json").json()["items"]
    assert [item["scenario"] for item in items] == ["work/list"]


def test_show_reads_as_a_conversation(served: Served, cli: Reef) -> None:
    receipt = served.ask("what is two and two?", answer="four")
    cli("note", "correct", receipt)
    out = cli("traces", "show", receipt).out
    lines = out.splitlines()
    assert "what is two and two?" in lines[0]
    assert session_of(served, receipt) in lines[1]
    assert f"{receipt} main" in out
    assert "user\n  what is two and two?\nassistant\n  four\n  * correct\n" in out


def test_show_without_a_name_is_the_last_session(served: Served, cli: Reef) -> None:
    served.ask("the last of all")
    assert "the last of all" in cli("traces", "show").out


def test_show_takes_a_session_a_receipt_or_a_beginning(served: Served, cli: Reef) -> None:
    receipt = served.ask("found by its names")
    session = session_of(served, receipt)
    for name in (receipt, session, receipt[:-2], session[:-2]):
        result = cli("traces", "show", name)
        assert result.code == 0, result.err
        assert "found by its names" in result.out


def test_show_of_an_ambiguous_or_unknown_beginning(served: Served, cli: Reef) -> None:
    served.ask("one")
    served.ask("another")
    ambiguous = cli("traces", "show", "rec_", "--json")
    assert (ambiguous.code, ambiguous.error()["kind"]) == (ExitCode.USAGE, "usage")
    unknown = cli("traces", "show", "rec_zzzz", "--json")
    assert (unknown.code, unknown.error()["kind"]) == (ExitCode.NOT_FOUND, "not_found")


def test_show_makes_hostile_text_inert(served: Served, cli: Reef) -> None:
    receipt = served.ask(f"prompt {HOSTILE}", answer=Turn(f"answer {HOSTILE}", (bash(f"echo {HOSTILE}"),)))
    cli("note", f"note {HOSTILE}", receipt)
    for words in (["traces", "show", receipt], ["traces", "show", receipt, "--full"], ["traces", "list"]):
        out = cli(*words).out
        assert not set(out) & set("\x1b\x07\u202e\x9b")
    assert "answer \\x1b]0;owned\\x07 \\u202egnp.exe" in cli("traces", "show", receipt).out


def test_show_folds_tools_and_system_prompts_to_a_line(served: Served, cli: Reef) -> None:
    long = "word " * 200
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": long})}}
    served.provider.turns = (Turn("done"),)
    receipt = served.converse(
        {"role": "system", "content": f"rules: {long}"},
        {"role": "user", "content": "fold it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"result {long}"},
    )
    folded = cli("traces", "show", receipt).out.splitlines()
    assert max(map(len, folded)) < 160
    assert any(line.startswith("  > bash ") and line.endswith("characters]") for line in folded)
    assert any(line.startswith("  < result ") for line in folded)
    assert any(line.startswith("  rules: ") for line in folded)
    assert f"result {long}".strip() in cli("traces", "show", receipt, "--full").out


def test_show_in_json_is_the_trace(served: Served, cli: Reef) -> None:
    receipt = served.ask("as json")
    trace = cli("traces", "show", receipt, "--json").json()
    assert trace["records"][0]["record"]["receipt"] == receipt
    assert trace["records"][0]["new_messages"][0]["parts"] == [{"type": "text", "text": "as json"}]


def test_tail_shows_records_as_they_come(served: Served) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "traces", "tail", "--json"],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(served.home.root)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "engine"  # it is connected
        receipt = served.ask("while someone watches")
        told = json.loads(process.stdout.readline())
        process.terminate()
    assert told["event"] == "record"
    assert told["data"]["receipt"] == receipt
