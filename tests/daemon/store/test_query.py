"""What a person types, and what is made of it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UsageError
from daemon.store.query import Field, Query, parse

NOW = 1_700_000_000_000_000_000
DAY = 86_400_000_000_000


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query()),
        ("timeout", Query(words=("timeout",))),
        ("timeout -retry", Query(words=("timeout",), without=("retry",))),
        ("time*", Query(words=("time*",))),
        ('"two words"', Query(words=("two", "words"), phrases=("two words",))),
        ("foo_bar.py", Query(words=("foo", "bar", "py"), phrases=("foo_bar.py",))),
        ("http://x.org", Query(words=("http", "x", "org"), phrases=("http://x.org",))),
        ("std::vector", Query(words=("std", "vector"), phrases=("std::vector",))),
        ("agent:pi", Query(fields=(Field("agent", "pi"),))),
        ("-kind:side", Query(fields=(Field("kind", "side", True),))),
        ('model:"a model"', Query(fields=(Field("model", "a model"),))),
        ("status:429", Query(fields=(Field("status", "429"),))),
        ("score:bad -score:>=0.5", Query(fields=(Field("score", "bad"), Field("score", ">=0.5", True)))),
        ("tokens:>50k latency:<=1.5s", Query(fields=(Field("tokens", ">50k"), Field("latency", "<=1.5s")))),
        ("color: red", Query(words=("color", "red"), phrases=("color:",))),
        ("Agent:pi", Query(fields=(Field("agent", "pi"),))),
        ("since:2d", Query(since_ns=NOW - 2 * DAY)),
        # What SQLite has no number for.
        ("since:999999w until:9999-12-30", Query(since_ns=0, until_ns=(1 << 63) - 1)),
        ("since:0002-01-01", Query(since_ns=0)),
        ("until:1970-01-02T00:00:00+00:00", Query(until_ns=DAY)),
        ('"unclosed phrase', Query(words=("unclosed", "phrase"), phrases=("unclosed phrase",))),
        ("Größe naïve 日本", Query(words=("Größe", "naïve", "日本"))),
    ],
)
def test_a_query(text: str, query: Query) -> None:
    assert parse(text, NOW) == query


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour:red", "no field 'colour'"),
        ("kind:mian", "kind:mian"),
        ("status:broken", "status:broken"),
        ("has:luck", "has:luck"),
        ("since:yesterday", "since:yesterday"),
        ("since:99999999999d", "since:99999999999d"),
        ("until:2026-13-01", "until:2026-13-01"),
        ("-since:2d", "-since:"),
        ("score:fair", "score:fair is no number"),
        ("tokens:>many", "tokens:>many"),
        ("latency:>2h", "latency:>2h"),
        ("status:", "status: what?"),
        ("since: x", "since: what?"),
        ("!!!", "'!!!' holds no word"),
        ("-a_b", "more than one word"),
        ("a " * 33, "more than 32 terms"),
        ("x" * 2001, "2001 characters"),
    ],
)
def test_a_mistake_is_named_with_what_there_is(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        parse(text, NOW)
    assert named in caught.value.message


@given(st.text(max_size=200))
def test_anything_is_a_query_or_a_mistake(text: str) -> None:
    with suppress(UsageError):
        parse(text, NOW)
