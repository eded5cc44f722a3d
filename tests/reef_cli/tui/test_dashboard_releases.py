"""The dashboard on the daemon's own releases: every decision, here and elsewhere, and whose each line is."""

import asyncio
from dataclasses import replace

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import running_provider
from tests.fakes.releases import ACCEPTED, candidate, judged, released
from tests.reef_cli.tui.seen import Seen, dashboard


async def test_releases_are_decided_from_the_dashboard(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        store = Releases.open(reef_home)
        store.propose(candidate("job_1"), ACCEPTED)
        async with dashboard(reef_home, (100, 30)) as seen:
            await seen.shows("nothing yet")
            await seen.press("2")
            await seen.shows("? pending")
            await seen.press("enter")
            await seen.shows("accepted: 9 better, 1 worse of 12", "waits for your yes or no")
            await seen.press("a")
            await seen.shows("y: yes")
            await seen.press("y")
            await seen.shows("approve: r1-")
            await seen.until(lambda: "waits for" not in seen.screen)
            await seen.press("d")
            await seen.shows("+- rule of job_1")
            await seen.press("escape", "escape")
            await seen.shows("* serves")
            head = daemon.get("/reef/releases")["items"][0]
            store.propose(candidate("job_2", head["id"]), judged(Verdict.REJECT), ReleaseState.REJECTED)
            await seen.press("1", "2")
            await seen.shows("x rejected")
            await choose(seen, "x rejected")
            await seen.press("a")
            await seen.shows("y: yes")
            await seen.press("y")
            await seen.shows("(unproven)")
            await choose(seen, head["id"])
            await seen.press("b", "y")
            await seen.shows("(rollback)")
        newest = daemon.get("/reef/releases")["items"][0]
        assert (newest["kind"], newest["restores"], newest["head"]) == ("rollback", head["id"], True)


async def test_the_report_that_put_a_line_there(reef_home: Home) -> None:
    with running_provider() as provider, running_daemon(reef_home, provider.config()) as daemon:
        question = {"model": "m", "messages": [{"role": "user", "content": "too long?"}]}
        receipt = daemon.post("/v1/chat/completions", question)[1]["x-reef-agent-record-id"]
        body = {"score": 0, "feedback": "Be \x1b[31mbrief.", "references": [receipt]}
        report = daemon.control("POST", "/reef/report", body)[1]["agent_record_id"]
        store = Releases.open(reef_home)
        first = released(store, "job_1", harness={"rules.md": "Use uv.\n"})
        made = candidate("job_2", first.id, harness={"rules.md": "Use uv.\nBe brief.\n"})
        second = store.publish(store.propose(replace(made, reports=(report,)), ACCEPTED), first.id)
        async with dashboard(reef_home, (120, 30)) as seen:
            await seen.shows("too long?")
            await seen.press("2")
            await seen.shows("* serves")
            await choose(seen, second.id)
            await seen.press("d")
            await seen.shows("+Be brief.")
            await seen.press("j", "B")
            await seen.shows(f"{second.id} · rules.md", "r1      Use uv.")
            await seen.select("r2      Be brief.")
            await seen.shows(f"r2, recipe playbook, job job_2: report 0 {report}: Be \\x1b[31mbrief.")


async def test_clients_are_held_let_go_and_what_is_new_is_told(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        made = [propose(daemon, "rules.md", f"- rule {n}\n") for n in range(2)]
        daemon.control("POST", f"/reef/releases/{made[0]}/approve", {})
        first = daemon.get("/reef/releases")["items"][0]["id"]
        async with dashboard(reef_home, (100, 30)) as seen:
            await seen.shows("nothing yet")
            third = await asyncio.to_thread(propose, daemon, "mcp.json", '{"mcpServers": {"x": {"command": "y"}}}\n')
            await seen.shows(f"{third} of default waits for your yes: 2 shows it")
            await seen.press("2")
            await seen.shows("? pending")
            await choose(seen, made[1])
            await seen.press("x", "y")
            await seen.shows(f"reject: {made[1]} is rejected", "turned down by a person")
            await choose(seen, third)
            await seen.press("a")
            await seen.shows("what can act by itself: mcp.json", '+{"mcpServers": {"x": {"command": "y"}}}')
            await seen.press("y")
            await seen.shows("default: base → r1 → [r2*]")
            second = daemon.get("/reef/releases")["items"][0]["id"]
            await seen.press("asterisk", "y")
            await seen.shows(f"pin: clients are held at {second}", "[r2* held]")
            await choose(seen, first)
            await seen.press("asterisk")
            await seen.shows(f"Go back to {first}, which becomes a new release")
            await seen.press("y")
            await seen.shows("base → r1 → r2 → [r3=r1* held]")
            await seen.press("enter")
            await seen.shows("pinned    clients are held here")
            await asyncio.to_thread(daemon.control, "POST", "/reef/releases/unpin", {})  # elsewhere
            await seen.until(lambda: "pinned    " not in seen.screen)
            await seen.press("asterisk", "y")
            await seen.shows("pinned    clients are held here")
            await seen.press("asterisk", "y")
            await seen.shows("unpin: r3-")
            await seen.press("1")
            await asyncio.to_thread(daemon.control, "POST", "/reef/releases/rollback", {"to": second})
            await seen.shows(" is the new head of default: 2 shows it")
        assert [one["number"] for one in daemon.get("/reef/releases")["items"]] == [4, 3, 2, 1]
        assert daemon.get("/reef/releases")["pinned"] is None


def propose(daemon: RunningDaemon, path: str, text: str) -> str:
    told = daemon.control("POST", "/reef/harness/proposals", {"files": {path: text}})[1]
    return str(told["id"])


async def choose(seen: Seen, id: str) -> None:
    await seen.press("g")
    await seen.select(id)
