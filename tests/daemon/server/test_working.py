"""A person edits files of a working copy in a real daemon: proposals and conflicts come of it by themselves."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.core.releases import Release
from daemon.server.working import Working
from daemon.store.releases import Releases
from daemon.store.working.copy import WorkingCopy
from tests.daemon.learning.test_publish import Desk
from tests.fakes import chain
from tests.fakes.daemon import RunningDaemon, running_daemon, until

COVERS = ("daemon/server/copies.py", "daemon/server/edits.py")
SKILL = "skills/greet/SKILL.md"


CONFIG = "server: {port: 0}"


class Copy:
    """One scenario's working copy. ``looked`` waits for the daemon's own look: nobody asks it to."""

    def __init__(self, daemon: RunningDaemon, scenario: str) -> None:
        self.daemon, self.scenario = daemon, scenario
        status, told = daemon.control("POST", "/reef/harness/working", {"scenario": scenario})
        assert status == 200, told
        self.root = Path(told["path"])

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def asked(self) -> dict[str, Any]:
        (item,) = self.daemon.get(f"/reef/harness/working?scenario={self.scenario}")["items"]
        return item  # type: ignore[no-any-return]

    def edits(self) -> dict[str, str]:
        return {edit["path"]: edit["how"] for edit in self.asked()["edits"]}

    def pending(self) -> list[dict[str, Any]]:
        """Read from the store, so that it is the daemon's own doing."""
        rows, _ = Releases.open(self.daemon.home).list(self.scenario, states=frozenset({chain.PENDING}))
        return [{"id": row.id, "parent": row.parent, "reason": row.reason} for row in rows]

    def proposed(self, but: str | None = None) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            rows = self.pending()
            return rows[0] if len(rows) == 1 and rows[0]["id"] != but else None

        return until(found, "one proposal")  # type: ignore[no-any-return]

    def approve(self, id: str) -> dict[str, Any]:
        body = {"scenario": self.scenario}
        status, told = self.daemon.control("POST", f"/reef/releases/{id}/approve", body)
        assert status == 200, told
        return told  # type: ignore[no-any-return]

    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.root).as_posix(): path.read_text() for path in self.root.rglob("*") if path.is_file()
        }


def test_an_edit_becomes_a_proposal_that_can_be_seen_and_approved(daemon: RunningDaemon) -> None:
    first = chain.publish(daemon.home, "job_a1", scenario="a")
    made = Copy(daemon, "a")
    assert made.files() == chain.HARNESS
    made.write("rules.md", "Answer at length.\n")
    made.write("prompts/own.md", "Say it again.\n")
    reason = "edited by hand: prompts/own.md, rules.md"
    until(lambda: [one["reason"] for one in made.pending()] == [reason], "the proposal of both, maybe after one of one")
    (proposed,) = made.pending()
    assert proposed["parent"] == first.id
    diff = daemon.get(f"/reef/releases/{proposed['id']}/diff?scenario=a")["diff"]
    assert "-Answer briefly.\n+Answer at length." in diff
    assert made.edits() == {"prompts/own.md": "added", "rules.md": "changed"}
    released = made.approve(proposed["id"])
    assert made.asked()["base"] == released["id"]
    assert (made.edits(), made.asked()["proposal"]) == ({}, None)
    assert made.files() == chain.HARNESS | {"rules.md": "Answer at length.\n", "prompts/own.md": "Say it again.\n"}


def test_a_further_edit_replaces_the_proposal_and_taking_it_back_withdraws_it(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_b1", scenario="b")
    made = Copy(daemon, "b")
    made.write("rules.md", "One.\n")
    one = made.proposed()
    made.write("rules.md", "Two.\n")
    two = made.proposed(but=one["id"])
    told = daemon.get(f"/reef/releases/{one['id']}?scenario=b")
    assert (told["state"], told["note"]) == ("rejected", f"withdrawn: edited further, see {two['id']}")
    made.write("rules.md", "One.\n")
    assert made.proposed(but=two["id"])["id"] == one["id"], "the same again is the same candidate"
    made.write("rules.md", chain.HARNESS["rules.md"])
    until(lambda: made.pending() == [], "the withdrawal")
    assert made.edits() == {}


async def test_a_file_that_is_emptied_before_it_is_written_is_proposed_whole(reef_home: Home) -> None:
    class Saving(Working):
        """Somebody saves the file: it is empty when it is read first, and looks old."""

        def _found(self, made: WorkingCopy) -> Any:
            found = super()._found(made)
            (made.root / "rules.md").write_text("One.\n")
            os.utime(made.root / "rules.md", (1, 1))
            return found

    desk = Desk(Releases.open(reef_home))
    made = WorkingCopy(reef_home, "default")
    made.make("base", {"rules.md": ""})
    os.utime(made.root / "rules.md", (1, 1))
    looked = await Saving(reef_home, desk, lambda told: None).look("default")
    (proposed,) = desk.releases.waiting()
    assert looked.proposal == proposed.id
    assert desk.releases.files(proposed) == {"rules.md": "One.\n"}


def test_a_removed_file_is_proposed_as_removed(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_c1", scenario="c")
    made = Copy(daemon, "c")
    (made.root / "prompts" / "sum.md").unlink()
    proposed = made.proposed()
    assert made.edits() == {"prompts/sum.md": "removed"}
    made.approve(proposed["id"])
    assert "prompts/sum.md" not in daemon.get("/reef/releases/r2?scenario=c")["files_text"]


def test_what_can_act_waits_for_a_person_like_all_else(daemon: RunningDaemon) -> None:
    made = Copy(daemon, "d")
    made.write("extensions/pi/hello.ts", "export default () => {}\n")
    proposed = made.proposed()
    told = daemon.get(f"/reef/releases/{proposed['id']}?scenario=d")
    assert "extensions/pi/hello.ts" in told["acts"]
    assert made.approve(proposed["id"])["number"] == 1


def test_b184_a_file_that_is_wrong_is_said_and_stays(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_e1", scenario="e")
    made = Copy(daemon, "e")
    wrong = "---\nname: greet\ndescription: Use when: greeting\n---\nHello.\n"
    made.write(SKILL, wrong)
    until(lambda: "greet/SKILL.md: its head is not YAML" in daemon.log(), "the word in the log")
    (note,) = [note for note in daemon.get("/reef/status")["notes"] if str(made.root) in note]
    assert "nothing is proposed until it is right" in note
    (problem,) = made.asked()["problems"]
    assert (problem["path"], problem["blocks"], made.pending()) == (SKILL, True, [])
    assert (made.root / SKILL).read_text() == wrong
    made.write(SKILL, wrong.replace("Use when: greeting", '"Use when: greeting"'))
    made.proposed()
    assert made.asked()["problems"] == []
    until(lambda: not [n for n in daemon.get("/reef/status")["notes"] if str(made.root) in n], "the end of the note")


def test_a_folder_full_of_something_else_does_not_fill_the_status(daemon: RunningDaemon) -> None:
    made = Copy(daemon, "full")
    for number in range(30):
        made.write(f"page{number}.html", "x\n")
    assert len(made.asked()["problems"]) == 30
    notes = [note for note in daemon.get("/reef/status")["notes"] if str(made.root) in note]
    assert (len(notes), notes[-1]) == (5, f"{made.root}: 26 more like it: reef harness status --scenario full")


def publish(made: Copy, job: str, harness: dict[str, str | None]) -> Release:
    """The next release of the scenario, by way of the daemon, as a recipe's accepted candidate becomes one."""
    waits = chain.propose(made.daemon.home, job, harness, scenario=made.scenario)
    made.approve(waits.id)
    return waits


def test_b192_a_new_release_comes_into_the_folder_and_keeps_what_was_edited(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_f1", scenario="f")
    made = Copy(daemon, "f")
    made.write("rules.md", "Mine.\n")
    stale = made.proposed()
    publish(made, "job_f2", {"prompts/sum.md": None, "prompts/new.md": "New.\n"})
    again = made.proposed(but=stale["id"])
    assert made.files() == {
        **{path: text for path, text in chain.HARNESS.items() if path != "prompts/sum.md"},
        "rules.md": "Mine.\n",
        "prompts/new.md": "New.\n",
    }
    assert again["parent"] == made.asked()["base"]
    assert made.asked()["conflicts"] == {}


def test_a_conflict_is_shown_and_a_person_decides(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_g1", scenario="g")
    made = Copy(daemon, "g")
    made.write("rules.md", "Mine.\n")
    made.write(SKILL, chain.SKILL + "Mine.\n")
    made.proposed()
    publish(made, "job_g2", {"rules.md": "Theirs.\n", SKILL: chain.SKILL + "Theirs.\n"})
    until(lambda: made.pending() == [], "the withdrawal of what was made for another head")
    head = made.asked()["base"]
    assert made.asked()["conflicts"] == {"rules.md": head, SKILL: head}
    assert (made.root / "rules.md").read_text() == "Mine.\n"
    assert any("so did" in note for note in daemon.get("/reef/status")["notes"])
    body = {"scenario": "g", "files": ["rules.md"]}
    assert daemon.control("POST", "/reef/harness/working/keep", body)[0] == 200
    status, told = daemon.control("POST", "/reef/harness/working/discard", {"scenario": "g", "files": [SKILL]})
    assert (status, told["conflicts"], [edit["path"] for edit in told["edits"]]) == (200, {}, ["rules.md"])
    assert (made.root / SKILL).read_text() == chain.SKILL + "Theirs.\n"
    assert made.proposed()["parent"] == head


def test_edits_after_an_approval_are_no_conflict_with_it(daemon: RunningDaemon) -> None:
    made = Copy(daemon, "h")
    made.write("rules.md", "One.\n")
    proposed = made.proposed()
    made.write("rules.md", "not \u202e right\n")
    until(lambda: made.asked()["problems"], "the look at what cannot be proposed")
    made.approve(proposed["id"])
    made.write("rules.md", "Two.\n")
    assert made.proposed(but=proposed["id"])["parent"] == made.asked()["base"]
    assert made.asked()["conflicts"] == {}


def test_what_a_person_turned_down_is_not_proposed_again_until_they_change_it(daemon: RunningDaemon) -> None:
    made = Copy(daemon, "i")
    made.write("rules.md", "One.\n")
    proposed = made.proposed()
    daemon.control("POST", f"/reef/releases/{proposed['id']}/reject", {"scenario": "i"})
    assert made.asked()["proposal_state"] == "rejected"
    assert made.pending() == []
    made.write("rules.md", "Two.\n")
    made.proposed()


def test_all_edits_are_given_up_at_once(daemon: RunningDaemon, tmp_path: Path) -> None:
    chain.publish(daemon.home, "job_j1", scenario="j")
    made = Copy(daemon, "j")
    (made.root / "rules.md").unlink()
    (made.root / "rules.md").symlink_to(tmp_path)
    made.write("prompts/own.md", "Own.\n")
    assert daemon.control("POST", "/reef/harness/working/discard", {"scenario": "j"})[0] == 200
    assert made.files() == chain.HARNESS
    assert not (made.root / "rules.md").is_symlink()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "?scenario=nobody", None, 404),
        ("POST", "", {"scenario": "../x"}, 400),
        ("POST", "/keep", {"scenario": "nobody"}, 404),
        ("POST", "/discard", {"scenario": "k", "files": ["rules.md"]}, 409),
        ("POST", "/discard", {"scenario": "k", "files": "rules.md"}, 400),
        ("POST", "/discard", {"scenario": "k", "files": ["../../x"]}, 409),
        ("POST", "/keep", {"scenario": "k", "files": ["rules.md"]}, 409),
    ],
)
def test_what_cannot_be_done_is_said(daemon: RunningDaemon, method: str, path: str, body: object, status: int) -> None:
    Copy(daemon, "k")
    found, told = daemon.control(method, f"/reef/harness/working{path}", body)
    assert (found, set(told["error"])) == (status, {"kind", "message", "hint"})


def test_a_scenario_with_edits_is_not_removed_and_one_without_takes_its_copy_along(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_l1", scenario="l")
    made = Copy(daemon, "l")
    made.write("rules.md", "Mine.\n")
    assert daemon.control("DELETE", "/reef/scenarios/l")[0] == 409
    daemon.control("POST", "/reef/harness/working/discard", {"scenario": "l"})
    assert daemon.control("DELETE", "/reef/scenarios/l")[0] == 200
    assert not made.root.exists()


def test_an_agent_edits_no_working_copy(daemon: RunningDaemon) -> None:
    for method, path in (("GET", ""), ("POST", ""), ("POST", "/discard"), ("POST", "/keep")):
        response = daemon.open(f"/reef/harness/working{path}", {}, method=method)
        response.read()
        assert response.status == 401


def test_a_folder_that_was_taken_away_is_made_anew_and_nothing_is_removed_by_it(daemon: RunningDaemon) -> None:
    chain.publish(daemon.home, "job_gone", scenario="gone")
    made = Copy(daemon, "gone")
    made.write("rules.md", "Mine.\n")
    made.proposed()
    shutil.rmtree(made.root)
    assert daemon.control("GET", "/reef/harness/working?scenario=gone")[0] == 404
    again = Copy(daemon, "gone")
    assert (again.files(), again.asked()["edits"]) == (chain.HARNESS, [])
    until(lambda: not made.pending(), "what was proposed is withdrawn")


def test_a_link_in_the_folders_place_is_neither_read_nor_written(daemon: RunningDaemon, tmp_path: Path) -> None:
    chain.publish(daemon.home, "job_link", scenario="link")
    made = Copy(daemon, "link")
    shutil.rmtree(made.root)
    made.root.symlink_to(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "rules.md").write_text("Mine.\n")
    assert "is no folder of its own" in made.asked()["trouble"]
    assert daemon.control("POST", "/reef/harness/working", {"scenario": "link"})[0] == 500
    assert (made.pending(), len(list(tmp_path.iterdir())), tmp_path.stat().st_mode & 0o777) == ([], 1, 0o755)
    made.root.unlink()
    assert Copy(daemon, "link").files() == chain.HARNESS


def test_what_was_saved_while_no_daemon_ran_is_found(reef_home: Home) -> None:
    chain.publish(reef_home)
    with running_daemon(reef_home) as daemon:
        made = Copy(daemon, "default")
        daemon.kill()
    made.write("rules.md", "Mine.\n")
    chain.publish(reef_home, "job_2", {"prompts/new.md": "New.\n"})
    with running_daemon(reef_home) as made.daemon:
        made.proposed()
        assert made.files()["prompts/new.md"] == "New.\n"


def test_begun_with_one_release_and_killed_it_ends_with_another(reef_home: Home) -> None:
    """Some files are the second release's already, the third changes them again: no edits, no conflicts."""
    from dataclasses import replace

    chain.publish(reef_home)
    with running_daemon(reef_home) as daemon:
        Copy(daemon, "default")
    second = chain.publish(reef_home, "job_2", {"rules.md": "Second.\n", "prompts/sum.md": "Second.\n"})
    made = WorkingCopy(reef_home, "default")
    made.save(replace(made.state(), settling=second.id))
    (made.root / "rules.md").write_text("Second.\n")
    third = chain.publish(reef_home, "job_3", {"rules.md": "Third.\n", "prompts/sum.md": "Third.\n"})
    with running_daemon(reef_home) as daemon:
        looked = Copy(daemon, "default").asked()
    assert (looked["base"], looked["edits"], looked["conflicts"]) == (third.id, [], {})
    assert (made.root / "rules.md").read_text() == (made.root / "prompts" / "sum.md").read_text() == "Third.\n"


def test_killed_between_a_proposal_and_its_note_there_is_one_proposal(reef_home: Home) -> None:
    state = reef_home.harness / ".reef" / "default" / "state.json"
    with running_daemon(reef_home) as daemon:
        made = Copy(daemon, "default")
        made.write("rules.md", "One.\n")
        one = made.proposed()
        noted = state.read_text()
        made.write("rules.md", "Two.\n")
        two = made.proposed(but=one["id"])
        until(lambda: two["id"] in state.read_text(), "its note")
        daemon.kill()
    Releases.open(reef_home).retell("default", one["id"], chain.PENDING, "")
    state.write_text(noted)
    with running_daemon(reef_home) as made.daemon:
        assert made.proposed()["id"] == two["id"]
        assert made.asked()["proposal"] == two["id"]


def test_a_state_that_cannot_be_read_is_said_and_touches_nothing(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        made = Copy(daemon, "default")
        made.write("rules.md", "Mine.\n")
        state, proposed = reef_home.harness / ".reef" / "default" / "state.json", made.proposed()
        until(lambda: proposed["id"] in state.read_text(), "its note")
        state.write_text("{")
        assert "state.json" in made.asked()["trouble"]
        assert any("is not followed" in note for note in daemon.get("/reef/status")["notes"])
        assert made.files() == {"rules.md": "Mine.\n"}
