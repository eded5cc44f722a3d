"""The dashboard on a real daemon's job: its log and curves as its process writes them; whatever it writes."""

from daemon.core.paths import Home
from tests.fakes.daemon import running_daemon
from tests.fakes.recipes import hostile
from tests.reef_cli.tui.seen import dashboard

_BODY = """
import json
with open("curves.jsonl", "w") as file:
    for n in range(1, 9):
        file.write(json.dumps(["loss", n, 4 / n]) + "\\n")
    file.write('["\\\\u001b[2J", 1, 1e999]\\n["loss"]\\nnot json\\n')
print("step 8 \\x1b[31m done")
time.sleep(600)
"""


async def test_a_running_jobs_curves_and_log(reef_home: Home) -> None:
    recipe = hostile(reef_home.root, "curved", _BODY)
    reef_home.config.write_text("server: {port: 0}\n")
    with running_daemon(reef_home) as daemon:
        job = daemon.control("POST", "/reef/jobs", {"recipe": recipe})[1]["id"]
        async with dashboard(reef_home, (80, 24)) as seen:
            await seen.press("3")
            await seen.shows("~ running")
            await seen.press("enter")
            await seen.shows("loss: 0.5", "step 8 \\x1b[31m done")
            await seen.press("x")
            await seen.shows(f"Stop {job}")
            await seen.press("y")
            await seen.shows("is cancelled")
        assert daemon.get(f"/reef/jobs/{job}")["curves"][0]["name"] == "loss"
