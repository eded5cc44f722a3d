"""`reef traces list · show · tail`."""

import itertools
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli.names import beginnings
from tests.fakes.daemon import REPOSITORY, running_daemon, until
from tests.fakes.provider import Fault, Turn, bash
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef, Result

COVERS = ("reef_cli/names.py",)
HOSTILE = "\x1b]0;owned\x07 \u202egnp.exe \x9b2J"


def session_of(served: Served, receipt: str) -> str:
    return str(served.daemon.get(f"/reef/records/{receipt}")["session"])


def test_list_shows_sessions_newest_first(served: Served, cli: Reef) -> None:
    older = session_of(served, served.ask("list: an older conversation"))
    newer = session_of(served, served.ask("list: a newer conversation"))
    lines = cli("traces", "list", "-n", "2").out.splitlines()
    assert lines[0].split() == ["session", "updated", "agent", "turns", "in", "out", "score", "title"]
    shown = [line.split()[0] for line in lines[1:]]
    assert (newer.startswith(shown[0]), older.startswith(shown[1])) == (True, True)
    assert "list: a newer" in lines[1]
    assert max(map(len, lines)) <= 80
    assert "list: a newer conversation" in cli("traces", "show", shown[0]).out


def test_names_are_short_and_told_apart() -> None:
    moment = "01m8n3jn47"
    assert beginnings([f"tsk_{moment}aaaa", f"tsk_{moment}abbb"]) == [f"tsk_{moment}aa", f"tsk_{moment}ab"]
    assert beginnings([f"tsk_{moment}aaaa"] * 2) == [f"tsk_{moment}"] * 2
    assert beginnings([]) == []


def test_list_pages(served: Served, cli: Reef) -> None:
    for number in range(3):
        served.ask(f"page {number}")
    first = cli("traces", "list", "-n", "2", "--json").json()
    assert len(first["items"]) == 2
    second = cli("traces", "list", "-n", "2", "--before", first["next"], "--json").json()
    assert not {item["id"] for item in first["items"]} & {item["id"] for item in second["items"]}
    assert f"--before {first['next']}" in cli("traces", "list", "-n", "2").err


def test_list_sorted_goes_on_in_its_order(served: Served, cli: Reef) -> None:
    for number in range(2):
        served.ask(f"sorted {'word ' * number * 50}{number}")
    first = cli("traces", "list", "--sort", "tokens", "-n", "1", "--json").json()
    second = cli("traces", "list", "--sort", "tokens", "-n", "1", "--before", first["next"], "--json").json()
    taken = [page["items"][0]["prompt_tokens"] + page["items"][0]["completion_tokens"] for page in (first, second)]
    assert taken == sorted(taken, reverse=True)
    assert f"--before {first['next']} --sort tokens" in cli("traces", "list", "--sort", "tokens", "-n", "1").err
    refused = cli("traces", "list", "status:ok", "--sort", "cost")
    assert refused.code == ExitCode.USAGE
    assert "sort=cost goes over all sessions" in refused.err


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
    asked: list[dict[str, object]] = [
        {"role": "system", "content": f"rules: {long}"},
        {"role": "user", "content": "fold it"},
    ]
    served.provider.turns = (Turn("", (bash(long),)),)
    _, _, raw = served.daemon.post("/v1/chat/completions", {"model": "m", "messages": asked})
    call = json.loads(raw)["choices"][0]["message"]
    served.provider.turns = (Turn("done"),)
    result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": f"result {long}"}
    receipt = served.converse(*asked, call, result)
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


@contextmanager
def tailing(home: Home, *words: str) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """`reef traces tail` and what it prints."""
    with subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "traces", "tail", *words],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.terminate()


def test_tail_shows_records_as_they_come(served: Served) -> None:
    with tailing(served.home, "--json") as (_, out):
        assert json.loads(out.readline())["event"] == "engine"  # it is connected
        receipt = served.ask("while someone watches")
        told = (json.loads(line) for line in out)
        began, ended = itertools.islice((one for one in told if one["event"] != "engine"), 2)
    assert (began["event"], ended["event"]) == ("live", "record")
    assert began["data"]["receipt"] == ended["data"]["receipt"] == receipt


def test_tail_names_what_a_report_is_about(served: Served, cli: Reef) -> None:
    receipt = served.ask("rated while watched")
    with tailing(served.home) as (_, out):
        until(lambda: cli("good").code == 0 and select.select([out], [], [], 0.1)[0], "a report in the tail")
        assert out.readline().endswith(f" {receipt} report good\n")


def test_tail_says_that_the_daemon_stopped(run_reef: Callable[..., Result], reef_home: Home) -> None:
    with running_daemon(reef_home, "server: {port: 0}") as daemon, tailing(reef_home, "--json") as (process, out):
        out.readline()
        run_reef(daemon.home, "stop")
        _, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.UNREACHABLE
    assert "the daemon stopped" in err


def test_a_limit_below_one_is_wrong_use(served: Served, cli: Reef) -> None:
    for limit in ("0", "-1"):
        result = cli("traces", "list", "-n", limit, "--json")
        assert (result.code, result.error()["kind"]) == (ExitCode.USAGE, "usage")
        assert f"'{limit}' is not a number from 1 on" in str(result.error()["message"])


def test_an_empty_list_of_one_scenario_does_not_say_that_nothing_is_there(served: Served, cli: Reef) -> None:
    served.ask("something is there")
    told = cli("traces", "list", "--scenario", "nobody/here")
    assert "nothing yet" not in told.err
    assert "reef traces list" in told.err


def test_the_next_page_keeps_what_was_asked(served: Served, cli: Reef) -> None:
    served.ask("page one", scenario="pages")
    served.ask("page two", scenario="pages")
    told = cli("traces", "list", "-n", "1", "--scenario", "pages").err
    assert re.search(r"^more: reef traces list -n 1 --before \d+ --scenario pages$", told, re.M)


def test_a_last_session_that_failed_is_shown_and_not_rated(served: Served, cli: Reef) -> None:
    served.ask("an older one was answered")
    served.provider.faults.append(Fault(status=400))
    body = {"model": "m", "messages": [{"role": "user", "content": "this one failed"}]}
    assert served.daemon.post("/v1/chat/completions", body)[0] == 400
    assert "this one failed" in cli("traces", "show").out
    refused = cli("good", "--json")
    assert refused.code == ExitCode.NOT_FOUND
    assert refused.error()["message"] == "the last session has no answer to rate"


def test_search_finds_records_and_pages(served: Served, cli: Reef) -> None:
    receipts = [served.ask(f"needle number {n}", scenario="hay") for n in range(3)]
    asked = ("traces", "search", "needle scenario:hay", "-n", "2")
    until(lambda: len(cli(*asked, "--json").json()["items"]) == 2, "the index")
    first = cli(*asked, "--json").json()
    second = cli(*asked, "--cursor", first["next"], "--json").json()
    found = [hit["record"]["receipt"] for hit in first["items"] + second["items"]]
    assert found == receipts[::-1]
    shown = cli(*asked)
    assert "  needle number 2" in shown.out.splitlines()
    assert f"more: reef traces search 'needle scenario:hay' -n 2 --before {first['next']}" in shown.err


def test_a_query_that_cannot_be_read_says_what_there_is(served: Served, cli: Reef) -> None:
    told = cli("traces", "search", "kind:mian", "--json")
    assert (told.code, told.error()["kind"]) == (ExitCode.USAGE, "usage")
    assert "main, subagent, side, retry" in str(told.error()["hint"])
    assert "nothing found" in cli("traces", "search", "agent:nobody").err
    assert cli("traces", "search", "--json", "--", "-kind:main").json()["items"] == []


def test_list_takes_a_query(served: Served, cli: Reef) -> None:
    receipt = served.ask("listed by a field", scenario="listed")
    served.ask("another", scenario="listed")
    cli("good", receipt)
    rows = cli("traces", "list", "scenario:listed has:feedback", "--json").json()["items"]
    assert [row["id"] for row in rows] == [session_of(served, receipt)]
    assert cli("traces", "list", "has:feedback", "--scenario", "listed", "--json").json()["items"] == rows


def test_stats_sum_up(served: Served, cli: Reef) -> None:
    for n in range(2):
        served.ask(f"counted {n}", scenario="sums")
    (row,) = cli("traces", "stats", "--scenario", "sums", "--json").json()["items"]
    assert (row["records"], row["turns"], row["failed"]) == (2, 2, 0)
    shown = cli("traces", "stats", "--scenario", "sums", "--by", "model,agent", "--hourly").out.splitlines()
    assert shown[0].split()[-2:] == ["agent", "model"]
    assert shown[1].split()[2:4] == ["2", "2"]
    refused = cli("traces", "stats", "--since", "99w", "--hourly", "--json")
    assert (refused.code, refused.error()["kind"]) == (ExitCode.USAGE, "usage")
