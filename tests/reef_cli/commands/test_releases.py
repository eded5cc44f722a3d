"""`reef releases …`, on a daemon whose store holds candidates."""

import os
import pty
import subprocess
import sys
from dataclasses import replace

import pytest

from daemon.core.errors import ExitCode
from daemon.core.releases import PERSON, ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.conftest import ROOT
from tests.fakes.releases import ACCEPTED, candidate, judged
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


@pytest.fixture(scope="module")
def store(served: Served) -> Releases:
    return Releases.open(served.home)


def proposed(store: Releases, job: str, scenario: str, verdict: Verdict = Verdict.ACCEPT) -> str:
    state = ReleaseState.PENDING if verdict is Verdict.ACCEPT else ReleaseState.REJECTED
    parent = store.standing(scenario).id
    return store.propose(candidate(job, parent, scenario=scenario), judged(verdict), state).id


def test_before_anything_is_released_it_says_so(cli: Reef) -> None:
    slip = "no scenario is called 'nothing' yet"
    assert cli("releases", "list", "--scenario", "nothing").err.startswith(f"{slip}; which there are: reef scenarios")
    assert f"{slip}\n  hint: reef scenarios list" in cli("releases", "show", "--scenario", "nothing").err
    cli("scenarios", "add", "nothing")
    result = cli("releases", "list", "--scenario", "nothing")
    assert result.code == 0
    assert "nothing is released here yet" in result.err
    assert "reef releases list --state all --scenario nothing" in result.err
    back = cli("releases", "rollback", "--scenario", "nothing", "--json")
    assert back.error()["kind"] == "not_found"
    shown = cli("releases", "show", "--scenario", "nothing", "--json")
    assert (shown.code, shown.error()["kind"]) == (ExitCode.NOT_FOUND, "not_found")
    assert shown.error()["hint"].endswith("or make one: reef harness edit --scenario nothing")


def test_approve_list_show_diff_and_roll_back(cli: Reef, store: Releases) -> None:
    waits = proposed(store, "job_1", "one")
    assert waits in cli("releases", "list", "--state", "pending", "--scenario", "one").out
    done = cli("releases", "approve", waits, "--scenario", "one")
    assert (done.code, done.out.split()[:2]) == (0, ["released", store.standing("one").id])
    head = store.standing("one").id
    line = cli("releases", "list", "--scenario", "one").out.splitlines()[1]
    assert line.startswith(f"{head}*")
    assert "accept 9:1" in line
    assert "harness" in line
    shown = cli("releases", "show", "--scenario", "one").out
    assert shown.startswith("verdict   accepted: 9 better, 1 worse of 12\n")
    assert f"release   {head}, serves, " in shown
    assert "rules.md\n  - rule of job_1\n" in shown
    assert "  git clone --branch one file:///" in shown
    assert "+- rule of job_1" in cli("releases", "diff", "--scenario", "one").out
    refused = cli("releases", "rollback", "--scenario", "one", "--json")
    assert (refused.code, refused.error()["hint"]) == (ExitCode.USAGE, "add --yes")
    back = cli("releases", "rollback", "--scenario", "one", "--yes", "--reason", "too terse")
    assert (back.code, back.out.split()[:2]) == (0, ["rolled", "back"])
    assert "what base was  too terse" in back.out
    again = cli("releases", "rollback", "r1", "--scenario", "one", "--yes", "--json").json()
    assert (again["number"], again["restores"]) == (3, head)


def test_pin_and_unpin(cli: Reef, store: Releases) -> None:
    only = ("--scenario", "held")
    cli("releases", "approve", proposed(store, "job_h1", "held"), *only)
    head = store.standing("held").id
    assert cli("releases", "pin", *only).out.startswith(f"pinned  {head}  ")
    approved = cli("releases", "approve", proposed(store, "job_h2", "held"), *only)
    assert f"clients stay at {head}, where they are held: reef releases unpin --scenario held" in approved.err
    second = store.standing("held").id
    lines = cli("releases", "list", *only).out.splitlines()
    assert (lines[1].split()[0], lines[2].split()[:2]) == (f"{second}*", [head, "pinned"])
    assert (
        "pinned    clients are held here: reef releases unpin --scenario held"
        in cli("releases", "show", head, *only).out
    )
    assert f"held: {second}, clients held at {head}" in cli("status").out
    assert cli("releases", "unpin", *only).out == f"unpinned  {second} serves\n"
    refused = cli("releases", "pin", "r1", *only, "--json")
    assert (refused.code, refused.error()["hint"]) == (ExitCode.USAGE, "add --yes")
    again = cli("releases", "pin", "r1", *only, "--yes", "--json").json()
    assert (again["number"], again["restores"]) == (3, head)
    assert cli("releases", "unpin", *only, "--json").json()["id"] == again["id"]
    assert cli("releases", "unpin", *only).code == ExitCode.STALE


def test_what_can_act_is_shown_and_asked_for(cli: Reef, store: Releases) -> None:
    harness = {"mcp.json": '{"mcpServers": {"a": {"command": "a"}}}'}
    waits = store.propose(replace(candidate("person-1", scenario="acts", harness=harness), recipe=PERSON), None).id
    shown = cli("releases", "show", waits, "--scenario", "acts").out
    assert "note      it changes what can act by itself: mcp.json" in shown
    refused = cli("releases", "approve", waits, "--scenario", "acts")
    assert (refused.code, '+{"mcpServers"' in refused.out) == (ExitCode.USAGE, True)
    assert cli("releases", "approve", waits, "--scenario", "acts", "--yes").out.startswith("released  r1-")
    assert "acts      it changes what can act by itself: mcp.json" in cli("releases", "show", "--scenario", "acts").out


def test_what_a_manual_policy_kept_is_listed(cli: Reef, store: Releases) -> None:
    kept = store.propose(candidate("job_k1", scenario="kept"), ACCEPTED, ReleaseState.KEPT).id
    assert f"{kept}  " in cli("releases", "list", "--state", "kept", "--scenario", "kept").out
    assert cli("releases", "approve", kept, "--scenario", "kept").code == 0


def test_exit_codes_tell_stale_from_refused(cli: Reef, store: Releases) -> None:
    late, refused = proposed(store, "job_s1", "codes"), proposed(store, "job_s2", "codes", Verdict.REJECT)
    result = cli("releases", "approve", refused, "--scenario", "codes", "--json")
    assert (result.code, result.error()["kind"]) == (ExitCode.GATE, "gate")
    forced = cli("releases", "approve", refused, "--scenario", "codes", "--force", "--json").json()
    assert forced["kind"] == "unproven"
    assert cli("releases", "approve", late, "--scenario", "codes").code == ExitCode.STALE
    assert cli("releases", "approve", "r0-00000000", "--scenario", "codes").code == ExitCode.NOT_FOUND
    assert cli("releases", "list", "--state", "odd").code == ExitCode.USAGE


def test_reject_keeps_the_candidate(cli: Reef, store: Releases) -> None:
    waits = proposed(store, "job_r1", "no")
    refused = cli("releases", "reject", waits, "--scenario", "no", "--json")
    assert (refused.code, refused.error()["hint"]) == (ExitCode.USAGE, "add --yes")
    assert cli("releases", "show", waits, "--scenario", "no", "--json").json()["state"] == "pending"
    assert cli("releases", "reject", waits, "--scenario", "no", "--yes").out.startswith(f"rejected  {waits}")
    assert waits in cli("releases", "list", "--state", "rejected", "--scenario", "no").out
    shown = cli("releases", "show", waits, "--scenario", "no").out
    assert f"release   {waits}, not released" in shown
    assert "note      turned down by a person" in shown
    assert f"reef releases approve {waits} --scenario no\n" in shown
    assert "git clone" not in shown


@pytest.mark.parametrize("verb", ["rollback", "reject"])
def test_what_is_not_there_is_said_before_anybody_is_asked(cli: Reef, store: Releases, verb: str) -> None:
    scenario = f"asks-{verb}"
    cli("releases", "approve", proposed(store, f"job_{scenario}", scenario), "--scenario", scenario)
    told = cli("releases", verb, "nope", "--scenario", scenario, "--json")
    assert (told.code, told.error()["kind"]) == (ExitCode.NOT_FOUND, "not_found")
    assert cli("releases", "rollback", "base", "--scenario", scenario, "--yes").code == 0


def test_pages_go_on_where_the_last_one_ended(cli: Reef, store: Releases) -> None:
    for number in range(3):
        parent = store.standing("pages").id
        made = candidate(f"job_p{number}", parent, scenario="pages")
        store.publish(store.propose(made, ACCEPTED), parent)
    page = cli("releases", "list", "--scenario", "pages", "-n", "2", "--json").json()
    assert [row["number"] for row in page["items"]] == [3, 2]
    told = cli("releases", "list", "--scenario", "pages", "-n", "2").err
    assert f"--before {page['next']} --scenario pages" in told
    rest = cli("releases", "list", "--scenario", "pages", "-n", "2", "--before", page["next"], "--json").json()
    assert ([row["number"] for row in rest["items"]], rest["next"]) == ([1], None)


def test_text_from_a_model_is_shown_inert(cli: Reef, store: Releases) -> None:
    made = replace(candidate("job_i1", scenario="inert"), reason="\x1b[31mred\x1b[0m\nand more")
    waits = store.propose(made, ACCEPTED).id
    for words in (("list", "--state", "pending"), ("show", waits)):
        result = cli("releases", *words, "--scenario", "inert")
        assert result.code == 0
        assert "\x1b" not in result.out


def test_status_has_a_line_for_the_head_and_what_waits(cli: Reef, store: Releases) -> None:
    waits = proposed(store, "job_st1", "status")
    cli("releases", "approve", waits, "--scenario", "status")
    for number in range(3):
        scenario = f"status-{number}"
        cli("releases", "approve", proposed(store, f"job_st{number + 2}", scenario), "--scenario", scenario)
    lines = cli("status").out.splitlines()
    assert len(lines) <= 24
    assert lines[-1].startswith("next: ")
    heads = [line for line in lines if line.startswith("release ")]
    assert heads[0].startswith(f"release    status-2: {store.standing('status-2').id}, ")
    assert "accepted: what job_st4 learned" in heads[0]


@pytest.mark.parametrize(("typed", "number"), [("\n", 1), ("y\n", 1), ("yes\n", 2)])
def test_on_a_terminal_only_the_word_confirms(
    served: Served, store: Releases, cli: Reef, typed: str, number: int
) -> None:
    scenario = f"tty-{len(typed)}"
    cli("releases", "approve", proposed(store, f"job_{scenario}", scenario), "--scenario", scenario)
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "releases", "rollback", "--scenario", scenario],
        cwd=ROOT, stdin=follower, stdout=subprocess.PIPE, stderr=follower,
        env={**os.environ, "REEF_HOME": str(served.home.root)},
    )  # fmt: skip
    os.close(follower)
    asked = b""
    while b"Type yes:" not in asked:
        asked += os.read(leader, 1000)
    os.write(leader, typed.encode())
    process.communicate(timeout=60)
    os.close(leader)
    assert f"Go back to the release before ({scenario})?" in asked.decode()
    assert process.returncode == (0 if number == 2 else ExitCode.FAILED)
    head = store.head(scenario)
    assert head is not None
    assert head.number == number
