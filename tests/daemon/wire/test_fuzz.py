"""Whatever an agent or a provider sends: bytes come through, nothing but our own errors is raised, and the record says
what was wrong.

Inputs are real agents' requests and vendors' answers, damaged: pieces cut, doubled, swapped, replaced by other JSON.
``pytest -m slow`` tries many more.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.core.errors import BadRequest, EngineError
from daemon.core.records import ChatRequest, Dialect
from daemon.server.proxy import ROUTES
from daemon.wire import estimate, jsontext
from daemon.wire.base import dialect
from daemon.wire.reader import Reader
from daemon.wire.sse import EventReader, Relay, events
from tests.daemon.wire.test_agents import AGENTS, GOLDEN
from tests.fakes import shapes
from tests.fakes.responses_shape import Responses

THREE = (Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES)
CALLS = [("bash", '{"command": "ls"}'), ("read", '{"path": "a\\nb"}')]
SHAPES: dict[Dialect, Callable[[dict[str, Any]], Any]] = {
    Dialect.CHAT: lambda asked: shapes.Chat(asked, 400),
    Dialect.MESSAGES: lambda asked: shapes.Messages(asked, 400),
    Dialect.RESPONSES: lambda asked: Responses(asked, 400),
}
FEW = settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=5_000)
JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, -1, 1.5, 1e308, 2**70, "", "x", "\ud83d", "text", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "text", "content", "id", "error", "index"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def requests() -> list[tuple[Dialect, Any]]:
    found = []
    for agent in AGENTS:
        for one in json.loads((GOLDEN / f"{agent}.json").read_text("utf-8")):
            found.append((ROUTES[one["path"].partition("?")[0]], one["body"]))
    return found


REQUESTS = requests()


def answer(name: Dialect, *, stream: bool) -> bytes:
    shape = SHAPES[name]({"model": "m", "stream": stream, "stream_options": {"include_usage": True}})
    if stream:
        return b"".join(shape.events("Hello 🐟 you", CALLS, "hm"))
    return json.dumps(shape.body("Hello 🐟 you", CALLS, "hm")).encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged_json(draw: st.DrawFn, value: Any) -> Any:
    """With one to three values replaced."""
    for _ in range(draw(st.integers(1, 3))):
        value = put(value, draw(st.sampled_from(places(value))), draw(JSON))
    return value


@st.composite
def damaged_bytes(draw: st.DrawFn, raw: bytes) -> bytes:
    """With a piece cut out, doubled, or overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        start, size = draw(st.integers(0, len(raw))), draw(st.integers(0, 40))
        what = draw(
            st.sampled_from([b"", raw[start : start + size] * 2, *map(bytes, [[0], [255], b'"', b"\n\n", b"}"])])
        )
        raw = raw[:start] + what + raw[start + size :]
    return raw


@st.composite
def damaged_requests(draw: st.DrawFn) -> tuple[Dialect, bytes]:
    name, body = draw(st.sampled_from(REQUESTS))
    if draw(st.booleans()):
        body = draw(damaged_json(body))
        return name, json.dumps(body, ensure_ascii=draw(st.booleans())).encode("utf-8", "replace")
    return name, draw(damaged_bytes(json.dumps(body).encode()))


@st.composite
def damaged_answers(draw: st.DrawFn) -> tuple[Dialect, bytes, bool]:
    name, stream = draw(st.sampled_from(THREE)), draw(st.booleans())
    raw = answer(name, stream=stream)
    if not draw(st.booleans()):
        return name, draw(damaged_bytes(raw)), stream
    if not stream:
        return name, json.dumps(draw(damaged_json(json.loads(raw)))).encode("utf-8", "replace"), stream
    told = [data for _, data in events(raw)]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(told) - 1))
        if told[at] != "[DONE]":
            told[at] = json.dumps(draw(damaged_json(json.loads(told[at]))))
    order = draw(st.permutations(range(len(told)))) if draw(st.booleans()) else range(len(told))
    return name, b"".join(b"data: " + told[i].encode("utf-8", "replace") + b"\n\n" for i in order), stream


@st.composite
def chunks(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    return [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]


def check_request(name: Dialect, raw: bytes) -> None:
    codec = dialect(name)
    found = codec.transcript(raw, b"", stream=False, redact=lambda data: (data, 0))
    assert found.head + found.separator.join(one.raw for one in found.messages) + found.tail == raw
    for one in found.messages:
        codec.message(one.raw)
    try:
        request = codec.parse(raw)
    except BadRequest:
        return
    estimate.tokens(request)
    for target in THREE:
        check_written(request, target)


def check_written(request: ChatRequest, target: Dialect) -> None:
    """What is written for another vendor is JSON that our own parser of that dialect takes."""
    try:
        raw = dialect(target).write(request)
    except BadRequest:
        return
    body = json.loads(raw)
    if body.get("messages") or body.get("input"):
        dialect(target).parse(raw)


def check_answer(name: Dialect, raw: bytes, stream: bool) -> None:
    found = dialect(name).transcript(b"{}", raw, stream=stream, redact=lambda data: (data, 0))
    assert found.response == raw
    for target in THREE:
        renderer = dialect(target).renderer(ChatRequest("m", ()), "rec_1", "m", 1)
        try:
            told = read(dialect(name).reader("rec_1"), raw, stream)
            for event in told:
                renderer.event(event)
        except EngineError:
            continue
        renderer.finish()
        json.loads(renderer.body())


def read(reader: Reader, raw: bytes, stream: bool) -> list[Any]:
    """As `daemon.server.translation` does."""
    found: list[Any] = []
    if not stream:
        body = _object(raw.decode("utf-8", "replace"))
        return [*reader.whole(body), *reader.end()]
    source = EventReader()
    for name, data in [*source.feed(raw), *source.finish()]:
        found += [] if data == "[DONE]" else reader.event(name, _object(data))
    return [*found, *reader.end()]


def _object(data: str) -> dict[str, Any]:
    try:
        value = jsontext.decode(data)
    except jsontext.NotJson:
        value = None
    if not isinstance(value, dict):
        raise EngineError("no object")
    return value


def check_passing(raw: bytes, pieces: list[bytes]) -> None:
    relay = Relay()
    assert b"".join([*map(relay.feed, pieces), relay.release()]) == raw
    source = EventReader()
    split = [event for piece in pieces for event in source.feed(piece)]
    assert [*split, *source.finish()] == list(events(raw))


@FEW
@given(damaged_requests())
def test_damaged_requests(case: tuple[Dialect, bytes]) -> None:
    check_request(*case)


@FEW
@given(damaged_answers())
def test_damaged_answers(case: tuple[Dialect, bytes, bool]) -> None:
    check_answer(*case)


@FEW
@given(st.data())
def test_streams_pass_however_they_are_damaged_and_cut(data: st.DataObject) -> None:
    raw = data.draw(damaged_bytes(answer(data.draw(st.sampled_from(THREE)), stream=True)))
    check_passing(raw, data.draw(chunks(raw)))


@pytest.mark.slow
@MANY
@given(damaged_requests())
def test_many_damaged_requests(case: tuple[Dialect, bytes]) -> None:
    check_request(*case)


@pytest.mark.slow
@MANY
@given(damaged_answers())
def test_many_damaged_answers(case: tuple[Dialect, bytes, bool]) -> None:
    check_answer(*case)


@pytest.mark.slow
@MANY
@given(st.data())
def test_many_damaged_streams(data: st.DataObject) -> None:
    raw = data.draw(damaged_bytes(answer(data.draw(st.sampled_from(THREE)), stream=True)))
    check_passing(raw, data.draw(chunks(raw)))
