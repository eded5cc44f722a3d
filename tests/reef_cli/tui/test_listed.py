"""Rows of the list of traces, without a screen."""

from typing import Any

import pytest

from reef_cli.tui.listed import COLUMNS, MOST_UNFOLDED, folded, session_row, short, together, typed, unfolded_rows
from reef_cli.tui.widgets.rows import aligned
from tests.fakes.dashboard import NOW, record, session


def cell(row: tuple[str, ...], title: str) -> str:
    return row[[column.title for column in COLUMNS].index(title)]


@pytest.mark.parametrize(
    ("changes", "pending", "verdict", "style"),
    [
        ({}, "", "", ""),
        ({"score": 1.0}, "", "+ good", "good"),
        ({"score": 0.0, "status": "error"}, "", "- bad", "bad"),
        ({"score": 0.5}, "", "~ 0.5", ""),
        ({"reports": 1}, "", "note", ""),
        ({"status": "cancelled"}, "", "! cancelled", "error"),
        ({"status": None}, "", "", ""),
        ({"score": 0.0}, "+ good …", "+ good …", "good"),
    ],
)
def test_the_verdict_is_a_glyph_and_a_word(changes: dict[str, Any], pending: str, verdict: str, style: str) -> None:
    row = session_row(session(1, **changes), NOW, pending)
    assert (cell(row.cells, "verdict"), row.style) == (verdict, style)


def test_a_session_tells_what_it_took() -> None:
    row = session_row(
        session(1, cost_usd=1.5, duration_us=9_000_000, records=3, prompt_tokens=12_000, release_id="r12-0badcafe",
                subagents=2, retries=1, scenario="work/\x1b[2J", agent=None), NOW)  # fmt: skip
    named = ("cost", "latency", "tokens", "release", "scenario", "agent", "folded", "", "trace")
    assert [cell(row.cells, name) for name in named] == [
        "$1.50", "3.0 s", "12k", "r12", "work/\\x1b[2J", "-", "2 sub, 1 retry", "+3", "▸ what was asked in session 1",
    ]  # fmt: skip
    assert folded(session(1)) == ""
    assert short("base") == "base"


@pytest.mark.parametrize("width", range(20, 260, 7))
def test_what_is_most_wanted_is_there_at_any_width(width: int) -> None:
    row = session_row(session(1, score=1.0, cost_usd=0.25), NOW)
    line = aligned(COLUMNS, row.cells, width)
    assert len(line) == width
    wanted = {30: "+ good", 50: "120", 70: "pi", 96: "$0.25", 110: "r3", 112: "default"}
    assert [word for least, word in wanted.items() if width >= least and word not in line] == []


def test_a_sub_agent_is_one_line_however_long() -> None:
    def beside(n: int, kind: str, edge: str, parent: int | None = None, **changes: Any) -> dict[str, Any]:
        at = f"rec_{parent}" if parent is not None else None
        row = record(f"rec_{n}", "ses_1", kind=kind, edge=edge, parent=at, cost_usd=0.5)
        return row | {"preview": f"said {n}", "score": None} | changes

    records = [  # two sub-agents that ran at the same time, and a call of the agent's own; the newest first
        beside(5, "subagent", "next", 3, completion_tokens=1000, score=1.0),
        beside(4, "side", "start", 0),
        beside(3, "subagent", "spawn", 0),
        beside(2, "subagent", "next", 1, end="error", error="cut\x1b[2J off", preview=""),
        beside(1, "subagent", "spawn", 0),
    ]
    parent = session_row(session(1), NOW)
    rows = unfolded_rows(parent, records, NOW, lambda row: "note …" if row["id"] == "rec_4" else "")
    named = ("agent", "turns", "tokens", "cost", "verdict", "trace")
    assert [[cell(row.cells, name) for name in named] for row in rows] == [
        ["sub", "2", "240", "$1.00", "! error", "  └ sub: cut\\x1b[2J off"],
        ["sub", "2", "1220", "$1.00", "+ good", "  └ sub: said 5"],
        ["side", "1", "120", "$0.50", "note …", "  └ side: said 4"],
    ]
    assert {row.under for row in rows} == {parent.id}
    assert [row.seq for row in rows] == [parent.seq] * 3
    many = unfolded_rows(parent, [beside(n, "side", "start") for n in range(MOST_UNFOLDED)], NOW, lambda row: "")
    assert "older ones" in many[0].cells[-1]
    assert [row.id for row in together([parent], {parent.id: rows[:1]})] == [parent.id, rows[0].id]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", ""), ("ti", "ti"), ("time", "time*"), ("agent:pi", "agent:pi"), ("agent:pi time", "agent:pi time*"),
        ('"two wor', '"two wor'), ('"two words"', '"two words"'), ("-not", "-not"), ("time*", "time*"),
    ],
)  # fmt: skip
def test_the_last_word_may_go_on(text: str, asked: str) -> None:
    assert typed(text) == asked
