"""Feedback from the dashboard: rate, note, clear, and take back what was done here. Blocking; called off the loop.

`undo` takes back only what this dashboard did, newest first, so that somebody else's rating made meanwhile stays.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound
from reef_cli.tui.text import one_line, rating

_LOOKED_AT = 50
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Done:
    """``report`` was made, or (None) ``scores`` of ``record`` were cleared."""

    record: Record
    report: str | None
    scores: tuple[float, ...] = ()


class Ratings:
    """Each action returns a sentence for the person; raises ReefError."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._done: list[_Done] = []
        self._lock = threading.Lock()

    def last_answer(self, session: str) -> Record:
        """The session's last answer of its main line; of any line where that has none."""
        page = self._client.get("/reef/records", session=session, limit=_LOOKED_AT)["items"]
        ok = [record for record in page if record["end"] == "ok"]
        main = [record for record in ok if record["kind"] in ("main", "retry")]
        if not ok:
            raise NotFound("this session has no answer to rate")
        found: Record = (main or ok)[0]
        return found

    def rate(self, record: Record, score: float) -> str:
        return f"{rating(score)}: {self._report(record, {'score': score})}; z takes it back"

    def note(self, record: Record, text: str) -> str:
        return f"noted: {self._report(record, {'feedback': text})}; z takes it back"

    def clear(self, record: Record) -> str:
        """Take back every score that stands on the answer, whoever gave it; notes stay."""
        receipt = str(record["receipt"])
        reports = self._client.get(f"/reef/records/{segment(receipt)}")["reports"]
        standing = [one for one in reports if one["score"] is not None and not one["undone_ns"]]
        if not standing:
            return f"nothing to clear: {receipt} has no rating"
        for report in standing:
            self._client.post("/reef/undo", {"report": report["id"], "record": receipt})
        with self._lock:
            self._done.append(_Done(record, None, tuple(one["score"] for one in standing)))
        return f"cleared: {receipt}; z brings it back"

    def undo(self) -> str:
        with self._lock:
            if not self._done:
                return "nothing was rated here yet; reef undo takes back what was said elsewhere"
            done = self._done.pop()
        if done.report is None:
            for score in done.scores:
                self._report(done.record, {"score": score}, remember=False)
            return f"brought back: {rating(done.scores[-1])} on {done.record['receipt']}"
        report = self._client.post("/reef/undo", {"report": done.report, "record": done.record["receipt"]})
        said = rating(report["score"]) or one_line(report["feedback"] or "", 40)
        return f"undone: {said} on {done.record['receipt']}"

    def _report(self, record: Record, content: Mapping[str, object], *, remember: bool = True) -> str:
        receipt = str(record["receipt"])
        body = {**content, "references": [receipt]}
        told = self._client.post("/reef/report", body, scope=str(record["scenario"]))
        if remember:
            with self._lock:
                self._done.append(_Done(record, str(told["agent_record_id"])))
        return receipt
