"""The rows of the list of traces: a session with what it holds folded into counts, and what is unfolded from it.

Pure. All that an agent named or said is made inert here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reef_cli import output
from reef_cli.tui.text import inert, moment, number, one_line, rating
from reef_cli.tui.widgets.rows import Column
from reef_cli.tui.window import Row

#: Wider lists say more. `VERDICT` is where what waits to be stored is shown.
COLUMNS: Final = (
    Column("when", 8),
    Column("verdict", 8),
    Column("agent", 11, least=70),
    Column("turns", 5, least=56, right=True),
    Column("tokens", 6, least=50, right=True),
    Column("cost", 8, least=96, right=True),
    Column("latency", 7, least=96, right=True),
    Column("release", 8, least=110),
    Column("scenario", 14, least=112),
    Column("folded", 22, least=136),
    Column("", 3, least=96, most=136, right=True),
    Column("trace"),
)
#: Records that are asked for when a session is unfolded; the trace itself has all.
MOST_UNFOLDED: Final = 200
_WORDS: Final = {"subagents": "sub", "side": "side", "retries": "retry"}
_KINDS: Final = {"subagent": "sub", "side": "side", "retry": "retry"}


def session_row(session: Mapping[str, Any], now_ns: int, pending: str = "", *, unfolded: bool = False) -> Row:
    """``pending``: what was said about it here and is not stored yet."""
    score = session["score"]
    verdict = pending or rating(score) or _said(session)
    held = folded(session)
    glyphs = (("▾ " if unfolded else "▸ ") if held else "") + ("* " if session["pinned"] else "")
    cells = (
        moment(session["updated_ns"], now_ns),
        verdict,
        inert(session["agent"] or "-"),
        number(session["turns"]),
        number(session["prompt_tokens"] + session["completion_tokens"]),
        output.dollars(session["cost_usd"]),
        output.duration(session["duration_us"] / max(session["records"], 1) / 1e6),
        inert(short(session["release_id"] or "")),
        inert(session["scenario"]),
        held,
        f"+{sum(session[name] for name in _WORDS)}" if held else "",
        glyphs + one_line(session["title"] or "untitled"),
    )
    return Row(session["id"], cells, _style(verdict), session["seq"], session)


def _said(session: Mapping[str, Any]) -> str:
    if session["reports"]:
        return "note"
    return "" if session["status"] in ("ok", None) else f"! {inert(session['status'])}"


def _style(verdict: str) -> str:
    return {"+": "good", "-": "bad", "!": "error"}.get(verdict[:1], "")


def folded(session: Mapping[str, Any]) -> str:
    """What is in it beside its main line: ``2 sub, 3 side, 1 retry``."""
    return ", ".join(f"{session[name]} {word}" for name, word in _WORDS.items() if session[name])


def short(release: str) -> str:
    """A release's number, as lists show it: ``r12`` of ``r12-0badcafe``."""
    return release.partition("-")[0]


def unfolded_rows(
    session: Row, records: Sequence[dict[str, Any]], now_ns: int, waits: Callable[[Mapping[str, Any]], str]
) -> list[Row]:
    """``records``: those beside the main line with their ``score``, the newest first. One row a sub-agent, side call
    and retry, the oldest first. ``waits`` tells what is said of one's rating before it is stored."""
    lines: dict[str, list[dict[str, Any]]] = {}
    of: dict[str, str] = {}
    for record in reversed(records):
        goes_on = record["kind"] == "subagent" and record["edge"] != "spawn" and record["parent"] in of
        first = of[record["parent"]] if goes_on else record["receipt"]
        of[record["receipt"]] = first
        lines.setdefault(first, []).append(record)
    rows = [_line(session, line, now_ns, waits(line[-1] | {"id": line[-1]["receipt"]})) for line in lines.values()]
    if len(records) == MOST_UNFOLDED and rows:
        rows.insert(0, Row(f"{session.id}/more", (*[""] * (len(COLUMNS) - 1), "  … older ones: the trace has all"),
                           "dim", session.seq, session.data, under=session.id))  # fmt: skip
    return rows


def _line(session: Row, line: Sequence[Mapping[str, Any]], now_ns: int, pending: str) -> Row:
    last = line[-1]
    verdict = pending or rating(last["score"]) or ("" if last["end"] == "ok" else f"! {inert(last['end'])}")
    costs = [record["cost_usd"] for record in line if record["cost_usd"] is not None]
    cells = (
        moment(last["started_ns"], now_ns),
        verdict,
        inert(_KINDS[last["kind"]]),
        number(len(line)),
        number(sum(record["prompt_tokens"] + record["completion_tokens"] for record in line)),
        output.dollars(sum(costs) if costs else None),
        output.duration(sum(record["duration_us"] for record in line) / len(line) / 1e6),
        inert(short(last["release_id"])),
        "",
        "",
        "",
        f"  └ {inert(_KINDS[last['kind']])}: {one_line(last['preview'] or last['error'] or 'no answer')}",
    )
    return Row(
        f"{session.id}/{line[0]['receipt']}", cells, _style(verdict) or "dim", session.seq, last, under=session.id
    )


def typed(text: str) -> str:
    """What is asked for while ``text`` is typed: the word that it ends in may go on."""
    last = text.split(" ")[-1]
    whole = len(last) < 3 or not last.isalnum() or text.count('"') % 2
    return text if whole else f"{text}*"


def together(rows: Iterable[Row], unfolded: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Each session followed by what is unfolded from it."""
    return [line for row in rows for line in (row, *unfolded.get(row.id, ()))]
