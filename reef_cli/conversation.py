"""A trace as a person reads it. Every text here came from a model, a tool or a web page: all of it is made inert.

Folding keeps a line of what it hides, and says how much that is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reef_cli import output, toolcalls

_MARKS = {role: role for role in ("user", "assistant", "system", "tool", "earlier")}
_SIGNALS = {
    "refused": "a tool call was refused",
    "stopped": "it was stopped",
    "retried": "it was tried again",
    "left": "the person went back and on otherwise",
}
_FOLD = 100


def lines(trace: Mapping[str, Any], *, full: bool = False) -> Iterator[str]:
    """The session's heading, then its records, each with what it added."""
    session = trace["session"]
    yield output.bold(output.one_line(session["title"] or "untitled", 100))
    rated = [] if session["score"] is None else [f"score {session['score']:g}"]
    yield output.visible(", ".join(facts(session) + rated), keep="")
    for entry in trace["records"]:
        yield ""
        yield output.dim(record_line(entry["record"], preview=False))
        for message in messages(entry, full=full):
            yield from _message(message, full)
        if entry["record"]["error"]:
            yield f"  error: {output.one_line(entry['record']['error'], 200)}"
        for report in entry["reports"]:
            yield f"  * {report_line(report)}"
        if told := signals_line(entry):
            yield output.dim(f"  {told}")


def facts(session: Mapping[str, Any]) -> list[str]:
    """What stands below a session's title."""
    return [
        session["id"],
        *(["* pinned"] if session.get("pinned") else []),
        session["agent"] or "unknown agent",
        f"scenario {session['scenario']}",
        output.count(session["turns"], "turn"),
        f"{session['prompt_tokens']} + {session['completion_tokens']} tokens",
        *([paid] if (paid := output.dollars(session.get("cost_usd"))) else []),
        *([session["cwd"]] if session["cwd"] else []),
        *([_checkout(session["commit"], session["dirty"])] if session.get("commit") else []),
    ]


def _checkout(commit: str, dirty: bool | None) -> str:
    """As the newest shown record was told; whether its tree was the commit's is not always known."""
    return f"at {commit[:10]}" + ("" if dirty is None else ", changed" if dirty else ", unchanged")


def messages(entry: Mapping[str, Any], *, full: bool = False) -> Iterator[Mapping[str, Any]]:
    """What a record added, and its answer. Unless ``full``, what only came along, said before, is one message of the
    role ``earlier``."""
    earlier = [message for message in entry["new_messages"] if message.get("earlier") and not full]
    for message in entry["new_messages"]:
        if full or not message.get("earlier"):
            yield message
        elif message is earlier[-1]:
            yield {"role": "earlier", "parts": [_earlier(earlier)]}
    if entry["answer"]:
        yield entry["answer"]


def _earlier(said: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found = (_plain(part) for one in said for part in one["parts"])
    count = output.count(len(said), "message")
    return {"type": "earlier", "name": f"{count} from before", "text": "\n".join(filter(None, found))}


def _plain(part: Mapping[str, Any]) -> str:
    match part["type"]:
        case "tool_use":
            return f"> {part['name']} {part['arguments']}"
        case "image":
            return image(part)
        case "tool_result":
            return " ".join(filter(None, [*map(image, part.get("images", ())), part["content"]]))
        case _:
            return str(part.get("text", ""))


def record_line(record: Mapping[str, Any], *, preview: bool = True) -> str:
    """One exchange on one line."""
    words = [output.clock(record["started_ns"]), record["receipt"], record["kind"]]
    if record.get("edge") in ("fork", "compaction"):
        words.append(record["edge"])
    if record["end"] != "ok":
        words.append(f"{record['end']} ({record['status']})")
    words.append(f"{timings(record)},")
    cached = f" ({record['cached_tokens']} cached)" if record["cached_tokens"] else ""
    words.append(f"{record['prompt_tokens']}{cached} + {record['completion_tokens']} tokens")
    if paid := output.dollars(record.get("cost_usd")):
        words.append(paid)
    if record["model"]:
        words.append(record["model"])
    text = output.visible(" ".join(words), keep="")
    return f"{text}: {output.one_line(record['preview'] or '', 60)}" if preview else text


def report_line(report: Mapping[str, Any]) -> str:
    """What was said, and whether it was taken back."""
    return verdict(report) + ("  (undone)" if report.get("undone_ns") else "")


def signals_line(entry: Mapping[str, Any]) -> str:
    """What happened after an answer, empty where nothing did; a person's next words are shown as their turn."""
    told = ", ".join(_signal(signal) for signal in entry.get("signals", []) if signal["name"] != "turn")
    return f"then: {told}" if told else ""


def _signal(signal: Mapping[str, Any]) -> str:
    if signal["name"] != "tool":
        return _SIGNALS.get(signal["name"], str(signal["name"]))
    return "a tool returned" if signal["value"] is None else f"a tool ended with {signal['value']}"


def verdict(report: Mapping[str, Any]) -> str:
    """What was said: the score, the words, the answer as it should have been."""
    score = report["score"]
    given = output.scaled(report.get("metadata"))
    rated = (
        []
        if score is None
        else [given]
        if given
        else ["good" if score == 1 else "bad" if score == 0 else f"score {score:g}"]
    )
    said = [output.one_line(report["feedback"], 200)] if report["feedback"] else []
    return ": ".join(rated + said + edited(report))


def edited(report: Mapping[str, Any]) -> list[str]:
    """The first line of the answer as it should have been; nothing where nobody edited it."""
    text = (report.get("metadata") or {}).get("edited")
    if not isinstance(text, str):
        return []
    first, _, rest = text.strip().partition("\n")
    return [f"edited: {output.one_line(f'{first} …' if rest else first, 60)}"]


def _message(message: Mapping[str, Any], full: bool) -> Iterator[str]:
    role = _MARKS.get(message["role"], "message")
    shown = [line for part in message["parts"] for line in _part(part, role, full)]
    if role not in ("tool", "earlier"):  # these carry their own mark
        yield output.bold(role)
    yield from (f"  {line}" for line in shown)


def _part(part: Mapping[str, Any], role: str, full: bool) -> list[str]:
    match part["type"]:
        case "text" if role == "system" and not full:
            return [_folded("", part["text"])]
        case "text" if "written" in part and not full:
            words = output.visible(part["written"].strip()).splitlines()
            return [*words, _folded("added by the agent: ", part["text"])]
        case "text":
            return output.visible(part["text"]).splitlines()
        case "thinking":
            return _maybe(f"thinking ({len(part['text'])} characters) ", part["text"], full)
        case "image":
            return [image(part)]
        case "earlier":
            return [_folded(f"{part['name']}: ", part["text"])]
        case "tool_use":
            return _call(toolcalls.read(part["name"], part["arguments"]), full)
        case "tool_result":
            images = "".join(f"{image(one)} " for one in part.get("images", ()))
            return _maybe(f"< {'error ' if part['is_error'] else ''}{images}", part["content"], full)
        case other:
            return [f"[{output.one_line(str(other), 40)}]"]


def image(part: Mapping[str, Any]) -> str:
    """Its name: media type, size where it came inline, and where from."""
    size = [output.size(part["bytes"])] if part.get("bytes") else []
    words = [output.one_line(part["media_type"], 40), *size, output.one_line(part["source"], 80)]
    return f"[image {', '.join(words)}]"


def timings(record: Mapping[str, Any]) -> str:
    """How long it took, until its first byte too, and how fast what followed came."""
    whole, first = record["duration_us"] / 1e6, record.get("first_byte_us")
    if first is None or not record.get("stream"):
        return output.duration(whole)
    rest, tokens = whole - first / 1e6, record["completion_tokens"]
    speed = f", {tokens / rest:.0f} tok/s" if tokens > 1 and rest > 0.05 else ""
    begun = f"{first // 1000} ms" if first < 1_000_000 else output.duration(first / 1e6)
    return f"{output.duration(whole)} (first byte {begun}{speed})"


def _call(call: toolcalls.Call, full: bool) -> list[str]:
    if not full:
        rest = f"  [{len(call.arguments)} characters]" if len(call.arguments) > _FOLD else ""
        return [output.dim(output.one_line(f"> {call.head}", _FOLD) + rest)]
    head = output.visible(f"> {call.head}", keep="")
    return [head, *(f"  {line}" for block in call.blocks() for line in output.visible(block.text).splitlines())]


def _maybe(mark: str, text: str, full: bool) -> list[str]:
    if not full:
        return [_folded(mark, text)]
    return [mark.rstrip(), *(f"  {line}" for line in output.visible(text).splitlines())]


def _folded(mark: str, text: str) -> str:
    line = output.one_line(text, _FOLD)
    rest = f"  [{len(text)} characters]" if line.endswith("…") else ""
    return output.dim(f"{mark}{line}{rest}")
