"""HTTP over the socket: every framing, errors in their classes, and a daemon that misbehaves."""

import json
from pathlib import Path

import pytest

from daemon.core import errors
from daemon.core.client import Client, error_from
from daemon.core.paths import Home
from tests.reef_cli.raw_server import answering, chunked, ok


def test_a_get_with_its_query(reef_home: Home) -> None:
    with answering(reef_home.socket, ok(b'{"items":[]}')) as server:
        assert Client(reef_home.socket).get("/reef/sessions", limit=5, before=None, scenario="a b") == {"items": []}
    head = server.requests[0].decode().splitlines()
    assert head[0] == "GET /reef/sessions?limit=5&scenario=a+b HTTP/1.1"
    assert "Host: localhost" in head


def test_a_post_is_json_in_its_scenario(reef_home: Home) -> None:
    with answering(reef_home.socket, ok(b'{"ok":true}')) as server:
        Client(reef_home.socket).post("/reef/report", {"feedback": "höre"}, scope="work/api")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    assert b"x-reef-scenario: work/api" in head
    assert b"Content-Length: %d" % len(body) in head
    assert json.loads(body) == {"feedback": "höre"}


def test_a_scenario_cannot_add_a_header(reef_home: Home) -> None:
    with answering(reef_home.socket, ok(b"{}")) as server:
        Client(reef_home.socket).post("/reef/report", {}, scope="a\r\nx-evil: 1")
    assert b"x-evil: 1" not in server.requests[0].partition(b"\r\n\r\n")[0].splitlines()


@pytest.mark.parametrize(
    "answer",
    [
        ok(b'{"a":\n [1]}'),
        chunked(b'{"a"', b":\n [1", b"]}"),
        b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"a":\n [1]}',
    ],
)
def test_every_framing_is_read(reef_home: Home, answer: bytes) -> None:
    with answering(reef_home.socket, answer):
        assert Client(reef_home.socket).get("/x") == {"a": [1]}


def test_content_is_the_bytes_themselves(reef_home: Home) -> None:
    body = b"\x00\r\n\x85\x0b\n\n{"
    with answering(reef_home.socket, ok(body, kind="application/octet-stream")):
        assert Client(reef_home.socket).content("/x") == body


def test_lines_come_one_by_one_whatever_the_chunks(reef_home: Home) -> None:
    with answering(reef_home.socket, chunked(b'{"n":1}\n{"n"', b":2}\n", b'\n{"n":3}')):
        assert list(Client(reef_home.socket).lines("/x", {})) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_events_are_named_and_comments_skipped(reef_home: Home) -> None:
    stream = b': reef\n\nevent: record\nid: 7\ndata: {"a":1}\n\n: still here\n\ndata: {"b":2}\n\n'
    with answering(reef_home.socket, chunked(stream)):
        assert list(Client(reef_home.socket).events("/x")) == [("record", {"a": 1}), ("message", {"b": 2})]


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        ("not_found", errors.NotFound),
        ("unknown_reference", errors.UnknownReference),
        ("unauthorised", errors.Unauthorised),
        ("conflict", errors.Conflict),
        ("context_overflow", errors.ContextOverflow),
        ("engine_unavailable", errors.EngineUnavailable),
        ("kind_of_a_newer_daemon", errors.ReefError),
    ],
)
def test_errors_come_back_in_their_class(kind: str, cls: type[errors.ReefError]) -> None:
    body = json.dumps({"error": {"kind": kind, "message": "what happened", "hint": "reef x"}}).encode()
    error = error_from(400, body)
    assert type(error) is cls
    assert (error.message, error.hint) == ("what happened", "reef x")


def test_an_error_answer_is_raised(reef_home: Home) -> None:
    body = errors.NotFound("no record rec_x", hint="reef traces list").envelope()
    answer = ok(json.dumps(body).encode(), status="404 Not Found")
    with answering(reef_home.socket, answer), pytest.raises(errors.NotFound, match="no record rec_x"):
        Client(reef_home.socket).get("/reef/records/rec_x")


def test_an_error_that_is_no_envelope_is_quoted() -> None:
    assert error_from(502, b"<html>bad").message == "the daemon answered 502: <html>bad"


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable, match="not running") as caught:
        Client(tmp_path / "none.sock").get("/healthz")
    assert caught.value.hint == "reef start"


def test_silence_ends_in_time(reef_home: Home) -> None:
    with answering(reef_home.socket, None), pytest.raises(errors.Unreachable, match=r"not answered for 0\.1 s"):
        Client(reef_home.socket, timeout=0.1).get("/healthz")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
        (b"\x00\xff\x80\n\n", "no HTTP"),
        (b"HTTP/1.1 fine\r\n\r\n", "ValueError"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "head has no end"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, "head has no end"),
        (ok(b"<html>", kind="text/html"), "JSONDecodeError"),
        (ok(b'{"items": ['), "JSONDecodeError"),
        (ok(b'"\xff"'), "UnicodeDecodeError"),
        (ok(b"[" * 100_000), "RecursionError"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}", "ValueError"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n{}", "ValueError"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n{}", "OverflowError"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}", "ValueError"),
    ],
)
def test_what_is_no_daemon_is_an_error_that_names_its_socket(reef_home: Home, answer: bytes, why: str) -> None:
    with answering(reef_home.socket, answer), pytest.raises(errors.ReefError, match=why) as caught:
        Client(reef_home.socket).get("/x")
    assert str(reef_home.socket) in caught.value.message
    assert caught.value.hint == "reef restart"


def test_a_socket_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 40)
    with pytest.raises(errors.Unreachable, match=r"cannot reach the daemon at .*longlong"):
        Client(path).get("/x")


def test_a_long_line_in_small_chunks_takes_no_longer_than_a_short_one(reef_home: Home) -> None:
    """Not joined anew with every chunk: that would be a terabyte of copying."""
    line = b'"' + b"a" * 20_000_000 + b'"'
    pieces = [line[n : n + 200] for n in range(0, len(line), 200)]
    with answering(reef_home.socket, chunked(*pieces, b"\n", b"1")):
        assert [len(row) for row in Client(reef_home.socket).rows("/x")] == [len(line) + 1, 1]


@pytest.mark.parametrize("answer", [b"", ok(b'{"a":1}')[:-3], chunked(b'{"a":', ended=False)])
def test_an_answer_cut_short_is_an_error(reef_home: Home, answer: bytes) -> None:
    with answering(reef_home.socket, answer), pytest.raises(errors.Unreachable, match="broke the connection off"):
        Client(reef_home.socket).get("/x")


@pytest.mark.parametrize(("whole", "end"), [(ok(b'{"a": [1, 2]}'), 0), (chunked(b'{"a":', b" [1, 2]}"), 4)])
def test_an_answer_that_is_cut_anywhere_is_no_answer(reef_home: Home, whole: bytes, end: int) -> None:
    """Of chunks, the last one's length says that nothing is missing."""
    cut = [whole[:length] for length in range(len(whole) - end)]
    with answering(reef_home.socket, *cut):
        for _ in cut:
            with pytest.raises(errors.ReefError):
                Client(reef_home.socket).get("/x")
