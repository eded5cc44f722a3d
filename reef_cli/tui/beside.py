"""What is unfolded in the list of traces: the lines of sub-agents, side calls and retries under their session."""

from collections.abc import Iterable, Mapping
from typing import Any

from reef_cli.tui.desk import Desk
from reef_cli.tui.listed import MOST_UNFOLDED, unfolded_rows
from reef_cli.tui.window import Row


class Beside:
    """``lines`` has the sessions that are unfolded, by their id."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._count: dict[str, int] = {}  # of a session's records when they were fetched
        self.lines: dict[str, list[Row]] = {}

    def fetch(self, session: Row) -> list[dict[str, Any]]:
        """Blocking. Raises ReefError."""
        query = f"session:{session.id} -kind:main"
        found = self._desk.client.get("/reef/search", q=query, limit=MOST_UNFOLDED)["items"]
        return [hit["record"] | {"score": hit["score"]} for hit in found]

    def unfold(self, session: Row, records: list[dict[str, Any]]) -> None:
        self._records[session.id] = records
        self._count[session.id] = session.data["records"]
        self.draw([session])

    def draw(self, sessions: Iterable[Row]) -> None:
        """Say anew what is unfolded of these, without asking."""
        for session in sessions:
            if session.id in self._records:
                records, now = self._records[session.id], self._desk.now()
                self.lines[session.id] = unfolded_rows(session, records, now, self._desk.waits)

    def fold(self, id: str) -> None:
        del self.lines[id], self._records[id]

    def doubt(self) -> None:
        """Any of it may be otherwise now."""
        self._count.clear()

    def stale(self, session: Mapping[str, Any]) -> bool:
        """Whether it is unfolded, and there may be more of it now."""
        return session["id"] in self.lines and self._count.get(session["id"]) != session["records"]
