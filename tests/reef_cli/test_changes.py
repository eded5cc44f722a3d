"""What changed since the previous request, as lines."""

from typing import Any

from reef_cli.changes import lines

TOLD: dict[str, Any] = {
    "receipt": "rec_2", "previous": "rec_1", "edge": "next", "chained": False, "kept": 3, "messages": 4, "added": [],
    "broken": None, "settings": [], "prompt_tokens": 500, "cached_tokens": 0, "previous_tokens": 400,
}  # fmt: skip
PARTED = {"offset": 7, "was": "the date is 1 May", "now": ""}


def test_nothing_before_it() -> None:
    assert list(lines({"receipt": "rec_1", "previous": None})) == [
        "rec_1 is the first request there: none comes before it to compare it with"
    ]


def test_added() -> None:
    message = {"role": "user", "characters": 900, "begins": "go \x1b[1mon"}
    assert list(lines({**TOLD, "added": [message], "cached_tokens": 380})) == [
        "rec_2 after rec_1",
        "the beginning is the same: 3 messages",
        "+ added: user, 900 characters: go \\x1b[1mon",
        "read from the cache: 380 of 500 tokens",
    ]


def test_broken_in_the_middle_and_before_all_messages() -> None:
    broken = {"at": "message", "message": 3, "role": "user", "tokens": 250, **PARTED}
    setting = {"name": "temperature", "offset": 0, "was": "0", "now": "1"}
    assert list(lines({**TOLD, "broken": broken, "edge": "rewrite", "settings": [setting]})) == [
        "rec_2 after rec_1",
        "! the beginning is broken: message 4 (user) is another after 3 messages that are the same",
        "  the agent's rewrite",
        "  about 250 tokens of cache thrown away; first difference at character 8:",
        "- the date is 1 May",
        "+ (nothing)",
        "no message was added",
        "setting temperature differs:",
        "- 0",
        "+ 1",
    ]
    system = {**broken, "at": "system", "message": None, "role": None}
    assert "! the beginning is broken: the system prompt is another" in list(lines({**TOLD, "broken": system}))


def test_chained() -> None:
    assert "it names the answer that it goes on from; what was said before is not sent again" in list(
        lines({**TOLD, "chained": True})
    )
