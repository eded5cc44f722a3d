"""Which index a query walks, and that its values stay values."""

import pytest

from daemon.store.conditions import checks, walk
from daemon.store.query import parse


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("", "FROM record WHERE 1"),
        ("agent:pi timeout", "FROM words"),
        ("agent:pi scenario:work", "WHERE agent ="),
        ("agent:pi model:m", "WHERE model_asked ="),
        ("agent:pi status:failed", "INDEXED BY record_failed"),
        ("status:failed score:bad", "FROM reference"),
        ("has:feedback has:note", "p.feedback IS NOT NULL"),
        ("kind:main status:ok -agent:pi tokens:>5 latency:>1s release:3", "FROM record WHERE 1"),
        ("session:ses_01 agent:pi", "WHERE agent ="),
        (f"session:ses_{'0' * 26} agent:pi", "WHERE session ="),
    ],
)
def test_what_narrows_most_is_walked(query: str, table: str) -> None:
    assert table in walk(parse(query)).sql


def test_what_the_walk_answers_is_not_checked_again() -> None:
    for query, left in (
        ("agent:pi", ""),
        ("kind:side agent:pi", "coalesce(r.agent, 0) IN "),
        ("score:1", "p.score = ?"),
    ):
        condition, _ = checks(parse(query), walk(parse(query)))
        assert left in condition
        assert bool(condition) == bool(left)


@pytest.mark.parametrize("name", ["agent", "model", "scenario", "release", "session"])
@pytest.mark.parametrize("minus", ["", "-"])
def test_no_value_is_ever_sql(name: str, minus: str) -> None:
    value = "x'OR(1)--"
    query = parse(f"{minus}{name}:{value} since:2d until:1d")
    walked = walk(query)
    condition, values = checks(query, walked)
    assert value not in walked.sql + condition
    assert condition.count("?") == len(values)
    assert walked.sql.count("?") == len(walked.values)
