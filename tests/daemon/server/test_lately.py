"""What an engine's last answers say of its speed and its cache."""

from dataclasses import replace

from daemon.core.paths import Home
from daemon.core.records import Appended, End, Exchange, Kind, Usage
from daemon.engines.base import EngineState, EngineStatus
from daemon.server.lately import Lately
from tests.fakes.daemon import running_daemon
from tests.fakes.exchanges import exchange, transcript, user
from tests.fakes.provider import Turn, running_provider

STATUS = EngineStatus(name="p", kind="remote", state=EngineState.READY)


def streamed(seconds: float, first: float = 1.0, **changes: object) -> Exchange:
    made = exchange(transcript([user("q")]), engine="p", stream=True, first_byte_us=int(first * 1e6))
    return replace(made, duration_us=int((first + seconds) * 1e6), **changes)  # type: ignore[arg-type]


def stored(**usage: int) -> Appended:
    return Appended("rec_1", "ses_1", Kind.MAIN, 1, Usage(**usage))


def after(*answers: tuple[Exchange, Appended | None]) -> EngineStatus:
    lately = Lately()
    for one, appended in answers:
        lately.ended(one, appended)
    return lately.of(STATUS)


def test_an_engine_that_answered_nothing_is_unknown() -> None:
    assert after() == STATUS
    assert after((streamed(1), None), (streamed(1, end=End.ERROR), stored(prompt=10, completion=100))) == STATUS


def test_speed_is_counted_from_the_first_byte_on() -> None:
    told = after((streamed(2.0, first=9.0), stored(completion=100)), (streamed(3.0), stored(completion=400)))
    assert told.tokens_per_second == 100.0


def test_what_says_nothing_of_speed_is_left_out() -> None:
    whole, short, at_once = streamed(5.0, stream=False), streamed(5.0), streamed(0.01)
    tokens = stored(completion=1000)
    assert after((whole, tokens), (short, stored(completion=2)), (at_once, tokens)).tokens_per_second is None


def test_the_share_of_cached_tokens_is_over_all_prompts() -> None:
    answers = (stored(prompt=100, cached=90), stored(prompt=300, cached=10), stored(completion=5))
    assert after(*((streamed(1), one) for one in answers)).cache_hit == 0.25
    assert after((streamed(1), stored(prompt=10, cached=99))).cache_hit == 1.0, "some count wrong"


def test_only_the_last_answers_count() -> None:
    slow, fast = (streamed(10.0), stored(completion=20)), (streamed(1.0), stored(completion=200))
    assert after(*[slow] * 50, *[fast] * 20).tokens_per_second == 200.0


def test_what_an_engine_measures_itself_counts_first() -> None:
    lately = Lately()
    lately.ended(streamed(1.0), stored(completion=200))
    assert lately.of(replace(STATUS, tokens_per_second=31.26)).tokens_per_second == 31.3


def test_engines_are_told_apart() -> None:
    lately = Lately()
    lately.ended(streamed(1.0), stored(completion=200))
    assert lately.of(replace(STATUS, name="other")).tokens_per_second is None


def test_a_providers_streams_tell_how_fast_it_is(reef_home: Home) -> None:
    words = Turn("one two three four five six seven eight nine ten")
    with running_provider((words,)) as provider, running_daemon(reef_home, provider.config(api="anthropic")) as daemon:
        provider.pace = 0.03
        body = {"model": "m", "stream": True, "max_tokens": 99, "messages": [{"role": "user", "content": "count"}]}
        assert daemon.post("/v1/messages", body)[0] == 200
        status = daemon.get("/reef/status")["engines"][1]
    assert 0 < status["tokens_per_second"] < 42 / 0.2
