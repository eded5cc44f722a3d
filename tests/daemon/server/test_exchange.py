"""What a call knows of itself: how it goes upstream, and the exchange it becomes."""

import gc
import weakref
from urllib.parse import unquote

from daemon.core.prices import Price
from daemon.core.records import Dialect, End, Usage
from daemon.core.redact import Redactor
from daemon.server.exchange import Call
from daemon.server.identity import identify


def call(path: str = "/v1/chat/completions", query: bytes = b"") -> Call:
    scope = {
        "path": unquote(path), "raw_path": path.encode(), "query_string": query, "method": "POST",
        "headers": [(b"user-agent", b"pi/1.6.0")],
    }  # fmt: skip
    made = Call(Dialect.CHAT, scope, Redactor(b"key"))
    made.identity = identify(made.headers)
    return made


def test_a_call_goes_upstream_below_the_base_url() -> None:
    one = call("/v1/messages", b"beta=true")
    one.request = b"{}"
    sent = one.upstream()
    assert (sent.method, sent.path, sent.body) == ("POST", "/messages?beta=true", b"{}")


def test_its_path_goes_upstream_as_it_is_escaped() -> None:
    """Undone, the end of a line would begin a header, and a question mark a query."""
    path = "/files/a%20b%0d%0ax:%201%3Fc%2Fd%252e"
    assert call(f"/v1{path}").upstream().path == path


def test_a_finished_call_becomes_an_exchange() -> None:
    one = call()
    one.request, one.engine, one.model_asked, one.status = b"{}", "p", "m", 200
    one.first_byte()
    made = one.exchange(b"answer")
    assert (made.agent, made.engine, made.end, made.response) == ("pi", "p", End.OK, b"answer")
    assert made.first_byte_us is not None
    assert 0 <= made.first_byte_us <= made.duration_us


def test_the_engines_own_count_of_tokens_is_the_one_recorded() -> None:
    one = call()
    one.request = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    one.usage = Usage(prompt=7, completion=3, cached=2)
    assert one.transcript(b"")().usage == Usage(prompt=7, completion=3, cached=2)


def test_what_a_call_cost_is_reckoned_by_the_engines_name_for_its_model() -> None:
    one = call()
    one.request = b'{"model":"alias","messages":[{"role":"user","content":"x"}]}'
    one.usage, one.model_asked = Usage(prompt=1_000_000), "alias"
    assert one.transcript(b"")().usage.cost is None
    one.prices, one.model_there = {"large": Price(2.0, 4.0)}, "large"
    assert one.transcript(b"")().usage.cost == 2.0


def test_a_call_goes_with_its_bodies_as_soon_as_nobody_has_it() -> None:
    """In a cycle it would stay, megabytes and all, until the collector looks at old objects."""
    one = call()
    gone = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert gone() is None
    finally:
        gc.enable()
