"""What may be stored: parsed or whole, and nothing that came along with a secret in it."""

import pytest

from daemon.core.redact import Redactor
from daemon.store.preparing import prepare
from tests.fakes.exchanges import exchange, transcript, user

KEY = "sk-proj-" + "a1B2c3D4" * 6
redact = Redactor(b"k").redact


@pytest.mark.parametrize(
    "changes",
    [
        {"model_asked": KEY}, {"cwd": f"/work/{KEY}"}, {"error": f"no such key: {KEY}"}, {"tags": {"note": KEY}},
        {"session_keys": ("plain", KEY)}, {"path": f"/v1/models?key={KEY}"}, {"commit": KEY}, {"subagent": KEY},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_whatever_came_along_loses_its_secret_and_nothing_else(changes: dict[str, object]) -> None:
    made = transcript([user("hi")])
    for _ in range(2):  # also where the same names came before
        clean = prepare(exchange(made, **changes), lambda: made, redact)
        assert KEY not in repr(clean.exchange)
        assert "[redacted:openai:" in repr(clean.exchange)
        assert clean.exchange.scenario == "default"


def test_an_answers_id_is_looked_at_where_the_answer_does_not_hold_it() -> None:
    made = transcript([user("hi")], answer_id=KEY)
    assert prepare(exchange(made), lambda: made, redact).transcript.answer_id != KEY


def test_what_holds_none_is_passed_on_as_it_is() -> None:
    made = transcript([user("hi")], response=b'{"id":"chatcmpl-1"}', answer_id="chatcmpl-1")
    sent = exchange(made)
    clean = prepare(sent, lambda: made, redact)
    assert clean.exchange is sent
    assert clean.transcript is made
