"""A trace as items a person can point at: headings with what served each answer, messages, folded tools, reports.

Pure. Every text here came from a model, a tool or a web page; `reef_cli.tui.text` makes it inert where it is drawn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from reef_cli import blocks, output, toolcalls
from reef_cli.blocks import Block
from reef_cli.conversation import edited, facts, image, messages, signals_line, timings
from reef_cli.tui.drawing import Drawn, drawn
from reef_cli.tui.text import moment, one_line, rating, wrapped

#: A message longer than this is folded at first: agents put whole files into what the person "said".
_LONG: Final = 2000
_FOLD: Final = 200
_PREVIEW: Final = 60
#: Beside the conversation: a line each, until somebody looks.
_ASIDE: Final = frozenset({"side", "subagent"})
_LIVE: Final = {"text": "assistant"}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to point at. ``record`` is the exchange it belongs to, None for the session's heading.

    ``folds``: it can be shown as one line, and is, at first. ``text`` is what its blocks are made of when they are
    drawn. ``under`` is the heading that hides it while that is folded.
    """

    id: str
    record: Mapping[str, Any] | None
    head: str
    text: str = ""
    folds: bool = False
    style: str = ""
    preview: bool = True
    under: str = ""
    blocks: Callable[[], Sequence[Block]] | None = field(default=None, compare=False)

    @property
    def searched(self) -> str:
        """All of its words."""
        return f"{self.head}\n{self.text}"

    def made(self) -> Sequence[Block]:
        return self.blocks() if self.blocks else [Block(self.text)] if self.text else []


def beyond(where: Literal["above", "below"], cursor: str, key: str) -> Item:
    """What stands for the pages that are not held, another one for each, so that nobody stays with it; ``key`` goes
    past them."""
    word, end = ("earlier", "beginning") if where == "above" else ("later", "end")
    return Item(f"{where}/{cursor}", None, f"… {word} turns: {key} goes to the {end}", style="dim")


def live(call: Mapping[str, Any], parts: Sequence[tuple[str, str]]) -> list[Item]:
    """An answer as far as it has come: kind and text of each part."""
    receipt, model = call["receipt"], call["model"]
    found = [
        Item(f"live/{receipt}/", None, ""),
        Item(f"live/{receipt}/heading", None, f"answering now · {receipt} · {model}", style="live"),
    ]
    for n, (kind, text) in enumerate(parts):
        style = {"thinking": "dim", "tool": "tool"}.get(kind, "")
        made = partial(blocks.prose, text) if kind == "text" else None
        found.append(Item(f"live/{receipt}/{n}", None, _LIVE.get(kind, kind), text, style=style, blocks=made))
    return found


def heading(session: Mapping[str, Any]) -> Item:
    """The session's."""
    return Item("session", None, " · ".join([one_line(session["title"] or "untitled"), *facts(session)]), style="bold")


def items(entries: Sequence[Mapping[str, Any]], now_ns: int) -> list[Item]:
    """Each record with what it added."""
    files: dict[str, str] = {}
    return [item for entry in entries for item in _entry(entry, now_ns, files)]


def lines(item: Item, width: int, *, folded: bool) -> Iterator[Drawn]:
    """The item as lines of at most ``width`` columns."""
    if folded:
        rest = f"  [{len(item.text)} characters]" if len(item.text) > _FOLD else ""
        preview = one_line(item.text, _FOLD) if item.preview else ""
        yield Drawn(one_line(f"▸ {item.head} {preview}{rest}", 2 * _FOLD + 40), item.style)
        return
    head = wrapped(f"▾ {item.head}" if item.folds else item.head, width) if item.head else []
    yield from (Drawn(line, item.style if n or item.folds else item.style or "bold") for n, line in enumerate(head))
    yield from drawn(item.made(), width, style=item.style)
    if not head and not item.text:
        yield Drawn("")


def _entry(entry: Mapping[str, Any], now_ns: int, files: dict[str, str]) -> Iterator[Item]:
    record = entry["record"]
    receipt = record["receipt"]
    aside = record["kind"] in _ASIDE
    if not aside:
        yield Item(f"{receipt}/", record, "")
    top = Item(f"{receipt}/heading", record, _heading(record, now_ns), folds=aside, style="dim")
    yield top
    under = top.id if aside else ""
    for m, message in enumerate(messages(entry)):
        for p, part in enumerate(message["parts"]):
            for item in _part(Item(f"{receipt}/{m}.{p}", record, message["role"]), part, files):
                yield replace(item, under=under)
    if record["error"]:
        yield Item(f"{receipt}/error", record, "error", record["error"], style="error")
    for report in entry["reports"]:
        yield Item(f"{receipt}/{report['id']}", record, _report(report), style="dim" if report["undone_ns"] else "")
    if told := signals_line(entry):
        yield Item(f"{receipt}/signals", record, told, style="dim")


def _heading(record: Mapping[str, Any], now_ns: int) -> str:
    words = [moment(record["started_ns"], now_ns)]
    if record["kind"] != "main":
        words.append(record["kind"])
    if record["kind"] in _ASIDE:
        words.append(one_line(record["preview"] or "", _PREVIEW))
    words.append(record["receipt"])
    if record.get("edge") in ("fork", "rewrite", "compaction", "spawn"):
        words.append(record["edge"])
    if record["end"] != "ok":
        words.append(f"{record['end']} ({record['status']})")
    cached = f" ({record['cached_tokens']} cached)" if record["cached_tokens"] else ""
    words += [
        timings(record),
        f"{record['prompt_tokens']}{cached} + {record['completion_tokens']} tokens",
        output.dollars(record.get("cost_usd")),
        record["model"] or record["model_asked"],
        f"release {record['release_id']}",
    ]
    if record["weights"]:
        words.append(f"weights {'+'.join(digest[:8] for digest in record['weights'].split('+'))}")
    return " · ".join(filter(None, words))


def _part(item: Item, part: Mapping[str, Any], files: dict[str, str]) -> Iterator[Item]:
    """``item`` has the part's id, record and role; ``files`` what each tool call read or wrote."""
    if "written" in part:  # an agent added to what the person wrote
        if words := part["written"].strip():
            yield replace(item, text=words, blocks=lambda: blocks.prose(words))
        yield Item(f"{item.id}+", item.record, "added by the agent", part["text"], folds=True, style="dim")
    else:
        yield _whole(item, part, files)


def _whole(item: Item, part: Mapping[str, Any], files: dict[str, str]) -> Item:
    id, record, role = item.id, item.record, item.head
    match part["type"]:
        case "text":
            text = part["text"]
            long = role == "system" or len(text) > _LONG
            return Item(id, record, role, text, folds=long, blocks=lambda: blocks.prose(text))
        case "earlier":
            return Item(id, record, part["name"], part["text"], folds=True, style="dim")
        case "thinking":
            return Item(id, record, "thinking", part["text"], folds=True, style="dim")
        case "tool_use":
            call = toolcalls.read(part["name"], part["arguments"])
            files[part["id"]] = call.file
            return Item(id, record, f"tool {call.head}", part["arguments"], folds=True, style="tool",
                        preview=False, blocks=call.blocks)  # fmt: skip
        case "tool_result":
            return _result(item, part, files.get(part["id"], ""))
        case "image":
            return Item(id, record, role, image(part))
        case other:
            return Item(id, record, role, f"[{other}]")


def _result(item: Item, part: Mapping[str, Any], file: str) -> Item:
    text, failed = part["content"], part["is_error"]
    images = "".join(f" {image(one)}" for one in part.get("images", ()))
    language = "" if failed else file
    return Item(item.id, item.record, ("error" if failed else "result") + images, text, folds=True,
                style="error" if failed else "dim", blocks=lambda: blocks.output(text, language))  # fmt: skip


def _report(report: Mapping[str, Any]) -> str:
    said = [rating(report["score"], report.get("metadata")), one_line(report["feedback"] or ""), *edited(report)]
    text = ": ".join(word for word in said if word)
    waits = " …" if report.get("waiting") else ""
    bullet = "" if text[:1] in ("+", "-", "~") and report["score"] is not None else "* "  # a rating has its own
    return f"  {bullet}{text}{'  (undone)' if report['undone_ns'] else ''}{waits}"
