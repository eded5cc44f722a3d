"""What is told of a job while it runs."""

from typing import Any, cast

from daemon.core.client import Client
from reef_cli.waiting import followed


class Jobs:
    """A daemon whose job is a step further each time it is asked."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._rows = list(rows)

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/reef/jobs/job_1"
        return self._rows.pop(0)


def row(done: int, message: str = "", state: str = "running") -> dict[str, Any]:
    progress = {"step": "ask", "done": done, "total": 20, "note": "under the note"}
    return {"id": "job_1", "state": state, "message": message, "progress": progress}


def test_a_line_each_tenth_and_none_twice() -> None:
    told: list[str] = []
    rows = [row(0), row(0), row(1), row(2), row(3), row(20), row(20, "answers are kept"), row(20, state="done")]
    ended = followed(cast(Client, Jobs(*rows)), {"id": "job_1"}, told.append)
    assert ended["state"] == "done"
    assert told == [f"ask {done} of 20, under the note" for done in (0, 2, 20)]
