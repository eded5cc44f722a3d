"""A trace as rows: headings with what served each answer, messages, folded tools, answers, reports. Pure.

Every text here came from a model, a tool or a web page; `reef_cli.tui.text` makes it inert.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reef_cli import output
from reef_cli.conversation import edited, facts, messages, signals_line
from reef_cli.tui.text import moment, one_line, rating, wrapped
from reef_cli.tui.window import Row

#: A message longer than this is folded at first: agents put whole files into what the person "said".
_LONG = 2000
_FOLD = 200


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a person can point at. ``record`` is the exchange it belongs to, None for the session's heading.

    ``folds``: it can be shown as one line; ``long``: and is, at first.
    """

    id: str
    record: Mapping[str, Any] | None
    head: str
    text: str = ""
    folds: bool = False
    long: bool = False
    style: str = ""


def items(trace: Mapping[str, Any], now_ns: int) -> list[Item]:
    """The session's heading, then each record with what it added."""
    found = [Item("session", None, _session(trace["session"]), style="bold")]
    for entry in trace["records"]:
        found += _entry(entry, now_ns)
    return found


def rows(shown: list[Item], toggled: Collection[str], width: int) -> list[Row]:
    """The items as lines of ``width`` columns; those in ``toggled`` are folded the other way round than at first."""
    return [
        Row(f"{item.id}:{n}", (line,), item.style if n or item.folds else item.style or "bold", data=item)
        for item in shown
        for n, line in enumerate(_lines(item, item.folds and item.long != (item.id in toggled), width))
    ]


def _lines(item: Item, folded: bool, width: int) -> list[str]:
    if folded:
        rest = f"  [{len(item.text)} characters]" if len(item.text) > _FOLD else ""
        return [f"▸ {item.head} {one_line(item.text, _FOLD)}{rest}".rstrip()]
    head = wrapped(f"▾ {item.head}" if item.folds else item.head, width) if item.head else []
    body = [f"  {line}" for line in wrapped(item.text, width - 2)] if item.text else []
    return head + body or [""]


def _session(session: Mapping[str, Any]) -> str:
    return " · ".join([one_line(session["title"] or "untitled"), *facts(session)])


def _entry(entry: Mapping[str, Any], now_ns: int) -> Iterator[Item]:
    record = entry["record"]
    receipt = record["receipt"]
    yield Item(f"{receipt}/", record, "")
    yield Item(f"{receipt}/heading", record, _heading(record, now_ns), style="dim")
    for m, message in enumerate(messages(entry)):
        for p, part in enumerate(message["parts"]):
            yield from _part(f"{receipt}/{m}.{p}", record, message["role"], part)
    if record["error"]:
        yield Item(f"{receipt}/error", record, "error", record["error"], style="error")
    for report in entry["reports"]:
        yield Item(f"{receipt}/{report['id']}", record, _report(report), style="dim" if report["undone_ns"] else "")
    if told := signals_line(entry):
        yield Item(f"{receipt}/signals", record, told, style="dim")


def _heading(record: Mapping[str, Any], now_ns: int) -> str:
    words = [moment(record["started_ns"], now_ns), record["receipt"], record["kind"]]
    if record["end"] != "ok":
        words.append(f"{record['end']} ({record['status']})")
    cached = f" ({record['cached_tokens']} cached)" if record["cached_tokens"] else ""
    words += [
        output.duration(record["duration_us"] / 1e6),
        f"{record['prompt_tokens']}{cached} + {record['completion_tokens']} tokens",
        record["model"] or record["model_asked"],
        f"release {record['release_id']}",
    ]
    if record["weights"]:
        words.append(f"weights {'+'.join(digest[:8] for digest in record['weights'].split('+'))}")
    return " · ".join(words)


def _part(id: str, record: Mapping[str, Any], role: str, part: Mapping[str, Any]) -> Iterator[Item]:
    if "written" in part:  # an agent added to what the person wrote
        if words := part["written"].strip():
            yield Item(id, record, role, words)
        yield Item(f"{id}+", record, "added by the agent", part["text"], folds=True, long=True, style="dim")
    else:
        yield _whole(id, record, role, part)


def _whole(id: str, record: Mapping[str, Any], role: str, part: Mapping[str, Any]) -> Item:
    match part["type"]:
        case "text":
            long = role == "system" or len(part["text"]) > _LONG
            return Item(id, record, role, part["text"], folds=long, long=long)
        case "earlier":
            return Item(id, record, part["name"], part["text"], folds=True, long=True, style="dim")
        case "thinking":
            return Item(id, record, "thinking", part["text"], folds=True, long=True, style="dim")
        case "tool_use":
            return Item(id, record, f"tool {part['name']}", part["arguments"], folds=True, long=True, style="tool")
        case "tool_result":
            head = "error" if part["is_error"] else "result"
            return Item(id, record, head, part["content"], folds=True, long=True, style="dim")
        case "image":
            return Item(id, record, role, f"[image {part['media_type']} {part['source']}]")
        case other:
            return Item(id, record, role, f"[{other}]")


def _report(report: Mapping[str, Any]) -> str:
    said = [rating(report["score"], report.get("metadata")), one_line(report["feedback"] or ""), *edited(report)]
    text = ": ".join(word for word in said if word)
    waits = " …" if report.get("waiting") else ""
    return f"  * {text}{'  (undone)' if report['undone_ns'] else ''}{waits}"
