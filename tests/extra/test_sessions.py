"""Every captured exchange of real agents falls into its session, with its kind; what was tried again counts once."""

import json
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from daemon.core.records import Appended, Dialect, End, Exchange, Kind
from daemon.server.identity import identify
from daemon.server.proxy import ROUTES
from daemon.store.db import Store
from daemon.wire import canonical
from daemon.wire.base import dialect
from tests.daemon.wire.resent import stream_of, wire_bytes
from tests.extra.test_cases import AGENTS, CAPTURES
from tests.fakes.exchanges import STARTED_NS

pytestmark = pytest.mark.skipif(not AGENTS, reason=f"no captures at {CAPTURES}")

#: Sessions, and the kinds of all records in order: m(ain), s(ub-agent), c (a side call, a chore), r(etry).
EXPECTED = {
    "aider": (1, "mc"),
    "claude-code": (1, "mmmmmm"),
    "claude-code-fail-mid": (1, "mr"),
    "claude-code-subagent": (1, "msmsssssm"),
    "codex": (1, "mmmmmm"),
    "codex-fail-429x2": (1, "mrr"),
    "codex-fail-mid": (1, "mm"),
    "hermes-agent": (1, "mmmc"),
    "mistral-vibe": (1, "mmm"),
    "opencode": (1, "cmmmmmm"),
    "opencode-command": (1, "cmmm"),
    "opencode-responses": (1, "cmmm"),
    "pi": (1, "mmmmmm"),
    "pi-0.74.2-node20": (2, "mmmmmmmmm"),
    "pi-anthropic": (1, "mmm"),
    "pi-cancel": (1, "m"),
    "pi-fail-drop": (1, "mr"),
    "pi-fail-mid": (1, "mr"),
    "pi-responses": (1, "mmm"),
    "qwen-code": (1, "mmmmmm"),
    "qwen-code-fail-mid": (1, "mmc"),
}
#: The captures have filler for long texts. Where it hides the words that an agent or its chore is known by, they are
#: put back.
HIDDEN = {
    "aider/001": "Act as an expert software developer. Always use best practices when coding.",
    "aider/002": "You are an expert software engineer that generates concise, one-line Git commit messages",
    "qwen-code-fail-mid/003": "Managed memory has TWO directories",
}
_LETTERS = {Kind.MAIN: "m", Kind.SUBAGENT: "s", Kind.SIDE: "c", Kind.RETRY: "r"}


def end_of(response: dict[str, Any]) -> End:
    if response.get("client_disconnect"):
        return End.CANCELLED
    if response.get("dropped"):
        return End.INCOMPLETE
    return End.ERROR if response["status"] >= 400 else End.OK


def said(capture: dict[str, Any]) -> list[Any]:
    body = capture["body"]
    found = (body.get("messages") or body.get("input")) if isinstance(body, dict) else None
    return found if isinstance(found, list) else []


def answer_to(capture: dict[str, Any], later: list[dict[str, Any]]) -> bytes:
    """The answer, put together from what the agent sent of it next: in the captures it is filler."""
    here = said(capture)
    for other in map(said, later):
        if len(other) <= len(here) or not here or not same(other[len(here) - 1], here[-1]):
            continue
        if "input" in capture["body"]:
            items = list(takewhile(is_of_the_model, other[len(here) :]))
            return stream_of(items) if items else b""
        if other[len(here)].get("role") == "assistant":
            return stream_of(other[len(here)])
    return b""


def is_of_the_model(item: dict[str, Any]) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if "type" in one:
        return one == other
    codec = dialect(Dialect.MESSAGES if isinstance(one.get("content"), list) else Dialect.CHAT)
    keys = [canonical.key(codec.message(wire_bytes(message))) for message in (one, other)]
    return keys[0] == keys[1]


def replay(store: Store, agent: str) -> list[Appended]:
    found: list[Appended] = []
    files = sorted((CAPTURES / agent).glob("*.json"))
    captures = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for number, (file, capture) in enumerate(zip(files, captures, strict=True)):
        if not isinstance(capture["body"], dict):
            continue
        name = ROUTES.get(capture["path"].partition("?")[0])
        if name is None:
            continue
        if hidden := HIDDEN.get(f"{agent}/{file.stem}"):
            capture["body"]["messages"][0]["content"] = hidden
        headers = {key.lower(): value for key, value in capture["headers"]}
        who, response = identify(headers), capture["response"]
        request, answer = wire_bytes(capture["body"]), answer_to(capture, captures[number + 1 :])
        exchange = Exchange(
            receipt=f"rec_{agent}_{number}", scenario=who.scenario, dialect=name, path=capture["path"],
            started_ns=STARTED_NS + number, duration_us=1, first_byte_us=None, request=request, response=answer,
            stream=bool(capture["body"].get("stream")), status=response["status"] or 0, end=end_of(response),
            engine="e", model_asked="m", release_id="default@0", agent=who.agent, session_keys=who.session_keys,
            subagent=who.subagent, spawner=who.spawner, side=who.side, cwd=who.cwd, commit=who.commit, tags=who.tags,
        )  # fmt: skip
        codec = dialect(name)
        found.append(
            store.append(
                exchange,
                lambda codec=codec, exchange=exchange: codec.transcript(  # type: ignore[misc]
                    exchange.request, exchange.response, stream=exchange.stream, redact=lambda raw: (raw, 0)
                ),
            ).result(20)
        )
    return found


@pytest.mark.parametrize("agent", AGENTS or ["none"])
def test_each_lands_in_its_session_with_its_kind(agent: str, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store" / "reef.db", durability="normal")
    try:
        found = replay(store, agent)
        kinds = "".join(_LETTERS[one.kind] for one in found)
        assert (len({one.session for one in found}), kinds) == EXPECTED[agent]
        turns = sum(store.session(session).turns for session in {one.session for one in found})
        calls = Counter(kinds)["m"] - (agent in ("qwen-code-fail-mid", "codex-fail-mid", "pi-cancel"))
        assert turns == calls
        assert store.verify() == []
    finally:
        store.close()
