"""The dashboard on the daemon's own releases: approve, release against the gate, roll back; whose each line is."""

from dataclasses import replace

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.fakes.daemon import running_daemon
from tests.fakes.provider import running_provider
from tests.fakes.releases import ACCEPTED, candidate, judged, released
from tests.reef_cli.tui.seen import dashboard


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
            await seen.press("g")
            await seen.select("x rejected")
            await seen.press("a")
            await seen.shows("y: yes")
            await seen.press("y")
            await seen.shows("(unproven)")
            await seen.press("g")
            await seen.select(head["id"])
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
            await seen.press("g")
            await seen.select(second.id)
            await seen.press("d")
            await seen.shows("+Be brief.")
            await seen.press("j", "B")
            await seen.shows(f"{second.id} · rules.md", "r1      Use uv.")
            await seen.select("r2      Be brief.")
            await seen.shows(f"r2, recipe playbook, job job_2: report 0 {report}: Be \\x1b[31mbrief.")
