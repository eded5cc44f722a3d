"""What is counted, and that Prometheus can read it."""

from dataclasses import replace

from daemon.core.records import Appended, Dialect, End, Kind, Usage
from daemon.server.metrics import BUCKETS, Family, Metrics, text
from tests.fakes.exchanges import exchange, transcript, user
from tests.fakes.prometheus import parse

ONE = exchange(transcript([user("hello")]), duration_us=300_000, first_byte_us=20_000)
STORED = Appended(ONE.receipt, "ses_1", Kind.MAIN, 1, Usage(prompt=10, completion=5, cached=8))


def read(metrics: Metrics) -> dict[str, object]:
    return dict(parse(text(metrics.families()).decode()))


def test_nothing_counted_yet_is_well_formed() -> None:
    assert set(read(Metrics())) == {
        "reef_requests_total", "reef_request_duration_seconds", "reef_first_byte_seconds", "reef_tokens_total",
        "reef_cost_usd_total",
    }  # fmt: skip


def test_each_end_counts_once_under_its_labels() -> None:
    metrics = Metrics()
    metrics.ended(ONE, STORED)
    metrics.ended(ONE, STORED)
    metrics.ended(replace(ONE, end=End.ERROR, dialect=Dialect.MESSAGES, first_byte_us=None), None)
    found = parse(text(metrics.families()).decode())
    requests, first = found["reef_requests_total"], found["reef_first_byte_seconds"]
    assert requests.value("reef_requests_total", dialect="chat", engine="embedded", end="ok", kind="main") == 2
    assert requests.value("reef_requests_total", dialect="messages", engine="embedded", end="error", kind="none") == 1
    assert first.value("reef_first_byte_seconds_count", dialect="chat", engine="embedded") == 2
    assert ("reef_first_byte_seconds_count", frozenset({("dialect", "messages"), ("engine", "embedded")})) not in (
        first.samples
    )
    tokens = found["reef_tokens_total"]
    assert tokens.value("reef_tokens_total", engine="embedded", type="prompt") == 20
    assert tokens.value("reef_tokens_total", engine="embedded", type="cached") == 16


def test_what_is_known_of_costs_is_summed_by_engine() -> None:
    metrics = Metrics()
    for cost in (0.25, None, 0.5):
        metrics.ended(ONE, replace(STORED, usage=Usage(1, 1, cost=cost)))
    costs = parse(text(metrics.families()).decode())["reef_cost_usd_total"]
    assert costs.value("reef_cost_usd_total", engine="embedded") == 0.75


def test_a_duration_falls_into_every_bucket_from_its_own_on() -> None:
    metrics = Metrics()
    for microseconds in (5_000, 300_000, 10_000_000_000):
        metrics.ended(replace(ONE, duration_us=microseconds), STORED)
    found = parse(text(metrics.families()).decode())["reef_request_duration_seconds"]
    name = "reef_request_duration_seconds_bucket"
    below = [found.value(name, dialect="chat", engine="embedded", le=repr(bound)) for bound in BUCKETS]
    assert below == [2 if bound >= 0.3 else 1 for bound in BUCKETS], "a bound belongs to its bucket"
    assert found.value(name, dialect="chat", engine="embedded", le="+Inf") == 3


def test_what_a_client_sent_is_no_label() -> None:
    """Else each odd model name is a series for ever, and a key in one is on show."""
    metrics = Metrics()
    for number in range(100):
        metrics.ended(replace(ONE, model_asked=f"sk-{number}", scenario=f"s{number}", agent=f"a{number}"), STORED)
    assert b"sk-" not in text(metrics.families())
    assert len(parse(text(metrics.families()).decode())["reef_requests_total"].samples) == 1


def test_a_name_from_the_configuration_cannot_break_the_text() -> None:
    odd = 'a"b\\c\nd'
    told = parse(text([Family("reef_x", "gauge", "Odd.", {(("engine", odd),): 1})]).decode())["reef_x"]
    assert told.value("reef_x", engine='a\\"b\\\\c\\nd') == 1
