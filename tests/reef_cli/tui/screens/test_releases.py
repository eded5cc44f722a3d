"""Releases: the list, the card, the diff, and the decisions, each of which asks first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from daemon.core.paths import Home
from tests.fakes.dashboard import FakeDaemon, release
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/release.py", "reef_cli/tui/screens/deciding.py")


@pytest.fixture
def releases(fake: FakeDaemon) -> FakeDaemon:
    inconclusive = {"verdict": "inconclusive", "reason": "add tasks", "wins": 2, "losses": 1}
    fake.releases = [
        release(1, scenario="work/api"),
        release(2, kind="rollback", gate=None, restores="base", reason="it was better before\x1b[2J"),
        release(3, head=True),
        release(4, state="rejected", gate=inconclusive, reason="learned from [b]one[/b] note"),
        release(5, state="pending", reason="learned from 36 answers"),
    ]
    return fake


@asynccontextmanager
async def opened(home: Home, size: tuple[int, int] = (80, 24), select: str = "") -> AsyncIterator[Seen]:
    """The dashboard on its releases, the one that begins with ``select`` selected."""
    async with dashboard(home, size) as seen:
        await seen.shows("nothing yet", "embedded: ready")
        await seen.press("2")
        await seen.shows("[2 releases]", "? pending")
        if select:
            await choose(seen, select)
        yield seen


async def choose(seen: Seen, name: str) -> None:
    await seen.press("g")
    await seen.select(name)


async def approve(seen: Seen) -> None:
    """Ask for it, and say yes once it asks."""
    await seen.press("a")
    await seen.shows("y: yes")
    await seen.press("y")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, releases: FakeDaemon, size: tuple[int, int]) -> None:
    async with opened(reef_home, size) as seen:
        seen.golden(f"releases-{size[0]}x{size[1]}")


async def test_enter_shows_the_card_and_d_the_diff(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r3-") as seen:
        await seen.press("enter")
        await seen.shows("9 wins · 1 loss · 30 ties")
        await seen.press("d")
        await seen.shows("r3-00000003 · gate: accept 9:1 · 1 file", "▾ playbook.md  +1 -0", "+another rule")
        await seen.press("enter")
        await seen.shows("no file is selected")
        await seen.press("j", "enter")
        await seen.shows("▸ playbook.md  +1 -0")
        assert "+another rule" not in seen.screen
        await seen.press("space")
        await seen.shows("@@ -1 +1,2 @@")
        await seen.press("escape", "escape")
        await seen.until(lambda: "r3-" in seen.marked)


_TWO = """\
diff --git a/harness/playbook.md b/harness/playbook.md
index 1..2 100644
--- a/harness/playbook.md
+++ b/harness/playbook.md
@@ -1,3 +1,2 @@
 # Playbook
-- be \x1b[31mlong
-- be slow
+- be short
diff --git a/harness/rules.md b/harness/rules.md
new file mode 100644
--- /dev/null
+++ b/harness/rules.md
@@ -0,0 +1 @@
+- no tabs
"""


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_diff_golden(reef_home: Home, releases: FakeDaemon, size: tuple[int, int]) -> None:
    assert releases.releases is not None
    releases.releases[4]["diff"] = _TWO
    async with opened(reef_home, size, select="r0-00000005") as seen:
        await seen.press("d")
        await seen.shows("▾ harness/rules.md")
        seen.golden(f"release-diff-{size[0]}x{size[1]}")
        await seen.press("x")
        await seen.shows("Turn r0-00000005 down?")


async def test_a_long_files_diff_is_folded_at_first(reef_home: Home, releases: FakeDaemon) -> None:
    assert releases.releases is not None
    added = "".join(f"+line {n}\n" for n in range(300))
    releases.releases[4]["diff"] = f"--- /dev/null\n+++ b/long.md\n@@ -0,0 +1,300 @@\n{added}"
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("d")
        await seen.shows("▸ long.md  +300 -0")
        await seen.press("j", "enter")
        await seen.shows("+line 0")


async def test_the_chain_goes_with_the_selection(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r3-") as seen:
        await seen.shows("default: base → r2=base → [r3*]")
        await seen.select("r1-")
        await seen.shows("work/api: base → [r1]")
        await seen.press("k")
        await seen.shows("default: base → [r2=base] → r3*")
        await seen.press("g")
        await seen.shows("default: base → r2=base → r3*   [r0-00000005] pending, made from base")


async def test_approving_a_pending_one(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("a")
        await seen.shows("Release r0-00000005 to scenario default?", "y: yes   Esc: no")
        await seen.press("enter", "a")  # neither Enter nor the key that asked is a yes
        await seen.shows("y: yes   Esc: no")
        assert releases.posts == []
        await seen.press("y")
        await seen.shows("approve: r8-00000005 is released")
        await seen.until(lambda: "in chain" in seen.marked)
        assert releases.posts == [("/reef/releases/r0-00000005/approve", {"scenario": "default"})]


async def test_approving_against_the_gate_says_so(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000004") as seen:
        await seen.press("a")
        await seen.shows("did not accept it (inconclusive 2:1)")
        await seen.press("escape")
        await seen.shows("nothing was changed")
        assert releases.posts == []
        await approve(seen)
        await seen.shows("approve: r8-00000004 is released")
        assert releases.posts == [("/reef/releases/r0-00000004/approve", {"scenario": "default", "force": True})]


async def test_turning_down_and_rolling_back(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("x")
        await seen.shows("Turn r0-00000005 down?")
        await seen.press("x", "n")
        await seen.press("x", "y")
        await seen.shows("reject: r0-00000005 is rejected")
        await choose(seen, "r2-")
        await seen.press("b")
        await seen.shows("Roll scenario default back to r2-00000002? It becomes a new release.")
        await seen.press("b", "enter", "y")
        await seen.shows("rollback: r9-99999999 is released (rollback)", "* serves")
        await seen.until(lambda: "r9-99999999" in seen.marked)  # what it has made is selected
        assert releases.posts[-1] == ("/reef/releases/rollback", {"scenario": "default", "to": "r2-00000002"})


async def test_decisions_from_the_card(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("enter")
        await seen.shows("Release r5 waits")
        await approve(seen)
        await seen.shows("approve: r8-00000005 is released", "Release r5 serves")
        await seen.until(lambda: "(a approve)" in seen.screen)


async def test_a_card_follows_what_is_decided_elsewhere(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("enter")
        await seen.shows("Release r5 waits")
        assert releases.releases is not None
        releases.releases[-1] |= {"id": "r4-00000005", "state": "released", "head": True, "card": "Release r4 serves"}
        releases.emit("release", releases.releases[-1])
        await seen.shows("Release r4 serves", "(a approve)")


@pytest.mark.parametrize(
    ("name", "key", "why"),
    [
        ("r3-", "a", "r3-00000003 is released already"),
        ("r3-", "x", "r3-00000003 is released: only a pending one can be turned down"),
        ("r3-", "b", "r3-00000003 is the head: select the one to go back to"),
        ("r0-00000005", "b", "r0-00000005 was never released: approve it instead"),
        ("r0-00000005", "asterisk", "r0-00000005 was never released: approve it first"),
    ],
)
async def test_keys_that_cannot_act_say_why(
    reef_home: Home, releases: FakeDaemon, name: str, key: str, why: str
) -> None:
    async with opened(reef_home, select=name) as seen:
        await seen.press(key)
        await seen.shows(why)


async def test_a_release_appears_when_it_is_made(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home) as seen:
        assert releases.releases is not None
        releases.releases.append(release(6, reason="a new one"))
        releases.emit("release", releases.releases[-1])
        await seen.shows("a new one")


async def test_an_older_daemon(reef_home: Home, fake: FakeDaemon) -> None:
    fake.releases = None
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        await seen.press("2")
        await seen.shows("this daemon does not know releases yet: reef restart")
        await seen.press("enter")
        await seen.shows("no release is selected")


_ACTS = "it changes what can act by itself: mcp.json"
_ACTING = """\
diff --git harness/mcp.json harness/mcp.json
new file mode 100644
--- /dev/null
+++ harness/mcp.json
@@ -0,0 +1 @@
+{"mcpServers": {"x": {"command": "\x1b[2Jrm"}}}
diff --git harness/rules.md harness/rules.md
--- harness/rules.md
+++ harness/rules.md
@@ -1 +1 @@
-- tabs
+- no tabs
diff --git harness/odd harness/odd
--- /dev/null
+++ harness/odd
@@ -0,0 +1 @@
+what is this
"""


@pytest.fixture
def acting(releases: FakeDaemon) -> FakeDaemon:
    """The candidate that waits would change what can act by itself."""
    assert releases.releases is not None
    releases.releases[4] |= {"diff": _ACTING, "acts": _ACTS, "note": _ACTS}
    return releases


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_can_act_by_itself_is_read_before_it_is_approved(
    reef_home: Home, acting: FakeDaemon, size: tuple[int, int]
) -> None:
    async with opened(reef_home, size, select="r0-00000005") as seen:
        await seen.press("a")
        await seen.shows(
            "r0-00000005: it changes what can act by itself: mcp.json.", "harness/mcp.json  +1 -0", "harness/odd  +1 -0"
        )
        assert "tabs" not in seen.screen
        seen.golden(f"release-acting-{size[0]}x{size[1]}")
        await seen.press("enter", "j", "n")
        await seen.shows("nothing was changed")
        assert acting.posts == []
        await approve(seen)
        await seen.shows("approve: r8-00000005 is released")
        assert acting.posts == [("/reef/releases/r0-00000005/approve", {"scenario": "default"})]


async def test_nothing_is_asked_once_the_person_went_on(reef_home: Home, releases: FakeDaemon) -> None:
    async with opened(reef_home, select="r0-00000005") as seen:
        panel = seen.panel
        panel.action_press("approve")
        panel.action_press("traces")
        await seen.shows("[1 traces]")
        await seen.until(lambda: not any(not one.is_finished for one in seen.app.workers))
        assert "y: yes" not in seen.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_card_tells_why_it_waits_and_what_it_came_from(
    reef_home: Home, acting: FakeDaemon, size: tuple[int, int]
) -> None:
    assert acting.releases is not None
    said = {"id": "rep_1", "kind": "note", "score": None, "text": "it asks\ntoo \x1b[1mmuch"}
    acting.releases[4] |= {"note": "turned down by a person", "said": [said, {**said, "kind": "score", "score": 2.0}]}
    async with opened(reef_home, size, select="r0-00000005") as seen:
        await seen.press("enter")
        await seen.shows(
            "note      turned down by a person", f"acts      {_ACTS}", "said      score 2 rep_1: it asks too"
        )
        seen.golden(f"release-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_clients_are_held_at_a_release_and_let_go(
    reef_home: Home, acting: FakeDaemon, size: tuple[int, int]
) -> None:
    async with opened(reef_home, size, select="r2-") as seen:
        await seen.press("asterisk")
        await seen.shows("Go back to r2-00000002, which becomes a new release")
        await seen.press("escape")
        await choose(seen, "r3-")
        await seen.press("asterisk")
        await seen.shows("Hold scenario default's clients at r3-00000003? Later releases are made")
        await seen.press("asterisk", "y")
        await seen.shows("pin: clients are held at r3-00000003", "* serves, held")
        assert acting.posts == [("/reef/releases/pin", {"scenario": "default", "release": "r3-00000003"})]
        acting.held = "r2-00000002"
        acting.emit("release_pin", {"id": "r2-00000002"})  # elsewhere
        await seen.shows("head, not used", "r2=base* held → [r3]")
        seen.golden(f"releases-held-{size[0]}x{size[1]}")
        await choose(seen, "r2-")
        await seen.press("enter")
        await seen.shows("pinned    clients are held here; * lets them follow the head again")
        await seen.press("asterisk")
        await seen.shows("Let scenario default's clients follow its head again?")
        await seen.press("y")
        await seen.shows("unpin: r3-00000003 serves")
        await seen.until(lambda: "pinned    " not in seen.screen)
        assert acting.posts[-1] == ("/reef/releases/unpin", {"scenario": "default"})
        await seen.press("escape")
        await seen.shows("* serves  ")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_new_head_is_told_until_it_is_seen(
    reef_home: Home, releases: FakeDaemon, size: tuple[int, int]
) -> None:
    async with dashboard(reef_home, size) as seen:
        await seen.shows("nothing yet", "embedded: ready")
        releases.emit("release", release(7, state="pending"))
        await seen.shows("r0-00000007 of default waits for your yes: 2 shows it")
        releases.emit("release", release(7, state="rejected"))  # decided elsewhere
        await seen.until(lambda: "waits for your yes" not in seen.screen)
        releases.emit("release", release(8, head=True, scenario="work\x1b[2J"))
        await seen.shows("r8-00000008 is the new head of work\\x1b[2J: 2 shows it")
        seen.golden(f"released-{size[0]}x{size[1]}")
        await seen.press("2")
        await seen.until(lambda: "the new head" not in seen.screen)
        assert releases.releases is not None
        releases.releases.append(release(9, head=True))
        releases.emit("release", releases.releases[-1])
        await seen.shows("r9-00000009")  # here the list tells it
        await seen.press("1")
        await seen.shows("[1 traces]")
        assert "the new head" not in seen.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_who_put_each_line_of_a_file_there(reef_home: Home, releases: FakeDaemon, size: tuple[int, int]) -> None:
    assert releases.releases is not None
    said = {"id": "rep_1", "kind": "note", "score": None, "text": "be \x1b[1mbrief"}
    releases.releases[4] |= {"diff": _TWO, "said": [said], "recipe": "person"}
    async with opened(reef_home, size, select="r0-00000005") as seen:
        await seen.press("d")
        await seen.shows("▾ harness/rules.md")
        await seen.press("B")
        await seen.shows("no file is selected")
        await seen.select("harness/rules.md")
        await seen.press("B")
        await seen.shows("r0-00000005 · rules.md", "r1      a rule", "(new)   another rule", "a person's own: learned")
        await seen.press("j")
        await seen.shows("r1, recipe sft, job job_1: answers in one sentence (1)")
        await seen.press("j")
        await seen.shows("(new), a person's own: note rep_1: be \\x1b[1mbrief")
        seen.golden(f"release-blame-{size[0]}x{size[1]}")
        await seen.press("escape")
        await seen.until(lambda: "harness/rules.md" in seen.marked)


async def test_what_has_no_lines_to_blame_says_so(reef_home: Home, releases: FakeDaemon) -> None:
    assert releases.releases is not None
    gone = "diff --git harness/a.md harness/a.md\ndeleted file mode 100644\n--- harness/a.md\n+++ /dev/null\n"
    gone += "@@ -1 +0,0 @@\n-a\n"
    weights = "diff --git weights/a.gguf weights/a.gguf\n--- /dev/null\n+++ weights/a.gguf\n@@ -0,0 +1 @@\n+oid\n"
    releases.releases[4]["diff"] = gone + weights
    async with opened(reef_home, select="r0-00000005") as seen:
        await seen.press("d")
        await seen.select("weights/a.gguf")
        await seen.press("B")
        await seen.shows("weights/a.gguf is weights, which have no lines")
        await seen.press("g", "j", "B")
        await seen.shows("harness/a.md is gone in this release")
