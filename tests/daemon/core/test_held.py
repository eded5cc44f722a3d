"""A text redacted while it is written reads as it does once it is whole, and never shows half a secret before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.held import Held
from daemon.core.redact import Redactor

REDACT = Redactor(b"k" * 32).redact
OPENAI = "sk-proj-abcdefghij0123456789klmnop"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nbm9w+/x=\n-----END RSA PRIVATE KEY-----"
FRAGMENTS = (
    "Hello", "world,", " ", "\n", "\t", "日本語の文章です。", "naïve", "password: ", "password=", "hunter2hunter2",
    "pässwörd99", "Authorization: Bearer ", "AbCd1234EfGh5678IjKl", OPENAI, f'"{OPENAI}"', "api_key = ", "secret",
    "https://me:s3cr3t@host/x", "Cookie: a=AbCd1234EfGh5678IjKl; b=ZyXw9876VuTs5432RqPo", PEM, PEM.replace("\n", "\\n"),
    "-----BEGIN ", "-----END ", '{"path":"/tmp/x","content":"', '"}', "\ud800", "pwd = ", "=", ":", "'",
    "c2stcHJvai1hYmNkZWZnaGlqMDEyMzQ1Njc4OWtsbW5vcA==",
)  # fmt: skip


def whole(text: str) -> str:
    return REDACT(text.encode("utf-8", "replace"))[0].decode()


def shown(held: Held, text: str, size: int = 3) -> list[str]:
    return [held.feed(text[at : at + size]) for at in range(0, len(text), size)]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.integers(1, 17))
def test_pieces_come_to_what_the_whole_is(fragments: list[str], size: int) -> None:
    text = "".join(fragments)
    held = Held(REDACT)
    assert "".join(shown(held, text, size)) + held.finish() == whole(text)


def test_words_are_shown_as_they_come() -> None:
    held = Held(REDACT)
    assert [held.feed(piece) for piece in ("Hel", "lo, wor", "ld. ", "Bye")] == ["", "Hello, ", "world. ", ""]
    assert (held.waiting, held.finish(), held.waiting) == (3, "Bye", 0)


@pytest.mark.parametrize("secret", [OPENAI, "password = hunter2hunter2", PEM, PEM.replace("\n", "\\n")])
def test_half_a_secret_is_never_shown(secret: str) -> None:
    held = Held(REDACT)
    before = "".join(shown(held, f"it is {secret}"))
    after = held.feed(" and more words. ") + held.finish()
    assert "[redacted:" in after
    for part in (OPENAI[:12], "hunter2", "MIIEp"):
        assert part not in before + after


def test_alphabets_without_blanks_between_words_do_not_wait_for_one() -> None:
    held = Held(REDACT)
    assert held.feed("日本語の文章") == "日本語の文章"
    assert held.feed("password: pä") == "password: ", "it may be one with such letters"
    assert (
        held.feed("sswörd99 ")
        == "[redacted:credential:" + whole("password: pässwörd99").partition("credential:")[2] + " "
    )


def test_a_certificate_is_shown_once_it_is_whole() -> None:
    held = Held(REDACT)
    assert "".join(shown(held, "-----BEGIN CERTIFICATE-----\nMIIB ")) == ""
    assert held.feed("-----END CERTIFICATE-----\n").startswith("-----BEGIN CERTIFICATE-----")
